"""Cost networks with rows, solved exactly: narrow, reduce, price, dive, search.

Rows take part in everything.  *Narrowing* forbids labels that use more than a row has left when
all others use their least.  Nodes that no row counts leave by the reductions of networks without
rows.  The linear relaxation then *prices* rows: with multipliers ``p >= 0`` of rows
``a x <= b`` ::

    cost(x) >= cost(x) + p (a x - b) >= min_y [cost(y) + p a y] - p b

where the right side is a network without rows, whose bound counts.  Multipliers and messages are
whole multiples of one fraction, so the bound is exact whatever the relaxation's rounding was.
What costs more than the best labelling under these prices is forbidden, and a search decides what
is left: CP-SAT and HiGHS, where what is left is small enough for them, in turns with branching,
which prices each branch anew.  In between parts are solved while all other nodes keep their labels:
in large networks from the first turn on, else from the second one.  The module is long, as branch
and bound serves nothing but these turns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import accumulate, pairwise
from math import inf
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, Stopped, Unlimited
from layoutopt.base.numbers import relative
from layoutopt.network.ascent import PricedRows, RowAscent
from layoutopt.network.costs.fixing import forbid, tighten, whole_parts
from layoutopt.network.costs.local_search import Neighbourhoods, part_of
from layoutopt.network.costs.reductions import apply
from layoutopt.network.costs.solve import (
    CELLS,
    LARGEST,
    OWN_CELLS,
    SHARE,
    SOLVED,
    answered,
    solve_parts,
)
from layoutopt.network.costs.work import Infeasible, Step, Work, split, work_of
from layoutopt.network.forms import close_domains
from layoutopt.network.network import Array, CostAnswer, Network, PriceStep, Proof
from layoutopt.network.problem import no_numbers, no_pairs
from layoutopt.network.rows import RowSet, by_columns, charge, settle, with_rows
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.pairwise import Message, Relaxed, WrittenWork, relax, write
from layoutopt.network.solvers.programme import Programme, ProgrammeResult, coarse

HELD = 10**8  # entries of tables of all open branches, beyond which the newest one is next
LOGGED, LONGEST, DEEPEST = 10**8, 10**6, 100
"""Entries of tables of all branches, and of one, and how deep it is, while steps of a proof are
kept."""

TRIED, EACH, PER_ENTRY = 5e-3, 0.1, 1.5e-6
"""Effort of a branch without prices, see `Limits.turn`, and of one with prices: for itself, and for
each entry of its tables."""

Division: TypeAlias = tuple[int, list[list[int]]]
"""A node, and labels of it, in shares."""


BRANCHES = 60  # branches that are tried before anything else
STEPS, DIVES = 30, 4  # steps of dual ascent in each branch, and of how many one is rounded

SMALL = 100
"""Most labels for that."""

REBUILT = 10.0  # effort of the parts that are solved between two prices of the whole
TURN = 1.0  # effort of the first turn of each search, see `Limits.turn`; every round doubles it
SEARCHED = 300_000  # most entries for which there is a search: CP-SAT takes two kilobytes for each

PART = 120
"""Labels of a part that is solved while all other nodes keep theirs, or of a half or a quarter."""

ANY, ANY_STEPS = 1.0, 100
"""Most seconds and steps of dual ascent for any labelling, where time is up before there is one."""

BETWEEN = 5.0  # seconds after which a better labelling is told
ROUNDS = 6  # most often the relaxation is solved
PRICED = 0.999  # share of its solution from which on a label is taken at once


@dataclass(frozen=True)
class PriceBound:
    """A bound by prices of rows and messages of tables, and the solution that they led to."""

    bound: int
    rows: PricedRows
    prices: list[float]  # of each of these rows
    messages: dict[tuple[int, int], dict[int, float]]  # by edge, to labels of its second node
    shares: list[dict[int, float]]  # for each node, how much of each label


def coupled(network: Network, limits: Limits, start: Array | None) -> CostAnswer:
    """Solve a network with rows and without ties; ``start`` must be allowed."""
    closed = close_domains(network)
    begin = None if start is None else closed.cut(start)
    solver, bound = _Solver(closed.network, limits, begin), None
    try:
        bound = solver.run()
    except Infeasible:
        if start is not None:
            raise InternalError("an allowed labelling contradicts infeasibility") from None
        return CostAnswer(infeasible=True)
    except TimeoutError:  # before there was a bound
        free = replace(solver.network, table_edges=no_pairs(), table_of=no_numbers(), tables=())
        solver.reduced = work_of(free, Unlimited()), RowSet.of(free)
    if solver.best is None:
        solver.take_any()
    best, proof = solver.best, None
    labels = None if best is None else closed.restore(np.array(best, np.int64))
    if solver.log is not None and not any(domain.open for domain in network.domains):
        proof = Proof(solver.log, np.arange(len(network)))
    if bound is None:
        return CostAnswer(stopped=limits.stopped or Stopped.TIME_LIMIT, labelling=labels)
    return answered(network, labels, bound, limits, proof)


class _Solver:
    """The state of one call."""

    reduced: tuple[Work, RowSet]  # what reductions leave

    def __init__(self, network: Network, limits: Limits, start: Array | None) -> None:
        self.network, self.limits = network, limits
        self.best: list[int] | None = None
        self.worth: int | None = None  # cost of the best labelling
        self.log: list[Step] | None = None  # steps of the proof, up to the last prices
        self.pricings = 0  # how often rows were priced
        self.ascended = False  # whether rows were priced by dual ascent
        self.nearby: Neighbourhoods | None = None
        if start is not None:
            self.take(start.tolist())

    def take(self, labels: list[int]) -> bool:
        """Keep a labelling if it is better; return whether it was, and is allowed."""
        whole = np.array(labels, np.int64)
        cost = self.network.cost(whole)
        if (self.worth is not None and cost >= self.worth) or self.network.fault(whole):
            return False
        self.best, self.worth = labels, cost
        self.limits.report("rows", cost)
        return True

    def take_restored(self, work: Work, labels: Sequence[int] | None = None) -> None:
        """Keep a labelling of what is left, if it is better; without ``labels`` nothing is left."""
        labels = labels or ()
        whole = [*labels, *([0] * (len(work.costs) - len(labels)))]
        work.restore(whole)
        self.take(whole)

    def take_any(self) -> None:
        """Take any allowed labelling: the cheapest labels, those that use least, or an ascent's.

        The ascent looks at tables first, and does not where that takes long or finds none.
        """
        work, rows = self.reduced
        cheapest = [0] * len(work.costs)
        for node in work.left():
            cheapest[node] = min(work.labels(node), key=work.costs[node].__getitem__)
        self.take_restored(work, cheapest)
        for laying_out in Limits(time.monotonic() + ANY), Unlimited():
            if self.best is None:
                with suppress(OverflowError, TimeoutError):
                    self._take_ascended(RowAscent(work, rows.one_sided(work), laying_out))
            for node in work.left():
                work.near[node] = {}

    def _take_ascended(self, ascent: RowAscent) -> None:
        """Take any allowed labelling of what an ascent finds in short time."""

        def offer(labels: list[int]) -> float:
            self.take_restored(ascent.work, labels)
            return inf if self.best is None else -inf  # it ends with the first one

        limits = Limits(time.monotonic() + ANY)
        for given in limits, Limits(0.0):  # improved, which may break what is left out; or not
            if offer(ascent.least_used(given)) < inf:
                return
        ascent.run(limits, offer, inf, ANY_STEPS)

    def run(self) -> int:
        """Solve the network, and return a bound.

        Raises ``Infeasible`` if no labelling is allowed.
        """
        work, rows = work_of(self.network, self.limits), RowSet.of(self.network)
        work.log = []
        settle(work, rows, self.limits)
        lost = self._free_parts(work, rows)
        self.limits = self.limits.restated(lambda x: x, lambda x: x - lost)
        self.reduced = work.copy(), rows.copy()
        least = work.bound()
        if not rows.count:
            self.take_restored(work)
            self.log = work.log
            return least - lost
        try:
            return max(least, self._search(work, rows)) - lost
        except Infeasible:
            if self.worth is None:
                raise
            if work.log is not None:
                refuted(work)
                self.log = work.log
            return self.worth - lost

    def _free_parts(self, work: Work, rows: RowSet) -> int:
        """Solve the parts that no row counts; return how far they may be from optimal."""
        held, lost = rows.nodes, 0
        for part, nodes in split(work):
            if not held.isdisjoint(nodes):
                continue
            work.log = None
            found = solve_parts(part, self.limits.partial(), None)
            labels = found.labels
            if labels is None:  # it stays, and is searched with the rest
                continue
            for u, label in zip(nodes, labels, strict=True):
                work.keep(u, label)
            at = work.constant
            apply(work, Unlimited(), nodes)
            lost += work.constant - at - found.bound
        return lost

    def _search(self, work: Work, rows: RowSet) -> int:
        """Return a bound on what is left; the best labelling is kept besides."""
        small = sum(len(work.labels(u)) for u in work.left()) <= SMALL
        few = self.limits.turn(BRANCHES * TRIED)
        if small and Branching(self, work.copy(), rows, None).run(few):
            return self._proved()
        bound, priced = work.bound(), None
        for turn in range(ROUNDS):
            if self.limits.over:
                return self._least(bound)
            before = sum(map(len, map(work.labels, work.left())))
            left = self.limits.left
            found = self.price(work, rows, priced)
            if found is None:
                break
            bound, priced = max(bound, found.bound), found
            if self.close(bound):
                return self._least(bound)
            if work.cells() > SEARCHED:
                self._rebuild(self.limits.turn(REBUILT))
            settle(work, rows, self.limits)
            if not rows.count:
                return self._finish(work, bound)
            after = sum(map(len, map(work.labels, work.left())))
            slow = self.limits.left < left - self.limits.left  # no time for as much again
            if slow or (after > 0.8 * before and (turn or not self.ascended)):
                break
        if self.limits.over:
            return self._least(bound)
        return self._least(self._decide(work, rows, max(bound, work.bound()), priced))

    def _finish(self, work: Work, bound: int) -> int:
        """Solve what is left once no row is; everything worse than the best is forbidden."""
        found = solve_parts(work, self.limits, None)
        if found.labels is not None:
            self.take(found.labels)
        return self._least(max(bound, found.bound))

    def _proved(self) -> int:
        if self.worth is None:
            raise Infeasible
        return self.worth

    def _least(self, bound: int) -> int:
        return bound if self.worth is None else min(bound, self.worth)

    def price(
        self, work: Work, rows: RowSet, begin: PriceBound | None, most: int | None = None
    ) -> PriceBound | None:
        """Price rows by the relaxation, forbid what is too dear, and look for a labelling.

        With ``most``, by so many steps of dual ascent.  Return ``None`` where the relaxation was
        not solved.
        """
        limits = self.limits if most is None else self.limits.silent()
        limits.report("relaxation of rows", self.worth)
        single = rows.one_sided(work)
        if work.size() >= LARGEST or max(single.room, default=0) >= 2**900:
            return None
        linear = most is None and work.cells() <= CELLS
        if linear:
            short = limits.within(SHARE * limits.left)
            found = self._relaxed(work, single, short)
            linear = found is not None or not short.over
        if not linear:
            found = self._ascend(work, single, limits, begin, most)
        if found is None:
            return None
        scale = 1 << min(64, 16 + sum(single.room).bit_length())  # rounding loses next to nothing
        # What tables hand to their second nodes; what is left to the first ones follows.
        messages, sent = list[Message](), dict[tuple[int, int], dict[int, float]]()
        for (u, v, _), (_, two) in zip(work.edges(), found.messages, strict=True):
            messages.append(([0.0] * len(work.labels(u)), two))
            sent[u, v] = dict(zip(work.labels(v), two, strict=True))
        try:
            tight = tighten(work, scale, messages, self.limits)
        except TimeoutError:
            return None
        prices = [max(0, round(price * scale)) for price in found.prices]
        charge(tight, single, prices)
        bound = -(-tight.constant // scale)
        shares: list[dict[int, float]] = [{} for _ in work.costs]
        for u, share in zip(work.left(), found.point, strict=True):
            shares[u] = dict(zip(work.labels(u), share, strict=True))
        self.pricings += 1
        if linear or (most is not None and self.pricings % DIVES == 0):
            dive(self, work, rows, shares)  # else the ascent has tried labellings itself
        useful = self.worth is not None and bound < self.worth and not self.limits.over
        worth = self.worth if useful else None
        if work.log is not None:
            step = price_step(work, scale, messages, single, prices, worth)
            if most is None:
                self.log = [*work.log, ("price", step)]
            work.note("price", step)
        if worth is not None:
            forbid(tight, (worth - 1) * scale)
            forbid_too(work, tight)
        return PriceBound(bound, single, found.prices, sent, shares)

    def _relaxed(self, work: Work, single: PricedRows, limits: Limits) -> Relaxed | None:
        """Solve the linear relaxation, each row divided by its limit."""
        written = write(work)
        scaled = [
            ({k: x / max(room, 1) for k, x in own.items()}, min(room, 1.0))
            for room, own in zip(single.room, by_columns(written, single), strict=True)
        ]
        found = relax(written.given, limits, scaled)
        if found is None:
            return None
        prices = zip(found.prices, single.room, strict=True)
        return replace(found, prices=[price / max(room, 1) for price, room in prices])

    def _ascend(
        self,
        work: Work,
        single: PricedRows,
        limits: Limits,
        begin: PriceBound | None,
        most: int | None,
    ) -> Relaxed | None:
        """Approach the relaxation by dual ascent."""
        self.ascended = True
        try:
            ascent = RowAscent(work, single, limits)
        except TimeoutError:
            return None
        if begin is not None:
            prices = dict(zip(begin.rows.source, begin.prices, strict=True))
            ascent.begin_with(prices, begin.messages)

        def offer(labels: list[int]) -> float:
            self.take_restored(work, labels)
            return inf if self.worth is None else float(self.worth - work.constant)

        known = inf if self.worth is None else float(self.worth - work.constant)
        found = offer if most is None or self.worth is None else None
        ascent.run(limits.within(SHARE * limits.left), found, known, most)
        return ascent.relaxed()

    def _decide(self, work: Work, rows: RowSet, bound: int, priced: PriceBound | None) -> int:
        """Search what is left in turns of doubling effort; return the better bound.

        CP-SAT, where it is installed, HiGHS and branching take turns; branching takes another one
        as long as each halves the gap.  Parts are solved before each turn but the first.  Where
        programmes would be too large, they are solved before that, too, and branching takes one
        turn each.
        """
        self.limits.report("search", self.worth, bound)
        large = work.cells() > SEARCHED
        stated = None if large else _stated(work, rows)
        branching = Branching(self, work, rows, priced)
        if priced is not None and work.log is not None:
            self.log = work.log
        effort = REBUILT if large else TURN
        while not self.close(bound):
            if effort > TURN:
                self._rebuild(self.limits.turn(effort))
            if stated is not None and not self.ascended:
                bound = self._search_programme(work, *stated, bound, effort)
            halved = True
            while halved and not self.close(bound):
                gap = self._gap(bound)
                if branching.run(self.limits.turn(effort)):
                    return self._proved()
                bound = max(bound, branching.bound)
                halved = stated is not None and 2 * self._gap(bound) <= gap < inf
            if stated is not None and self.ascended:
                bound = self._search_programme(work, *stated, bound, effort)
            effort *= 2
        return bound

    def _search_programme(
        self,
        work: Work,
        written: WrittenWork,
        given: Programme,
        unit: int,
        bound: int,
        effort: float,
    ) -> int:
        """Search by CP-SAT, then by HiGHS, for one turn each; return the better bound."""
        if find_spec("ortools") is not None and not self.close(bound):
            hint = None
            if self.best is not None and work.value(self.best) < inf:
                hint = written.point(self.best)
            told = written.told(self.limits, unit)
            found = cpsat.solve(given, self.limits.turn(effort), hint, found=told)
            if found.infeasible:
                return self._proved()
            bound = self._take_point(work, written, found, unit, bound)
        if not self.close(bound):
            half = self.limits.within(self.limits.left / 2)  # its first node may take long
            found = highs.solve(given, half.turn(effort), presolve=True)
            if found.infeasible:
                return self._proved()
            bound = self._take_point(work, written, found, unit, bound)
        return bound

    def _take_point(
        self, work: Work, written: WrittenWork, found: ProgrammeResult, unit: int, bound: int
    ) -> int:
        """Keep the labelling of a programme's point; return the better of two bounds."""
        if found.values is not None:
            self.take_restored(work, written.chosen(found.values))
        if found.bound is not None:
            bound = max(bound, written.cost(found.bound, unit))
        self.limits.report("search", self.worth, bound)
        return bound

    def _gap(self, bound: int) -> float:
        """Return how far the best labelling may be from optimal."""
        return inf if self.worth is None else self.worth - bound

    def close(self, bound: int) -> bool:
        """Return whether the best labelling is good enough, or limits have been reached."""
        if self.limits.over:
            return True
        if self.worth is None:
            return False
        gap = self.limits.gap
        return bound >= self.worth or (gap > 0 and relative(self.worth - bound, self.worth) <= gap)

    def _rebuild(self, limits: Limits) -> None:
        """Solve small parts, all other nodes keeping their labels, as long as time lasts."""
        if self.best is None:
            return
        work, rows = self.reduced
        if self.nearby is None:
            groups = rows.groups(np.cumsum([usage.rows for usage in self.network.usages]))
            self.nearby = Neighbourhoods(work, self.limits, groups, size=PART)
        labels, taken, better = list(self.best), time.monotonic(), False
        while not limits.over and (around := self.nearby.next()):
            turn = limits.silent().turn(TURN)
            part = _Part(work, rows.part(labels, around), labels, around, turn)
            improved = part.improve()
            size = OWN_CELLS + part.given.cells() + rows.count
            limits.spend(TURN - turn.counted + size / SOLVED)
            if improved:
                self.nearby.better()
                better = True
                for u, label in zip(around, part.best or (), strict=True):
                    labels[u] = label
            if better and time.monotonic() > taken + BETWEEN:
                better, taken = False, time.monotonic()
                self._take_reduced(labels)
        self._take_reduced(labels)

    def _take_reduced(self, labels: list[int]) -> None:
        """Keep a labelling of the reduced problem."""
        self.reduced[0].restore(labels)
        self.take(list(labels))


class _Part(_Solver):
    """A few nodes of a problem, and their rows; all others keep their labels."""

    def __init__(
        self, work: Work, rows: RowSet, labels: Sequence[int], nodes: Sequence[int], limits: Limits
    ) -> None:
        self.given, self.rows = part_of(work, nodes, labels), rows
        self.log, self.ascended, self.pricings, self.limits = None, False, 0, limits
        self.best = [labels[u] for u in nodes]
        self.worth = int(self.given.value(self.best))

    def take(self, labels: list[int]) -> bool:
        """Keep a labelling if it is better; return whether it was, and is allowed."""
        cost = self.given.value(labels)
        if self.worth is not None and cost >= self.worth:
            return False
        if not self.rows.hold(labels):
            return False
        self.best, self.worth = list(labels), int(cost)
        return True

    def improve(self) -> bool:
        """Look for a better labelling; return whether there is one."""
        before = self.worth
        work, rows = self.given.copy(), self.rows.copy()
        try:
            settle(work, rows, self.limits)
            if rows.count:
                self._search(work, rows)
            else:
                self._finish(work, work.bound())
        except Infeasible:
            pass
        return self.worth != before

    def _rebuild(self, limits: Limits) -> None:
        """Leave a part whole."""

    def _decide(self, work: Work, rows: RowSet, bound: int, priced: PriceBound | None) -> int:
        """Search for one turn."""
        stated = _stated(work, rows)
        if stated is None or find_spec("ortools") is None:
            Branching(self, work, rows, None).run(self.limits)
            return bound
        written, given, unit = stated
        found = cpsat.solve(given, self.limits, None)
        return bound if found.infeasible else self._take_point(work, written, found, unit, bound)


def _stated(work: Work, rows: RowSet) -> tuple[WrittenWork, Programme, int] | None:
    """Return what is left as a small programme with rows, and its unit; None if too large."""
    if work.size() >= LARGEST:
        return None
    written = write(work)
    given = with_rows(written, rows.one_sided(work))
    return None if given is None else (written, *coarse(given))


def price_step(
    work: Work,
    scale: int,
    messages: Sequence[tuple[list[float], list[float]]],
    rows: PricedRows,
    prices: Sequence[int],
    worth: int | None,
) -> PriceStep:
    """Return prices and messages, in parts of a unit, as a step of a proof."""
    sent = {
        (u, v): whole_parts(two, work.labels(v), len(table[0]), scale)
        for (u, v, table), (_, two) in zip(work.edges(), messages, strict=True)
    }
    sums: dict[tuple[int, int], int] = {}
    for (number, side), price in zip(rows.source, prices, strict=True):
        if price:
            sums[number, side] = sums.get((number, side), 0) + side * price
    paid = [(number, price) for (number, _), price in sums.items()]
    return PriceStep(scale, paid, [sent[edge] for edge in sorted(sent)], worth)


def forbid_too(work: Work, tight: Work) -> None:
    """Forbid what another problem of the same nodes and labels forbids."""
    for u in work.left():
        for i, (old, new) in enumerate(zip(work.costs[u], tight.costs[u], strict=True)):
            if new == inf and old < inf:
                work.forbid(u, i)
    for u, v, table in list(work.edges()):
        other = tight.near[u].get(v, ())
        if any(inf in row for row in other):
            rows = zip(table, other, strict=True)
            both = (zip(*pair, strict=True) for pair in rows)
            never = work.never
            work.put(u, v, tuple(tuple([never if b == inf else a for a, b in row]) for row in both))
            work.shrunk.update((u, v))


def dive(solver: _Solver, work: Work, rows: RowSet, shares: Sequence[dict[int, float]]) -> None:
    """Round a relaxed solution: take labels of large shares first, narrowing in between."""
    trial = work.copy()
    order = sorted(trial.left(), key=lambda u: -max(shares[u].values(), default=0.0))
    try:
        for u in order:
            if trial.gone[u] or solver.limits.over:
                continue
            undecided = max(shares[u].values(), default=0.0) < PRICED
            if undecided:
                apply(trial, Unlimited(), rows.narrow(trial))
            if trial.gone[u]:
                continue
            own = trial.labels(u)
            best = max(own, key=lambda i: (shares[u].get(i, 0.0), -trial.costs[u][i]))
            trial.keep(u, best)
            if undecided:
                apply(trial, Unlimited(), [u])
        rows.narrow(trial)
        apply(trial, Unlimited(), trial.left())
    except Infeasible:
        return
    if solver.limits.over:
        return
    labels = [0] * len(work.costs)
    trial.restore(labels)
    solver.take_restored(work, labels)


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

    What the relaxation leaves undecided is mostly how much nodes use of scarce rows: a part of a
    label that uses much, and one of a label that uses little.  So the labels of a node are divided
    by what they use, where that separates most.  A branch begins with the prices and messages of
    the one that it divides, and loses the labels that cost too much under its own.  The branch of
    the least bound is next, or the newest one where memory would not hold all.

    The log of the problem gets a step ``("cases", node, [(labels, log of that branch), ...])``.
    """

    def __init__(
        self, search: _Solver, work: Work, rows: RowSet, priced: PriceBound | None
    ) -> None:
        self.search = search
        self.entries = 0  # of all branches so far
        least = work.bound() if priced is None else priced.bound
        self.open = [_Branch(least, work, rows, priced, work.cells(), 0)]  # the newest one last

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
        work = branch.work
        if branch.priced is None:
            (u, shares), effort = by_costs(work), TRIED
        else:
            u, shares = by_use(work, branch.priced) or by_label(work, branch.priced)
            effort = EACH + PER_ENTRY * branch.entries
        few = self.entries < LOGGED and branch.entries < LONGEST and branch.depth < DEEPEST
        logged = few and work.log is not None
        logs = []
        for labels in shares:
            part = work.copy()
            part.log = [] if logged else None
            self.entries += branch.entries
            limits.spend(effort)
            try:
                for i in set(work.labels(u)).difference(labels):
                    part.forbid(u, i)
                new = self._bounded(part, branch.rows.copy(), branch)
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
            priced = self.search.price(work, rows, priced, STEPS) or priced
            least = max(least, priced.bound)
            if self._useless(least):
                return None
            settle(work, rows, limits, near=True)
            least = max(least, work.bound())
            if not self._stays(work, least):
                return None
        return _Branch(least, work, rows, priced, work.cells(), parent.depth + 1)

    def _stays(self, work: Work, bound: int) -> bool:
        """Return whether a branch may hold better labellings; take the last one that is left."""
        if self._useless(bound):
            return False
        if not work.left():
            self.search.take_restored(work)
        return bool(work.left())


def refuted(work: Work) -> None:
    """Note steps of a proof that rows and tables forbid all labels of a node."""
    work.note("narrow")
    for u, v, _ in work.edges():
        work.note("move", u, v)


def by_costs(work: Work) -> Division:
    """Divide all labels of the node of most neighbours, the cheapest last."""
    u = max(work.left(), key=lambda u: (len(work.near[u]), -len(work.labels(u))))
    return u, [[i] for i in sorted(work.labels(u), key=lambda i: -work.costs[u][i])]


def by_use(work: Work, priced: PriceBound) -> Division | None:
    """Divide the labels that use more of priced rows from those that use less.

    Of all nodes and thresholds those whose shares on both sides are worth most, at the prices of
    rows; ``None`` if no node is undecided.
    """
    rows, sums = priced.rows, [0.0, *accumulate(priced.prices)]
    most: float = 0
    best: Division | None = None
    for u, amounts, a, b in rows.items():
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


def by_label(work: Work, priced: PriceBound) -> Division:
    """Divide one label from the others of its node where that is least decided."""

    def first(u: int) -> tuple[float, int]:
        return max((priced.shares[u].get(i, 0.0), -i) for i in work.labels(u))

    u = min(work.left(), key=lambda u: (first(u)[0], -len(work.labels(u))))
    chosen = -first(u)[1]
    return u, [[i for i in work.labels(u) if i != chosen], [chosen]]
