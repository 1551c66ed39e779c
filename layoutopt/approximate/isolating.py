"""Isolating cuts: the 2 - 2/k approximation of multiway cut.

Of each label the minimum cut is found that parts the nodes that shall have it from all other
labels, rewards being edges to their labels.  All these cuts but the dearest part all labels from
each other, and the labels on their inner sides are the answer; the rest takes one label
(Dahlhaus, Johnson, Papadimitriou, Seymour, Yannakakis, *The complexity of multiterminal cuts*, SIAM
J. Comput. 23, 1994): there the dearest one's, here the one that then earns most if that is more.

If no number is negative and nothing is banned, what is cut, the sum of all weights and rewards less
the value, is at most ``2 - 2/k`` times the least possible, in each component of ``k`` labels.
"""

from __future__ import annotations

import numpy as np

from layoutopt.approximate.frame import banned
from layoutopt.limits import Limits
from layoutopt.presolve.components import split
from layoutopt.presolve.cuts import best_set
from layoutopt.problem import IntArray, Labelling, exact_sum


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
