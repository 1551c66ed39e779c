"""The root elements of a group, numbered, and the edges between them.

Index arrays of these numbers flow through the views of a graph (:mod:`layoutopt.graphs.locations`);
what comes out says, for each element of any tensor, which sink element it is or which
location it has.  Composing index maps is left to NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import unique
from layoutopt.graphs.locations import FixedElements, flow, mapping_of
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.groups import Group
from layoutopt.network.problem import IntArray

FEW = 16  # up to so many colours are looked up one by one, more by sorting


def owners(component: IntArray, labels: IntArray) -> IntArray:
    """Return for each node the first node of its component that has its label."""
    order = np.lexsort((np.arange(len(labels)), labels, component))
    c, chosen = component[order], labels[order]
    new = np.r_[True, (c[1:] != c[:-1]) | (chosen[1:] != chosen[:-1])][: len(labels)]
    owner = np.empty(len(labels), np.int64)
    owner[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return owner


def find(
    table: tuple[IntArray, IntArray, IntArray], component: IntArray, colour: IntArray
) -> IntArray:
    """Look components and colours up in a table of component, colour and thing.

    Everything is there; equal component and colour mean equal things.
    """
    owner, kind, thing = table
    wanted = unique(colour)
    found = np.empty(len(component), thing.dtype)
    if len(wanted) <= FEW:
        seen = np.zeros(int(owner.max(initial=0)) + 1, thing.dtype)
        for one in wanted:
            have, want = kind == one, colour == one
            seen[owner[have]] = thing[have]
            found[want] = seen[component[want]]
        return found
    width = np.int64(max(int(kind.max()), int(wanted[-1])) + 1)
    key = owner * width + kind
    order = np.argsort(key)
    at = np.searchsorted(key[order], component * width + colour)
    return thing[order[at]]


def distinct(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of a table, and which of them each row is.

    The table is given as columns, at least one; the rows are in lexicographic order, as stacked
    columns.
    """
    key, room = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        wide = high - low + 1
        if room * wide >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            column = np.unique(column, return_inverse=True)[1]
            room, low, wide = len(key), 0, len(key) + 1
        key, room = key * wide + (column - low).astype(np.int64), room * wide
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns]), index


@dataclass(frozen=True, eq=False)
class Numbering:
    """The root elements of a group, numbered.

    Sink elements come first, then the locations of fixed tensors without a mapping, then
    the distinct values of all mappings.
    """

    sinks: tuple[int, ...]  # the free root tensors, in the order of their numbers
    fixed: tuple[int, ...]  # the other root tensors
    # first number of each tensor of `sinks` and then of `fixed`; a fixed tensor with a mapping has
    # no numbers of its own. Its last entry is the first of the mappings
    starts: NDArray[np.int64]
    free: int  # number of sink elements
    pool: tuple[int | str, ...]  # the distinct mapping values, in order of their numbers
    total: int  # number of root elements and locations

    @property
    def dtype(self) -> np.dtype[np.int32] | np.dtype[np.int64]:
        """The smallest integer type that holds every number."""
        return np.dtype(np.int32) if self.total < 2**31 else np.dtype(np.int64)

    def own(self, graph: GraphStore, t: int) -> Array:
        """Return the numbers of the locations that a root tensor has of its own, flat.

        They are -1 where the group does not know a location.
        """
        mapping = mapping_of(graph, t)
        if mapping is not None:
            return mapping.places(self.place()).astype(self.dtype)
        count = size(graph.shapes[t])
        if t not in self.fixed:
            return np.full(count, -1, self.dtype)
        start = int(self.starts[len(self.sinks) + self.fixed.index(t)])
        return np.arange(start, start + count, dtype=self.dtype)

    def place(self) -> dict[int | str, int]:
        """Return the number of each mapping value."""
        return {value: int(self.starts[-1]) + k for k, value in enumerate(self.pool)}

    def locate(self, graph: GraphStore, tensors: Array, elements: Array) -> Array:
        """Return the numbers of locations; -1 where the group knows none, or the tensor is -1.

        Locations are given as root tensors and flat elements.
        """
        where = np.full(len(tensors), -1, self.dtype)
        for t in unique(tensors[tensors >= 0]).tolist():
            here = np.flatnonzero(tensors == t)
            where[here] = self.own(graph, t)[elements[here]]
        return where


def number_roots(graph: GraphStore, group: Group, tiles: int = 0) -> Numbering:
    """Number the root elements of a group.

    The names ``0 .. tiles-1`` come first in the pool, whether they occur or not.
    """
    sizes = [size(graph.shapes[t]) for t in group.sinks]
    free = sum(sizes)
    pool: dict[int | str, None] = dict.fromkeys(range(tiles))
    for t in group.fixed:
        mapping = mapping_of(graph, t)
        sizes.append(0 if mapping is not None else size(graph.shapes[t]))
        pool.update(dict.fromkeys(mapping.used() if mapping is not None else ()))
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    total = int(starts[-1]) + len(pool)
    return Numbering(group.sinks, group.fixed, starts, free, tuple(pool), total)


def root_arrays(
    graph: GraphStore, group: Group, numbers: Numbering, given: FixedElements
) -> dict[int, Array]:
    """Return the root numbers of the elements of each root tensor, shaped."""
    arrays = {}
    for t in group.tensors:
        kind = graph.ops[graph.producers[t]].kind
        if kind is Kind.SINK:
            arrays[t] = _sink_array(graph, numbers, given, t).reshape(graph.shapes[t])
        elif kind is not Kind.VIEW:
            arrays[t] = numbers.own(graph, t).reshape(graph.shapes[t])
    return arrays


def _sink_array(graph: GraphStore, numbers: Numbering, given: FixedElements, t: int) -> Array:
    """Return the numbers of a sink's elements, and of their locations where these are given."""
    start = int(numbers.starts[numbers.sinks.index(t)]) if t in numbers.sinks else 0
    flat = np.arange(start, start + size(graph.shapes[t]), dtype=numbers.dtype)
    if t not in given.origins:
        return flat
    taken = numbers.locate(graph, *given.origins[t])
    return np.where(taken >= 0, taken, flat)


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges with their values; parallel ones are not merged."""

    first: IntArray  # a free element each
    second: IntArray  # another free element, or a location
    value: IntArray  # index of the value in :attr:`Edges.values`


@dataclass(frozen=True, eq=False)
class Edges:
    """All edges of a group."""

    numbers: Numbering  # how roots are numbered
    values: tuple[int, ...]  # the distinct values of edges, as multiples of the graph's unit
    agree: EdgeList  # edges between two different free elements
    earn: EdgeList  # edges between a free element and a location
    constant: int  # what is earned whatever is chosen, in the graph's unit


def edges_of(
    graph: GraphStore, group: Group, values: list[int], given: FixedElements, tiles: int = 0
) -> Edges:
    """Trace a group and collect its edges; values are those of the graph's pairs, in one unit."""
    numbers = number_roots(graph, group, tiles)
    arrays = flow(
        graph,
        root_arrays(graph, group, numbers, given),
        {t for p in group.pairs for t in graph.pairs[p][:2]},
    )
    index: dict[int, int] = {}
    agree: list[tuple[Array, Array, int]] = []
    earn: list[tuple[Array, Array, int]] = []
    constant = 0
    for p in group.pairs:
        a, b, _ = graph.pairs[p]
        if values[p] == 0:
            continue
        kind = index.setdefault(values[p], len(index))
        x, y = _aligned(arrays[a], arrays[b])
        differ = x != y
        constant += values[p] * int(len(x) - np.count_nonzero(differ))
        x_free, y_free = x < numbers.free, y < numbers.free
        agree.append((*_where(x_free & y_free & differ, x, y), kind))
        earn.append((*_where(x_free & ~y_free, x, y), kind))
        earn.append((*_where(~x_free & y_free, y, x), kind))
    return Edges(numbers, tuple(index), _list(agree, numbers), _list(earn, numbers), constant)


def _aligned(x: Array, y: Array) -> tuple[Array, Array]:
    """Return two arrays flat, in the order in which the first one lies in memory.

    Index arrays of permuted views would otherwise be walked with long strides again and
    again.
    """
    axes = np.argsort([-abs(step) for step in x.strides], kind="stable")
    return x.transpose(axes).reshape(-1), y.transpose(axes).reshape(-1)


def _where(keep: NDArray[np.bool_], x: Array, y: Array) -> tuple[Array, Array]:
    return (x, y) if keep.all() else (x[keep], y[keep])


def _list(parts: list[tuple[Array, Array, int]], numbers: Numbering) -> EdgeList:
    none = [np.zeros(0, numbers.dtype)]
    counts = [len(x) for x, _, _ in parts]
    largest = max((kind for _, _, kind in parts), default=0)
    kinds = np.array([kind for _, _, kind in parts], np.min_scalar_type(-largest - 1))
    return EdgeList(
        np.concatenate(none + [x for x, _, _ in parts]),
        np.concatenate(none + [y for _, y, _ in parts]),
        np.repeat(kinds, counts),
    )
