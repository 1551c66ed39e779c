"""Local search: nodes, neighbours and agreeing groups change labels as long as that pays.

The classic moves of improvement after a greedy answer (Aarts and Lenstra, *Local search in
combinatorial optimization*, 1997; for labels Besag, *On the statistical analysis of dirty
pictures*, J. R. Stat. Soc. B 48, 1986):

- a node takes the best of the labels that it earns, those of its neighbours, and one that nobody
  has;
- two neighbours swap their labels;
- a connected group of nodes that agree, a whole tensor for instance, moves or swaps as if it were
  one node.

Of all moves that pay, those are made at once that gain more than whatever they touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray, Labelling, WeightArray, merge_parallel


def refine(problem: Labelling, limits: Limits, start: IntArray) -> IntArray:
    """Return a labelling that no move improves, or the best one when time is up."""
    whole = _Search(problem, limits)
    labels = whole.climb(start)
    while not limits.over:
        limits.report("refining", problem.value(labels))
        group, small = _grouped(problem, labels)
        first = np.unique(group, return_index=True)[1]
        own = tidy(labels[first], problem.labels)
        moved = _Search(small, limits).climb(own)
        if np.array_equal(moved, own):
            break
        labels = whole.climb(tidy(moved[group], problem.labels))
    return labels


def tidy(labels: IntArray, named: int) -> IntArray:
    """Return labels in which each fresh one is that of the first node that has it."""
    fresh = np.flatnonzero(labels >= named)
    _, first, inverse = np.unique(labels[fresh], return_index=True, return_inverse=True)
    labels = labels.copy()
    labels[fresh] = named + fresh[first][inverse]
    return labels


def _grouped(problem: Labelling, labels: IntArray) -> tuple[IntArray, Labelling]:
    """Return the group of each node, and the problem in which each group is one node."""
    u, v = problem.edges.T
    tied = (labels[u] == labels[v]) & (problem.weights > 0)
    count, group = components(problem.nodes, u[tied], v[tied])
    ends = np.sort(group[problem.edges], axis=1)
    across = ends[:, 0] != ends[:, 1]
    edges, weights = merge_parallel(ends[across], problem.weights[across])
    at = np.column_stack([group[problem.reward_at[:, 0]], problem.reward_at[:, 1]])
    reward_at, rewards = merge_parallel(at, problem.rewards)
    bans = np.column_stack([group[problem.banned[:, 0]], problem.banned[:, 1]])
    bans = np.unique(bans, axis=0)
    return group, Labelling(int(count), problem.labels, edges, weights, reward_at, rewards, bans)


@dataclass(frozen=True, eq=False)
class _Scores:
    """Rewards of nodes by labels that they may want: by node, then by label.

    Keys are ``node * span + label``.
    """

    span: int
    key: IntArray
    node: IntArray
    label: IntArray
    score: WeightArray

    def of(self, node: IntArray, label: IntArray) -> tuple[WeightArray, IntArray]:
        """Return what nodes earn by labels, and whether they may have them."""
        wanted = node * self.span + label
        at = np.minimum(np.searchsorted(self.key, wanted), max(len(self.key) - 1, 0))
        return self.score[at], self.key[at] == wanted


class _Search:
    """Moves of nodes and swaps of neighbours in one problem."""

    def __init__(self, problem: Labelling, limits: Limits) -> None:
        self.problem, self.limits = problem, limits
        n = problem.nodes
        self.span = problem.labels + 2 * n
        ends = np.concatenate([problem.edges, problem.edges[:, ::-1]])
        order = np.argsort(ends[:, 0], kind="stable")
        self.tail, self.head = ends[order].T
        self.weight = np.concatenate([problem.weights] * 2)[order]
        self.arcs = np.searchsorted(self.tail, np.arange(n + 1))
        order = np.argsort(problem.reward_at[:, 0], kind="stable")
        self.wish, self.reward = problem.reward_at[order], problem.rewards[order]
        self.wishes = np.searchsorted(self.wish[:, 0], np.arange(n + 1))
        self.banned = problem.banned @ np.array([self.span, 1])

    def climb(self, labels: IntArray) -> IntArray:
        """Return labels that no move of a node and no swap improves, unless time is up."""
        active = np.arange(self.problem.nodes)
        while len(active) and not self.limits.over:
            labels, active = self._moved(labels, active)
            if not len(active) and not self.limits.over:
                labels, active = self._swapped(labels)
        return labels

    def _scores(self, nodes: IntArray, labels: IntArray) -> _Scores:
        """Return what nodes earn by their candidates; their own labels are always among them."""
        arcs, wishes = _ranges(self.arcs, nodes), _ranges(self.wishes, nodes)
        nobody = self.problem.labels + self.problem.nodes + nodes
        node = np.concatenate([self.tail[arcs], self.wish[wishes, 0], nodes, nodes])
        heads = labels[self.head[arcs]]
        label = np.concatenate([heads, self.wish[wishes, 1], labels[nodes], nobody])
        nothing = np.zeros(2 * len(nodes), np.int64)
        earned = np.concatenate([self.weight[arcs], self.reward[wishes], nothing])
        key = node * self.span + label
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
        score, key = np.add.reduceat(earned[order], first), key[first]
        legal = ~np.isin(key, self.banned)
        key, score = key[legal], score[legal]
        return _Scores(self.span, key, key // self.span, key % self.span, score)

    def _moved(self, labels: IntArray, active: IntArray) -> tuple[IntArray, IntArray]:
        """Move nodes to better labels, and return the nodes to be looked at next."""
        found = self._scores(active, labels)
        now = found.score[np.searchsorted(found.key, active * self.span + labels[active])]
        order = np.lexsort((-found.label, found.score, found.node))
        best = order[np.searchsorted(found.node[order], active, side="right") - 1]
        gain = found.score[best] - now
        pays = np.flatnonzero(gain > 0)
        if not len(pays):
            return labels, active[:0]
        nodes = active[pays]
        rank = np.zeros(self.problem.nodes, np.int64)
        rank[nodes[np.argsort(gain[pays], kind="stable")]] = np.arange(1, len(nodes) + 1)
        goes = rank[nodes] > self._around(nodes, rank)[nodes]
        labels = labels.copy()
        labels[nodes[goes]] = found.label[best[pays[goes]]]
        waiting = np.zeros(self.problem.nodes, bool)
        waiting[nodes[~goes]] = True
        waiting[self.head[_ranges(self.arcs, nodes[goes])]] = True
        return tidy(labels, self.problem.labels), np.flatnonzero(waiting)

    def _swapped(self, labels: IntArray) -> tuple[IntArray, IntArray]:
        """Swap labels of neighbours, and return the nodes to be looked at next."""
        edges, weights = self.problem.edges, self.problem.weights
        differ = labels[edges[:, 0]] != labels[edges[:, 1]]
        u, v = edges[differ].T
        if not len(u):
            return labels, u
        found = self._scores(np.unique(edges[differ]), labels)
        (one, may), (two, can) = found.of(u, labels[v]), found.of(v, labels[u])
        now = found.of(u, labels[u])[0] + found.of(v, labels[v])[0]
        gain = np.where(may & can, one + two - now - 2 * weights[differ], 0)
        pays = np.flatnonzero(gain > 0)
        u, v = u[pays], v[pays]
        order = np.empty(len(pays), np.int64)
        order[np.argsort(gain[pays], kind="stable")] = np.arange(1, len(pays) + 1)
        rank = np.zeros(self.problem.nodes, np.int64)
        np.maximum.at(rank, u, order)
        np.maximum.at(rank, v, order)
        around = np.maximum(rank, self._around(np.flatnonzero(rank), rank))
        goes = (around[u] == order) & (around[v] == order)
        u, v = u[goes], v[goes]
        labels = labels.copy()
        labels[u], labels[v] = labels[v], labels[u]
        both = np.concatenate([u, v])
        return labels, np.unique(np.concatenate([both, self.head[_ranges(self.arcs, both)]]))

    def _around(self, nodes: IntArray, rank: IntArray) -> IntArray:
        """Return for each node the highest rank of those neighbours that are among some nodes."""
        arcs = _ranges(self.arcs, nodes)
        found = np.zeros(self.problem.nodes, np.int64)
        np.maximum.at(found, self.head[arcs], rank[self.tail[arcs]])
        return found


def _ranges(starts: IntArray, nodes: IntArray) -> IntArray:
    """Return the numbers from ``starts[u]`` to ``starts[u + 1]`` of each of some nodes."""
    counts = starts[nodes + 1] - starts[nodes]
    ends = np.cumsum(counts)
    return np.repeat(starts[nodes] - ends + counts, counts) + np.arange(int(counts.sum()))
