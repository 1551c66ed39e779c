"""The reduced instance: representatives of all orbits, traced as ordinary tensors are.

Each part keeps the cells all of whose slot values lie in representative orbits.  Families are
carried out on these small arrays.  Each edge found there stands for as many edges of elements
as the orbits of its cell have injective maps into all orbits of their types, divided by those
into the representatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import InternalError, SizeError
from layoutopt.base.numbers import distinct, ranges
from layoutopt.graphs.locations import mapping_of
from layoutopt.graphs.ops import Array
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.classes.families import NOTHING, VIEW
from layoutopt.lowering.classes.orbits import Orbits
from layoutopt.lowering.elements.groups import EdgeList, Edges, Numbering, numbering
from layoutopt.network.problem import IntArray, WeightArray


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
        total = total[..., None] + slot.flat(runs.values(cells.run[s], cells.place[s]))
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
    found: IntArray = np.array(numbers)[which][inverse]
    return found


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


CELLS_LIMIT = 3 * 10**7  # the most cells, of all parts together, that are traced


@dataclass(frozen=True, eq=False)
class TracedCells:
    """The cells of all parts, traced to their roots."""

    cells: Representatives
    # numbers of the cells of free root parts, then of fixed ones, then of mapped locations
    numbers: Numbering
    roots: tuple[int, ...]  # the root parts in that order
    # for each part the numbers of its cells' roots, -1 where a cell stands for nothing
    tensors: tuple[Array, ...]
    names: IntArray  # for the cell of each number its location: that of its name, or its own


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduced(TracedCells):
    """A group's edges on representative cells."""

    edges: Edges  # edges between cells, numbered as these are
    agree: IntArray  # for each edge that agrees, as an index of `times`, how many it stands for
    earn: IntArray  # the same for edges that earn
    times: tuple[Fraction, ...]  # those numbers
    # for each free cell and location that an edge ties it to, a fixed cell at that location: rows
    # of free cells, locations, and fixed cells
    at: IntArray


def reduce_group(graph: GraphStore, orbits: Orbits, values: Sequence[int], tiles: int) -> Reduced:
    """Trace the representative cells of a group; values of pairs are in one unit.

    ``tiles`` is that of :func:`~layoutopt.lowering.elements.groups.numbering`.
    """
    traced = trace_group(graph, orbits, tiles)
    builder = _Edges(traced)
    for f, family in enumerate(orbits.slotted.system.families):
        if family.pair != VIEW and values[family.pair]:
            builder.add(f, values[family.pair])
    return builder.finish()


def trace_group(graph: GraphStore, orbits: Orbits, tiles: int = 0) -> TracedCells:
    """Trace the representative cells of all parts; raise ``SizeError`` if there are too many.

    ``tiles`` is that of :func:`~layoutopt.lowering.elements.groups.numbering`.
    """
    cells = keep_cells(orbits)
    count = sum(math.prod(cells.shape(p)) for p in range(len(orbits.slotted.of)))
    if count > CELLS_LIMIT:
        raise SizeError(f"irregular views: {count:,} cells are left, the limit is {CELLS_LIMIT:,}")
    numbers, roots = _number(graph, cells, tiles)
    tensors = _traced(cells, numbers, roots)
    return TracedCells(cells, numbers, roots, tensors, _names(graph, cells, numbers, roots))


def _number(
    graph: GraphStore, cells: Representatives, tiles: int
) -> tuple[Numbering, tuple[int, ...]]:
    """Number the cells of root parts, free ones first."""
    parts = cells.orbits.slotted.system.parts
    free = [p for p, part in enumerate(parts) if part.root and part.free]
    fixed = [p for p, part in enumerate(parts) if part.root and not part.free]
    sizes = [int(np.prod(cells.shape(p), dtype=np.int64)) for p in (*free, *fixed)]
    sinks, others = (tuple(parts[p].tensor for p in some) for some in (free, fixed))
    return numbering(graph, sinks, others, sizes, tiles), (*free, *fixed)


def _names(
    graph: GraphStore, cells: Representatives, numbers: Numbering, roots: Sequence[int]
) -> IntArray:
    """Return the location of each number's cell."""
    parts, place = cells.orbits.slotted.system.parts, numbers.place()
    names = np.arange(numbers.total)
    for p, start in zip(roots, numbers.starts.tolist(), strict=False):
        mapping = mapping_of(graph, parts[p].tensor)
        if mapping is not None and parts[p].size:
            flat = flat_elements(cells, p).reshape(-1)
            flat = np.minimum(flat, parts[p].size - 1) + parts[p].start  # some are no elements
            names[start : start + len(flat)] = mapping.places(place, flat)
    return names


def _traced(cells: Representatives, numbers: Numbering, roots: Sequence[int]) -> tuple[Array, ...]:
    """Return the root numbers of the cells of every part."""
    slotted = cells.orbits.slotted
    tensors = [np.full(cells.shape(p), -1) for p in range(len(slotted.system.parts))]
    own = dict(zip(roots, numbers.starts.tolist(), strict=False))
    families = slotted.system.families
    for f in sorted(range(len(families)), key=lambda f: families[f].out):
        family = families[f]
        if family.pair != VIEW:
            continue
        out, inp = family_cells(cells, f)
        if family.inp != NOTHING:
            tensors[family.out][out] = tensors[family.inp][inp]
            continue
        array = tensors[family.out]
        count = np.arange(array.size).reshape(array.shape)[out]
        array[out] = own[family.out] + count
    return tuple(tensors)


class _Edges:
    """Edges as they are found."""

    def __init__(self, traced: TracedCells) -> None:
        self.traced = traced
        self.times: dict[Fraction, int] = {}
        self.worth: dict[Fraction, int] = {}
        self.constant = Fraction(0)
        self.rows: list[IntArray] = []
        self.at: list[IntArray] = []

    def add(self, f: int, value: int) -> None:
        """Add the edges of a ValuedPair's family."""
        cells, tensors = self.traced.cells, self.traced.tensors
        family = cells.orbits.slotted.system.families[f]
        out, inp = family_cells(cells, f)
        x, y = tensors[family.out][out], tensors[family.inp][inp]
        x, y = (a.reshape(-1) for a in np.broadcast_arrays(x, y))
        if (x < 0).any() or (y < 0).any():
            raise InternalError("a cell comes from nowhere")
        times = cell_times(cells, family.out, out, self.times)
        parallel: dict[Fraction, int] = {}
        worth = cell_times(cells, family.out, out, parallel, rooted=False)
        index = [self.worth.setdefault(value * n, len(self.worth)) for n in parallel]
        self._keep(x, y, times, np.array(index, np.int64)[worth])

    def _keep(self, x: IntArray, y: IntArray, times: IntArray, worth: IntArray) -> None:
        """Keep edges of which an end is free, and count what is earned in any case."""
        free, names = self.traced.numbers.free, self.traced.names
        sure = names[x] == names[y]
        rows, of = distinct([times[sure], worth[sure]])
        all_times, all_worth = list(self.times), list(self.worth)
        for (i, j), n in zip(rows.T.tolist(), np.bincount(of).tolist(), strict=True):
            self.constant += all_times[i] * all_worth[j] * n
        low, high = np.minimum(x, y), np.maximum(x, y)
        kept = ~sure & (low < free)
        tied = kept & (high >= free)
        self.at.append(distinct([low[tied], names[high[tied]], high[tied]])[0])
        high = names[high]
        self.rows.append(np.stack([low[kept], high[kept], times[kept], worth[kept]]))

    def finish(self) -> Reduced:
        """Add up parallel edges, which must give whole numbers, and return everything."""
        low, high, times, worth = np.concatenate([np.zeros((4, 0), np.int64), *self.rows], axis=1)
        ends, of = distinct([low, high, times])
        unit = math.lcm(1, *(worth.denominator for worth in self.worth))
        total = added([int(w * unit) for w in self.worth], worth, of, ends.shape[1])
        worths, kind = np.unique(total, return_inverse=True)
        if self.constant.denominator != 1 or any(n % unit for n in worths.tolist()):
            raise InternalError("representatives do not add up to whole elements")
        values = tuple(n // unit for n in worths.tolist())
        agree = ends[1] < self.traced.numbers.free
        bonds, ties = (EdgeList(ends[0, w], ends[1, w], kind[w]) for w in (agree, ~agree))
        return Reduced(
            **vars(self.traced),
            edges=Edges(self.traced.numbers, values, bonds, ties, int(self.constant)),
            agree=ends[2, agree],
            earn=ends[2, ~agree],
            times=tuple(self.times),
            at=np.concatenate([np.zeros((3, 0), np.int64), *self.at], axis=1),
        )


def added(worth: list[int], which: IntArray, of: IntArray, count: int) -> WeightArray:
    """Add up numbers by group, exactly.

    ``worth`` holds the distinct numbers, ``which`` the one that each row has, ``of`` the group of
    each row, of which there are ``count``.
    """
    small = sum(map(abs, worth)) * max(len(which), 1) < 2**62
    table = np.array(worth, np.int64 if small else object)
    total: WeightArray = np.zeros(count, table.dtype)
    np.add.at(total, of, table[which])
    return total
