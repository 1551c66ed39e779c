"""A randomised greedy0 on labelling problems: what is dearest agrees first, many times over.

Greedy0 lets what is known grow along the pair of highest value, and never revises.  On a
labelling problem that is Prim's algorithm (Bell Syst. Tech. J. 36, 1957): with all labels as one
root, to which rewards are the edges, every node takes the label through which the maximum spanning
tree leads from it to the root.  Each start but the first multiplies all numbers with random ones
(Hart and Shogan, *Semi-greedy heuristics: an empirical study*, Oper. Res. Lett. 6, 1987), and each
component keeps its best start.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from layoutopt.approximate.components import Best
from layoutopt.limits import Limits
from layoutopt.problem import IntArray, Labelling

Floats = NDArray[np.float64]

STARTS = 32
"""How often a labelling grows, the first time without chance."""

NOISE = 0.5
"""In the last start numbers are multiplied with random ones up to this much below and above 1,
in earlier starts with such that are nearer to 1."""


def grow(problem: Labelling, limits: Limits, _start: IntArray, starts: int = STARTS) -> IntArray:
    """Return the best of several randomised greedy labellings, component by component.

    Only what earns something is followed.  A node that must not take the label that comes to it
    takes part again, once its neighbours are decided.  A component that earns less than nothing
    gets fresh labels throughout.

    Parameters
    ----------
    starts
        How many labellings grow; fewer, but at least one, if time is up.
    """
    random = np.random.default_rng(limits.seed % 2**31)
    growth = _Growth(problem)
    best = Best(problem, problem.labels + np.arange(problem.nodes))
    best.offer(growth.labels(growth.weights))
    for start in range(1, starts):
        if limits.over:
            break
        limits.report("random-greedy", best.value)
        noise = NOISE * start / starts * random.uniform(-1, 1, len(growth.weights))
        best.offer(growth.labels(growth.weights * (1 + noise)))
    return best.labels


class _Growth:
    """What earns something in a problem: ``weights`` are those of edges, then those of wishes."""

    def __init__(self, problem: Labelling) -> None:
        self.nodes, self.named = problem.nodes, problem.labels
        self.banned = problem.banned @ np.array([self.named, 1])
        drawn = problem.weights > 0
        wanted = (problem.rewards > 0) & ~self._forbidden(*problem.reward_at.T)
        self.edges, self.wishes = problem.edges[drawn], problem.reward_at[wanted]
        weights = np.concatenate([problem.weights[drawn], problem.rewards[wanted]])
        self.weights: Floats = weights.astype(float)

    def labels(self, weights: Floats) -> IntArray:
        """Return a labelling by a spanning tree, and by more of them where labels are banned."""
        n, m = self.nodes, len(self.edges)
        labels, left = self.named + np.arange(n), np.ones(n, bool)
        (u, v), (wisher, wish) = self.edges.T, self.wishes.T
        near, key = np.concatenate([u, v, wisher]), np.concatenate([weights[:m], weights])
        while left.any():
            to = np.concatenate([labels[v], labels[u], wish])
            known = np.concatenate([~left[v], ~left[u], np.ones(len(wish), bool)])
            way = np.flatnonzero(left[near] & known & ~self._forbidden(near, to))
            way = way[np.lexsort((key[way], near[way]))]
            way = way[np.flatnonzero(np.diff(near[way], append=-1))]  # the dearest of each node
            inner = np.flatnonzero(left[u] & left[v])
            dear = np.concatenate([weights[inner], key[way]])
            first, taken = _forest(left, self.edges[inner], near[way], dear)
            fresh = self.named + first
            labels[left] = np.where(taken < 0, fresh, np.append(to[way], -1)[taken])
            left &= self._forbidden(np.arange(n), labels)
        return labels

    def _forbidden(self, nodes: IntArray, labels: IntArray) -> NDArray[np.bool_]:
        """Return which nodes must not take which labels."""
        return np.isin(np.where(labels < self.named, nodes * self.named + labels, -1), self.banned)


def _forest(
    left: IntArray, edges: IntArray, near: IntArray, weights: Floats
) -> tuple[IntArray, IntArray]:
    """Return how a maximum spanning tree leads from each node that is left to the root.

    Parameters
    ----------
    left
        Shape ``(nodes,)``: whether each node is left.
    edges, near
        Edges between nodes that are left, and nodes with an edge to the root, each once.
    weights
        Those of both, one after the other.

    Returns
    -------
    first, taken
        For each node that is left the first node of its branch, which is what hangs together
        without the root, and the place in ``near`` of the node through which the branch has its
        edge to the root, or -1.
    """
    nodes = np.flatnonzero(left)
    root, place = len(nodes), np.cumsum(left) - 1
    ends = np.concatenate([place[edges], np.column_stack([place[near], np.full(len(near), root)])])
    cost = np.empty(len(ends))
    cost[np.argsort(-weights, kind="stable")] = np.arange(1, len(ends) + 1)
    narrow = ends.astype(np.int32)  # SciPy before 1.17 takes no others here
    matrix = coo_array((cost, tuple(narrow.T)), shape=(root + 1, root + 1))
    tree = minimum_spanning_tree(matrix.tocsr()).tocoo()
    rooted = tree.col == root
    links = tree.row[~rooted], tree.col[~rooted]
    joined = coo_array((np.ones(len(links[0]), bool), links), shape=(root, root))
    count, branch = connected_components(joined, directed=False)
    taken, number = np.full(count, -1), np.full(root, -1)
    number[place[near]] = np.arange(len(near))
    taken[branch[tree.row[rooted]]] = number[tree.row[rooted]]
    return nodes[np.unique(branch, return_index=True)[1]][branch], taken[branch]
