"""What each component of a problem earns, so that each may keep its own best labels."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.problem import IntArray, Labelling


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
        ones, n = np.ones(len(problem.edges), bool), problem.nodes
        matrix = coo_array((ones, tuple(problem.edges.T)), shape=(n, n))
        self._component = connected_components(matrix, directed=False)[1]
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
