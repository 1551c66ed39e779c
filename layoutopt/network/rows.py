"""Cost networks with rows, solved exactly: narrow, reduce, price, dive, search.

Rows take part in everything.  *Narrowing* forbids labels that use more than a row has left when
all others use their least.  Nodes that no row counts leave by the reductions of networks without
rows.  The linear relaxation then *prices* rows: with multipliers ``p >= 0`` of rows
``a x <= b`` ::

    cost(x) >= cost(x) + p (a x - b) >= min_y [cost(y) + p a y] - p b

where the right side is a network without rows, whose bound counts.  Multipliers and messages are
whole multiples of one fraction, so the bound is exact whatever the relaxation's rounding was.
What costs more than the best labelling under these prices is forbidden, and a search
decides what is left: by CP-SAT and HiGHS in turns, and by branching where CP-SAT is not installed
or numbers are too large for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import accumulate
from math import inf
from random import Random
from typing import Any

import numpy as np

from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import relative
from layoutopt.base.result import Stopped
from layoutopt.network.ascent import PricedRows, RowAscent
from layoutopt.network.components import components
from layoutopt.network.costs.problem import CostAnswer, PriceStep, Proof
from layoutopt.network.costs.reductions import apply, reduce
from layoutopt.network.costs.solve import (
    LARGEST,
    WrittenWork,
    forbid,
    solve_parts,
    split,
    tighten,
    write,
)
from layoutopt.network.costs.work import Cost, Infeasible, Step, Table, Work, level, transposed
from layoutopt.network.network import Array, Domain, Network, Usage
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.pairwise import Message, Relaxed, relax
from layoutopt.network.solvers.programme import OPEN, Programme, ProgrammeResult, coarse

BRANCHES = 200
"""Branches that are tried before anything else."""

SMALL = 100
"""Most labels for that."""

CELLS = 50_000
"""Most entries of tables for which an LP solver solves the relaxation at once.

Where there are more, up to :data:`SEARCHED`, it solves what a dual ascent leaves.
"""

TURN = 1.0
"""Effort of the first turn of each search, see ``Limits.turn``; every round doubles it."""

SEARCHED = 300_000
"""Most entries for which there is a search: CP-SAT takes two kilobytes for each."""

PART = 120
"""Labels of a part that is solved while all other nodes keep theirs, or of a half or a quarter."""

STALE = 100
"""Parts without a better labelling, and two for each node, after which there are no more."""

LATE = 1.0
"""Seconds of processor time that the exact bound of prices may take when time is over."""

BETWEEN = 5.0
"""Seconds after which a better labelling is told."""

SHARE = 0.4
"""Share of the time that a dual ascent, or an LP solver, gets."""

ROUNDS = 6
"""Most often the relaxation is solved."""

PRICED = 0.999
"""Share of its solution from which on a label is taken at once."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows over the same items, which stand in rows that follow each other.

    Parameters
    ----------
    nodes, amounts
        For each item its node, and what each of the node's labels uses.
    begin, end
        Item ``k`` is in rows ``begin[k] .. end[k] - 1``, one at least.
    low, high
        Limits of each row; where there is none, one that nothing reaches.
    number
        Number of each row in the network.
    """

    nodes: list[int]
    amounts: list[list[int]]
    begin: Array
    end: Array
    low: Array
    high: Array
    number: Array

    def ranges(self, work: Work) -> tuple[Array, Array]:
        """Return the least and the most that each item may use."""
        least, most = [], []
        for u, own in zip(self.nodes, self.amounts, strict=True):
            left = own
            if inf in work.costs[u]:
                left = [x for x, cost in zip(own, work.costs[u], strict=True) if cost < inf]
            least.append(min(left))
            most.append(max(left))
        kind = self.low.dtype
        return np.array(least, kind), np.array(most, kind)

    def sums(self, used: Array) -> Array:
        """Return what items use in each row."""
        change = np.zeros(len(self.low) + 1, self.low.dtype)
        np.add.at(change, self.begin, used)
        np.subtract.at(change, self.end, used)
        return np.asarray(np.cumsum(change)[:-1])

    def least_of(self, room: Array) -> Array:
        """Return for each item the least of a number per row over its rows.

        Of two overlapping windows whose length is a power of two the smaller least is taken.
        """
        found = np.array(room[self.begin])
        levels = np.frexp(self.end - self.begin)[1] - 1
        window = room
        for k in range(int(levels.max(initial=0)) + 1):
            if k:
                half = 1 << (k - 1)
                window = np.minimum(window[:-half], window[half:])
            own = np.flatnonzero(levels == k)
            last = self.end[own] - (1 << k)
            found[own] = np.minimum(window[self.begin[own]], window[last])
        return found


class RowSet:
    """All rows of a network, beside a :class:`Work` of the same nodes and labels.

    Parameters
    ----------
    groups
        Rows by usages.
    """

    def __init__(self, groups: Sequence[_Group]) -> None:
        self.groups = [group for group in groups if len(group.low)]

    @classmethod
    def of(cls, network: Network) -> RowSet:
        """Return the rows of a network of closed domains."""
        ends = [*accumulate([usage.rows for usage in network.usages], initial=0)]
        pairs = zip(network.usages, ends, strict=False)
        return cls([_grouped(usage, network.sizes, first) for usage, first in pairs])

    @property
    def nodes(self) -> set[int]:
        """Nodes that rows count."""
        return {u for group in self.groups for u in group.nodes}

    def narrow(self, work: Work) -> list[int]:
        """Forbid labels that cannot hold together with any others; return their nodes.

        Raises
        ------
        Infeasible
            If a row cannot hold.
        """
        touched: dict[int, None] = {}
        again = True
        while again:
            again = False
            for group in self.groups:
                found = _narrowed(group, work)
                touched.update(dict.fromkeys(found))
                again |= bool(found)
        return list(touched)

    def simplify(self, work: Work) -> None:
        """Drop rows that hold anyway, and items that use the same whatever they choose."""
        kept = []
        for group in self.groups:
            least, most = group.ranges(work)
            down, up = group.sums(least), group.sums(most)
            rows = np.flatnonzero((up > group.high) | (down < group.low))
            place = np.zeros(len(up) + 1, np.int64)  # rows that are kept before each
            place[rows + 1] = 1
            place = np.cumsum(place)
            begin, end = place[group.begin], place[group.end]
            fixed = least == most
            items = np.flatnonzero(~fixed & (begin < end))
            paid = group.sums(np.where(fixed, least, 0))[rows]
            kept.append(
                _Group(
                    [group.nodes[k] for k in items.tolist()],
                    [group.amounts[k] for k in items.tolist()],
                    begin[items],
                    end[items],
                    group.low[rows] - paid,
                    group.high[rows] - paid,
                    group.number[rows],
                )
            )
        self.groups = [group for group in kept if len(group.low)]

    def part(self, labels: Sequence[int], nodes: Sequence[int]) -> RowSet:
        """Return the rows of a few nodes, which are numbered anew, where all others keep labels."""
        place = {u: k for k, u in enumerate(nodes)}
        kept = []
        for group in self.groups:
            inside = np.isin(group.nodes, nodes)
            items = np.flatnonzero(inside)
            if not len(items):
                continue
            pairs = zip(group.nodes, group.amounts, strict=True)
            used = np.array([own[labels[u]] for u, own in pairs], group.low.dtype)
            paid = group.sums(np.where(inside, 0, used))
            rows = np.flatnonzero(group.sums(inside.astype(group.low.dtype)) > 0)
            begin, end = (np.searchsorted(rows, at) for at in (group.begin, group.end))
            kept.append(
                _Group(
                    [place[group.nodes[k]] for k in items.tolist()],
                    [group.amounts[k] for k in items.tolist()],
                    begin[items],
                    end[items],
                    (group.low - paid)[rows],
                    (group.high - paid)[rows],
                    group.number[rows],
                )
            )
        return RowSet(kept)

    def hold(self, labels: Sequence[int]) -> bool:
        """Return whether a labelling keeps all rows."""
        for group in self.groups:
            pairs = zip(group.nodes, group.amounts, strict=True)
            sums = group.sums(np.array([own[labels[u]] for u, own in pairs], group.low.dtype))
            if (sums < group.low).any() or (sums > group.high).any():
                return False
        return True

    def one_sided(self, work: Work) -> PricedRows:
        """Return the rows as ``sum of amounts <= room``, all amounts 0 or more."""
        found = PricedRows([], [], [], [], [], [])
        for group in self.groups:
            least, most = group.ranges(work)
            down, up = group.sums(least), group.sums(most)
            for side, room in ((1, group.high - down), (-1, up - group.low)):
                if not (up - down > room).any():
                    continue
                first = len(found.room)
                found.room.extend(room.tolist())
                found.source.extend((number, side) for number in group.number.tolist())
                found.nodes.extend(group.nodes)
                found.begin.extend((first + group.begin).tolist())
                found.end.extend((first + group.end).tolist())
                from_ = (least if side > 0 else most).tolist()
                found.amounts.extend(
                    [side * (x - zero) for x in own]
                    for own, zero in zip(group.amounts, from_, strict=True)
                )
        return found


def _grouped(usage: Usage, sizes: Array, first: int) -> _Group:
    amounts = [[0] * int(sizes[u]) for u in usage.nodes.tolist()]
    for (k, i), amount in zip(usage.at.tolist(), usage.amounts.tolist(), strict=True):
        amounts[k][i] = amount
    most = [max((abs(x) for x in own), default=0) for own in amounts]
    free = 2 * sum(most) + 1
    low = [-free if x is None else max(-free, min(x, free)) for x in usage.low]
    high = [free if x is None else max(-free, min(x, free)) for x in usage.high]
    # Sums of sums stay within four times the largest.
    kind: Any = np.int64 if 8 * free * max(1, len(usage.nodes)) < 2**62 else object
    item, begin, end = _runs(usage)
    return _Group(
        usage.nodes[item].tolist(),
        [amounts[k] for k in item.tolist()],
        begin,
        end,
        np.array(low, kind),
        np.array(high, kind),
        first + np.arange(len(high)),
    )


def _runs(usage: Usage) -> tuple[Array, Array, Array]:
    """Return items and the rows that they stand in, from a first to before a last one."""
    since = np.full(len(usage.nodes), -1)  # the first row of a run that goes on
    found = [np.zeros((0, 3), np.int64)]
    before = np.zeros(0, np.int64)
    for r in range(usage.rows + 1):
        now = usage.members[usage.starts[r] : usage.starts[r + 1]] if r < usage.rows else before[:0]
        since[before] += usage.rows + 1  # marked, unless they go on
        on = now[since[now] > usage.rows]
        since[on] -= usage.rows + 1
        over = before[since[before] > usage.rows]
        ended = since[over] - usage.rows - 1
        found.append(np.column_stack([over, ended, np.full(len(over), r)]))
        since[over] = -1
        since[now[since[now] < 0]] = r
        before = now
    item, begin, end = np.concatenate(found).T
    return item, begin, end


def _narrowed(group: _Group, work: Work) -> list[int]:
    """Forbid what one group's rows rule out; return the nodes that lost labels."""
    least, most = group.ranges(work)
    down, up = group.sums(least), group.sums(most)
    if (down > group.high).any() or (up < group.low).any():
        raise Infeasible
    rise = group.least_of(group.high - down)
    fall = group.least_of(up - group.low)
    touched = []
    spread = most - least
    for k in np.flatnonzero((spread > rise) | (spread > fall)).tolist():
        u, top, bottom = group.nodes[k], int(least[k] + rise[k]), int(most[k] - fall[k])
        lost = False
        for i in work.labels(u):
            if not bottom <= group.amounts[k][i] <= top:
                work.forbid(u, i)
                lost = True
        if lost:
            touched.append(u)
    return touched


@dataclass(frozen=True, eq=False)
class Shut:
    """A network with closed domains instead of open ones.

    Parameters
    ----------
    network
        The network; a node's labels beyond its ``named`` ones stand for fresh ones.
    named
        Number of named labels of each node.
    owners
        For each node the nodes whose fresh labels it may choose.
    """

    network: Network
    named: Array
    owners: list[Array]

    def restore(self, labels: Array) -> Array:
        """Return labels of the network with open domains."""
        whole = labels.copy()
        for u in np.flatnonzero(labels >= self.named).tolist():
            whole[u] = self.named[u] + self.owners[u][labels[u] - self.named[u]]
        return whole

    def cut(self, labels: Array) -> Array | None:
        """Return labels of the closed network; ``None`` where it has too few fresh ones."""
        own = labels.copy()
        seen: dict[tuple[int, int], int] = {}
        count: dict[int, int] = {}
        for u in np.flatnonzero(labels >= self.named).tolist():
            root = int(self.owners[u][0])
            key = root, int(labels[u] - self.named[u])
            if key not in seen:
                seen[key] = count[root] = count.get(root, -1) + 1
            if seen[key] >= len(self.owners[u]):
                return None
            own[u] = self.named[u] + seen[key]
        return own


def shut(network: Network) -> Shut:
    """Close the open domains: nodes that equality edges join share as many fresh labels as help.

    Fresh labels cost nothing, and rows do not count them.  Two of them can be made one where no
    cost of agreement is positive; with ``m`` positive ones ``f`` are enough where
    ``f (f - 1) / 2 <= m``.
    """
    sizes = network.sizes
    count, of = components(len(network), *network.equal_edges.T)
    pays = np.zeros(count, np.int64)
    np.add.at(pays, of[network.equal_edges[:, 0]], (network.equal_costs > 0).astype(np.int64))
    size = np.bincount(of, minlength=count)
    opened = np.array([domain.open for domain in network.domains], bool)[network.domain_of]
    domains: dict[tuple[int, int], int] = {}
    domain_of = []
    by_root: dict[int, Array] = {}
    owners = []
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(size)
    for u, k in enumerate(network.domain_of.tolist()):
        c, more = int(of[u]), 0
        if opened[u]:
            more = min(int(size[c]), (1 + math.isqrt(1 + 8 * int(pays[c]))) // 2)
            if c not in by_root:
                by_root[c] = order[ends[c] - size[c] : ends[c] - size[c] + more]
        owners.append(by_root[c] if opened[u] else np.zeros(0, np.int64))
        domain_of.append(domains.setdefault((k, more), len(domains)))
    closed = replace(
        network,
        domains=tuple(Domain(network.domains[k].size + more) for k, more in domains),
        domain_of=np.array(domain_of, np.int64),
    )
    return Shut(closed, sizes, owners)


def work_of(network: Network, limits: Limits) -> Work:
    """Return a network of closed domains, without its rows, as one to work on.

    Raises
    ------
    Infeasible
        If all labels of a node are forbidden.
    TimeoutError
        If time is up.
    """
    costs: list[list[Cost]] = [[0] * size for size in network.sizes.tolist()]
    for (u, i), cost in zip(network.cost_at.tolist(), network.costs.tolist(), strict=True):
        costs[u][i] = cost
    for u, i in network.banned.tolist():
        costs[u][i] = inf
    work = Work(costs)
    work.constant = network.constant
    if any(min(own) == inf for own in costs):
        raise Infeasible
    tables: list[Table] = []
    for table in network.tables:
        if limits.over:
            raise TimeoutError
        rows = table.costs.tolist()
        if table.allowed is not None:
            allowed = table.allowed.tolist()
            rows = [
                [x if ok else inf for x, ok in zip(row, oks, strict=True)]
                for row, oks in zip(rows, allowed, strict=True)
            ]
        tables.append(tuple(map(tuple, rows)))
    turned = [transposed(table) for table in tables]
    for (u, v), k in zip(network.table_edges.tolist(), network.table_of.tolist(), strict=True):
        if v in work.near[u]:
            work.add(u, v, tables[k])
        else:
            work.near[u][v], work.near[v][u] = tables[k], turned[k]
    known: dict[tuple[int, int], Table] = {}
    each = zip(network.equal_edges.tolist(), network.equal_costs.tolist(), strict=True)
    for (u, v), cost in each:
        n = len(costs[u])
        if (n, cost) not in known:
            known[n, cost] = tuple(
                tuple([cost if i == j else 0 for j in range(n)]) for i in range(n)
            )
        work.add(u, v, known[n, cost])
    return work


def coupled(network: Network, limits: Limits, start: Array | None) -> CostAnswer:
    """Solve a network with rows and without ties.

    Parameters
    ----------
    start
        An allowed labelling to begin with.
    """
    closed = shut(network)
    begin = None if start is None else closed.cut(start)
    solver = _Solver(closed.network, limits, begin)
    try:
        bound = solver.run()
    except Infeasible:
        if start is not None:
            raise InternalError("an allowed labelling contradicts infeasibility") from None
        return CostAnswer(infeasible=True)
    except TimeoutError:
        stopped = limits.stopped or Stopped.TIME_LIMIT
        return CostAnswer(stopped=stopped, labelling=start)
    best, cost = solver.best, solver.worth
    labels = None if best is None else closed.restore(np.array(best, np.int64))
    if cost is not None and cost < bound:
        raise InternalError(f"a labelling costs {cost}, less than the bound {bound}")
    stopped = Stopped.FINISHED
    if cost != bound:
        timed = limits.deadline < inf
        stopped = limits.stopped or (Stopped.TIME_LIMIT if timed else Stopped.SIZE_LIMIT)
    proof = None
    if solver.log is not None and not any(domain.open for domain in network.domains):
        proof = Proof(solver.log, np.arange(len(network)))
    return CostAnswer(objective=cost, bound=bound, labelling=labels, stopped=stopped, proof=proof)


class _Solver:
    """The state of one call.

    Attributes
    ----------
    best, worth
        The best allowed labelling, and its cost.
    log
        The steps of the proof, up to the last prices; ``None`` while there are none.
    ascended
        Whether rows were priced by dual ascent.
    """

    def __init__(self, network: Network, limits: Limits, start: Array | None) -> None:
        self.network, self.limits = network, limits
        self.best: list[int] | None = None
        self.worth: int | None = None
        self.log: list[Step] | None = None
        self.ascended = False
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

    def run(self) -> int:
        """Solve the network; return a bound.

        Raises
        ------
        Infeasible
            If no labelling is allowed.
        """
        work, rows = work_of(self.network, self.limits), RowSet.of(self.network)
        work.log = []
        settle(work, rows, self.limits)
        lost = self._free_parts(work, rows)
        self.reduced = work.copy(), RowSet(rows.groups)
        least = work.bound()
        if not rows.groups:
            labels = [0] * len(work.costs)
            work.restore(labels)
            self.take(labels)
            self.log = work.log
            return least - lost
        try:
            return max(least, self._search(work, rows)) - lost
        except Infeasible:
            if self.worth is None:
                raise
            return self.worth - lost

    def _free_parts(self, work: Work, rows: RowSet) -> int:
        """Solve the parts that no row counts; return how far they may be from optimal."""
        held, lost = rows.nodes, 0
        for part, nodes in split(work):
            if not held.isdisjoint(nodes):
                continue
            work.log = None
            found = solve_parts(part, self.limits, None)
            labels = found.labels
            if labels is None:  # it stays, and is searched with the rest
                continue
            for u, label in zip(nodes, labels, strict=True):
                for i in work.labels(u):
                    if i != label:
                        work.forbid(u, i)
            at = work.constant
            apply(work, Limits(), nodes)
            lost += work.constant - at - found.bound
        return lost

    def _search(self, work: Work, rows: RowSet) -> int:
        """Return a bound on what is left; the best labelling is kept besides."""
        small = sum(len(work.labels(u)) for u in work.left()) <= SMALL
        if small and _Branching(self, work, rows, BRANCHES).run():
            return self._proved()
        bound = work.bound()
        for turn in range(ROUNDS):
            if self.limits.over:
                return self._least(bound)
            before = sum(map(len, map(work.labels, work.left())))
            left = self.limits.left
            found = self._price(work, rows)
            if found is None:
                break
            bound = max(bound, found)
            if self._close(bound):
                return self._least(bound)
            if cells(work) > SEARCHED:
                self._rebuild(self.limits.within(SHARE * self.limits.left))
            settle(work, rows, self.limits)
            if not rows.groups:
                return self._finish(work, bound)
            after = sum(map(len, map(work.labels, work.left())))
            slow = self.limits.left < left - self.limits.left  # no time for as much again
            if slow or (after > 0.8 * before and (turn or not self.ascended)):
                break
        if self.limits.over:
            return self._least(bound)
        return self._least(self._decide(work, rows, max(bound, work.bound())))

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

    def _price(self, work: Work, rows: RowSet) -> int | None:
        """Price rows by the relaxation, forbid what is too dear, and look for a labelling.

        Returns
        -------
        int or None
            A bound; ``None`` where the relaxation was not solved.
        """
        self.limits.report("relaxation of rows", self.worth)
        if work.size() >= LARGEST:
            return None
        single = rows.one_sided(work)
        linear = cells(work) <= (SEARCHED if self.ascended else CELLS)
        found = (self._relaxed if linear else self._ascend)(work, single)
        if found is None:
            return None
        scale = 1 << min(64, 16 + sum(single.room).bit_length())  # rounding loses next to nothing
        # What tables hand to their second nodes; what is left to the first ones follows.
        edges = zip(work.edges(), found.messages, strict=True)
        messages: list[Message] = [
            ([0.0] * len(work.labels(u)), two) for (u, _, _), (_, two) in edges
        ]
        prices = [max(0, round(price * scale)) for price in found.prices]
        late = time.process_time() + LATE

        def stop() -> bool:
            return self.limits.over and time.process_time() > late

        try:
            labels = [work.labels(u) for u in work.left()]
            tight = tighten(work, scale, messages, labels, stop)
        except TimeoutError:
            return None
        charge(tight, single, prices)
        bound = -(-tight.constant // scale)
        shares: list[dict[int, float]] = [{} for _ in work.costs]
        for u, share in zip(work.left(), found.point, strict=True):
            shares[u] = dict(zip(work.labels(u), share, strict=True))
        if linear:  # the ascent tries labellings itself
            dive(self, work, rows, shares)
        useful = self.worth is not None and bound < self.worth and not self.limits.over
        worth = self.worth if useful else None
        if work.log is not None:
            step = priced(work, scale, messages, single, prices, worth)
            self.log = [*work.log, ("price", step)]
            work.note("price", step)
        if worth is not None:
            forbid(tight, (worth - 1) * scale)
            forbid_too(work, tight)
        return bound

    def _relaxed(self, work: Work, single: PricedRows) -> Relaxed | None:
        """Solve the linear relaxation, each row divided by its limit."""
        written = write(work)
        scaled = [
            ({k: x / max(room, 1) for k, x in own.items()}, min(room, 1.0))
            for room, own in zip(single.room, by_columns(written, single), strict=True)
        ]
        found = relax(written.given, self.limits.within(SHARE * self.limits.left), scaled)
        if found is None:
            return None
        prices = zip(found.prices, single.room, strict=True)
        return replace(found, prices=[price / max(room, 1) for price, room in prices])

    def _ascend(self, work: Work, single: PricedRows) -> Relaxed | None:
        """Approach the relaxation by dual ascent."""
        self.ascended = True
        ascent = RowAscent(work, single)

        def offer(labels: list[int]) -> float:
            work.restore(labels)
            self.take(labels)
            return inf if self.worth is None else float(self.worth - work.constant)

        known = inf if self.worth is None else float(self.worth - work.constant)
        ascent.run(self.limits.within(SHARE * self.limits.left), offer, known)
        messages: list[Message] = [([], two) for two in ascent.messages()]
        return Relaxed(ascent.means, messages, ascent.prices.tolist())

    def _decide(self, work: Work, rows: RowSet, bound: int) -> int:
        """Search what is left by CP-SAT and HiGHS, else by branching; return the better bound."""
        self.limits.report("search", self.worth, bound)
        if cells(work) > SEARCHED:
            self._rebuild(self.limits)
            return bound
        written = write(work) if work.size() < LARGEST else None
        given = None if written is None else with_rows(written, rows.one_sided(work))
        if written is not None and given is not None:
            return self._search_programme(work, rows, written, *coarse(given), bound)
        if _Branching(self, work, rows, None).run():
            return self._proved()
        return bound

    def _search_programme(
        self,
        work: Work,
        rows: RowSet,
        written: WrittenWork,
        given: Programme,
        unit: int,
        bound: int,
    ) -> int:
        """Search in turns of doubling effort; return the better bound.

        HiGHS takes turns with CP-SAT, or with branching where that is not installed.
        """
        effort, branches = TURN, BRANCHES
        exact = find_spec("ortools") is not None
        while not self._close(bound):
            if exact:
                hint = None
                if self.best is not None and work.value(self.best) < inf:
                    hint = written.point(self.best)
                found = cpsat.solve(given, self.limits.turn(effort), hint)
                if found.infeasible:
                    return self._proved()
                bound = self._take_point(work, written, found, unit, bound)
            elif _Branching(self, work, rows, branches).run():
                return self._proved()
            if not self._close(bound):
                half = self.limits.within(self.limits.left / 2)  # its first node may take long
                found = highs.solve(given, half.turn(effort), presolve=True)
                if found.infeasible:
                    return self._proved()
                bound = self._take_point(work, written, found, unit, bound)
            effort, branches = 2 * effort, 2 * branches + 1
        return bound

    def _take_point(
        self, work: Work, written: WrittenWork, found: ProgrammeResult, unit: int, bound: int
    ) -> int:
        """Keep the labelling of a programme's point; return the better of two bounds."""
        labels = written.chosen(found.values)
        if labels is not None:
            whole = [*labels, *([0] * (len(work.costs) - len(labels)))]
            work.restore(whole)
            self.take(whole)
        if found.bound is not None:
            bound = max(bound, work.constant - found.bound * unit)
        self.limits.report("search", self.worth, bound)
        return bound

    def _close(self, bound: int) -> bool:
        """Return whether the best labelling is good enough, or limits have been reached."""
        if self.limits.over:
            return True
        if self.worth is None:
            return False
        gap = self.limits.gap
        return bound >= self.worth or (gap > 0 and relative(self.worth - bound, self.worth) <= gap)

    def _rebuild(self, limits: Limits) -> None:
        """Solve small parts exactly, all other nodes keeping their labels, as long as time lasts.

        Parts are what is around a node, or around several that a row counts.
        """
        if self.best is None:
            return
        work, rows = self.reduced
        nodes, labels = work.left(), list(self.best)
        held, every = [group.nodes for group in rows.groups], rows.nodes
        draw, stale, taken = Random(self.limits.seed), 0, time.monotonic()
        better = False
        while not limits.over and stale < STALE + 2 * len(nodes):
            stale += 1
            seeds = [draw.choice(draw.choice(held)) if draw.random() < 0.7 else draw.choice(nodes)]
            if seeds[0] in every and draw.random() < 0.5:
                seeds.append(draw.choice(draw.choice(held)))
            around = _around(work, seeds, PART * draw.choice((1, 2, 4)), draw)
            part = _Part(work, rows.part(labels, around), labels, around, limits.silent())
            if part.improve():
                stale, better = 0, True
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
    """A few nodes of a problem, all others keeping their labels.

    Parameters
    ----------
    work
        The problem.
    rows
        The rows of these nodes.
    labels
        A labelling of the problem.
    nodes
        The nodes.
    limits
        When to stop.
    """

    def __init__(
        self,
        work: Work,
        rows: RowSet,
        labels: Sequence[int],
        nodes: Sequence[int],
        limits: Limits,
    ) -> None:
        place = {u: k for k, u in enumerate(nodes)}
        self.given, self.rows = Work([list(work.costs[u]) for u in nodes]), rows
        self.log, self.ascended, self.limits = None, False, limits
        for k, u in enumerate(nodes):
            own = self.given.costs[k]
            for v, table in work.near[u].items():
                if v in place:
                    self.given.near[k][place[v]] = table
                else:
                    own = [x + row[labels[v]] for x, row in zip(own, table, strict=True)]
            self.given.costs[k] = own
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
        work, rows = self.given.copy(), RowSet(self.rows.groups)
        try:
            settle(work, rows, self.limits)
            if rows.groups:
                self._search(work, rows)
            else:
                self._finish(work, work.bound())
        except Infeasible:
            pass
        return self.worth != before

    def _rebuild(self, limits: Limits) -> None:
        """Leave a part whole."""

    def _decide(self, work: Work, rows: RowSet, bound: int) -> int:
        """Search for one turn."""
        written = write(work) if work.size() < LARGEST else None
        given = None if written is None else with_rows(written, rows.one_sided(work))
        if written is None or given is None or find_spec("ortools") is None:
            _Branching(self, work, rows, BRANCHES).run()
            return bound
        small, unit = coarse(given)
        found = cpsat.solve(small, self.limits.turn(TURN), None)
        return bound if found.infeasible else self._take_point(work, written, found, unit, bound)


def _around(work: Work, seeds: list[int], size: int, draw: Random) -> list[int]:
    """Return nodes around some, at random, of about so many labels together."""
    found = dict.fromkeys(seeds)
    fringe = [v for u in found for v in work.near[u]]
    left = size
    while fringe and left > 0:
        k = draw.randrange(len(fringe))
        fringe[k], fringe[-1] = fringe[-1], fringe[k]
        v = fringe.pop()
        if v not in found:
            found[v] = None
            left -= len(work.labels(v))
            fringe += work.near[v]
    return sorted(found)


def cells(work: Work) -> int:
    """Return the number of pairs of labels that tables are left for."""
    labels = {u: len(work.labels(u)) for u in work.left()}
    return sum(labels[u] * labels[v] for u in labels for v in work.near[u] if u < v)


def charge(tight: Work, rows: PricedRows, prices: Sequence[int]) -> None:
    """Add a price for what each row uses above its limit to a problem's costs.

    No labelling that keeps the rows becomes dearer.
    """
    sums = [0, *accumulate(prices)]
    tight.constant -= sum(price * room for price, room in zip(prices, rows.room, strict=True))
    for u, amounts, a, b in zip(rows.nodes, rows.amounts, rows.begin, rows.end, strict=True):
        price = sums[b] - sums[a]
        if price:
            own = zip(tight.costs[u], amounts, strict=True)
            tight.costs[u] = [cost + price * x for cost, x in own]
    level(tight)


def priced(
    work: Work,
    scale: int,
    messages: Sequence[tuple[list[float], list[float]]],
    rows: PricedRows,
    prices: Sequence[int],
    worth: int | None,
) -> PriceStep:
    """Return prices and messages, in parts of a unit, as a step of a proof."""
    sent = {}
    for (u, v, table), (_, two) in zip(work.edges(), messages, strict=True):
        own = [0] * len(table[0])
        for i, amount in zip(work.labels(v), two, strict=True):
            own[i] = round(amount * scale)
        sent[u, v] = own
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
            work.put(u, v, tuple(tuple(map(_forbidden_too, *pair)) for pair in rows))


def _forbidden_too(cost: Cost, other: Cost) -> Cost:
    return inf if other == inf else cost


def settle(work: Work, rows: RowSet, limits: Limits) -> None:
    """Narrow and reduce until neither finds anything; rows that hold anyway go.

    Raises
    ------
    Infeasible
        If no labelling is allowed.
    """
    rows.narrow(work)
    rows.simplify(work)
    work.note("narrow")
    while True:
        work.held = rows.nodes
        reduce(work, limits)
        rows.narrow(work)
        rows.simplify(work)
        work.note("narrow")
        if limits.over or (not work.shrunk and rows.nodes == work.held):
            break
    work.held = rows.nodes
    level(work)


def dive(solver: _Solver, work: Work, rows: RowSet, shares: Sequence[dict[int, float]]) -> None:
    """Round a relaxed solution: take labels of large shares first, narrowing in between."""
    trial = work.copy()
    trial.order = []
    order = sorted(trial.left(), key=lambda u: -max(shares[u].values(), default=0.0))
    try:
        for u in order:
            if trial.gone[u] or solver.limits.over:
                continue
            own = trial.labels(u)
            best = max(own, key=lambda i: (shares[u].get(i, 0.0), -trial.costs[u][i]))
            for i in own:
                if i != best:
                    trial.forbid(u, i)
            if shares[u].get(best, 0.0) < PRICED:
                apply(trial, Limits(), [u, *rows.narrow(trial)])
        rows.narrow(trial)
        apply(trial, Limits(), trial.left())
    except Infeasible:
        return
    if solver.limits.over:
        return
    labels = [0] * len(work.costs)
    trial.restore(labels)
    work.restore(labels)
    solver.take(labels)


def by_columns(written: WrittenWork, rows: PricedRows) -> list[dict[int, int]]:
    """Return what each row's variables use, those that use nothing left out."""
    place = {u: k for k, u in enumerate(written.nodes)}
    found: list[dict[int, int]] = [{} for _ in rows.room]
    for u, amounts, a, b in zip(rows.nodes, rows.amounts, rows.begin, rows.end, strict=True):
        first = written.given.first[place[u]]
        own = [(j, amounts[i]) for j, i in enumerate(written.labels[place[u]], first) if amounts[i]]
        for sums in found[a:b]:
            for j, amount in own:
                sums[j] = sums.get(j, 0) + amount
    return found


def with_rows(written: WrittenWork, rows: PricedRows) -> Programme | None:
    """Return a programme with rows; ``None`` where numbers are too large for CP-SAT."""
    sums = by_columns(written, rows)
    units = [math.gcd(*own.values()) or 1 for own in sums]
    more = [
        ({k: x // unit for k, x in own.items()}, room // unit)
        for room, own, unit in zip(rows.room, sums, units, strict=True)
    ]
    if max([max([high, *own.values()]) for own, high in more], default=0) >= OPEN:
        return None
    whole = written.given.programme.with_rows(more)
    return whole if coarse(whole)[0].fits() else None


class _Branching:
    """Depth-first search that keeps to exact integers of any size.

    Parameters
    ----------
    most
        Most branches; ``None`` for as many as it takes.
    """

    def __init__(self, solver: _Solver, work: Work, rows: RowSet, most: int | None) -> None:
        self.solver, self.rows, self.left = solver, rows, inf if most is None else most
        self.root = work

    def run(self) -> bool:
        """Search; return whether everything was looked at."""
        open_ = [self.root.copy()]
        while open_:
            if self.left <= 0 or self.solver.limits.over:
                return False
            self.left -= 1
            open_ += self._branch(open_.pop())
        return True

    def _branch(self, work: Work) -> list[Work]:
        """Return the branches at a node that may hold better labellings, the best one last."""
        rows = RowSet(self.rows.groups)
        worth = self.solver.worth
        try:
            settle(work, rows, self.solver.limits)
        except Infeasible:
            return []
        if worth is not None and work.bound() >= worth:
            return []
        left = work.left()
        if not left:
            labels = [0] * len(work.costs)
            work.restore(labels)
            self.solver.take(labels)
            return []
        u = max(left, key=lambda u: (len(work.near[u]), -len(work.labels(u))))
        found = []
        for i in sorted(work.labels(u), key=lambda i: -work.costs[u][i]):
            branch = work.copy()
            for j in work.labels(u):
                if j != i:
                    branch.forbid(u, j)
            found.append(branch)
        return found
