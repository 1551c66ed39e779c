"""One kind of group: its representatives as a labelling problem, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box
from layoutopt.boxes.merge import boxes_of
from layoutopt.graphs.locations import FixedElements, Origins, mapping_of
from layoutopt.graphs.ops import size
from layoutopt.graphs.store import GraphStore
from layoutopt.lowering.elements.classes import (
    Classes,
    EdgeList,
    Edges,
    Numbering,
    edges_of,
    find,
    find_classes,
    owners,
)
from layoutopt.lowering.elements.groups import Group, PrecedenceConflicts
from layoutopt.network.problem import IntArray, Labelling, Precedence, WeightArray, merge_parallel

LayoutDict = dict[str, tuple[Piece, ...]]


def pieces_of(graph: GraphStore, tensors: IntArray, elements: IntArray) -> tuple[Piece, ...]:
    """Write the origins of a sink's elements, root tensor and flat element, as pieces."""
    found = boxes_of(tensors, elements)
    return tuple((graph.tensor_name(b.label), b.start, b.to, b.loops) for b in found)


def layouts_of(graph: GraphStore, origins: Origins) -> LayoutDict:
    """Return origins of sink elements, by the sinks' numbers, as layouts."""
    return {graph.tensor_name(sink): pieces_of(graph, *own) for sink, own in origins.items()}


def reduce_kind(
    graph: GraphStore,
    groups: Sequence[Group],
    values: list[int],
    conflicts: PrecedenceConflicts,
    given: FixedElements,
    tiles: int = 0,
) -> GroupKind:
    """Trace a group and find the representatives of its components; all groups have one key.

    Values are those of the graph's pairs, as multiples of one unit.  With a number of tiles,
    components on different tiles are never of one class.
    """
    edges = edges_of(graph, groups[0], values, given, tiles)
    numbers = edges.numbers
    sizes = np.diff(numbers.starts[: len(numbers.sinks) + 1])
    colour: IntArray = np.repeat(_small(len(numbers.sinks)), sizes)
    readers = [conflicts.readers[t] for t in numbers.sinks if t in conflicts.readers]
    read_by = np.concatenate(readers) if readers else None
    if read_by is not None:
        colour = np.unique(
            colour * np.int64(len(conflicts.reader_sets)) + read_by, return_inverse=True
        )[1]
    origin = origins_of(numbers, apart=tiles > 0)
    classes = find_classes(edges, colour, origin)
    kind = represent(graph, tuple(groups), edges, classes, conflicts, read_by, origin)
    return replace(kind, given=_given_numbers(graph, numbers, given))


def origins_of(numbers: Numbering, apart: bool) -> IntArray:
    """Return a number for the tensor of each location, and one for each mapped one, or for all."""
    sizes = np.diff(numbers.starts[len(numbers.sinks) :]).tolist()
    sizes += [1] * len(numbers.pool) if apart else [len(numbers.pool)]
    return np.repeat(_small(len(sizes)), sizes)


def _given_numbers(
    graph: GraphStore, numbers: Numbering, given: FixedElements
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
    conflicts: PrecedenceConflicts,
    read_by: IntArray | None,
    origin: IntArray,
) -> GroupKind:
    """Write the representatives of classes down as a labelling problem.

    ``read_by`` is for each free element the index of the set of barriers that read it, ``None``
    where order does not matter; ``origin`` is for each location, by number less the number of free
    elements, the place among the fixed tensors of the one that it is of.
    """
    free, component = edges.numbers.free, classes.component
    chosen = np.zeros(len(classes.class_of), bool)
    chosen[classes.representative] = True
    nodes = np.flatnonzero(chosen[component])
    copies = [int(c) * len(groups) for c in classes.copies]
    bonds = np.flatnonzero(chosen[component[edges.agree.first]])
    ties = np.flatnonzero(chosen[component[edges.earn.first]])
    place = np.zeros(len(component), np.int64)
    place[nodes] = np.arange(len(nodes))
    tied = edges.earn.first[ties]
    key = component[tied] * np.int64(edges.numbers.total) + edges.earn.second[ties]
    label_key, first, label = np.unique(key, return_index=True, return_inverse=True)
    ends = place[np.stack([edges.agree.first[bonds], edges.agree.second[bonds]], axis=1)]
    class_of = classes.class_of[component]
    pairs, weights = merge_parallel(
        np.sort(ends, axis=1), _worth(edges, edges.agree, bonds, class_of, copies)
    )
    reward_at, rewards = merge_parallel(
        np.stack([place[tied], label], axis=1), _worth(edges, edges.earn, ties, class_of, copies)
    )
    precedence = None
    if read_by is not None:
        barrier = {b: k for k, b in enumerate(conflicts.barriers)}
        fixed = [barrier.get(graph.producers[t], -1) for t in edges.numbers.fixed]
        offered = np.array([*fixed, -1])[origin[edges.earn.second[ties[first]] - free]]
        precedence = Precedence(
            len(conflicts.barriers),
            conflicts.arcs,
            offered,
            tuple(conflicts.reader_sets),
            read_by[nodes],
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


TABLE = 2**16  # tables of so many entries are always small enough


@dataclass(frozen=True, eq=False)
class GroupKind:
    """All groups that are the same problem."""

    graph: GraphStore
    groups: tuple[Group, ...]
    edges: Edges  # of the elements of the first group, which stand for those of all
    classes: Classes  # of these elements
    nodes: IntArray  # the free elements that are the problem's nodes, ascending
    label_colour: IntArray  # colour of each of the problem's labels
    # for each label, ascending, its component times the number of roots, plus its location
    label_key: IntArray
    # the representatives of the classes, weights multiplied by the number of copies
    problem: Labelling
    # where elements of the group are given, or own other fresh locations than usual: for each free
    # element the number of the given location, or -1, and of the fresh one that it owns
    given: tuple[IntArray, IntArray] | None = None

    @property
    def constant(self) -> int:
        """What one group earns whatever is chosen."""
        return self.edges.constant

    @property
    def copies(self) -> list[int]:
        """The number of components of each class, in one group."""
        return [int(count) for count in self.classes.copies]

    def units(self) -> tuple[IntArray, IntArray]:
        """Return the components that layouts are written out from, and how many each stands for."""
        found = np.flatnonzero(self.classes.class_of >= 0)
        return found, np.ones(len(found), np.int64)

    def put(self, components: IntArray, starts: IntArray, tiles: IntArray) -> IntArray:
        """Return what every free element takes, as :meth:`spread` does, if components have tiles.

        Tiles are those of the nodes of each component, in the order of its class's nodes, from
        ``starts``.
        """
        classes = self.classes
        if not len(self.nodes):
            return np.arange(len(classes.component))
        of = classes.class_of[classes.component[self.nodes]]
        order = np.argsort(of, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(of[order], of[order])
        begin = np.full(len(classes.class_of), -1)
        begin[components] = starts
        model, where = self.models(), np.arange(len(classes.component))
        taken = (model >= 0) & (begin[classes.component] >= 0)
        place = begin[classes.component[taken]] + rank[model[taken]]
        where[taken] = self.edges.numbers.starts[-1] + tiles[place]
        return where

    @property
    def tied(self) -> int:
        """The number of sink elements, in one group, that a pair reaches."""
        return int(np.count_nonzero(self.classes.class_of[self.classes.component] >= 0))

    def boxes(self, where: IntArray) -> list[list[Box]]:
        """Return the boxes of each sink of the first group; ``where`` is that of :meth:`spread`.

        Origins of boxes count the group's sinks, then its fixed tensors; the one after the last
        stands for the tiles of a tile memory.
        """
        numbers = self.edges.numbers
        starts = numbers.starts[: len(numbers.sinks) + 1].tolist()
        return [boxes_of(*self._origins(where[a:b])) for a, b in pairwise(starts)]

    def spread(self, labels: IntArray) -> IntArray:
        """Return what every free element of the first group takes, from labels of all nodes.

        That is the number of a location, or of the free element that owns the fresh location.
        """
        where = self._chosen(labels)
        if self.given is None:
            return where
        placed, own = self.given
        fresh = where < len(own)
        where[fresh] = own[where[fresh]]
        return np.where(placed >= 0, placed, where)

    def _chosen(self, labels: IntArray) -> IntArray:
        """Return what every free element takes if none is given."""
        classes, earn = self.classes, self.edges.earn
        component, colour = classes.component, classes.node_colour
        where = np.arange(len(component), dtype=self.edges.numbers.dtype)
        if not len(self.nodes):
            return where
        model = self.models()
        named = np.append(labels < self.problem.labels, False)  # the last for no model
        fresh = np.append(labels >= self.problem.labels, False)
        take = np.flatnonzero(named[model])
        if len(take):
            wanted = self.label_colour[np.where(named[:-1], labels, 0)]
            where[take] = find(
                (component[earn.first], classes.label_colour, earn.second),
                component[take],
                wanted[model[take]],
            )
        take = np.flatnonzero(fresh[model])
        if len(take):
            owner = owners(component[self.nodes], labels)
            where[take] = find(
                (component, colour, np.arange(len(component), dtype=where.dtype)),
                component[take],
                colour[self.nodes][owner][model[take]],
            )
        return where

    def models(self) -> IntArray:
        """Return the problem's node that stands for each free element, -1 where none does."""
        classes = self.classes
        if not len(self.nodes):
            return np.full(len(classes.component), -1)
        class_of = classes.class_of[classes.component]
        width = np.int64(int(classes.node_colour.max()) + 1)
        key = np.where(class_of >= 0, class_of * width + classes.node_colour, -1)
        own, size = key[self.nodes], len(classes.copies) * int(width) + 1
        if size <= 2 * len(key) + TABLE:
            table = np.full(size, -1, classes.component.dtype)
            table[own] = np.arange(len(own))
            return table[key]  # the last entry, for -1, stays -1
        order = np.argsort(own)
        found = order[np.minimum(np.searchsorted(own[order], key), len(own) - 1)]
        return np.where(key >= 0, found, -1)

    def labels(self, origins: Origins) -> IntArray:
        """Return the labels that the problem's nodes have in given layouts.

        ``origins`` are for each sink, by tensor number, root tensor and flat element of each
        location.
        """
        where = self._numbers(origins)
        component = self.classes.component[self.nodes]
        key = component * np.int64(self.edges.numbers.total) + where
        at = np.minimum(np.searchsorted(self.label_key, key), max(len(self.label_key) - 1, 0))
        named = self.label_key[at] == key if len(self.label_key) else np.zeros(len(key), bool)
        where = np.where(where < 0, -1 - self.nodes, where)
        return np.where(named, at, self.problem.labels + owners(component, where))

    def _numbers(self, origins: Origins) -> IntArray:
        """Return the location numbers that the nodes have in the first group."""
        numbers, group = self.edges.numbers, self.groups[0]
        tensors, elements = (
            np.concatenate([np.zeros(0, np.int64), *(origins[t][i] for t in group.sinks)])[
                self.nodes
            ]
            for i in (0, 1)
        )
        where = numbers.locate(self.graph, tensors, elements)
        for t, start in zip(group.sinks, numbers.starts.tolist(), strict=False):
            fresh = (tensors == t) & (where < 0)
            where[fresh] = start + elements[fresh]
        return where

    def _origins(self, where: IntArray) -> tuple[IntArray, IntArray]:
        """Return root tensor (sinks first) and flat element of numbers; of a mapping the first."""
        numbers = self.edges.numbers
        starts = numbers.starts.astype(where.dtype)
        tensor = np.searchsorted(starts, where, side="right").astype(where.dtype) - 1
        element = where - starts[tensor]
        if numbers.pool:
            fixed = enumerate(numbers.fixed, len(numbers.sinks))
            parts = ((k, t, 0, size(self.graph.shapes[t])) for k, t in fixed)
            last = len(numbers.sinks) + len(numbers.fixed)
            firsts = first_uses(self.graph, numbers.pool, parts, last)
            pooled = where >= numbers.starts[-1]
            tensor[pooled], element[pooled] = firsts[element[pooled]].T
        return tensor, element


def first_uses(
    graph: GraphStore,
    pool: Sequence[int | str],
    parts: Iterable[tuple[int, int, int, int]],
    memory: int,
) -> IntArray:
    """Return number and flat element of the part that first has each location of the pool.

    Parts are numbers, tensors, and their first element and number of elements there.  On a tile
    memory, which counts as part ``memory``, locations are tiles, and its elements.
    """
    if graph.tile_memory is not None:
        return np.array([(memory, int(tile)) for tile in pool], np.int64).reshape(-1, 2)
    place = {value: k for k, value in enumerate(pool)}
    firsts = np.full((len(place), 2), -1)
    for number, t, start, count in parts:
        mapping = mapping_of(graph, t)
        for value, element in () if mapping is None else mapping.firsts(start, count):
            if firsts[place[value], 0] < 0:
                firsts[place[value]] = number, element
    return firsts


def memory_needed(graph: GraphStore, group: Group) -> int:
    """Return roughly how many bytes tracing and classifying a group takes."""
    elements = sum(size(graph.shapes[t]) for t in group.tensors)
    edges = sum(size(graph.shapes[graph.pairs[p][0]]) for p in group.pairs)
    return 4 * elements + 45 * edges
