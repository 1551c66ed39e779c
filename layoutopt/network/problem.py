"""The labelling problem that every reduction and every exact method speaks.

Nodes choose labels.  An edge ``(u, v)`` of weight ``w`` earns ``w`` where its two nodes
choose the same label; a reward ``(u, l)`` of value ``r`` earns ``r`` where node ``u``
chooses label ``l``::

    maximise  sum_e w_e [x_u = x_v]  +  sum_i r_i [x_{u_i} = l_i]

In the words of the literature this is maximum uncut, the complement of minimum multiway
cut with the labels as terminals (Dahlhaus et al., SIAM J. Comput. 23, 1994).

Beside the named labels ``0 .. labels-1`` every node owns one *fresh* label, written
``labels + u`` for node ``u``.  Fresh labels carry no rewards and are never banned; any
node may choose any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import Limits, require
from layoutopt.base.numbers import distinct, lookup, ranges, unique
from layoutopt.base.result import Result
from layoutopt.network.components import components, reachable

IntArray: TypeAlias = NDArray[Any]
"""Arrays of indices, of any integer type."""

WeightArray: TypeAlias = NDArray[Any]
"""Exact integers: ``int64`` where all sums fit, Python integers (``object``) elsewhere."""

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Precedence:
    """Order in which barriers must be known.

    Choosing a label that is an output of barrier ``b`` for a node that barrier ``c`` reads means
    that ``b`` must be known before ``c``.  A labelling is allowed if these arcs and the static ones
    together have no cycle.
    """

    barriers: int  # number of barriers, which are `0 .. barriers-1`
    # Static arcs, shape `(a, 2)`: barrier `arcs[i, 1]` reads an output of `arcs[i, 0]` whatever is
    # chosen.
    arcs: IntArray
    label_barrier: IntArray  # for each named label the barrier that it is an output of, or -1
    reader_sets: tuple[tuple[int, ...], ...]  # the distinct sets of barriers that read some node
    node_readers: IntArray  # for each node the index of its set in `reader_sets`

    def hopeless(self) -> IntArray:
        """Return which barriers' labels no node with a given reader set can ever take.

        Shape ``(barriers + 1, sets)``; the last row is for labels of no barrier.
        """
        before = reachable(self.barriers, self.arcs)
        table = np.zeros((self.barriers + 1, len(self.reader_sets)), bool)
        for s, readers in enumerate(self.reader_sets):
            table[:-1, s] = before[list(readers)].any(axis=0)  # a reader comes before b anyway
        return table


def no_pairs() -> IntArray:
    """Return an array of no rows and two columns."""
    return np.zeros((0, 2), np.int64)


def no_numbers() -> WeightArray:
    """Return an array of no integers."""
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Labelling:
    """A labelling problem; see the module's text for its meaning.

    Parameters
    ----------
    nodes
        Number of nodes.
    labels
        Number of named labels.
    edges
        Shape ``(m, 2)``: two different nodes each; every pair of nodes at most once.
    weights
        Shape ``(m,)``: exact integers, of either sign, not zero.
    reward_at
        Shape ``(r, 2)``: node and named label; every combination at most once.
    rewards
        Shape ``(r,)``: exact integers, of either sign, not zero.
    banned
        Shape ``(b, 2)``: node and named label that it must not choose.
    precedence
        Order rules over barriers, or ``None``.
    """

    nodes: int
    labels: int
    edges: IntArray = field(default_factory=no_pairs)
    weights: WeightArray = field(default_factory=no_numbers)
    reward_at: IntArray = field(default_factory=no_pairs)
    rewards: WeightArray = field(default_factory=no_numbers)
    banned: IntArray = field(default_factory=no_pairs)
    precedence: Precedence | None = None

    def value(self, labels: IntArray) -> int:
        """Return the exact objective of a labelling.

        Parameters
        ----------
        labels
            Shape ``(nodes,)``: the label of each node, fresh ones included.
        """
        same = labels[self.edges[:, 0]] == labels[self.edges[:, 1]]
        got = labels[self.reward_at[:, 0]] == self.reward_at[:, 1]
        return exact_sum(self.weights[same]) + exact_sum(self.rewards[got])

    def total(self) -> int:
        """Return the sum of all absolute weights and rewards."""
        return exact_sum(np.abs(self.weights)) + exact_sum(np.abs(self.rewards))

    def ceiling(self) -> int:
        """Return what no labelling exceeds: positive weights, and each node's largest reward."""
        best = np.zeros(self.nodes, self.rewards.dtype)
        np.maximum.at(best, self.reward_at[:, 0], self.rewards)
        return exact_sum(self.weights[self.weights > 0]) + exact_sum(best)


Method: TypeAlias = Callable[[Labelling, Limits, "IntArray | None"], Result]
"""A solver of labelling problems, which may begin with a labelling."""


def with_numbers(problem: Labelling, weights: WeightArray, rewards: WeightArray) -> Labelling:
    """Return a problem with other weights and rewards; what is 0 then goes."""
    stays, earns = weights != 0, rewards != 0
    return replace(
        problem,
        edges=problem.edges[stays],
        weights=weights[stays],
        reward_at=problem.reward_at[earns],
        rewards=rewards[earns],
    )


def banned(problem: Labelling, labels: IntArray) -> IntArray:
    """Return which nodes have a label that they must not take: shape ``(nodes,)``."""
    node, label = problem.banned.T
    found = np.zeros(problem.nodes, bool)
    found[node[labels[node] == label]] = True
    return found


def exact_sum(values: WeightArray) -> int:
    """Return the exact sum of integers, whatever their size."""
    return int(values.sum()) if len(values) else 0


def exact_integers(values: list[int]) -> WeightArray:
    """Pack Python integers as ``int64`` if their absolute sum fits, else as objects.

    The limit leaves room to double a sum, which min cut does.
    """
    if sum(map(abs, values)) < 2**61:
        return np.array(values, np.int64)
    return np.array(values, object)


def merge_parallel(ends: IntArray, weights: WeightArray) -> tuple[IntArray, WeightArray]:
    """Add up weights ``(m,)`` of equal rows ``(m, 2)``, and drop rows that add up to nothing.

    Each row is returned once, in lexicographic order.
    """
    if not len(ends):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    ends, weights = ends[order], weights[order]
    starts = np.flatnonzero(np.r_[True, (ends[1:] != ends[:-1]).any(axis=1)])
    total = np.add.reduceat(weights, starts)
    kept = total != 0
    return ends[starts[kept]], exact_integers(total[kept].tolist())


BAN_BYTES = 50  # what one node and label take while bans are looked for


def without(
    problem: Labelling, forbidden: IntArray, barrier: IntArray, readers: IntArray
) -> Labelling:
    """Return a problem without order rules in which some choices are forbidden.

    ``forbidden`` has shape ``(barriers + 1, sets)``: barriers whose labels nodes with a reader set
    must not take; its last row is for labels of no barrier.  ``barrier`` is that of each label, or
    -1, and ``readers`` the reader set of each node.

    Labels that no node of a component earns any more are not banned there: nothing takes them, and
    there may be far too many such nodes and labels for a list of pairs.
    """
    component = components(problem.nodes, *problem.edges.T)[1]
    node, label = problem.reward_at.T
    earns = ~forbidden[barrier[label], readers[node]]
    open_ = earns & forbidden[barrier[label]].any(axis=1)
    known = np.unique([component[node[open_]], label[open_]], axis=1)
    entries = int(np.bincount(component)[known[0]].sum())
    require(BAN_BYTES * entries, "a list of what barrier order forbids")
    one, two = matches(known[0], component)
    shut = forbidden[barrier[known[1, one]], readers[two]]
    bans = np.column_stack([two[shut], known[1, one[shut]]])
    return replace(
        problem,
        reward_at=problem.reward_at[earns],
        rewards=problem.rewards[earns],
        banned=np.unique(np.concatenate([problem.banned, bans]), axis=0),
        precedence=None,
    )


def matches(one: IntArray, two: IntArray) -> tuple[IntArray, IntArray]:
    """Return the places of all pairs of equal numbers, of which the first ones are in order."""
    order = np.argsort(two, kind="stable")
    begin, end = (np.searchsorted(two[order], one, side=side) for side in ("left", "right"))
    counts = end - begin
    return np.repeat(np.arange(len(one)), counts), order[ranges(begin, counts)]


def fresh_needed(problem: Labelling) -> int:
    """Return how many fresh labels some optimal labelling gets along with.

    None is needed where a named label is as good; else :func:`fresh_enough` tells.
    """
    negative = int(np.count_nonzero(problem.weights < 0))
    if negative:
        return min(problem.nodes, int(fresh_enough(negative)))
    if problem.labels and not len(problem.banned) and not (problem.rewards < 0).any():
        return 0
    return min(problem.nodes, 1)


def fresh_enough(edges: IntArray | int) -> IntArray:
    """Return how many fresh labels are enough where so many edges lose by equal labels.

    Two fresh labels can be made one unless that makes such an edge agree.  So without any one is
    enough, and with ``m`` of them ``f`` are where ``f (f - 1) / 2 <= m``.
    """
    return (1 + np.sqrt(1.0 + 8 * np.asarray(edges)).astype(np.int64)) // 2


def reward_table(problem: Labelling, fresh: int) -> WeightArray:
    """Return rewards as a table of shape ``(nodes, labels + fresh)``.

    Column ``labels + j`` is the fresh label of node ``j``.  Banned entries are so low that no
    labelling that uses one is worth as much as one that uses none.
    """
    exact = problem.weights.dtype == object or problem.rewards.dtype == object
    never = -2 * problem.total() - 1
    wide = exact or abs(never) >= 2**61
    table = np.zeros((problem.nodes, problem.labels + fresh), object if wide else np.int64)
    table[tuple(problem.reward_at.T)] = problem.rewards
    table[tuple(problem.banned.T)] = never
    return table


@dataclass(frozen=True, eq=False)
class Reduction:
    """Reduced problem, and the inverse of the reduction.

    Every labelling ``y`` of the small problem gives ``x = restore(y)`` of the large one with
    ``large.value(x) >= constant + small.value(y)``, and the optima satisfy this with
    equality.  So ``constant`` plus a bound of the small problem is one of the large.
    """

    whole: Labelling  # the large problem
    problem: Labelling  # the small problem; both have the same named labels
    constant: int  # what is earned outside the small problem
    kept: IntArray  # for each node of the small problem the one of the large that it comes from
    # labels of the large problem from labels of the small one
    restore: Callable[[IntArray], IntArray]

    def project(self, labels: IntArray | None) -> IntArray | None:
        """Return labels of the small problem as they are in a labelling of the large one.

        A label that a node must not take there, for instance as it stands for several, is fresh.
        """
        if labels is None:
            return None
        small = self.problem
        found = own_fresh(labels[self.kept], small.labels)
        return np.where(banned(small, found), small.labels + np.arange(small.nodes), found)

    def restore_result(self, result: Result) -> Result:
        """Return the result of the large problem that one of the small problem gives."""
        labels = self.restore(result.labelling)
        bound = None if result.bound is None else self.constant + int(result.bound)
        value = self.whole.value(labels)
        return Result(objective=value, bound=bound, labelling=labels, stopped=result.stopped)


def own_fresh(labels: IntArray, named: IntArray | int) -> IntArray:
    """Return labels of some nodes of which each fresh one is that of the first node that has it.

    ``named`` is the number of named labels, or that of each node; whose the fresh labels were does
    not matter.
    """
    sizes = np.broadcast_to(named, labels.shape)
    fresh, found = np.flatnonzero(labels >= sizes), labels.copy()
    whose = labels[fresh] - sizes[fresh]
    _, first, group = np.unique(whose, return_index=True, return_inverse=True)
    found[fresh] = sizes[fresh] + fresh[first][group]
    return found


def owners(component: IntArray, labels: IntArray) -> IntArray:
    """Return for each node the first node of its component that has its label."""
    index = distinct([component, labels])[1]
    owner: IntArray = np.unique(index, return_index=True)[1][index]
    return owner


def restored_names(labels: IntArray, kept: IntArray, named: IntArray | int) -> IntArray:
    """Return labels of a small problem's nodes as labels of the large problem.

    ``kept`` are the nodes of the large one that they are; ``named`` is as in :func:`own_fresh`.
    """
    return np.where(labels < named, labels, named + kept[np.maximum(labels - named, 0)])


@dataclass(frozen=True, eq=False)
class Parts:
    """A problem's connected components, each with labels of its own."""

    problem: Labelling  # the whole
    parts: tuple[Labelling, ...]  # the components. Their objectives, and so their bounds, add up
    nodes: tuple[IntArray, ...]  # for each part the nodes of the whole, by the part's numbers
    labels: tuple[IntArray, ...]  # the same for named labels

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
            place, known = lookup(named, own)
            fresh = own_fresh(np.where(known, -1, own), 0)
            found.append(np.where(known, place, part.labels + fresh))
        return found


def split(problem: Labelling) -> Parts:
    """Split a problem without order rules into its connected components."""
    n = problem.nodes
    count, of = components(n, *problem.edges.T)
    nodes = by_component(np.arange(n), of, count)
    place = np.zeros(n, np.int64)
    for own in nodes:
        place[own] = np.arange(len(own))
    edges = by_component(np.arange(len(problem.edges)), of[problem.edges[:, 0]], count)
    earns = by_component(np.arange(len(problem.reward_at)), of[problem.reward_at[:, 0]], count)
    bans = by_component(np.arange(len(problem.banned)), of[problem.banned[:, 0]], count)
    parts, labels = [], []
    for own, e, r, b in zip(nodes, edges, earns, bans, strict=True):
        at = problem.reward_at[r]
        named = unique(at[:, 1])
        banned = problem.banned[b]
        label, known = lookup(named, banned[:, 1])
        labels.append(named)
        parts.append(
            Labelling(
                len(own),
                len(named),
                place[problem.edges[e]],
                problem.weights[e],
                np.column_stack([place[at[:, 0]], np.searchsorted(named, at[:, 1])]),
                problem.rewards[r],
                np.column_stack([place[banned[:, 0]], label])[known],
            )
        )
    return Parts(problem, tuple(parts), tuple(nodes), tuple(labels))


def take(problem: Labelling, nodes: IntArray) -> Labelling:
    """Return the part of a problem without order rules on some nodes, which are ascending."""
    inside = np.zeros(problem.nodes, bool)
    inside[nodes] = True
    place = np.cumsum(inside) - 1

    def kept(at: IntArray) -> IntArray:
        return np.column_stack([place[at[:, 0]], at[:, 1]])

    edges = inside[problem.edges].all(axis=1)
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


def by_component(things: IntArray, of: IntArray, count: int) -> list[IntArray]:
    """Return the things of each component, in order."""
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(1, count))
    return np.split(things[order], bounds) if count else []
