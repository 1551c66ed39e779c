"""Evidence where barrier order limits what classes choose.

Without order classes are bounded alone.  Where what is best for each puts barriers in a circle, one
of two barriers of the circle precedes the other: either way some choices are out, and classes are
bounded again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from layoutopt.certificate.classes import Class
from layoutopt.certificate.order import Order
from layoutopt.certificate.refused import Refused
from layoutopt.limits import Limits
from layoutopt.problem import Labelling, exact_integers
from layoutopt.proving.evidence import EARNED, Banned, Evidence, evidence_of
from layoutopt.result import Result

Solve: TypeAlias = Callable[[Labelling, Limits, None], Result]
Tree: TypeAlias = dict[str, Any]

FORKS = 64
"""How often orders are told apart, all in all."""


class Ordering:
    """Finds a tree of orders that proves a bound.

    Parameters
    ----------
    order
        What classes have to do with barriers.
    copies
        How many copies each class has.
    solve
        An exact method for labelling problems.
    limits
        When to stop looking for more than a word.
    trusted
        Whether a solver's word was given for the labels.

    Attributes
    ----------
    contested
        The classes that order may limit.
    """

    def __init__(
        self,
        order: Order,
        copies: Sequence[int],
        solve: Solve,
        limits: Limits,
        trusted: bool = True,
    ) -> None:
        self.trusted = trusted
        self.order, self.copies, self.solve, self.limits = order, copies, solve, limits
        self.forks = FORKS
        self.contested = {k for k, _ in order.offered} if order.read else set()
        self._known: dict[tuple[int, Banned], tuple[list[int], int, Evidence]] = {}

    def tree(self, wanted: int, before: tuple[tuple[str, str], ...] = ()) -> Tree:
        """Return the evidence of a part of all orders.

        Parameters
        ----------
        wanted
            What all classes are to earn at most.
        before
            Pairs of barriers, of which the first precedes the second.
        """
        best = [self._best(k, self.order.banned(k, before)) for k in range(len(self.copies))]
        total = sum(n * value for n, (_, value, _) in zip(self.copies, best, strict=True))
        fork = self._fork([labels for labels, _, _ in best], before) if total > wanted else None
        if fork is None or self.forks == 0 or self.limits.over:
            return {"evidence": {str(k): best[k][2] for k in sorted(self.contested)}}
        self.forks -= 1
        b, c = fork
        return {
            "before": [b, c],
            "yes": self.tree(wanted, (*before, (b, c))),
            "no": self.tree(wanted, (*before, (c, b))),
        }

    def evidence(self, k: int, wanted: int, banned: Banned = frozenset()) -> Evidence:
        """Return evidence that a class earns no more than is wanted, or than can be proved."""
        own = self.order.classes[k]
        try:
            self.order.check_apart(k)
            found, proved = evidence_of(own, wanted, self.limits, banned)
        except Refused:  # what takes terminals for different proves nothing
            found, proved = EARNED, own.bound(EARNED, banned)[0] <= wanted
        return found if proved or not self.trusted else {"kind": "word", "bound": wanted}

    def _fork(
        self, labels: list[list[int]], before: tuple[tuple[str, str], ...]
    ) -> tuple[str, str] | None:
        """Return two barriers of a circle that labels put barriers in, if there is one."""
        try:
            self.order.check_legal(labels)
        except Refused as circle:
            told = {frozenset(pair) for pair in before}
            some = sorted(set(circle.about))
            pairs = ((b, c) for n, b in enumerate(some) for c in some[n + 1 :])
            return next((pair for pair in pairs if frozenset(pair) not in told), None)
        return None

    def _best(self, k: int, banned: Banned) -> tuple[list[int], int, Evidence]:
        """Return the best labels of a class, what they earn, and evidence for that."""
        if (k, banned) not in self._known:
            own = self.order.classes[k]
            if k not in self.contested:
                return own.labels, own.score(), {}
            found = self.solve(problem_of(own, banned), self.limits, None)
            labels = own.labels if found.labelling is None else found.labelling.tolist()
            if found.bound is None:  # time is over: all that there is to earn
                self._known[k, banned] = labels, own.bound(EARNED, banned)[0], EARNED
                return self._known[k, banned]
            value = int(found.bound)
            self._known[k, banned] = labels, value, self.evidence(k, value, banned)
        return self._known[k, banned]


def problem_of(own: Class, banned: Banned) -> Labelling:
    """Return a class as a labelling problem."""

    def table(entries: Sequence[tuple[int, ...]]) -> Any:
        return np.array(entries, np.int64).reshape(-1, 2)

    edges = [(i, j, w) for i, j, w in own.edges if w]
    rewards = [(i, m, w) for i, m, w in own.rewards if w]
    return Labelling(
        own.nodes,
        len(own.terminals),
        table([(i, j) for i, j, _ in edges]),
        exact_integers([w for _, _, w in edges]),
        table([(i, m) for i, m, _ in rewards]),
        exact_integers([w for _, _, w in rewards]),
        banned=table(sorted(banned)),
    )
