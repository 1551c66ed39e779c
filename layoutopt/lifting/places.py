"""Cells as places: what lets a heuristic choose layouts without touching elements.

A heuristic that looks only at tensors, views, ValuedPairs and pieces of tensors treats alike
all elements that an automorphism exchanges.  So it may run on the representative cells of all
groups side by side, and what it chooses for a cell holds for all elements that this stands for.
A tensor whose locations several groups need has cells in each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from layoutopt.dense.boxes import Box
from layoutopt.dense.groups import (
    Group,
    find_groups,
    first_alike,
    free_tensors,
    key_of,
    link,
    sources_of,
)
from layoutopt.dense.layouts import Layouts
from layoutopt.graphs.given import Given
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.store import Store
from layoutopt.heuristics.dependence import relevant
from layoutopt.integers import unique
from layoutopt.lifting.group_places import GroupPlaces
from layoutopt.limits import Limits
from layoutopt.problem import IntArray


class CellPlaces:
    """The representative cells of all groups, as places of their tensors.

    It has the methods of :class:`~layoutopt.heuristics.places.Places`.

    Parameters
    ----------
    graph
        The graph.
    limits
        Deadline.

    Raises
    ------
    SizeError
        If views are too irregular.
    TimeoutError
        If time runs out.
    """

    def __init__(self, graph: Store, limits: Limits) -> None:
        self.graph = graph
        self.firsts = first_alike(graph)
        self.groups, self.kinds = _lifted(graph, self.firsts, limits)
        self._rank = [{t: n for n, t in enumerate(g.tensors)} for g in self.groups]
        self._copies: dict[int, list[int]] = defaultdict(list)
        for g, group in enumerate(self.groups):
            for t in group.tensors:
                self._copies[t].append(g)
        self._starts = {t: self._count_through(t) for t in self._copies}
        self._pairs = {
            ends: (g, n)
            for g, group in enumerate(self.groups)
            for n, p in enumerate(group.pairs)
            for ends in [graph.pairs[p][:2]]
        }
        self._gathers: dict[int, tuple[IntArray, list[int]]] = {}

    def count(self, t: int) -> int:
        """Return how many cells a tensor has; none if nothing depends on it."""
        starts = self._starts.get(self.firsts[t])
        return 0 if starts is None else starts[-1]

    def gather(self, i: int) -> tuple[IntArray, list[int]] | None:
        """Return where each output cell of a view comes from."""
        [t] = self.graph.op_outputs[i]
        if self.firsts[t] != t:
            return None
        if i not in self._gathers:
            self._gathers[i] = self._gather(t, [self.firsts[c] for c in self.graph.carriers(i)])
        return self._gathers[i]

    def lowest(self, i: int) -> IntArray:
        """Return which output cells are at index 0 where ``expand`` broadcasts."""
        [t], [carrier] = self.graph.op_outputs[i], self.graph.carriers(i)
        shape, out = self.graph.shapes[carrier], self.graph.shapes[t]
        widths = (1,) * (len(out) - len(shape)) + shape
        elements = [
            self.kinds[g].elements[self._model(g, t)] for g in self._copies.get(self.firsts[t], ())
        ]
        flat = np.concatenate([np.zeros(0, np.int64), *elements])
        found = np.ones(len(flat), bool)
        stride = 1
        for width, n in zip(reversed(widths), reversed(out), strict=True):
            if width == 1:
                found &= flat // stride % max(n, 1) == 0
            stride *= n
        return found

    def pair(self, t: int, p: int) -> tuple[IntArray, IntArray] | None:
        """Return cells of two tensors of a ValuedPair that are drawn together."""
        if self.firsts[t] == self.firsts[p]:
            return None
        turned = (t, p) not in self._pairs
        a, b = (p, t) if turned else (t, p)
        g, n = self._pairs[a, b]
        kind = self.kinds[g]
        one, other = kind.pairs[kind.group.pairs[n]]
        one, other = one + self._start(a, g), other + self._start(b, g)
        return (other, one) if turned else (one, other)

    def layouts(self, chosen: Origins) -> Layouts:
        """Return the layouts of all sinks.

        Parameters
        ----------
        chosen
            For each sink and place the root tensor and the place there whose location it takes.
        """
        found: Layouts = {}
        sinks = {sink.index for sink in self.graph.sinks()}
        for g, (group, kind) in enumerate(zip(self.groups, self.kinds, strict=True)):
            own = [t for t in group.tensors if t in sinks]
            boxes = kind.boxes({self._model(g, t): self._within(g, *chosen[t]) for t in own})
            for t in own:
                pieces = (self._named(g, box) for box in boxes.get(self._model(g, t), ()))
                found[self.graph.tensor_name(t)] = tuple(pieces)
        for sink in self.graph.sinks():
            if sink.name not in found:
                whole = (sink.name, 0, 0, ((sink.size, 1, 1),))
                found[sink.name] = (whole,) if sink.size else ()
        return {sink.name: found[sink.name] for sink in self.graph.sinks()}

    def _model(self, g: int, t: int) -> int:
        """Return the tensor that a tensor of a group is to the kind of the group."""
        return self.kinds[g].group.tensors[self._rank[g][self.firsts[t]]]

    def _start(self, t: int, g: int) -> int:
        """Return the first place of a tensor in one group."""
        t = self.firsts[t]
        return self._starts[t][self._copies[t].index(g)]

    def _count_through(self, t: int) -> list[int]:
        """Return the first place of a tensor in each of its groups, and their end."""
        counts = [len(self.kinds[g].elements[self._model(g, t)]) for g in self._copies[t]]
        found: list[int] = np.cumsum([0, *counts]).tolist()
        return found

    def _gather(self, t: int, carriers: Sequence[int]) -> tuple[IntArray, list[int]]:
        starts = np.cumsum([0, *map(self.count, carriers)]).tolist()
        sources = [np.zeros(0, np.int64)]
        for g in self._copies.get(t, ()):
            source, own = self.kinds[g].views[self._model(g, t)]
            moves = [
                start + self._start(c, g) - before
                for c, start, before in zip(carriers, starts, own, strict=False)
            ]
            carrier = np.searchsorted(own, source, side="right") - 1
            sources.append(source + np.array(moves, np.int64)[carrier])
        return np.concatenate(sources), starts

    def _within(self, g: int, tensors: IntArray, places: IntArray) -> tuple[IntArray, IntArray]:
        """Return roots and places as those of the kind of a group."""
        models, local = np.empty_like(tensors), np.empty_like(places)
        for t in unique(tensors).tolist():
            here = tensors == t
            models[here] = self._model(g, t)
            local[here] = places[here] - self._start(t, g)
        return models, local

    def _named(self, g: int, box: Box) -> tuple[str, int, int, tuple[tuple[int, int, int], ...]]:
        origin = self.groups[g].tensors[self.kinds[g].group.tensors.index(box.origin)]
        return self.graph.tensor_name(origin), box.start, box.to, box.loops


def _lifted(
    graph: Store, firsts: Sequence[int], limits: Limits
) -> tuple[list[Group], list[GroupPlaces]]:
    """Return all groups, and the places of the first that has the key of each."""
    free = free_tensors(graph, Given(graph))
    groups = _whole(graph, free, firsts)
    kinds: dict[Hashable, GroupPlaces] = {}
    keys = [key_of(graph, group) for group in groups]
    for key, group in zip(keys, groups, strict=True):
        if key not in kinds:
            if limits.over:
                raise TimeoutError
            kinds[key] = GroupPlaces(graph, group, free)
    return groups, [kinds[key] for key in keys]


def _whole(graph: Store, free: Sequence[bool], firsts: Sequence[int]) -> list[Group]:
    """Return the groups of all pairs, and with them whatever barriers wait for.

    Whatever is free belongs to the group that it is linked to, or to one of its own; tensors that
    no sink leads to have groups of their own.
    """
    given = Given(graph)
    groups = find_groups(graph, given)
    linked = link(graph, free)
    owner = {int(linked[t]): g for g, group in enumerate(groups) for t in group.tensors if free[t]}
    told = {t for group in groups for t in group.tensors}
    for t in reversed(relevant(graph, given)):
        if firsts[t] in told:
            continue
        cone = sources_of(graph, {firsts[t]}, firsts)
        g = owner.setdefault(int(linked[t]), len(groups)) if free[t] else len(groups)
        if g == len(groups):
            groups.append(Group((), (), (), (), firsts))
        tensors = {*groups[g].tensors, *cone}
        groups[g] = replace(groups[g], tensors=tuple(sorted(tensors)))
        told |= tensors
    return groups
