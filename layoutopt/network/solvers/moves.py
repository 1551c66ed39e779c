"""Improving a labelling: expansion moves by minimum cut, and the best parts of two."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import max_flow
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.base.limits import Limits
from layoutopt.network.problem import IntArray, WeightArray


def worth(rewards: WeightArray, edges: IntArray, weights: WeightArray, labels: IntArray) -> int:
    """Return the value of a labelling, labels being columns of ``rewards``."""
    same = labels[edges[:, 0]] == labels[edges[:, 1]]
    return int(rewards[np.arange(len(labels)), labels].sum()) + int(weights[same].sum())


def best_of_both(
    rewards: WeightArray, edges: IntArray, weights: WeightArray, old: IntArray, new: IntArray
) -> IntArray:
    """Return ``old`` with every part of ``new`` that is an improvement.

    The nodes at which the two differ fall into connected pieces; each is exchanged or not,
    for itself.
    """
    differ = old != new
    if not differ.any():
        return old
    n = len(old)
    u, v = edges.T
    inner = differ[u] & differ[v]
    ones = np.ones(int(inner.sum()), bool)
    matrix = coo_array((ones, (u[inner], v[inner])), shape=(n, n))
    count, piece = connected_components(matrix, directed=False)
    gain = np.zeros(count, np.int64)
    nodes = np.flatnonzero(differ)
    np.add.at(gain, piece[nodes], rewards[nodes, new[nodes]] - rewards[nodes, old[nodes]])
    mixed = np.where(differ, new, old)
    for near, far, alone in ((u, v, False), (v, u, True)):
        # An inner edge is counted once, at its first end.
        at = differ[near] & ~differ[far] if alone else differ[near]
        after = mixed[near[at]] == mixed[far[at]]
        before = old[near[at]] == old[far[at]]
        change = (after.astype(np.int64) - before) * weights[at]
        np.add.at(gain, piece[near[at]], change)
    return np.where(differ & (gain[piece] > 0), new, old)


def expand(
    rewards: WeightArray, edges: IntArray, weights: WeightArray, labels: IntArray, to: int
) -> IntArray:
    """Return the best labelling in which some nodes change to label ``to``.

    No weight may be negative.  With ``s_u = 1`` where node ``u`` changes, an edge whose ends
    agree loses ``w |s_u - s_v|``; one whose ends differ gains
    ``w s_u s_v = w (s_u + s_v - |s_u - s_v|) / 2``; everything is doubled to stay whole
    (Boykov, Veksler, Zabih, IEEE PAMI 23, 2001).
    """
    free = labels != to
    nodes = np.flatnonzero(free)
    if not len(nodes):
        return labels
    place = np.cumsum(free) - 1
    gain = 2 * (rewards[nodes, to] - rewards[nodes, labels[nodes]])
    u, v = edges.T
    for near, far in ((u, v), (v, u)):
        edge = free[near] & ~free[far]
        np.add.at(gain, place[near[edge]], 2 * weights[edge])
    both = free[u] & free[v]
    agree = labels[u[both]] == labels[v[both]]
    a, b, w = place[u[both]], place[v[both]], weights[both]
    np.add.at(gain, a[~agree], w[~agree])
    np.add.at(gain, b[~agree], w[~agree])
    capacity = np.where(agree, 2 * w, w)
    n = len(nodes)
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(
        np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([capacity, capacity])
    )
    likes, dislikes = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
    if not len(likes):
        return labels
    flow.add_arcs_with_capacity(np.full(len(likes), n), likes, gain[likes])
    flow.add_arcs_with_capacity(dislikes, np.full(len(dislikes), n + 1), -gain[dislikes])
    moves = np.zeros(n + 2, bool)
    if len(dislikes):
        if flow.solve(n, n + 1) != flow.OPTIMAL:
            return labels
        moves[flow.get_source_side_min_cut()] = True
    else:
        moves[:] = True
    changed = labels.copy()
    changed[nodes[moves[:n]]] = to
    return changed


def expansion(
    rewards: WeightArray,
    edges: IntArray,
    weights: WeightArray,
    labels: IntArray,
    limits: Limits | None = None,
) -> IntArray:
    """Expand each label in turn until none improves the labelling, or time is up."""
    best = worth(rewards, edges, weights, labels)
    unchanged, to = 0, 0
    while unchanged < rewards.shape[1] and not (limits and limits.over):
        changed = expand(rewards, edges, weights, labels, to)
        value = worth(rewards, edges, weights, changed)
        if value > best:
            labels, best, unchanged = changed, value, 0
        else:
            unchanged += 1
        to = (to + 1) % rewards.shape[1]
    return labels
