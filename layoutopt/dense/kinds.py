"""One kind of group: its representatives as a labelling problem, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from layoutopt.dense.barriers import Contest
from layoutopt.dense.classes import Classes, find_classes
from layoutopt.dense.edges import EdgeList, Edges, edges_of
from layoutopt.dense.groups import Group
from layoutopt.dense.lookup import Places, find, owners
from layoutopt.dense.numbering import Numbering, mapping_of
from layoutopt.graphs.given import Given
from layoutopt.graphs.op import size
from layoutopt.graphs.store import Store
from layoutopt.problem import IntArray, Labelling, Precedence, WeightArray, merge_parallel

TABLE = 2**16
"""Tables of so many entries are always small enough."""


@dataclass(frozen=True, eq=False)
class GroupKind:
    """All groups that are the same problem.

    Parameters
    ----------
    groups
        The groups.
    edges, classes
        The elements of the first group; they stand for those of all.
    nodes
        The free elements that are the problem's nodes, ascending.
    label_colour
        Colour of each of the problem's labels.
    label_key
        For each label, ascending, its component times the number of roots, plus its
        location.
    problem
        The representatives of the classes, weights multiplied by the number of copies.
    given
        Where elements of the group are given, or own other fresh locations than usual: for
        each free element the number of the given location, or -1, and of the fresh one that
        it owns.
    """

    groups: tuple[Group, ...]
    edges: Edges
    classes: Classes
    nodes: IntArray
    label_colour: IntArray
    label_key: IntArray
    problem: Labelling
    given: tuple[IntArray, IntArray] | None = None

    def spread(self, labels: IntArray) -> IntArray:
        """Return what every free element of the first group takes.

        Parameters
        ----------
        labels
            A label for each of the problem's nodes.

        Returns
        -------
        array
            For each free element the number of a location, or of the free element that owns
            the fresh location that it takes.
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
        model = self._models()
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

    def _models(self) -> IntArray:
        """Return the problem's node that stands for each free element, -1 where none does."""
        classes = self.classes
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

    def labels(self, where: IntArray) -> IntArray:
        """Return the labels that the problem's nodes have in given layouts.

        Parameters
        ----------
        where
            For each node the number of its location, or of the free element that owns its
            fresh location; -1 for a location that the group does not know.
        """
        component = self.classes.component[self.nodes]
        key = component * np.int64(self.edges.numbers.total) + where
        at = np.minimum(np.searchsorted(self.label_key, key), max(len(self.label_key) - 1, 0))
        named = self.label_key[at] == key if len(self.label_key) else np.zeros(len(key), bool)
        where = np.where(where < 0, -1 - self.nodes, where)
        return np.where(named, at, self.problem.labels + owners(component, where))

    def origins(self, graph: Store, where: IntArray) -> tuple[IntArray, IntArray]:
        """Return root tensor (sinks first, then fixed ones) and flat element of numbers.

        A location that a mapping gives is named by the first element that has it.
        """
        numbers = self.edges.numbers
        starts = numbers.starts.astype(where.dtype)
        tensor = np.searchsorted(starts, where, side="right").astype(where.dtype) - 1
        element = where - starts[tensor]
        if numbers.pool:
            firsts = _first_uses(graph, numbers)
            pooled = where >= numbers.starts[-1]
            tensor[pooled], element[pooled] = firsts[element[pooled]].T
        return tensor, element


def reduce_kind(
    graph: Store, groups: Sequence[Group], values: list[int], contest: Contest, given: Given
) -> GroupKind:
    """Trace a group and find the representatives of its components.

    Parameters
    ----------
    groups
        Groups of one key.
    values
        The value of each of the graph's pairs, as multiples of one unit.
    """
    edges = edges_of(graph, groups[0], values, given)
    numbers = edges.numbers
    sizes = np.diff(numbers.starts[: len(numbers.sinks) + 1])
    colour: IntArray = np.repeat(_small(len(numbers.sinks)), sizes)
    readers = [contest.readers[t] for t in numbers.sinks if t in contest.readers]
    read_by = np.concatenate(readers) if readers else None
    if read_by is not None:
        colour = np.unique(
            colour * np.int64(len(contest.reader_sets)) + read_by, return_inverse=True
        )[1]
    sizes = np.append(np.diff(numbers.starts[len(numbers.sinks) :]), len(numbers.pool))
    origin = np.repeat(_small(len(sizes)), sizes)
    classes = find_classes(edges, colour, origin)
    kind = _representatives(graph, tuple(groups), edges, classes, contest, read_by, origin)
    return replace(kind, given=_given_numbers(graph, numbers, given))


def _given_numbers(
    graph: Store, numbers: Numbering, given: Given
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


def _representatives(
    graph: Store,
    groups: tuple[Group, ...],
    edges: Edges,
    classes: Classes,
    contest: Contest,
    read_by: IntArray | None,
    origin: IntArray,
) -> GroupKind:
    free, component = edges.numbers.free, classes.component
    chosen = np.zeros(len(classes.class_of), bool)
    chosen[classes.representative] = True
    nodes = np.flatnonzero(chosen[component])
    copies = [int(c) * len(groups) for c in classes.copies]
    bonds = np.flatnonzero(chosen[component[edges.agree.first]])
    ties = np.flatnonzero(chosen[component[edges.earn.first]])
    place = Places(nodes, len(component))
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
            len(contest.barriers), contest.arcs, offered, contest.reader_sets, read_by[nodes]
        )
    problem = Labelling(
        len(nodes), len(first), pairs, weights, reward_at, rewards, precedence=precedence
    )
    colour = classes.label_colour[ties[first]]
    return GroupKind(groups, edges, classes, nodes, colour, label_key, problem)


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


def _first_uses(graph: Store, numbers: Numbering) -> IntArray:
    """Return tensor (as :meth:`GroupKind.origins` counts) and element for each mapping value."""
    place = {value: k for k, value in enumerate(numbers.pool)}
    firsts = np.full((len(place), 2), -1)
    for k, t in enumerate(numbers.fixed):
        where = mapping_of(graph, t) or ()
        for element, value in enumerate(where):
            if firsts[place[value], 0] < 0:
                firsts[place[value]] = len(numbers.sinks) + k, element
    return firsts


def memory_needed(graph: Store, group: Group) -> int:
    """Return roughly how many bytes tracing and classifying a group takes."""
    elements = sum(size(graph.shapes[t]) for t in group.tensors)
    edges = sum(size(graph.shapes[graph.pairs[p][0]]) for p in group.pairs)
    return 4 * elements + 45 * edges
