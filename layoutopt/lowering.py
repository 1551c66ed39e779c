"""From a graph to one labelling problem, and from its labels back to layouts.

Each kind of group is traced once.  Of each class of isomorphic components one
representative goes into the problem, its weights multiplied by the number of copies in all
groups of that kind, so that the problem's optimum is the graph's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from layoutopt.dense.barriers import Contest, find_contest, find_cycles, no_contest
from layoutopt.dense.boxes import Box
from layoutopt.dense.groups import Group, find_groups, free_tensors, key_of, sources_of
from layoutopt.dense.kinds import GroupKind, memory_needed
from layoutopt.dense.layouts import Layouts, pieces_of
from layoutopt.dense.representatives import reduce_kind
from layoutopt.errors import SizeError
from layoutopt.graphs.given import Given
from layoutopt.graphs.locations import Origins
from layoutopt.graphs.op import size
from layoutopt.graphs.store import Store
from layoutopt.graphs.values import to_integers
from layoutopt.lifting.contest import lifted_contest
from layoutopt.lifting.kinds import LiftedKind, lift_kind
from layoutopt.limits import Limits
from layoutopt.memory import available
from layoutopt.pieces import Piece
from layoutopt.problem import IntArray, Labelling, Precedence, WeightArray

Kind: TypeAlias = GroupKind | LiftedKind

LIFT_FROM = 10**5
"""Groups of so many pair positions are solved without touching their elements."""

PER_GROUP = 1000
"""Of groups with more tensors and pairs than this, so many more positions are asked for."""


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
    kinds: tuple[Kind, ...]
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
            every = kind.boxes(np.where(own < self.problem.labels, own - label, fresh))
            for place, shapes in enumerate(every):
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

    def labels(self, origins: Origins) -> IntArray:
        """Return labels of the problem's nodes from layouts.

        Parameters
        ----------
        origins
            For each sink, by tensor number, root tensor and flat element of each location.
        """
        found = [np.zeros(0, np.int64)]
        node, label = 0, 0
        for kind in self.kinds:
            own = kind.labels(origins)
            fresh = own - kind.problem.labels + self.problem.labels + node
            found.append(np.where(own < kind.problem.labels, own + label, fresh))
            node, label = node + kind.problem.nodes, label + kind.problem.labels
        return np.concatenate(found)


def _piece(graph: Store, group: Group, box: Box) -> Piece:
    roots = (*group.sinks, *group.fixed)
    return graph.tensor_name(roots[box.origin]), box.start, box.to, box.loops


def lower(
    graph: Store, limits: Limits, given: Given | None = None, lift_from: int = LIFT_FROM
) -> Lowered:
    """Return a graph's labelling problem.

    Parameters
    ----------
    given
        Sink elements whose locations are given beforehand.
    lift_from
        Groups of so many pair positions are lifted, smaller ones traced element by element.

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
    limits.report("barriers")
    free = free_tensors(graph, given)
    contest = _contest(graph, groups, given, free, lift_from)
    alike: dict[Hashable, list[Group]] = {}
    for g, group in enumerate(groups):
        alone = g in contest.groups or any(map(given.touches, group.tensors))
        key: Hashable = g if alone else key_of(graph, group)
        alike.setdefault(key, []).append(group)
    kinds: list[Kind] = []
    for n, (key, members) in enumerate(alike.items()):
        if limits.over:
            raise TimeoutError
        limits.report(f"tracing group {n + 1} of {len(alike)}")
        contested = key in contest.groups
        if contested and not contest.readers:
            kinds.append(lift_kind(graph, members, free, values, contest, contested=True))
        else:
            lifted = None
            if not isinstance(key, int) and _pays(graph, members[0], lift_from):
                lifted = _lifted(graph, members, free, values, contest)
            if lifted is None:
                _check_memory(graph, members[0])
            kinds.append(lifted or reduce_kind(graph, members, values, contest, given))
    constant = sum(kind.constant * len(kind.groups) for kind in kinds)
    problem = _joined([kind.problem for kind in kinds], contest)
    sizes = _sizes(graph, groups, kinds, given)
    return Lowered(graph, problem, constant, unit, tuple(kinds), sizes, given)


def _contest(
    graph: Store, groups: Sequence[Group], given: Given, free: Sequence[bool], lift_from: int
) -> Contest:
    """Return where barrier order limits the choice."""
    barriers, contested = find_cycles(graph, groups, given)
    if not contested:
        return no_contest()
    read = sources_of(graph, {t for b in barriers for t in graph.op_inputs[b]})
    tensors = {t for g in contested for t in groups[g].tensors}.union(read)
    if given.count == 0 and sum(size(graph.shapes[t]) for t in tensors) >= lift_from:
        return lifted_contest(graph, barriers, contested, free)
    return find_contest(graph, groups, given, barriers, contested)


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
            tuple(contest.reader_sets),
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
    graph: Store, groups: Sequence[Group], kinds: Sequence[Kind], given: Given
) -> dict[str, int]:
    free = sum(t.size for t in graph.sinks()) - given.count
    tied = sum(kind.tied * len(kind.groups) for kind in kinds)
    return ({"given": given.count} if given.count else {}) | {
        "unconstrained": free - tied,
        "groups": len(groups),
        "group_kinds": len(kinds),
        "components": sum(sum(kind.copies) * len(kind.groups) for kind in kinds),
        "classes": sum(len(kind.copies) for kind in kinds),
    }


def _pays(graph: Store, group: Group, lift_from: int) -> bool:
    """Return whether a group has so many elements to so few tensors that it should be lifted."""
    positions = sum(size(graph.shapes[graph.pairs[p][0]]) for p in group.pairs)
    return positions >= lift_from * max(1, (len(group.tensors) + len(group.pairs)) / PER_GROUP)


def _lifted(
    graph: Store,
    groups: Sequence[Group],
    free: Sequence[bool],
    values: Sequence[int],
    contest: Contest,
) -> LiftedKind | None:
    """Lift a group; ``None`` if it is too irregular for that, but fits the memory.

    Raises
    ------
    SizeError
        If it does not fit either.
    """
    try:
        return lift_kind(graph, groups, free, values, contest)
    except SizeError:
        limit = available()
        if limit is not None and memory_needed(graph, groups[0]) > limit:
            raise
        return None


def _check_memory(graph: Store, group: Group) -> None:
    """Refuse a group before its arrays do not fit."""
    limit, needed = available(), memory_needed(graph, group)
    if limit is not None and needed > limit:
        name = graph.tensor_name((group.sinks or group.fixed)[0])
        raise SizeError(
            f"the group of tensor {name!r} needs about {needed / 2**30:.3g} GiB when every "
            f"element is traced; this machine has {limit / 2**30:.3g} GiB free"
        )
