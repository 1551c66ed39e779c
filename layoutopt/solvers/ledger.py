"""The exact bound that messages prove, kept up to date place by place.

Messages are rounded to whole multiples of ``1 / scale``.  Any messages are sound, so rounding
costs a little tightness and no truth; all sums are of integers.
"""

from __future__ import annotations

import numpy as np

from layoutopt.problem import IntArray
from layoutopt.solvers.messages import Field, Floats, incidence

SCALE_BITS = 24
"""Messages are rounded to multiples of ``2**-24``, or coarser if sums would not fit."""

SUM_BITS = 60
"""Sums of scaled numbers stay below ``2**60``."""

LOW = -(2**60)
"""Scaled rewards and edges of banned labels."""


class Ledger:
    """Maxima of all nodes and edges under messages, and what a labelling earns of them.

    Attributes
    ----------
    scale
        What one is in the scaled numbers below.
    node_top, edge_top
        Scaled maxima.
    node_slack, edge_slack
        How much less the labelling earns there.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        nodes, m, labels = len(field.rewards), len(field.edges), field.rewards.shape[1]
        size = float(np.abs(np.where(field.allowed, field.rewards, 0)).sum())
        size += 4.0 * labels * float(np.abs(field.weights).sum())
        self.scale = 2 ** max(0, min(SCALE_BITS, SUM_BITS - int(np.log2(size + 1)) - 1))
        self.node_top, self.node_slack = np.zeros((2, nodes), np.int64)
        self.edge_top, self.edge_slack = np.zeros((2, m), np.int64)
        self._to_first, self._to_second = np.zeros((2, m, labels), np.int64)
        self._leaving, self._arriving = (incidence(ends, nodes) for ends in field.edges.T)
        self._rewards = np.where(field.allowed, field.rewards * self.scale, LOW)

    @property
    def scaled_bound(self) -> int:
        """The bound times the scale."""
        return int(self.node_top.sum()) + int(self.edge_top.sum())

    @property
    def bound(self) -> int:
        """No labelling is worth more."""
        return int(self.scaled_bound // self.scale)

    def update(self, edges: IntArray, to_first: Floats, to_second: Floats) -> None:
        """Take in new messages of some edges."""
        self._to_first[edges] = np.rint(to_first * self.scale)
        self._to_second[edges] = np.rint(to_second * self.scale)

    def read(self, nodes: IntArray, labels: IntArray) -> None:
        """Read off maxima and slacks of some nodes and all their edges anew."""
        inside = np.zeros(len(labels), bool)
        inside[nodes] = True
        edges = np.flatnonzero(inside[self.field.edges].any(axis=1))
        belief = self._beliefs(nodes)
        self.node_top[nodes] = belief.max(axis=1)
        at = belief[np.arange(len(nodes)), labels[nodes]]
        self.node_slack[nodes] = self.node_top[nodes] - at
        agree, one, two = self._edges(edges)
        rows = np.arange(len(edges))
        a, b = labels[self.field.edges[edges]].T
        earned = np.where(a == b, agree[rows, a], one[rows, a] + two[rows, b])
        self.edge_top[edges] = _tops(agree, one, two)
        self.edge_slack[edges] = self.edge_top[edges] - earned

    def hopeless(self, value: int) -> IntArray:
        """Return which choices cannot be part of a labelling worth more than ``value``."""
        agree, one, two = self._edges(np.arange(len(self.field.edges)))
        top = self.edge_top[:, None]
        first = top - np.maximum(agree, one + two.max(axis=1, keepdims=True))
        second = top - np.maximum(agree, two + one.max(axis=1, keepdims=True))
        loss = self.node_top[:, None] - self._beliefs(np.arange(len(self.node_top)))
        # Losses at banned labels are about 2**60 each; they must not add up beyond 2**63.
        first, second = np.minimum(first, -LOW // 64), np.minimum(second, -LOW // 64)
        loss = loss + self._leaving @ first + self._arriving @ second
        beyond = (self.scaled_bound - loss) // self.scale <= value
        return np.asarray(beyond | ~self.field.allowed)

    def _beliefs(self, nodes: IntArray) -> IntArray:
        heard = self._leaving[nodes] @ self._to_first + self._arriving[nodes] @ self._to_second
        return np.asarray(self._rewards[nodes] + heard)

    def _edges(self, edges: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return what edges earn: agreeing in each label, and the parts of either end."""
        field = self.field
        first, second = field.edges[edges].T
        one = np.where(field.allowed[first], -self._to_first[edges], LOW)
        two = np.where(field.allowed[second], -self._to_second[edges], LOW)
        agree = one + two + (field.weights[edges] * self.scale)[:, None]
        return agree, one, two


def _tops(agree: IntArray, one: IntArray, two: IntArray) -> IntArray:
    """Return the most that edges earn: with equal labels, or with different ones."""
    apart = one.max(axis=1) + two.max(axis=1)
    clash = np.flatnonzero(one.argmax(axis=1) == two.argmax(axis=1))
    if one.shape[1] > 1:
        first, second = (np.sort(x[clash], axis=1)[:, -2:] for x in (one, two))
        apart[clash] = np.maximum(first[:, 1] + second[:, 0], first[:, 0] + second[:, 1])
    else:
        apart[clash] = agree[clash, 0]
    return np.asarray(np.maximum(agree.max(axis=1), apart))
