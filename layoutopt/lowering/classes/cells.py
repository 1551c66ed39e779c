"""Cells: the elements all of whose slot values lie in representative orbits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import InternalError
from layoutopt.base.numbers import ranges
from layoutopt.lowering.classes.families import NOTHING
from layoutopt.lowering.classes.orbits import Orbits
from layoutopt.lowering.elements.numbering import distinct
from layoutopt.network.problem import IntArray


@dataclass(frozen=True, eq=False)
class Representatives:
    """The kept values of every slot."""

    orbits: Orbits
    base: IntArray  # position of each run's first kept value among those of its slot
    run: tuple[IntArray, ...]  # for each slot the run of each kept value
    place: tuple[IntArray, ...]  # its position on the strand

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
        return ranges(self.base[runs], count)


def keep_cells(orbits: Orbits) -> Representatives:
    """Return the kept values of every slot."""
    runs = orbits.runs
    count = orbits.count[runs.strand]
    total = np.cumsum(count) - count
    base = total - total[np.minimum(runs.first[runs.slot], len(total) - 1)] if len(total) else total
    found, places = [], []
    for a, b in pairwise(runs.first.tolist()):
        own = count[a:b]
        found.append(np.repeat(np.arange(a, b), own))
        places.append(ranges(0, own))
    return Representatives(orbits, base, tuple(found), tuple(places))


def flat_elements(cells: Representatives, part: int) -> IntArray:
    """Return the flat element, within the part, that each cell is."""
    runs = cells.orbits.runs
    total: IntArray = np.zeros((), np.int64)
    for s in cells.orbits.slotted.of[part]:
        slot = cells.orbits.slotted.slots[s]
        total = total[..., None] + slot.flats(runs.values(cells.run[s], cells.place[s]))
    return total


Index: TypeAlias = tuple[IntArray, ...]
"""For each slot of a part positions of kept values, to be broadcast against each other."""


def family_cells(cells: Representatives, f: int) -> tuple[Index, Index]:
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
    cells: Representatives,
    part: int,
    index: Sequence[IntArray],
    known: dict[Fraction, int],
    rooted: bool = True,
) -> IntArray:
    """Return how many elements each cell of a part stands for, as indices in ``known``, flat.

    With ``n_t`` orbits of type ``t``, ``r_t`` of them representatives, a cell with ``k_t``
    different orbits of each type stands for the product of ``n_t (n_t - 1) ... (n_t - k_t + 1) /
    (r_t (r_t - 1) ... (r_t - k_t + 1))``.

    ``index`` has for each slot of the part positions of kept values, to be broadcast; new numbers
    are added to ``known``.  Counted are axes that reach roots if it is ``rooted``, or the others.
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
    rows, inverse = distinct(columns)
    above, below = _ratios(orbits, rows)
    pairs, which = distinct([above, below])
    numbers = [known.setdefault(Fraction(n, d), len(known)) for n, d in pairs.T.tolist()]
    return np.array(numbers)[which][inverse]


def cell_sets(cells: Representatives, part: int, index: Sequence[IntArray]) -> IntArray:
    """Return how many elements of a part are written out as each cell is.

    Elements whose orbits of a type are so many, in whatever order of their numbers, follow the cell
    that has the first representatives in the same order.  With ``n_t`` orbits of type ``t``, a cell
    with the first ``k_t`` of each type stands for ``binomial(n_t, k_t)`` elements for each type,
    multiplied; all other cells for none.  ``index`` has for each slot of the part positions of kept
    values, all of one shape.
    """
    orbits = cells.orbits
    kinds = [cells.kind(s) for s in orbits.slotted.of[part]]
    if not kinds:
        return np.ones(np.broadcast_shapes(*(i.shape for i in index)), object)
    types = np.stack([type_[i] for (type_, _), i in zip(kinds, index, strict=True)])
    orbit = np.stack([own[i] for (_, own), i in zip(kinds, index, strict=True)])
    fresh = np.ones(types.shape, bool)
    for s in range(len(types)):
        fresh[s] = ~((types[:s] == types[s]) & (orbit[:s] == orbit[s])).any(axis=0)
    above, below = np.ones(types.shape[1:], object), np.ones(types.shape[1:], object)
    first = np.ones(types.shape[1:], bool)
    for s, own in enumerate(types):
        before = (fresh[:s] & (types[:s] == own)).sum(axis=0)
        above *= np.where(fresh[s], orbits.copies[own] - before, 1)
        below *= np.where(fresh[s], before + 1, 1)
        first &= orbit[s] < (fresh & (types == own)).sum(axis=0)
    return np.where(first, above // below, 0)


def _ratios(orbits: Orbits, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers for one different orbit of each listed type, as fractions in lowest terms.

    Types have shape ``(slots, rows)``; -1 is none.
    """
    most = np.prod([float(orbits.copies[types].max(initial=1)) for types in rows])
    kind = np.int64 if most < 2**62 else object
    above, below = np.ones(rows.shape[1], kind), np.ones(rows.shape[1], kind)
    for s, types in enumerate(rows):
        again = (rows[:s] == types).sum(axis=0)
        some = types >= 0
        above *= np.where(some, orbits.copies[types] - again, 1)
        below *= np.where(some, orbits.kept[types] - again, 1)
    common = np.gcd(above, below)
    return above // common, below // common
