"""The representatives of a group's classes as a labelling problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutopt.base.result import Piece
from layoutopt.boxes.merge import boxes_of
from layoutopt.graphs.layouts import Given
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.barriers import Contest
from layoutopt.lowering.elements.classes import Classes, find_classes
from layoutopt.lowering.elements.edges import EdgeList, Edges, edges_of
from layoutopt.lowering.elements.groups import Group
from layoutopt.lowering.elements.kinds import GroupKind
from layoutopt.lowering.elements.numbering import NodeNumbers, Numbering
from layoutopt.network.problem import IntArray, Labelling, Precedence, WeightArray, merge_parallel

LayoutDict = dict[str, tuple[Piece, ...]]


def pieces_of(graph: GraphStore, tensors: IntArray, elements: IntArray) -> tuple[Piece, ...]:
    """Write the origins of a sink's elements, root tensor and flat element, as pieces."""
    found = boxes_of(tensors, elements)
    return tuple((graph.tensor_name(b.label), b.start, b.to, b.loops) for b in found)


def reduce_kind(
    graph: GraphStore,
    groups: Sequence[Group],
    values: list[int],
    contest: Contest,
    given: Given,
    tiles: int = 0,
) -> GroupKind:
    """Trace a group and find the representatives of its components.

    Parameters
    ----------
    groups
        Groups of one key.
    values
        The value of each of the graph's pairs, as multiples of one unit.
    tiles
        With a number of tiles, components on different tiles are never of one class.
    """
    edges = edges_of(graph, groups[0], values, given, tiles)
    numbers = edges.numbers
    sizes = np.diff(numbers.starts[: len(numbers.sinks) + 1])
    colour: IntArray = np.repeat(_small(len(numbers.sinks)), sizes)
    readers = [contest.readers[t] for t in numbers.sinks if t in contest.readers]
    read_by = np.concatenate(readers) if readers else None
    if read_by is not None:
        colour = np.unique(
            colour * np.int64(len(contest.reader_sets)) + read_by, return_inverse=True
        )[1]
    origin = origins_of(numbers, apart=tiles > 0)
    classes = find_classes(edges, colour, origin)
    kind = represent(graph, tuple(groups), edges, classes, contest, read_by, origin)
    return replace(kind, given=_given_numbers(graph, numbers, given))


def origins_of(numbers: Numbering, apart: bool) -> IntArray:
    """Return a number for the tensor of each location, and one for all mapped ones together.

    Parameters
    ----------
    apart
        Whether each mapped location has a number of its own instead.
    """
    sizes = np.diff(numbers.starts[len(numbers.sinks) :]).tolist()
    sizes += [1] * len(numbers.pool) if apart else [len(numbers.pool)]
    return np.repeat(_small(len(sizes)), sizes)


def _given_numbers(
    graph: GraphStore, numbers: Numbering, given: Given
) -> tuple[IntArray, IntArray] | None:
    """Return :attr:`GroupKind.given`."""
    if not any(given.touches(t) for t in numbers.sinks):
        return None
    placed, own = [], []
    for t, start in zip(numbers.sinks, numbers.starts.tolist(), strict=False):
        elements = np.arange(start, start + size(graph.shapes[t]), dtype=numbers.dtype)
        none = np.full(len(elements), -1, numbers.dtype)
        tensors, of = given.own(t)
        usual = (tensors == t) & (of == np.arange(len(of)))
        stood_in = numbers.locate(graph, np.where(usual, -1, tensors), of)
        own.append(np.where(usual, elements, stood_in))
        placed.append(numbers.locate(graph, *given.origins[t]) if t in given.origins else none)
    return np.concatenate(placed), np.concatenate(own)


def _small(count: int) -> IntArray:
    """Return ``0 .. count-1`` in the smallest signed type that holds them."""
    return np.arange(count, dtype=np.min_scalar_type(-count - 1))


def represent(
    graph: GraphStore,
    groups: tuple[Group, ...],
    edges: Edges,
    classes: Classes,
    contest: Contest,
    read_by: IntArray | None,
    origin: IntArray,
) -> GroupKind:
    """Write the representatives of classes down as a labelling problem.

    Parameters
    ----------
    read_by
        For each free element the index of the set of barriers that read it; ``None`` where
        order does not matter.
    origin
        For each location, by number less the number of free elements, the place among the
        fixed tensors of the one that it is of.
    """
    free, component = edges.numbers.free, classes.component
    chosen = np.zeros(len(classes.class_of), bool)
    chosen[classes.representative] = True
    nodes = np.flatnonzero(chosen[component])
    copies = [int(c) * len(groups) for c in classes.copies]
    bonds = np.flatnonzero(chosen[component[edges.agree.first]])
    ties = np.flatnonzero(chosen[component[edges.earn.first]])
    place = NodeNumbers(nodes, len(component))
    tied = edges.earn.first[ties]
    key = component[tied] * np.int64(edges.numbers.total) + edges.earn.second[ties]
    label_key, first, label = np.unique(key, return_index=True, return_inverse=True)
    ends = place(np.stack([edges.agree.first[bonds], edges.agree.second[bonds]], axis=1))
    class_of = classes.class_of[component]
    pairs, weights = merge_parallel(
        np.sort(ends, axis=1), _worth(edges, edges.agree, bonds, class_of, copies)
    )
    reward_at, rewards = merge_parallel(
        np.stack([place(tied), label], axis=1), _worth(edges, edges.earn, ties, class_of, copies)
    )
    precedence = None
    if read_by is not None:
        barrier = {b: k for k, b in enumerate(contest.barriers)}
        fixed = [barrier.get(graph.producers[t], -1) for t in edges.numbers.fixed]
        offered = np.array([*fixed, -1])[origin[edges.earn.second[ties[first]] - free]]
        precedence = Precedence(
            len(contest.barriers), contest.arcs, offered, tuple(contest.reader_sets), read_by[nodes]
        )
    problem = Labelling(
        len(nodes), len(first), pairs, weights, reward_at, rewards, precedence=precedence
    )
    colour = classes.label_colour[ties[first]]
    return GroupKind(graph, groups, edges, classes, nodes, colour, label_key, problem)


def _worth(
    edges: Edges, of: EdgeList, which: IntArray, class_of: IntArray, copies: list[int]
) -> WeightArray:
    """Return what edges are worth in all copies of their component together."""
    if not len(which):
        return np.zeros(0, np.int64)
    value, times = of.value[which], class_of[of.first[which]]
    largest = max(map(abs, edges.values)) * max(copies)
    kind: Any = np.int64 if largest * len(which) < 2**61 else object
    table, count = np.array(edges.values, kind), np.array(copies, kind)
    worth: WeightArray = table[value] * count[times]
    return worth
