"""Classes: small graphs of which disjoint parts of an instance are copies.

Nodes choose locations: a *terminal*, which is a different location in every copy, or another one.
An edge ``[i, j, w]`` scores ``w`` if both nodes choose the same location, a reward ``[i, m, w]``
if node ``i`` chooses terminal ``m``.
"""

from __future__ import annotations

from collections.abc import Collection
from math import floor
from typing import Any

import numpy as np

from layoutopt.certificate.bounds import bound
from layoutopt.certificate.pairwise import MOST_ENTRIES, Pairwise
from layoutopt.certificate.refused import Refused, listed, number, numbered


class Class:
    """A class of a certificate.

    It is given as ``labels`` (of each node: a terminal, or ``-1 - i`` for a location that node
    ``i`` owns), ``terminals`` (their boxes), ``edges`` and ``rewards``.
    """

    def __init__(self, given: Any, name: str) -> None:
        if not isinstance(given, dict):
            raise Refused(f"{name} must be an object")
        self.name, self.evidence = name, given.get("evidence")
        self.terminals = listed(given.get("terminals"), None, f"terminals of {name}")
        self.labels = listed(given.get("labels"), None, f"labels of {name}")
        self.nodes, count = len(self.labels), len(self.terminals)
        for label in self.labels:
            if type(label) is not int or not -self.nodes <= label < count:
                raise Refused(f"{name}: {str(label)[:20]} is not a label")
        self.edges = _weighted(given, "edges", (self.nodes, self.nodes), name)
        self.rewards = _weighted(given, "rewards", (self.nodes, count), name)

    def score(self) -> int:
        """Return the score of the labels in one copy."""
        x = self.labels
        earned = sum(w for i, j, w in self.edges if x[i] == x[j])
        return earned + sum(w for i, m, w in self.rewards if x[i] == m)

    def bound(self, evidence: Any, banned: Collection[tuple[int, int]] = ()) -> tuple[int, bool]:
        """Return an upper bound on the score of one copy, and whether it is unverified.

        ``banned`` are pairs of nodes and terminals that are forbidden.
        """
        kind = evidence.get("kind") if isinstance(evidence, dict) else None
        rewards = [(i, m, w) for i, m, w in self.rewards if (i, m) not in banned]
        positive = sum(w for _, _, w in (*self.edges, *rewards) if w > 0)
        if kind == "earned":
            return positive, False
        if kind == "flow":
            return positive - self._flow(evidence, rewards), False
        if kind == "word":
            return floor(number(evidence.get("bound"))), True  # all weights are integers
        return bound(self.pairwise(banned), evidence)

    def _flow(self, evidence: dict[str, Any], rewards: list[tuple[int, int, int]]) -> int:
        """Return the value of a flow from terminal 0 to the others, a lower bound on any loss.

        The nodes that choose terminal 0 are one side of a cut, whose weight is lost.
        """
        through = listed(evidence.get("edges"), len(self.edges), f"the flow of {self.name}")
        ends = listed(evidence.get("rewards"), len(rewards), f"the flow of {self.name}")
        left, value = [0] * self.nodes, 0
        for (i, j, w), f in zip(self.edges, through, strict=True):
            if type(f) is not int or abs(f) > max(w, 0):
                raise Refused(f"{self.name}: {str(f)[:20]} flows through an edge of {w}")
            left[i], left[j] = left[i] - f, left[j] + f
        for (i, m, w), f in zip(rewards, ends, strict=True):
            if type(f) is not int or not 0 <= f <= max(w, 0):
                raise Refused(f"{self.name}: {str(f)[:20]} flows through a reward of {w}")
            left[i] += -f if m else f
            value += 0 if m else f
        if any(left):
            raise Refused(f"{self.name}: the flow is not conserved at a node")
        return value

    def pairwise(self, banned: Collection[tuple[int, int]] = ()) -> Pairwise:
        """Return the class as a pairwise problem.

        If no edge is negative, one label represents all locations other than terminals, and
        terminals whose rewards are dominated by those of another terminal at every node are
        omitted.
        """
        lost = 1 + 2 * sum(abs(w) for _, _, w in (*self.edges, *self.rewards))
        signed = any(w < 0 for _, _, w in self.edges)
        most = len(self.terminals) + (self.nodes if signed else 1)
        self._check_size(most * self.nodes)
        worth = np.zeros((most, self.nodes), object)
        for i, m, w in self.rewards:
            worth[m, i] = w
        for i, m in banned:
            worth[m, i] = -lost
        if not signed:
            worth = _undominated(worth)
        return Pairwise(list(worth.T), [], self.edges)

    def _check_size(self, entries: int) -> None:
        if entries > MOST_ENTRIES:
            raise Refused(f"{self.name} is too large for this kind of evidence")


def _undominated(worth: Any) -> Any:
    """Return the rows of a table that no other row dominates."""
    lists = sorted(worth.tolist(), reverse=True)
    small = max((max(max(row), -min(row)) for row in lists if row), default=0) < 2**62
    rows = np.array(lists, np.int64 if small else object)
    rows = rows.reshape(worth.shape)
    kept = np.zeros(len(rows), bool)
    for k, row in enumerate(rows):
        kept[k] = not (rows[:k][kept[:k]] >= row).all(axis=1).any()
    return rows[kept]


def _weighted(
    given: dict[str, Any], what: str, ends: tuple[int, int], name: str
) -> list[tuple[int, int, int]]:
    found: dict[tuple[int, int], int] = {}
    for entry in listed(given.get(what), None, f"{what} of {name}"):
        i, j, w = listed(entry, 3, f"one of the {what} of {name}")
        numbered([i, j], ends, f"{what} of {name}")
        if what == "edges" and i == j:
            raise Refused(f"{name}: an edge joins node {i} to itself")
        if type(w) is not int or (i, j) in found:
            raise Refused(
                f"{name}: {what} {[i, j]} are repeated, or their weight is not an integer"
            )
        found[i, j] = w
    return [(i, j, w) for (i, j), w in found.items()]
