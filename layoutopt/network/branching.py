"""Branch and bound of networks with rows: labels of a node are divided, each share priced anew.

What the relaxation leaves undecided is mostly how much nodes use of scarce rows: a part of a label
that uses much, and one of a label that uses little.  So the labels of a node are divided by what
they use, where that separates most.  A branch begins with the prices and messages of the one that
it divides, and loses the labels that cost too much under its own.  The branch of the least bound
is next, or the newest one where memory would not hold all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol, TypeAlias

from layoutopt.base.limits import Limits
from layoutopt.network.ascent import PricedRows
from layoutopt.network.costs.solve import cells
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.rows import RowSet, settle

HELD = 10**8  # entries of tables of all open branches, beyond which the newest one is next
LOGGED, LONGEST, DEEPEST = 10**8, 10**6, 100
"""Entries of tables of all branches, and of one, and how deep it is, while steps of a proof are
kept."""

TRIED, EACH, PER_ENTRY = 5e-3, 0.1, 1.5e-6
"""Effort of a branch without prices, see `Limits.turn`, and of one with prices: for itself, and for
each entry of its tables."""

Division: TypeAlias = tuple[int, list[list[int]]]
"""A node, and labels of it, in shares."""


@dataclass(frozen=True)
class PriceBound:
    """A bound by prices of rows and messages of tables, and the solution that they led to."""

    bound: int
    rows: PricedRows
    prices: list[float]  # of each of these rows
    messages: dict[tuple[int, int], dict[int, float]]  # by edge, to labels of its second node
    shares: list[dict[int, float]]  # for each node, how much of each label


class RowSearch(Protocol):
    """What branches are for: the best labelling, and bounds."""

    worth: int | None
    limits: Limits

    def take(self, labels: list[int]) -> bool:
        """Keep a labelling of the whole problem if it is better."""

    def price(self, work: Work, rows: RowSet, begin: PriceBound) -> PriceBound | None:
        """Bound a branch, and forbid what is too dear in it; ``None`` where that is impossible."""

    def close(self, bound: int) -> bool:
        """Return whether a bound is good enough."""


@dataclass(frozen=True)
class _Branch:
    bound: int
    work: Work
    rows: RowSet
    priced: PriceBound | None
    entries: int
    depth: int


class Branching:
    """Branches that are still to be divided; without ``priced`` they are bounded by costs alone.

    The log of the problem gets a step ``("cases", node, [(labels, log of that branch), ...])``.
    """

    def __init__(
        self, search: RowSearch, work: Work, rows: RowSet, priced: PriceBound | None
    ) -> None:
        self.search = search
        self.entries = 0  # of all branches so far
        least = work.bound() if priced is None else priced.bound
        self.open = [_Branch(least, work, rows, priced, cells(work), 0)]  # the newest one last

    @property
    def bound(self) -> int:
        """What no labelling can cost less than, while branches are open."""
        worth = [] if self.search.worth is None else [self.search.worth]
        return min([*worth, *(branch.bound for branch in self.open)])

    def run(self, limits: Limits) -> bool:
        """Divide branches until limits are reached; return whether none is left."""
        while self.open and not limits.over and not self.search.close(self.bound):
            self._divide(self._next(), limits)
            self.open = [branch for branch in self.open if not self._useless(branch.bound)]
            if self.open:
                limits.report("branching", self.search.worth, self.bound)
        return not self.open

    def _next(self) -> _Branch:
        large = sum(branch.entries for branch in self.open) > HELD
        by_costs = self.open[0].priced is None  # all bounds are weak then: deep branches go first
        if large or by_costs:
            return self.open.pop()
        return self.open.pop(min(range(len(self.open)), key=lambda k: self.open[k].bound))

    def _useless(self, bound: int) -> bool:
        return self.search.worth is not None and bound >= self.search.worth

    def _divide(self, branch: _Branch, limits: Limits) -> None:
        """Replace a branch by those that may hold better labellings, the best one last."""
        work, by_costs = branch.work, branch.priced is None
        u, shares = by_use(work, branch.priced) or by_label(work, branch.priced)
        few = self.entries < LOGGED and branch.entries < LONGEST and branch.depth < DEEPEST
        logged = few and work.log is not None
        logs = []
        for labels in shares:
            part = work.copy()
            part.log = [] if logged else None
            self.entries += branch.entries
            limits.spend(TRIED if by_costs else EACH + PER_ENTRY * branch.entries)
            try:
                for i in set(work.labels(u)).difference(labels):
                    part.forbid(u, i)
                new = self._bounded(part, RowSet(branch.rows.groups), branch)
            except Infeasible:
                new = None
                refuted(part)
            if new is not None:
                self.open.append(new)
            logs.append((labels, part.log))
        if logged:
            work.note("cases", u, logs)

    def _bounded(self, work: Work, rows: RowSet, parent: _Branch) -> _Branch | None:
        """Return a branch if there may be better labellings in it."""
        priced, limits = parent.priced, self.search.limits
        settle(work, rows, limits, near=priced is not None)
        least = max(parent.bound, work.bound())
        if not self._stays(work, least):
            return None
        if priced is not None:
            priced = self.search.price(work, rows, priced) or priced
            least = max(least, priced.bound)
            if self._useless(least):
                return None
            settle(work, rows, limits, near=True)
            least = max(least, work.bound())
            if not self._stays(work, least):
                return None
        return _Branch(least, work, rows, priced, cells(work), parent.depth + 1)

    def _stays(self, work: Work, bound: int) -> bool:
        """Return whether a branch may hold better labellings; take the last one that is left."""
        if self._useless(bound):
            return False
        if not work.left():
            labels = [0] * len(work.costs)
            work.restore(labels)
            self.search.take(labels)
        return bool(work.left())


def refuted(work: Work) -> None:
    """Note steps of a proof that rows and tables forbid all labels of a node."""
    work.note("narrow")
    for u, v, _ in work.edges():
        work.note("move", u, v)


def by_use(work: Work, priced: PriceBound | None) -> Division | None:
    """Divide the labels that use more of priced rows from those that use less.

    Of all nodes and thresholds those whose shares on both sides are worth most, at the prices of
    rows; ``None`` if no node is undecided.
    """
    if priced is None:
        return None
    rows, sums = priced.rows, [0.0, *accumulate(priced.prices)]
    most: float = 0
    best: Division | None = None
    for u, amounts, a, b in zip(rows.nodes, rows.amounts, rows.begin, rows.end, strict=True):
        price = sums[b] - sums[a]
        if price <= 0 or work.gone[u]:
            continue
        labels = work.labels(u)
        for low, high in pairwise(sorted({amounts[i] for i in labels})):
            middle = (low + high) / 2
            away = [priced.shares[u].get(i, 0.0) * (amounts[i] - middle) for i in labels]
            worth = price * min(-sum(x for x in away if x < 0), sum(x for x in away if x > 0))
            if worth > most:
                more = [i for i in labels if amounts[i] > middle]
                most, best = worth, (u, [more, [i for i in labels if amounts[i] < middle]])
    return best


def by_label(work: Work, priced: PriceBound | None) -> Division:
    """Divide one label from the others where that is least decided, else all of a node."""
    if priced is None:
        u = max(work.left(), key=lambda u: (len(work.near[u]), -len(work.labels(u))))
        return u, [[i] for i in sorted(work.labels(u), key=lambda i: -work.costs[u][i])]

    def first(u: int) -> tuple[float, int]:
        return max((priced.shares[u].get(i, 0.0), -i) for i in work.labels(u))

    u = min(work.left(), key=lambda u: (first(u)[0], -len(work.labels(u))))
    chosen = -first(u)[1]
    return u, [[i for i in work.labels(u) if i != chosen], [chosen]]
