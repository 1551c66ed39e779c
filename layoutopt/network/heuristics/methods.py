"""The heuristics, each a function ``(problem, limits, start) -> labels``.

To add one, write such a function in a module of this room (see
:mod:`layoutopt.network.heuristics.frame`) and name its method in
:mod:`layoutopt.base.entries`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import lookup, ranges
from layoutopt.network.components import components
from layoutopt.network.flow import best_set, expanded
from layoutopt.network.heuristics.frame import method
from layoutopt.network.problem import (
    Floats,
    IntArray,
    Labelling,
    WeightArray,
    banned,
    exact_sum,
    fresh_needed,
    merge_parallel,
    own_fresh,
    split,
)
from layoutopt.network.solvers.formulation import Indicators, indicators


def refine(problem: Labelling, limits: Limits, start: IntArray) -> IntArray:
    """Return a labelling that no move of local search improves, or the best when time is up.

    The classic moves (Aarts and Lenstra, *Local search in combinatorial optimization*, 1997; for
    labels Besag, *On the statistical analysis of dirty pictures*, J. R. Stat. Soc. B 48, 1986):

    - a node takes the best of the labels that it earns, those of its neighbours, and a fresh one;
    - two neighbours swap their labels;
    - a connected group of nodes that agree, a whole tensor for instance, moves or swaps as if it
      were one node.

    Of all moves that pay, those are made at once that gain more than whatever they touch.
    """
    whole = _Search(problem, limits)
    labels = whole.climb(start)
    while not limits.over:
        limits.report("refining", problem.value(labels))
        group, small = _grouped(problem, labels)
        first = np.unique(group, return_index=True)[1]
        own = own_fresh(labels[first], problem.labels)
        moved = _Search(small, limits).climb(own)
        if np.array_equal(moved, own):
            break
        labels = whole.climb(own_fresh(moved[group], problem.labels))
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
        at, there = lookup(self.key, node * self.span + label)
        return self.score[at], there


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
        return own_fresh(labels, self.problem.labels), np.flatnonzero(waiting)

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
    return ranges(starts[nodes], starts[nodes + 1] - starts[nodes])


class Best:
    """The best labelling so far, component by component, of a problem without order rules.

    Its numbers fit 64 bits.
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
    node, named = part.reward_at.T
    gain = np.zeros(part.nodes, np.int64)
    for there, sign in ((named == to, 1), (labels[node] == named, -1)):
        np.add.at(gain, node[there], sign * part.rewards[there])
    return expanded(part.edges, part.weights, labels, to, may, gain)


STARTS = 32  # how often a labelling grows, the first time without chance

NOISE = 0.5
"""In the last start numbers are multiplied with random ones up to this much below and above 1,
in earlier starts with such that are nearer to 1."""


def grow(problem: Labelling, limits: Limits, _start: IntArray, starts: int = STARTS) -> IntArray:
    """Return the best of several randomised greedy labellings, component by component.

    Only what earns something is followed.  A node that must not take the label that comes to it
    takes part again, once its neighbours are decided.  A component that earns less than nothing
    gets fresh labels throughout.  Fewer labellings grow, but at least one, if time is up.
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

    ``near`` are the nodes with an edge to the root, each once; ``weights`` are those of edges
    between nodes that are left, then of these.  For each node that is left, return the first node
    of its branch, which is what hangs together without the root, and the place in ``near`` of the
    node by which the branch has its edge to the root, or -1.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

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


PASSES = 500  # most passes of the primal-dual method

STILL = 1e-3
"""Passes end when no fraction, and no dual variable as a share of its edge's weight, moves more."""

THRESHOLDS = 64  # how often thresholds and an order of labels are drawn
PACE = 1.0  # how fast dual variables move, as a share of their edge's weight

CELLS_LIMIT = 5 * 10**6
"""Largest number of nodes and edges, counted once for each label that they may have."""


def round_off(problem: Labelling, limits: Limits, _start: IntArray) -> IntArray:
    """Return the best of several roundings of the relaxation, component by component.

    A component that earns less than nothing gets fresh labels throughout.  Raises ``SizeError`` if
    the relaxation is too large.
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

    The node of each number is ascending; each node's numbers begin at ``starts``.  Numbers that
    come out below 0 are left out until none does (Michelot, J. Optim. Theory Appl. 50, 1986).
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
