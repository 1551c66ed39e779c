"""The components of a labelling problem, as the classes of a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.lowered import Lowered
from layoutopt.problem import IntArray


class Components:
    """Which nodes are one class.

    Parameters
    ----------
    lowered
        The problem, of one or more kinds of groups.

    Attributes
    ----------
    members
        The nodes of each class; the first is the one that copies are named by.
    tag
        Class of each node, and its place there.
    leader
        The first node of each node's class.
    copies
        How many copies each class has.
    """

    def __init__(self, lowered: Lowered) -> None:
        problem = lowered.problem
        ends = tuple(problem.edges.T)
        matrix = coo_array((np.ones(len(problem.edges), bool), ends), shape=(problem.nodes,) * 2)
        count, of = connected_components(matrix, directed=False)
        order = np.argsort(of, kind="stable")
        begin = np.searchsorted(of[order], np.arange(count + 1)).tolist()
        self.members = [order[a:b].tolist() for a, b in pairwise(begin)]
        self.tag = {u: (k, j) for k, own in enumerate(self.members) for j, u in enumerate(own)}
        self.leader = order[np.array(begin[:-1], np.int64)][of] if count else of
        self._nodes = [0, *accumulate(kind.problem.nodes for kind in lowered.kinds)]
        self._labels = [0, *accumulate(kind.problem.labels for kind in lowered.kinds)]
        self._problem = problem
        self.copies = [self._copies(lowered, own[0]) for own in self.members]

    def split(self, labels: IntArray) -> list[IntArray]:
        """Return the labels of the problem as those of each kind's own."""
        found = []
        for (a, b), (low, high) in zip(pairwise(self._nodes), pairwise(self._labels), strict=True):
            own, named = labels[a:b], labels[a:b] < self._problem.labels
            fresh = own - self._problem.labels - a + high - low
            found.append(np.where(named, own - low, fresh))
        return found

    def kinds(self, nodes: Iterable[int]) -> set[int]:
        """Return of which kinds of groups some nodes are."""
        found = np.searchsorted(self._nodes, [*nodes], side="right") - 1
        return set(found.tolist())

    def _copies(self, lowered: Lowered, node: int) -> int:
        """Return how many copies of a node's class there are, in all groups of its kind."""
        which = int(np.searchsorted(self._nodes, node, side="right")) - 1
        kind = lowered.kinds[which]
        classes = kind.inner.classes
        component = classes.component[kind.inner.nodes[node - self._nodes[which]]]
        return kind.copies[int(classes.class_of[component])] * len(kind.groups)


def named(labels: Sequence[int], count: int) -> list[int]:
    """Return the labels among some that are no fresh ones, each once, ascending."""
    return sorted({label for label in labels if label < count})
