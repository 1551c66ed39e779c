"""Alpha-expansion: the best set of nodes to change to one label, label by label.

Each set is a minimum cut (Boykov, Veksler, Zabih, *Fast approximate energy minimization via graph
cuts*, IEEE TPAMI 23, 2001).  If no number is negative and nothing is banned, what the answer loses
is at most twice the least possible loss, where a labelling's loss is what it lacks to every edge's
weight and every node's largest reward.

An edge of negative weight is no part of a cut.  A linear bound from below stands for it that is
exact where nothing changes, so that no step loses (Narasimhan and Bilmes, *A
submodular-supermodular procedure*, UAI 2005).
"""

from __future__ import annotations

import numpy as np

from layoutopt.limits import Limits
from layoutopt.presolve.components import split
from layoutopt.presolve.cuts import best_set
from layoutopt.problem import IntArray, Labelling, fresh_needed


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
    """Return the best labelling in which some nodes change to a label; one as good at least.

    With ``s_u = 1`` where node ``u`` changes, an edge between two nodes that may change earns
    ``w (1 - |s_u - s_v|)`` if they agree now, else ``w s_u s_v``.  For ``w >= 0`` the latter is
    ``w (s_u + s_v - |s_u - s_v|) / 2``; all is doubled to stay whole.  For ``w < 0``, and ``u``
    the node that has more to gain, ``-w (s_u - s_v)`` and ``w s_v`` are bounds from below.
    """
    may = labels != to
    may[part.banned[part.banned[:, 1] == to, 0]] = False
    gain = 2 * _first_gain(part, labels, to)
    u, v = part.edges.T
    agree, both = labels[u] == labels[v], may[u] & may[v]
    for near, far in ((u, v), (v, u)):
        alone = may[near] & ~may[far]
        change = (labels[far] == to).astype(np.int64) - agree
        np.add.at(gain, near[alone], 2 * (change * part.weights)[alone])
    tied = both & (part.weights > 0)
    for ends in (u, v):
        np.add.at(gain, ends[tied & ~agree], part.weights[tied & ~agree])
    hard = both & (part.weights < 0)
    first = np.where(gain[u] >= gain[v], u, v)
    second = u + v - first
    np.add.at(gain, first[hard & agree], -2 * part.weights[hard & agree])
    np.add.at(gain, second[hard], 2 * part.weights[hard])
    place = np.cumsum(may) - 1
    weights = np.where(agree, 2, 1) * part.weights
    changes = best_set(place[part.edges[tied]], weights[tied], gain[may], largest=False)
    moved = labels.copy()
    moved[np.flatnonzero(may)[changes]] = to
    return moved


def _first_gain(part: Labelling, labels: IntArray, to: int) -> IntArray:
    """Return what each node's reward grows by if it changes to a label."""
    node, named = part.reward_at.T
    gain = np.zeros(part.nodes, np.int64)
    for there, sign in ((named == to, 1), (labels[node] == named, -1)):
        np.add.at(gain, node[there], sign * part.rewards[there])
    return gain
