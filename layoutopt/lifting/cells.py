"""Cells: the elements all of whose slot values lie in representative orbits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from layoutopt.errors import InternalError
from layoutopt.lifting.families import NOTHING
from layoutopt.lifting.orbits import Orbits
from layoutopt.problem import IntArray


@dataclass(frozen=True, eq=False)
class Cells:
    """The kept values of every slot.

    Parameters
    ----------
    orbits
        The orbits.
    base
        Position of each run's first kept value among those of its slot.
    run, place
        For each slot the run of each kept value, and its position on the strand.
    """

    orbits: Orbits
    base: IntArray
    run: tuple[IntArray, ...]
    place: tuple[IntArray, ...]

    def shape(self, part: int) -> tuple[int, ...]:
        """Return how many values of each slot of a part are kept."""
        return tuple(len(self.run[s]) for s in self.orbits.slotted.of[part])

    def kind(self, slot: int) -> tuple[IntArray, IntArray]:
        """Return type and representative of each kept value of a slot."""
        strand = self.orbits.runs.strand[self.run[slot]]
        return self.orbits.type[strand], self.orbits.first[strand] + self.place[slot]

    def indices(self, runs: IntArray) -> IntArray:
        """Return the positions of all kept values of some runs, run by run."""
        count = self.orbits.count[self.orbits.runs.strand[runs]]
        step = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        found: IntArray = np.repeat(self.base[runs], count) + step
        return found


def keep_cells(orbits: Orbits) -> Cells:
    """Return the kept values of every slot."""
    runs = orbits.runs
    count = orbits.count[runs.strand]
    total = np.cumsum(count) - count
    base = total - total[np.minimum(runs.first[runs.slot], len(total) - 1)] if len(total) else total
    found, places = [], []
    for a, b in pairwise(runs.first.tolist()):
        own = count[a:b]
        found.append(np.repeat(np.arange(a, b), own))
        places.append(np.arange(int(own.sum())) - np.repeat(np.cumsum(own) - own, own))
    return Cells(orbits, base, tuple(found), tuple(places))


def flat_elements(cells: Cells, part: int) -> IntArray:
    """Return the flat element, within the part, that each cell is."""
    runs = cells.orbits.runs
    total: IntArray = np.zeros((), np.int64)
    for s in cells.orbits.slotted.of[part]:
        slot = cells.orbits.slotted.slots[s]
        run, step = cells.run[s], cells.place[s]
        step = np.where(runs.reversed[run], runs.length[run] - 1 - step, step)
        flat = np.array([slot.flat(v) for v in (runs.start[run] + step).tolist()], np.int64)
        total = total[..., None] + flat
    return total


Index: TypeAlias = tuple[IntArray, ...]
"""For each slot of a part positions of kept values, to be broadcast against each other."""


def family_cells(cells: Cells, f: int) -> tuple[Index, Index]:
    """Return the cells that a family relates, on either side."""
    slotted = cells.orbits.slotted
    family, runs = slotted.system.families[f], cells.orbits.runs
    outs, inps = {}, {}
    slots = slotted.of[family.out]
    for block, join in zip(slotted.blocks[f], cells.orbits.joins[f], strict=True):
        axis = slots.index(block.out)
        shape = [-1 if a == axis else 1 for a in range(len(slots))]
        outs[block.out] = cells.indices(join.out).reshape(shape)
        if block.inp != NOTHING:
            inps[block.inp] = cells.indices(join.inp).reshape(shape)
    still_out, still_in = cells.orbits.still[f]
    for still, found in ((still_out, outs), (still_in, inps)):
        for s, run in still.items():
            if cells.orbits.count[runs.strand[run]] == 0:
                raise InternalError("a value that nothing equals has no representative")
            found[s] = np.array(cells.base[run])
    inner = () if family.inp == NOTHING else slotted.of[family.inp]
    return tuple(outs[s] for s in slots), tuple(inps[s] for s in inner)


def cell_times(
    cells: Cells,
    part: int,
    index: Sequence[IntArray],
    known: dict[Fraction, int],
    rooted: bool = True,
) -> IntArray:
    """Return how many elements each cell of a part stands for.

    With ``n_t`` orbits of type ``t``, ``r_t`` of them representatives, a cell with ``k_t``
    different orbits of each type stands for the product of
    ``n_t (n_t - 1) ... (n_t - k_t + 1) / (r_t (r_t - 1) ... (r_t - k_t + 1))``.

    Parameters
    ----------
    index
        For each slot of the part positions of kept values, to be broadcast.
    known
        Numbers that have an index already; new ones are added.
    rooted
        Whether to count on axes that reach roots, or on the others.

    Returns
    -------
    array
        Flat: the index in ``known`` of each cell's number.
    """
    orbits = cells.orbits
    shape = np.broadcast_shapes(*(i.shape for i in index))
    columns: list[IntArray] = []
    told: list[tuple[IntArray, IntArray]] = []
    for s, i in zip(orbits.slotted.of[part], index, strict=True):
        if orbits.rooted[s] != rooted:
            continue
        type_, orbit = (column[i] for column in cells.kind(s))
        some = orbits.copies[type_] != orbits.kept[type_]
        if not some.any():
            continue
        again = np.zeros(shape, bool)
        for other_type, other_orbit in told:
            again |= (other_type == type_) & (other_orbit == orbit)
        told.append((type_, orbit))
        fresh = np.broadcast_to(np.where(some, type_, -1), shape)
        columns.append(np.where(again, -1, fresh).reshape(-1))
    if not columns:
        size = int(np.prod(shape, dtype=np.int64))
        return np.full(size, known.setdefault(Fraction(1), len(known)))
    rows, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    numbers = [known.setdefault(_ratio(orbits, row), len(known)) for row in rows.tolist()]
    return np.array(numbers)[inverse.reshape(-1)]


def _ratio(orbits: Orbits, types: Sequence[int]) -> Fraction:
    """Return the number for one different orbit of each listed type; -1 is none."""
    seen: dict[int, int] = {}
    ratio = Fraction(1)
    for t in types:
        if t >= 0:
            j = seen.get(t, 0)
            ratio *= Fraction(int(orbits.copies[t]) - j, int(orbits.kept[t]) - j)
            seen[t] = j + 1
    return ratio
