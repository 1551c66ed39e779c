"""The integer programme of a labelling problem, as arrays that any solver can take.

``x[u,l]`` says that node ``u`` takes label ``l``, for every label that may be useful there::

    maximise    sum r[u,l] x[u,l] + sum w[e] y[e,l]
    subject to  sum_l x[u,l] = 1                          every node u
                y[e,l] <= x[u,l],  y[e,l] <= x[v,l]       w[e] > 0, e = (u, v)
                y[e,l] >= x[u,l] + x[v,l] - 1             w[e] < 0
                x[u,l] <= z[b,c]                          l is of barrier b, c reads u
                t[b] + 1 <= t[c] + n (1 - z[b,c])         order of n barriers
                z[b,c] = 1                                c reads an output of b
                x, z in {0, 1},  y in [0, 1],  t in [0, n-1]

One variable per matched label is the local polytope of the pair; its relaxation is far
tighter than one with a single variable per edge.  Labels that no node of a component earns
have no indicators there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.memory import require
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray, Labelling, Precedence, WeightArray

COLUMN_SECONDS = 1e-5
"""Seconds that it takes, at least, to write a variable and its rows down for a solver."""


@dataclass(frozen=True, eq=False)
class Programme:
    """Variables and rows of a labelling problem.

    Parameters
    ----------
    nodes
        Number of nodes.
    node, label
        For each indicator ``x`` its node and label, ordered by node and then by label.
    rewards
        What each indicator earns.
    match
        Shape ``(y, 2)``: the two indicators of each match variable.
    weights
        What each match variable earns.
    arcs
        Shape ``(z, 2)``: arcs between barriers that indicators need.
    gates
        Shape ``(g, 2)``: an indicator, and the arc that it needs.
    static
        Shape ``(s, 2)``: arcs that are always there.
    barriers
        Number of barriers.
    """

    nodes: int
    node: IntArray
    label: IntArray
    rewards: WeightArray
    match: IntArray
    weights: WeightArray
    arcs: IntArray
    gates: IntArray
    static: IntArray
    barriers: int

    def indicators(self, labels: IntArray) -> IntArray:
        """Return the indicators, by number, of a labelling; those that exist."""
        return np.flatnonzero(self.label == labels[self.node])

    def labelling(self, chosen: IntArray) -> IntArray:
        """Return the labelling in which the indicators of the given numbers hold."""
        labels = np.zeros(self.nodes, np.int64)
        labels[self.node[chosen]] = self.label[chosen]
        return labels


def check_size(problem: Labelling, limits: Limits, column_bytes: int) -> None:
    """Refuse to state a problem as an integer programme where it is too large for that.

    Counting its variables, those of banned labels too, takes no room.

    Parameters
    ----------
    limits
        Those of the solve.
    column_bytes
        What a solver takes for each variable.

    Raises
    ------
    SizeError
        If the programme does not fit the memory.
    TimeoutError
        If writing it down takes longer than there is.
    """
    component = components(problem.nodes, *problem.edges.T)[1]
    width = _widths(problem, component)[component]
    columns = int(width.sum()) + int(width[problem.edges[:, 0]].sum())
    require(column_bytes * columns, f"an integer programme of {columns:,} variables")
    if columns * COLUMN_SECONDS > limits.left:
        raise TimeoutError


def programme(problem: Labelling) -> Programme:
    """State a labelling problem as an integer programme."""
    component = components(problem.nodes, *problem.edges.T)[1]
    node, label = _columns(problem, component)
    keep = ~_banned(problem, node, label)
    node, label = node[keep], label[keep]
    key = node * np.int64(problem.labels + problem.nodes) + label
    rewards = np.zeros(len(node), problem.rewards.dtype)
    if len(node):
        at, found = _lookup(key, problem, *problem.reward_at.T)
        rewards[at[found]] = problem.rewards[found]
    # Each label of the first end, where the second end has it too.
    width = np.bincount(node, minlength=problem.nodes)
    u, v = problem.edges.T
    edge = np.repeat(np.arange(len(u)), width[u])
    offset = np.arange(len(edge)) - np.repeat(np.cumsum(width[u]) - width[u], width[u])
    first = (np.cumsum(width) - width)[u[edge]] + offset
    second, both = _lookup(key, problem, v[edge], label[first])
    match = np.stack([first[both], second[both]], axis=1)
    arcs, gates = _gates(problem.precedence, node, label, problem.labels)
    order = problem.precedence
    return Programme(
        problem.nodes,
        node,
        label,
        rewards,
        match,
        problem.weights[edge[both]],
        arcs,
        gates,
        np.zeros((0, 2), np.int64) if order is None else order.arcs,
        0 if order is None else order.barriers,
    )


def _columns(problem: Labelling, component: IntArray) -> tuple[IntArray, IntArray]:
    """Return node and label of every useful indicator.

    These are the labels that a node's component earns, and as many fresh ones as it may
    need (see :func:`layoutopt.network.problem.fresh_needed`).
    """
    pairs, size, fresh = _useful(problem, component)
    count = len(size)
    members = np.argsort(component, kind="stable")
    start = np.cumsum(size) - size
    owner = np.repeat(np.arange(count), fresh)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(fresh) - fresh, fresh)
    extra = np.stack([owner, problem.labels + members[start[owner] + place]], axis=1)
    pairs = np.concatenate([pairs, extra])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    width = np.bincount(pairs[:, 0], minlength=count)
    begin = np.cumsum(width) - width
    node = np.repeat(np.arange(problem.nodes), width[component])
    ends = np.cumsum(width[component])
    offset = np.arange(len(node)) - np.repeat(ends - width[component], width[component])
    return node, pairs[begin[component[node]] + offset, 1]


def _useful(problem: Labelling, component: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return components with labels that they earn; their nodes, and how many fresh labels."""
    count = int(component.max(initial=-1)) + 1
    earns = component[problem.reward_at[:, 0]]
    pairs = np.unique(np.stack([earns, problem.reward_at[:, 1]], axis=1), axis=0)
    size = np.bincount(component, minlength=count)
    fresh = _fresh(problem, component, size, np.bincount(pairs[:, 0], minlength=count))
    return pairs, size, fresh


def _widths(problem: Labelling, component: IntArray) -> IntArray:
    """Return how many labels are useful to each node of each component."""
    pairs, size, fresh = _useful(problem, component)
    return np.asarray(np.bincount(pairs[:, 0], minlength=len(size)) + fresh)


def _fresh(problem: Labelling, component: IntArray, size: IntArray, named: IntArray) -> IntArray:
    """Return how many fresh labels each component may need."""
    count = len(size)
    negative = component[problem.edges[problem.weights < 0, 0]]
    signed = np.bincount(negative, minlength=count)
    fresh = (1 + np.sqrt(1.0 + 8 * signed).astype(np.int64)) // 2
    wants = (named == 0) | (signed > 0)
    wants[component[problem.banned[:, 0]]] = True
    wants[component[problem.reward_at[problem.rewards < 0, 0]]] = True
    if problem.precedence is not None:
        readers = np.array([len(s) for s in problem.precedence.reader_sets])
        wants[component[readers[problem.precedence.node_readers] > 0]] = True
    return np.where(wants, np.minimum(fresh, size), 0)


def _lookup(
    key: IntArray, problem: Labelling, node: IntArray, label: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the indicators of nodes and labels, and which of them exist."""
    wanted = node * np.int64(problem.labels + problem.nodes) + label
    at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    found = key[at] == wanted if len(key) else np.zeros(len(wanted), bool)
    return at, np.flatnonzero(found)


def _banned(problem: Labelling, node: IntArray, label: IntArray) -> IntArray:
    """Return which indicators are banned, or can never be ordered."""
    span = np.int64(problem.labels + problem.nodes)
    banned = np.isin(node * span + label, problem.banned @ np.array([span, 1]))
    order = problem.precedence
    if order is not None:
        before = reachable(order.barriers, order.arcs)
        hopeless = np.zeros((order.barriers + 1, len(order.reader_sets)), bool)
        for s, readers in enumerate(order.reader_sets):
            for c in readers:
                hopeless[:-1, s] |= before[c]  # c comes before b anyway
        barrier = np.append(order.label_barrier, np.full(problem.nodes, -1))[label]
        banned |= hopeless[barrier, order.node_readers[node]]
    return banned


def reachable(count: int, arcs: IntArray) -> IntArray:
    """Return a table: whether each barrier leads to, or is, each barrier by arcs."""
    table = np.eye(count, dtype=bool)
    table[tuple(arcs.T)] = True
    for b in range(count):
        table |= table[:, b, None] & table[b]
    return table


def _gates(
    order: Precedence | None, node: IntArray, label: IntArray, labels: int
) -> tuple[IntArray, IntArray]:
    """Return the arcs that indicators need, and which indicator needs which."""
    none = np.zeros((0, 2), np.int64)
    if order is None:
        return none, none
    barrier = np.append(order.label_barrier, -1)[np.minimum(label, labels)]
    needs: list[IntArray] = [np.zeros((0, 3), np.int64)]
    static = {(int(b), int(c)) for b, c in order.arcs}
    for s, readers in enumerate(order.reader_sets):
        here = np.flatnonzero((order.node_readers[node] == s) & (barrier >= 0))
        for c in readers:
            moved = [b for b in range(order.barriers) if (b, c) not in static]
            gated = here[np.isin(barrier[here], moved)]
            needs.append(np.stack([gated, barrier[gated], np.full(len(gated), c)], axis=1))
    table = np.concatenate(needs)
    arcs, of = np.unique(table[:, 1:], axis=0, return_inverse=True)
    return arcs, np.stack([table[:, 0], of.reshape(-1)], axis=1)
