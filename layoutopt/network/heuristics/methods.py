"""The heuristics, each a function ``(problem, limits, start) -> labels``.

To add one, write such a function in a module of this room (see
:mod:`layoutopt.network.heuristics.frame`) and name its method in
:mod:`layoutopt.base.entries`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.network.components import components
from layoutopt.network.flow import best_set, expanded
from layoutopt.network.heuristics.frame import method
from layoutopt.network.heuristics.refine import refine
from layoutopt.network.problem import (
    IntArray,
    Labelling,
    banned,
    exact_sum,
    fresh_needed,
    split,
)
from layoutopt.network.solvers.formulation import Indicators, indicators


class Best:
    """The best labelling so far, component by component.

    Parameters
    ----------
    problem
        A problem without order rules whose numbers fit 64 bits.
    labels
        A labelling to begin with.
    """

    def __init__(self, problem: Labelling, labels: IntArray) -> None:
        self.problem, self.labels = problem, labels
        self._component = components(problem.nodes, *problem.edges.T)[1]
        self._values = self._worth(labels)

    @property
    def value(self) -> int:
        """What the best labelling earns."""
        return int(self._values.sum())

    def offer(self, labels: IntArray) -> None:
        """Take over the labels of those components that earn more than before."""
        found = self._worth(labels)
        self.labels = np.where((found > self._values)[self._component], labels, self.labels)
        self._values = np.maximum(self._values, found)

    def _worth(self, labels: IntArray) -> IntArray:
        problem = self.problem
        found = np.zeros(int(self._component.max(initial=-1)) + 1, np.int64)
        u, v = problem.edges.T
        node, label = problem.reward_at.T
        same, got = labels[u] == labels[v], labels[node] == label
        np.add.at(found, self._component[u[same]], problem.weights[same])
        np.add.at(found, self._component[node[got]], problem.rewards[got])
        return found


def expand(problem: Labelling, limits: Limits, start: IntArray) -> IntArray:
    """Return a labelling that no expansion of a label improves, or the best when time is up."""
    parts = split(problem)
    found = parts.cut(start)
    total = problem.value(start)
    for i, part in enumerate(parts.parts):
        rest = total - part.value(found[i])
        found[i] = _expanded(part, found[i], limits.beside(rest))
        total = rest + part.value(found[i])
    return parts.join(found)


def _expanded(part: Labelling, labels: IntArray, limits: Limits) -> IntArray:
    value, targets, turn, idle = part.value(labels), _targets(part, labels), 0, 0
    while idle < len(targets) and not limits.over:
        moved = expansion(part, labels, targets[turn % len(targets)])
        worth = part.value(moved)
        turn, idle = turn + 1, idle + 1
        if worth > value:
            labels, value, targets, idle = moved, worth, _targets(part, moved), 0
            limits.report("alpha-expansion", value)
    return labels


def _targets(part: Labelling, labels: IntArray) -> list[int]:
    """Return the labels to expand: the named ones, and fresh ones where these may help."""
    found = list(range(part.labels))
    if not (part.weights < 0).any():
        return found + [part.labels] * fresh_needed(part)
    used = np.bincount(labels, minlength=part.labels + part.nodes)[part.labels :]
    shared, spare = np.flatnonzero(used > 1), np.flatnonzero(used == 0)[:1]
    fresh: list[int] = (part.labels + np.concatenate([shared, spare])).tolist()
    return found + fresh


def expansion(part: Labelling, labels: IntArray, to: int) -> IntArray:
    """Return the best labelling in which some nodes change to a label; one as good at least."""
    may = labels != to
    may[part.banned[part.banned[:, 1] == to, 0]] = False
    return expanded(part.edges, part.weights, labels, to, may, _first_gain(part, labels, to))


def _first_gain(part: Labelling, labels: IntArray, to: int) -> IntArray:
    """Return what each node's reward grows by if it changes to a label."""
    node, named = part.reward_at.T
    gain = np.zeros(part.nodes, np.int64)
    for there, sign in ((named == to, 1), (labels[node] == named, -1)):
        np.add.at(gain, node[there], sign * part.rewards[there])
    return gain


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
    """Rewards of a problem: ``weights`` are those of edges, then those of wishes."""

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
    count, branch = components(root, *links)
    taken, number = np.full(count, -1), np.full(root, -1)
    number[place[near]] = np.arange(len(near))
    taken[branch[tree.row[rooted]]] = number[tree.row[rooted]]
    return nodes[np.unique(branch, return_index=True)[1]][branch], taken[branch]


def isolate(problem: Labelling, limits: Limits, _start: IntArray) -> IntArray:
    """Return a labelling by isolating cuts, component by component.

    Edges of negative weight are not there for the cuts, and a node with a negative reward is
    drawn away from that label only.  Nodes of the rest that must not have its label get a fresh
    one.  A component that earns less than nothing gets fresh labels throughout.  Labels whose turn
    does not come in time keep no node apart.
    """
    parts = split(problem)
    return parts.join([_isolated(part, limits) for part in parts.parts])


def _isolated(part: Labelling, limits: Limits) -> IntArray:
    sides, cost = _cuts(part, limits)
    dearest = int(np.argmax(cost)) if part.labels else -1
    labels = np.full(part.nodes, -1)
    for label, side in enumerate(sides):
        if label != dearest:
            labels[side] = label
    rest = np.flatnonzero(labels < 0)
    found = [part.labels + np.arange(part.nodes)]
    for label in {dearest, _best_for(part, labels)}:
        labels[rest] = label if label >= 0 else part.labels
        labels[banned(part, labels)] = part.labels
        found.append(labels.copy())
    return max(found, key=part.value)


def _best_for(part: Labelling, labels: IntArray) -> int:
    """Return the label that earns most for all nodes without one; -1 if no label earns anything.

    Where a node must not have a label, its edges count as lost.
    """
    earned, rest = np.zeros(part.labels + 1, np.int64), labels < 0
    node, named = part.reward_at.T
    np.add.at(earned, named[rest[node]], part.rewards[rest[node]])
    lost = np.zeros(part.nodes, np.int64)
    for near, far in (part.edges.T, part.edges.T[::-1]):
        tied = rest[near] & ~rest[far]
        np.add.at(earned, labels[far[tied]], part.weights[tied])
        np.add.at(lost, near, np.maximum(part.weights, 0))
    node, named = part.banned[rest[part.banned[:, 0]]].T
    np.subtract.at(earned, named, lost[node])
    best = int(np.argmax(earned))
    return best if best < part.labels else -1


def _cuts(part: Labelling, limits: Limits) -> tuple[list[IntArray], IntArray]:
    """Return the inner sides of the labels' smallest minimum cuts, and what each label's cuts.

    There are fewer sides than labels if time is up; the other labels are cut off themselves.
    """
    node, named = part.reward_at.T
    drawn, earned = part.weights > 0, np.maximum(part.rewards, 0)
    edges, weights = part.edges[drawn], part.weights[drawn]
    u, v = edges.T
    others, cost = np.zeros(part.nodes, np.int64), np.zeros(part.labels, np.int64)
    np.subtract.at(others, node, earned)
    np.add.at(cost, named, earned)
    by_label = np.argsort(named, kind="stable")
    starts = np.searchsorted(named[by_label], np.arange(part.labels + 1))
    sides: list[IntArray] = []
    while len(sides) < part.labels and not limits.over:
        label = len(sides)
        own = by_label[starts[label] : starts[label + 1]]
        gain = others.copy()  # of having this label, less what all others earn
        gain[node[own]] += earned[own] + part.rewards[own]
        gain[part.banned[part.banned[:, 1] == label, 0]] = -part.total() - 1
        side = best_set(edges, weights, gain, largest=False)
        sides.append(np.flatnonzero(side))
        cost[label] += exact_sum(weights[side[u] != side[v]]) - exact_sum(gain[side])
    return sides, cost


PASSES = 500
"""Most passes of the primal-dual method."""

STILL = 1e-3
"""Passes end when no fraction, and no dual variable as a share of its edge's weight, moves more."""

THRESHOLDS = 64
"""How often thresholds and an order of labels are drawn."""

PACE = 1.0
"""How fast dual variables move, as a share of their edge's weight."""

CELLS_LIMIT = 5 * 10**6
"""Largest number of nodes and edges, counted once for each label that they may have."""


def round_off(problem: Labelling, limits: Limits, _start: IntArray) -> IntArray:
    """Return the best of several roundings of the relaxation, component by component.

    A component that earns less than nothing gets fresh labels throughout.

    Raises
    ------
    SizeError
        If the relaxation is too large.
    """
    cells = sum(
        (part.nodes + len(part.edges)) * (part.labels + fresh_needed(part))
        for part in split(problem).parts
    )
    if cells > CELLS_LIMIT:
        raise SizeError(f"a relaxation of {cells:,} labels of nodes and edges is too large")
    given = indicators(problem)
    fractions = relax(given, limits)
    size = problem.labels + problem.nodes
    largest = given.labelling(_least(given.node, -fractions))
    best = Best(problem, problem.labels + np.arange(problem.nodes))
    best.offer(largest)
    random = np.random.default_rng(limits.seed % 2**31)
    open_ = np.flatnonzero(np.isin(given.node, given.node[(fractions > 0) & (fractions < 1)]))
    node, label, fractions = given.node[open_], given.label[open_], fractions[open_]
    for _ in range(THRESHOLDS if len(open_) else 0):
        if limits.over:
            break
        limits.report("rounding", best.value)
        order = random.permutation(size)[label]
        over = fractions > random.random()
        # Of labels that are not over the threshold the last one comes first.
        first = _least(node, np.where(over, order, 2 * size - order))
        labels = largest.copy()
        labels[node[first]] = label[first]
        best.offer(labels)
    return best.labels


def relax(given: Indicators, limits: Limits) -> Floats:
    """Return fractions of labels, one for each indicator, near the relaxation's optimum.

    Edges have a dual variable for each label, between ``-w / 2`` and ``w / 2`` or, for ``w < 0``,
    between 0 and ``-w``; half of what a positive edge earns is a reward of either end.
    """
    starts = np.searchsorted(given.node, np.arange(given.nodes))
    weight = given.weights.astype(float)
    drawn = weight > 0
    rows, size = np.arange(len(weight)), (len(weight), len(given.node))
    first, second = given.match.T
    pull = np.concatenate([np.ones(len(weight)), np.where(drawn, -1.0, 1.0)])
    matrix = csr_array((pull, (np.tile(rows, 2), np.concatenate([first, second]))), shape=size)
    back = matrix.T.tocsr()
    half = np.where(drawn, weight / 2, 0)
    reward = given.rewards.astype(float) + abs(back) @ half
    low, high, offset = -half, half + np.where(drawn, 0, -weight), np.where(drawn, 0.0, 1.0)
    slope = PACE * abs(weight) / 2
    around = np.maximum.reduceat(abs(back) @ (2 * slope), starts)
    step = (1 / np.where(around > 0, around, 1))[given.node]
    x = on_simplex(np.zeros(len(given.node)), given.node, starts)
    ahead, dual = x, np.zeros(len(weight))
    for _ in range(PASSES):
        if limits.over:
            break
        answer = np.clip(dual + slope * (matrix @ ahead - offset), low, high)
        moved = on_simplex(x + step * (reward - back @ answer), given.node, starts)
        rest = max(abs(moved - x).max(), (abs(answer - dual) / slope).max(initial=0))
        ahead, x, dual = 2 * moved - x, moved, answer
        if rest < STILL:
            break
    return x


def on_simplex(values: Floats, node: IntArray, starts: IntArray) -> Floats:
    """Return the nearest numbers of 0 or more that add up to 1 for each node.

    Numbers that come out below 0 are left out until none does (Michelot, J. Optim. Theory Appl. 50,
    1986).

    Parameters
    ----------
    node, starts
        The node of each number, ascending, and where each node's numbers begin.
    """
    values = values - np.maximum.reduceat(values, starts)[node]
    kept = values > -1  # what is that much less than the largest comes out below 0
    while True:
        total = np.add.reduceat(np.where(kept, values, 0), starts)
        excess = (total - 1) / np.add.reduceat(kept, starts, dtype=np.int64)
        moved = np.where(kept, values - excess[node], 0)
        stays = moved > 0
        if np.array_equal(stays, kept):
            return moved
        kept = stays


def _least(node: IntArray, key: NDArray[Any]) -> IntArray:
    """Return for each node, which come in order, the place of its least key."""
    order = np.lexsort((key, node))
    return order[np.flatnonzero(np.diff(node, prepend=-1))]


refined = method(refine, improves=True)
isolating_cuts = method(isolate, improves=False)
alpha_expansion = method(expand, improves=True)
rounded = method(round_off, improves=False)
random_greedy = method(grow, improves=False)
