"""Rows of cost networks, sums of amounts within limits, beside a network that is reduced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.ascent import PricedRows
from layoutopt.network.costs.reductions import apply, reduce
from layoutopt.network.costs.work import Infeasible, Work, level
from layoutopt.network.network import Array, Network, Usage, span_sums
from layoutopt.network.solvers.pairwise import WrittenWork
from layoutopt.network.solvers.programme import OPEN, Programme, coarse


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows over the same items, which stand in rows that follow each other."""

    nodes: list[int]  # node of each item
    amounts: list[list[int]]  # what each label of its node uses
    begin: Array  # item `k` is in rows `begin[k] .. end[k] - 1`, one at least
    end: Array
    low: Array  # lower limit of each row; where there is none, one that nothing reaches
    high: Array  # upper limit
    number: Array  # number of each row in the network

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

    def part(self, items: Array, rows: Array, paid: Array) -> _Group:
        """Return some items in some rows, in which others use so much."""
        begin, end = (np.searchsorted(rows, at) for at in (self.begin, self.end))
        return _Group(
            [self.nodes[k] for k in items.tolist()],
            [self.amounts[k] for k in items.tolist()],
            begin[items],
            end[items],
            (self.low - paid)[rows],
            (self.high - paid)[rows],
            self.number[rows],
        )

    def sums(self, used: Array) -> Array:
        """Return what items use in each row."""
        return span_sums(self.begin, self.end, used, len(self.low))

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
    """All rows of a network, by usages, beside a :class:`Work` of the same nodes and labels."""

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

        Raises ``Infeasible`` if a row cannot hold.
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
            begin, end = (np.searchsorted(rows, at) for at in (group.begin, group.end))
            fixed = least == most
            items = np.flatnonzero(~fixed & (begin < end))
            kept.append(group.part(items, rows, group.sums(np.where(fixed, least, 0))))
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
            used = np.array([amounts[labels[u]] for u, amounts in pairs], group.low.dtype)
            paid = group.sums(np.where(inside, 0, used))
            rows = np.flatnonzero(group.sums(inside.astype(group.low.dtype)) > 0)
            own = group.part(items, rows, paid)
            kept.append(replace(own, nodes=[place[u] for u in own.nodes]))
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
    item, begin, end = usage.spans.T
    return _Group(
        usage.nodes[item].tolist(),
        [amounts[k] for k in item.tolist()],
        begin,
        end,
        np.array(low, kind),
        np.array(high, kind),
        first + np.arange(len(high)),
    )


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


def settle(work: Work, rows: RowSet, limits: Limits, *, near: bool = False) -> None:
    """Narrow and reduce until neither finds anything; rows that hold anyway go.

    With ``near``, reduce only where labels were lost, and look for no dominated ones.  Raises
    ``Infeasible`` if no labelling is allowed.
    """
    held = work.held
    rows.narrow(work)
    rows.simplify(work)
    work.note("narrow")
    while True:
        work.held = rows.nodes
        if near:
            apply(work, limits, sorted(work.shrunk | (held - work.held)))
        else:
            reduce(work, limits)
        held = work.held
        rows.narrow(work)
        rows.simplify(work)
        work.note("narrow")
        if limits.over or (not work.shrunk and rows.nodes == held):
            break
    work.held = rows.nodes
    level(work)


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
