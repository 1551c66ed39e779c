"""A smaller problem with the same optimum, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.base.numbers import unique
from layoutopt.base.result import Result
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray, Labelling


@dataclass(frozen=True, eq=False)
class Reduction:
    """Reduced problem, and the inverse of the reduction.

    Every labelling ``y`` of the small problem gives ``x = restore(y)`` of the large one with
    ``large.value(x) >= constant + small.value(y)``, and the optima satisfy this with
    equality.  So ``constant`` plus a bound of the small problem is one of the large.

    Parameters
    ----------
    whole
        The large problem.
    problem
        The small problem; both have the same named labels.
    constant
        What is earned outside the small problem.
    kept
        For each node of the small problem the one of the large that it comes from.
    restore
        Labels of the large problem from labels of the small one.
    """

    whole: Labelling
    problem: Labelling
    constant: int
    kept: IntArray
    restore: Callable[[IntArray], IntArray]

    def project(self, labels: IntArray | None) -> IntArray | None:
        """Return labels of the small problem as they are in a labelling of the large one."""
        if labels is None:
            return None
        own = labels[self.kept]
        _, first, group = np.unique(own, return_index=True, return_inverse=True)
        return np.where(own < self.problem.labels, own, self.problem.labels + first[group])

    def restore_result(self, result: Result) -> Result:
        """Return the result of the large problem that one of the small problem gives."""
        labels = self.restore(result.labelling)
        bound = None if result.bound is None else self.constant + int(result.bound)
        value = self.whole.value(labels)
        return Result(objective=value, bound=bound, labelling=labels, stopped=result.stopped)


def restored_names(labels: IntArray, kept: IntArray, named: int) -> IntArray:
    """Return labels of a small problem's nodes as labels of the large problem."""
    return np.where(labels < named, labels, named + kept[np.maximum(labels - named, 0)])


@dataclass(frozen=True, eq=False)
class Parts:
    """A problem's connected components, each with labels of its own.

    Parameters
    ----------
    problem
        The whole.
    parts
        The components.  Their objectives, and so their bounds, add up.
    nodes, labels
        For each part the nodes and the named labels of the whole, by the part's numbers.
    """

    problem: Labelling
    parts: tuple[Labelling, ...]
    nodes: tuple[IntArray, ...]
    labels: tuple[IntArray, ...]

    def join(self, labellings: Sequence[IntArray]) -> IntArray:
        """Return labels of the whole from labels of the parts."""
        whole = np.zeros(self.problem.nodes, np.int64)
        for own, nodes, named in zip(labellings, self.nodes, self.labels, strict=True):
            table = np.concatenate([named, self.problem.labels + nodes])
            whole[nodes] = table[own]
        return whole

    def cut(self, labels: IntArray) -> list[IntArray]:
        """Return labels of the parts from labels of the whole.

        A label that a part does not know becomes fresh there.
        """
        found = []
        for part, nodes, named in zip(self.parts, self.nodes, self.labels, strict=True):
            own = labels[nodes]
            place = np.minimum(np.searchsorted(named, own), max(len(named) - 1, 0))
            known = named[place] == own if len(named) else np.zeros(len(own), bool)
            _, first, group = np.unique(own, return_index=True, return_inverse=True)
            found.append(np.where(known, place, part.labels + first[group]))
        return found


def split(problem: Labelling) -> Parts:
    """Split a problem without order rules into its connected components."""
    n = problem.nodes
    count, of = components(n, *problem.edges.T)
    nodes = _cut(np.arange(n), of, count)
    place = np.zeros(n, np.int64)
    for own in nodes:
        place[own] = np.arange(len(own))
    edges = _cut(np.arange(len(problem.edges)), of[problem.edges[:, 0]], count)
    earns = _cut(np.arange(len(problem.reward_at)), of[problem.reward_at[:, 0]], count)
    bans = _cut(np.arange(len(problem.banned)), of[problem.banned[:, 0]], count)
    parts, labels = [], []
    for own, e, r, b in zip(nodes, edges, earns, bans, strict=True):
        at = problem.reward_at[r]
        named = unique(at[:, 1])
        banned = problem.banned[b]
        banned = banned[np.isin(banned[:, 1], named)]
        labels.append(named)
        parts.append(
            Labelling(
                len(own),
                len(named),
                place[problem.edges[e]],
                problem.weights[e],
                np.column_stack([place[at[:, 0]], np.searchsorted(named, at[:, 1])]),
                problem.rewards[r],
                np.column_stack([place[banned[:, 0]], np.searchsorted(named, banned[:, 1])]),
            )
        )
    return Parts(problem, tuple(parts), tuple(nodes), tuple(labels))


def take(problem: Labelling, nodes: IntArray) -> Labelling:
    """Return the part of a problem on some nodes, which no edge joins to the others.

    Parameters
    ----------
    nodes
        Ascending.
    """
    inside = np.zeros(problem.nodes, bool)
    inside[nodes] = True
    place = np.cumsum(inside) - 1

    def kept(at: IntArray) -> IntArray:
        return np.column_stack([place[at[:, 0]], at[:, 1]])

    edges = inside[problem.edges[:, 0]]
    earns = inside[problem.reward_at[:, 0]]
    return Labelling(
        len(nodes),
        problem.labels,
        place[problem.edges[edges]],
        problem.weights[edges],
        kept(problem.reward_at[earns]),
        problem.rewards[earns],
        kept(problem.banned[inside[problem.banned[:, 0]]]),
    )


def _cut(things: IntArray, of: IntArray, count: int) -> list[IntArray]:
    """Return the things of each component, in order."""
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(1, count))
    return np.split(things[order], bounds) if count else []
