"""Edges: what every position of every ValuedPair of a group means for root elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutopt.graphs.layouts import Given
from layoutopt.graphs.locations import flow
from layoutopt.graphs.ops import Array
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.groups import Group
from layoutopt.lowering.elements.numbering import Numbering, number_roots, root_arrays
from layoutopt.network.problem import IntArray


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Edges with their values; parallel ones are not merged.

    Parameters
    ----------
    first
        A free element each.
    second
        Another free element, or a location.
    value
        Index of the value in :attr:`Edges.values`.
    """

    first: IntArray
    second: IntArray
    value: IntArray


@dataclass(frozen=True, eq=False)
class Edges:
    """All edges of a group.

    Parameters
    ----------
    numbers
        How roots are numbered.
    values
        The distinct values of edges, as multiples of the graph's unit.
    agree
        Edges between two different free elements.
    earn
        Edges between a free element and a location.
    constant
        What is earned whatever is chosen, in the graph's unit.
    """

    numbers: Numbering
    values: tuple[int, ...]
    agree: EdgeList
    earn: EdgeList
    constant: int


def edges_of(
    graph: GraphStore, group: Group, values: list[int], given: Given, tiles: int = 0
) -> Edges:
    """Trace a group and collect its edges.

    Parameters
    ----------
    values
        The value of each of the graph's pairs, as multiples of one unit.
    tiles
        As for :func:`~layoutopt.lowering.elements.numbering.number_roots`.
    """
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
