"""From a graph to one labelling problem, and from its labels back to layouts.

Each kind of group is traced once.  Of each class of isomorphic components one
representative goes into the problem, its weights multiplied by the number of copies in all
groups of that kind, so that the problem's optimum is the graph's.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from layoutopt.dense.barriers import Contest, find_contest
from layoutopt.dense.boxes import Box, boxes
from layoutopt.dense.groups import Group, find_groups, key_of
from layoutopt.dense.kinds import GroupKind, memory_needed, reduce_kind
from layoutopt.errors import SizeError
from layoutopt.graphs.given import Given
from layoutopt.graphs.op import size
from layoutopt.graphs.store import Store
from layoutopt.graphs.values import to_integers
from layoutopt.limits import Limits
from layoutopt.pieces import Piece
from layoutopt.problem import IntArray, Labelling, Precedence, WeightArray

Layouts = dict[str, tuple[Piece, ...]]


@dataclass(frozen=True, eq=False)
class Lowered:
    """A graph as a labelling problem.

    Parameters
    ----------
    graph
        The graph.
    problem
        Its representatives.  ``unit * (constant + problem.value(labels))`` is the score of
        the layouts that :meth:`layouts` gives.
    constant, unit
        What is earned whatever is chosen, and what one is worth.
    kinds
        The different groups.
    size
        Counts by name: ``unconstrained`` sink elements, ``groups``, ``group_kinds``,
        ``components``, ``classes``.
    given
        What is given beforehand.
    """

    graph: Store
    problem: Labelling
    constant: int
    unit: Fraction
    kinds: tuple[GroupKind, ...]
    size: dict[str, int]
    given: Given

    def layouts(self, labels: IntArray) -> Layouts:
        """Return the layouts of all sinks for labels of the problem's nodes.

        Elements that no pair reaches keep a location of their own.
        """
        found: Layouts = {}
        node, label = 0, 0
        for kind in self.kinds:
            own = labels[node : node + kind.problem.nodes]
            fresh = own - self.problem.labels - node + kind.problem.labels
            where = kind.spread(np.where(own < self.problem.labels, own - label, fresh))
            starts = kind.edges.numbers.starts[: len(kind.edges.numbers.sinks) + 1]
            for place, (a, b) in enumerate(pairwise(starts)):
                shapes = boxes(*kind.origins(self.graph, where[a:b]))
                for group in kind.groups:
                    name = self.graph.tensor_name(group.sinks[place])
                    found[name] = tuple(_piece(self.graph, group, box) for box in shapes)
            node, label = node + kind.problem.nodes, label + kind.problem.labels
        for sink in self.graph.sinks():
            if sink.name not in found:
                found[sink.name] = self._untied(sink.index)
        return {sink.name: found[sink.name] for sink in self.graph.sinks()}

    def _untied(self, t: int) -> tuple[Piece, ...]:
        """Return the layout of a sink that no group needs."""
        name, count = self.graph.tensor_name(t), size(self.graph.shapes[t])
        if self.given.touches(t):
            return pieces_of(self.graph, *self.given.placed(t, self.given.own(t)))
        return ((name, 0, 0, ((count, 1, 1),)),) if count else ()

    def labels(self, origins: Mapping[int, tuple[IntArray, IntArray]]) -> IntArray:
        """Return labels of the problem's nodes from layouts.

        Parameters
        ----------
        origins
            For each sink, by tensor number, root tensor and flat element of each location.
        """
        found = [np.zeros(0, np.int64)]
        node, label = 0, 0
        for kind in self.kinds:
            own = kind.labels(self._numbers(kind, origins))
            fresh = own - kind.problem.labels + self.problem.labels + node
            found.append(np.where(own < kind.problem.labels, own + label, fresh))
            node, label = node + kind.problem.nodes, label + kind.problem.labels
        return np.concatenate(found)

    def _numbers(
        self, kind: GroupKind, origins: Mapping[int, tuple[IntArray, IntArray]]
    ) -> IntArray:
        """Return the location numbers that a kind's nodes have in its first group."""
        numbers, group = kind.edges.numbers, kind.groups[0]
        tensors, elements = (
            np.concatenate([np.zeros(0, np.int64), *(origins[t][i] for t in group.sinks)])
            for i in (0, 1)
        )
        tensors, elements = tensors[kind.nodes], elements[kind.nodes]
        where = numbers.locate(self.graph, tensors, elements)
        for t, start in zip(group.sinks, numbers.starts.tolist(), strict=False):
            fresh = (tensors == t) & (where < 0)
            where[fresh] = start + elements[fresh]
        return where


def pieces_of(graph: Store, tensors: IntArray, elements: IntArray) -> tuple[Piece, ...]:
    """Write the origins of a sink's elements, root tensor and flat element, as pieces."""
    found = boxes(tensors, elements)
    return tuple((graph.tensor_name(b.origin), b.start, b.to, b.loops) for b in found)


def _piece(graph: Store, group: Group, box: Box) -> Piece:
    roots = (*group.sinks, *group.fixed)
    return graph.tensor_name(roots[box.origin]), box.start, box.to, box.loops


def lower(graph: Store, limits: Limits, given: Given | None = None) -> Lowered:
    """Return a graph's labelling problem.

    Parameters
    ----------
    given
        Sink elements whose locations are given beforehand.

    Raises
    ------
    SizeError
        If the graph's tensors do not fit this machine's memory.
    TimeoutError
        If time runs out.
    """
    values, unit = to_integers([value for _, _, value in graph.pairs])
    given = Given(graph) if given is None else given
    groups = find_groups(graph, given)
    _check_memory(graph, groups)
    limits.report("barriers")
    contest = find_contest(graph, groups, given)
    alike: dict[Hashable, list[Group]] = {}
    for g, group in enumerate(groups):
        alone = g in contest.groups or any(map(given.touches, group.tensors))
        key: Hashable = g if alone else key_of(graph, group)
        alike.setdefault(key, []).append(group)
    kinds = []
    for n, members in enumerate(alike.values()):
        if limits.over:
            raise TimeoutError
        limits.report(f"tracing group {n + 1} of {len(alike)}")
        kinds.append(reduce_kind(graph, members, values, contest, given))
    constant = sum(kind.edges.constant * len(kind.groups) for kind in kinds)
    problem = _joined([kind.problem for kind in kinds], contest)
    sizes = _sizes(graph, groups, kinds, given)
    return Lowered(graph, problem, constant, unit, tuple(kinds), sizes, given)


def _joined(problems: Sequence[Labelling], contest: Contest) -> Labelling:
    """Put problems side by side."""
    nodes = np.cumsum([0, *(p.nodes for p in problems)])
    labels = np.cumsum([0, *(p.labels for p in problems)])
    ends, at = [np.zeros((0, 2), np.int64)], [np.zeros((0, 2), np.int64)]
    for problem, n, k in zip(problems, nodes[:-1], labels[:-1], strict=True):
        ends.append(problem.edges + n)
        at.append(problem.reward_at + (n, k))
    precedence = None
    if contest.barriers:
        orders = [p.precedence for p in problems]
        offered = [
            np.full(p.labels, -1) if o is None else o.label_barrier
            for p, o in zip(problems, orders, strict=True)
        ]
        readers = [
            np.zeros(p.nodes, np.int64) if o is None else o.node_readers
            for p, o in zip(problems, orders, strict=True)
        ]
        precedence = Precedence(
            len(contest.barriers),
            contest.arcs,
            np.concatenate(offered),
            contest.reader_sets,
            np.concatenate(readers),
        )
    return Labelling(
        int(nodes[-1]),
        int(labels[-1]),
        np.concatenate(ends),
        _packed([p.weights for p in problems]),
        np.concatenate(at),
        _packed([p.rewards for p in problems]),
        precedence=precedence,
    )


def _packed(arrays: Sequence[WeightArray]) -> WeightArray:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _sizes(
    graph: Store, groups: Sequence[Group], kinds: Sequence[GroupKind], given: Given
) -> dict[str, int]:
    free = sum(t.size for t in graph.sinks()) - given.count
    tied = sum(
        int(np.count_nonzero(k.classes.class_of[k.classes.component] >= 0)) * len(k.groups)
        for k in kinds
    )
    return ({"given": given.count} if given.count else {}) | {
        "unconstrained": free - tied,
        "groups": len(groups),
        "group_kinds": len(kinds),
        "components": sum(int(k.classes.copies.sum()) * len(k.groups) for k in kinds),
        "classes": sum(len(k.classes.copies) for k in kinds),
    }


def _check_memory(graph: Store, groups: Sequence[Group]) -> None:
    """Refuse a graph before its arrays do not fit."""
    limit = _memory()
    for group in groups:
        needed = memory_needed(graph, group)
        if limit is not None and needed > limit:
            name = graph.tensor_name((group.sinks or group.fixed)[0])
            raise SizeError(
                f"the group of tensor {name!r} needs about {needed / 2**30:.3g} GiB when every "
                f"element is traced; this machine has {limit / 2**30:.3g} GiB free"
            )


def _memory() -> int | None:
    """Return the bytes of memory that are available, if the system tells."""
    try:
        with open("/proc/meminfo") as table:
            for line in table:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    names: dict[str, Any] = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
