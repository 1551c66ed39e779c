"""The reduced instance: representatives of all orbits, traced as ordinary tensors are.

Each part keeps the cells all of whose slot values lie in representative orbits.  Families are
carried out on these small arrays.  Each edge found there stands for as many edges of elements
as the orbits of its cell have injective maps into all orbits of their types, divided by those
into the representatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from layoutopt.dense.edges import EdgeList, Edges
from layoutopt.dense.numbering import Numbering, mapping_of
from layoutopt.errors import InternalError, SizeError
from layoutopt.graphs.op import Array
from layoutopt.graphs.store import Store
from layoutopt.lifting.cells import Cells, cell_times, family_cells, flat_elements, keep_cells
from layoutopt.lifting.families import NOTHING, VIEW
from layoutopt.lifting.orbits import Orbits
from layoutopt.problem import IntArray

CELLS_LIMIT = 3 * 10**7
"""The most cells, of all parts together, that are traced."""


@dataclass(frozen=True, eq=False)
class Traced:
    """The cells of all parts, traced to their roots.

    Parameters
    ----------
    cells
        The cells.
    numbers
        Numbers of the cells of free root parts, then of fixed ones, then of mapped locations.
    roots
        The root parts in that order.
    tensors
        For each part the numbers of its cells' roots, -1 where a cell stands for nothing.
    """

    cells: Cells
    numbers: Numbering
    roots: tuple[int, ...]
    tensors: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Reduced:
    """A group's edges on representative cells.

    Parameters
    ----------
    cells
        The cells.
    edges
        Edges between cells; its numbers count the cells of free root parts, then those of fixed
        ones, then mapped locations.
    roots
        The root parts in that order, free ones first.
    tensors
        For each part the numbers of its cells' roots, -1 where a cell stands for nothing.
    agree, earn
        For each edge the number of element edges that it stands for, as an index of ``times``.
    times
        Those numbers.
    """

    cells: Cells
    edges: Edges
    roots: tuple[int, ...]
    tensors: tuple[Array, ...]
    agree: IntArray
    earn: IntArray
    times: tuple[Fraction, ...]


def reduce_group(graph: Store, orbits: Orbits, values: Sequence[int]) -> Reduced:
    """Trace the representative cells of a group.

    Parameters
    ----------
    values
        The value of each of the graph's pairs, as multiples of one unit.
    """
    traced = trace_group(graph, orbits)
    builder = _Edges(traced.cells, traced.numbers, traced.tensors)
    for f, family in enumerate(orbits.slotted.system.families):
        if family.pair != VIEW and values[family.pair]:
            builder.add(f, values[family.pair])
    return builder.finish(traced.roots)


def trace_group(graph: Store, orbits: Orbits) -> Traced:
    """Trace the representative cells of all parts.

    Raises
    ------
    SizeError
        If there are too many.
    """
    cells = keep_cells(orbits)
    count = sum(math.prod(cells.shape(p)) for p in range(len(orbits.slotted.of)))
    if count > CELLS_LIMIT:
        raise SizeError(f"irregular views: {count:,} cells are left, the limit is {CELLS_LIMIT:,}")
    numbers, roots = _number(graph, cells)
    return Traced(cells, numbers, roots, _traced(graph, cells, numbers, roots))


def _number(graph: Store, cells: Cells) -> tuple[Numbering, tuple[int, ...]]:
    """Number the cells of root parts, free ones first."""
    parts = cells.orbits.slotted.system.parts
    free = [p for p, part in enumerate(parts) if part.root and part.free]
    fixed = [p for p, part in enumerate(parts) if part.root and not part.free]
    pool: dict[int | str, None] = {}
    for p in fixed:
        pool.update(dict.fromkeys(mapping_of(graph, parts[p].tensor) or ()))
    sizes = [int(np.prod(cells.shape(p), dtype=np.int64)) for p in (*free, *fixed)]
    starts = np.cumsum([0, *sizes])
    numbers = Numbering(
        tuple(parts[p].tensor for p in free),
        tuple(parts[p].tensor for p in fixed),
        starts,
        int(starts[len(free)]),
        tuple(pool),
        int(starts[-1]) + len(pool),
    )
    return numbers, (*free, *fixed)


def _traced(
    graph: Store, cells: Cells, numbers: Numbering, roots: Sequence[int]
) -> tuple[Array, ...]:
    """Return the root numbers of the cells of every part."""
    slotted = cells.orbits.slotted
    parts = slotted.system.parts
    tensors = [np.full(cells.shape(p), -1) for p in range(len(parts))]
    own = dict(zip(roots, numbers.starts.tolist(), strict=False))
    place = {value: int(numbers.starts[-1]) + k for k, value in enumerate(numbers.pool)}
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
        values = mapping_of(graph, parts[family.out].tensor)
        if values is None:
            array[out] = own[family.out] + count
        else:
            flat = flat_elements(cells, family.out)[out] + parts[family.out].start
            known = [place[values[e]] for e in flat.reshape(-1).tolist()]
            array[out] = np.array(known, np.int64).reshape(flat.shape)
    return tuple(tensors)


class _Edges:
    """Edges as they are found."""

    def __init__(self, cells: Cells, numbers: Numbering, tensors: Sequence[Array]) -> None:
        self.cells, self.numbers, self.tensors = cells, numbers, tensors
        self.times: dict[Fraction, int] = {}
        self.worth: dict[Fraction, int] = {}
        self.constant = Fraction(0)
        self.rows: list[IntArray] = []

    def add(self, f: int, value: int) -> None:
        """Add the edges of a ValuedPair's family."""
        family = self.cells.orbits.slotted.system.families[f]
        out, inp = family_cells(self.cells, f)
        x, y = self.tensors[family.out][out], self.tensors[family.inp][inp]
        x, y = (a.reshape(-1) for a in np.broadcast_arrays(x, y))
        if (x < 0).any() or (y < 0).any():
            raise InternalError("a cell comes from nowhere")
        times = cell_times(self.cells, family.out, out, self.times)
        parallel: dict[Fraction, int] = {}
        worth = cell_times(self.cells, family.out, out, parallel, rooted=False)
        index = [self.worth.setdefault(value * n, len(self.worth)) for n in parallel]
        self._keep(x, y, times, np.array(index, np.int64)[worth])

    def _keep(self, x: IntArray, y: IntArray, times: IntArray, worth: IntArray) -> None:
        """Keep edges of which an end is free, and count what is earned in any case."""
        free = self.numbers.free
        sure = x == y
        rows, count = np.unique(
            np.stack([times[sure], worth[sure]], axis=1), axis=0, return_counts=True
        )
        all_times, all_worth = list(self.times), list(self.worth)
        for (i, j), n in zip(rows.tolist(), count.tolist(), strict=True):
            self.constant += all_times[i] * all_worth[j] * n
        low, high = np.minimum(x, y), np.maximum(x, y)
        kept = ~sure & (low < free)
        self.rows.append(np.stack([low[kept], high[kept], times[kept], worth[kept]], axis=1))

    def finish(self, roots: tuple[int, ...]) -> Reduced:
        """Add up parallel edges, which must give whole numbers, and return everything."""
        rows = np.concatenate([np.zeros((0, 4), np.int64), *self.rows])
        ends, of = np.unique(rows[:, :3], axis=0, return_inverse=True)
        unit = math.lcm(1, *(worth.denominator for worth in self.worth))
        total = np.zeros(len(ends), object)
        np.add.at(total, of.reshape(-1), _objects(int(w * unit) for w in self.worth)[rows[:, 3]])
        if self.constant.denominator != 1 or any(n % unit for n in total.tolist()):
            raise InternalError("representatives do not add up to whole elements")
        values: dict[int, int] = {}
        kind = np.array([values.setdefault(n // unit, len(values)) for n in total], np.int64)
        agree = ends[:, 1] < self.numbers.free
        bonds, ties = (EdgeList(ends[w, 0], ends[w, 1], kind[w]) for w in (agree, ~agree))
        edges = Edges(self.numbers, tuple(values), bonds, ties, int(self.constant))
        times = ends[agree, 2], ends[~agree, 2]
        return Reduced(self.cells, edges, roots, tuple(self.tensors), *times, tuple(self.times))


def _objects(values: Iterable[int]) -> IntArray:
    """Return an array of Python integers."""
    found = list(values)
    array = np.empty(len(found), object)
    array[:] = found
    return array
