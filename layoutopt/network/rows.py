"""Rows of cost networks, sums of amounts within limits, beside a network that is reduced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import ranges
from layoutopt.network.ascent import PricedRows
from layoutopt.network.costs.reductions import apply, reduce
from layoutopt.network.costs.work import Infeasible, Work, level
from layoutopt.network.network import Array, Network, Usage, span_sums
from layoutopt.network.solvers.pairwise import WrittenWork
from layoutopt.network.solvers.programme import OPEN, Programme, coarse


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows over items, each of which stands in rows that follow each other."""

    nodes: Array  # node of each item
    amounts: Array  # what the labels of its node use, of one item after the other
    sizes: Array  # how many labels that are
    begin: Array  # item `k` is in rows `begin[k] .. end[k] - 1`, one at least
    end: Array
    low: Array  # lower limit of each row; where there is none, one that nothing reaches
    high: Array  # upper limit
    number: Array  # number of each row in the network

    @cached_property
    def starts(self) -> Array:
        """Where the amounts of each item begin."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def _labels(self) -> tuple[list[int], Array]:
        """The nodes of items, and the place of each amount's label among all labels of these."""
        nodes, which = np.unique(self.nodes, return_inverse=True)
        sizes = np.zeros(len(nodes), np.int64)
        sizes[which] = self.sizes
        return nodes.tolist(), ranges((np.cumsum(sizes) - sizes)[which], self.sizes)

    def ranges(self, work: Work) -> tuple[Array, Array]:
        """Return the least and the most that each item may use."""
        nodes, place = self._labels
        left = np.array([cost < inf for u in nodes for cost in work.costs[u]], bool)[place]
        least = np.where(left, self.amounts, self.amounts.max(initial=0))
        most = np.where(left, self.amounts, self.amounts.min(initial=0))
        return np.minimum.reduceat(least, self.starts), np.maximum.reduceat(most, self.starts)

    def used(self, labels: Array) -> Array:
        """Return what each item uses in a labelling."""
        return np.asarray(self.amounts[self.starts + labels[self.nodes]])

    def part(self, kept: Array | bool, rows: Array, paid: Array | int) -> _Rows:
        """Return some items, if in any of some rows, in which others use so much."""
        begin, end = (np.searchsorted(rows, at) for at in (self.begin, self.end))
        items = np.flatnonzero(kept & (begin < end))
        sizes = self.sizes[items]
        return _Rows(
            self.nodes[items],
            self.amounts[ranges(self.starts[items], sizes)],
            sizes,
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
    """All rows of a network beside a :class:`Work` of the same nodes and labels."""

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows

    @classmethod
    def of(cls, network: Network) -> RowSet:
        """Return the rows of a network of closed domains, one usage after the other."""
        ends = accumulate([usage.rows for usage in network.usages], initial=0)
        pairs = zip(network.usages, ends, strict=False)
        each = zip(*[_arrays(usage, network.sizes, first) for usage, first in pairs], strict=True)
        return cls(_Rows(*map(np.concatenate, each)))

    def copy(self) -> RowSet:
        """Return the same rows, to be narrowed and simplified by themselves."""
        return RowSet(self.rows)

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.rows.low)

    def groups(self, ends: Array) -> list[list[int]]:
        """Return the nodes of each usage; ``ends`` are where the rows of each one end."""
        of = np.searchsorted(ends, self.rows.number[self.rows.begin], side="right")
        return [self.rows.nodes[of == k].tolist() for k in np.unique(of)]

    @property
    def nodes(self) -> set[int]:
        """Nodes that rows count."""
        return set(self.rows.nodes.tolist())

    def narrow(self, work: Work) -> list[int]:
        """Forbid labels that cannot hold together with any others; return their nodes.

        Raises ``Infeasible`` if a row cannot hold.
        """
        rows, touched = self.rows, dict[int, None]()
        while True:
            least, most = rows.ranges(work)
            down, up = rows.sums(least), rows.sums(most)
            if (down > rows.high).any() or (up < rows.low).any():
                raise Infeasible
            top = least + rows.least_of(rows.high - down)
            bottom = most - rows.least_of(up - rows.low)
            again = False
            for k in np.flatnonzero((most > top) | (least < bottom)).tolist():
                u, own = int(rows.nodes[k]), rows.amounts[rows.starts[k] :][: rows.sizes[k]]
                for i in np.flatnonzero((own < bottom[k]) | (own > top[k])).tolist():
                    if work.costs[u][i] < inf:
                        work.forbid(u, i)
                        touched[u], again = None, True
            if not again:
                return list(touched)

    def simplify(self, work: Work) -> None:
        """Drop rows that hold anyway, and items that use the same whatever they choose."""
        own = self.rows
        least, most = own.ranges(work)
        down, up = own.sums(least), own.sums(most)
        rows = np.flatnonzero((up > own.high) | (down < own.low))
        fixed = least == most
        self.rows = own.part(~fixed, rows, own.sums(np.where(fixed, least, 0)))

    def part(self, labels: Sequence[int], nodes: Sequence[int]) -> RowSet:
        """Return the rows of a few nodes, ascending and numbered anew; all others keep labels."""
        own = self.rows
        inside = np.isin(own.nodes, nodes)
        paid = own.sums(np.where(inside, 0, own.used(np.array(labels, np.int64))))
        rows = np.flatnonzero(own.sums(inside.astype(own.low.dtype)) > 0)
        kept = own.part(inside, rows, paid)
        return RowSet(replace(kept, nodes=np.searchsorted(nodes, kept.nodes)))

    def hold(self, labels: Sequence[int]) -> bool:
        """Return whether a labelling keeps all rows."""
        sums = self.rows.sums(self.rows.used(np.array(labels, np.int64)))
        return not ((sums < self.rows.low) | (sums > self.rows.high)).any()

    def one_sided(self, work: Work) -> PricedRows:
        """Return the rows as ``sum of amounts <= room``, all amounts 0 or more."""
        own = self.rows
        least, most = own.ranges(work)
        down, up = own.sums(least), own.sums(most)
        sides = []
        for side, room, zero in (1, own.high - down, least), (-1, up - own.low, most):
            amounts = side * (own.amounts - np.repeat(zero, own.sizes))
            rows = np.flatnonzero(up - down > room)
            sides.append(replace(own, amounts=amounts, high=room).part(True, rows, 0))
        one, two = sides
        upper, lower = one.number.tolist(), two.number.tolist()
        return PricedRows(
            nodes=np.concatenate([one.nodes, two.nodes]),
            amounts=np.concatenate([one.amounts, two.amounts]),
            sizes=np.concatenate([one.sizes, two.sizes]),
            begin=np.concatenate([one.begin, two.begin + len(upper)]),
            end=np.concatenate([one.end, two.end + len(upper)]),
            room=[*one.high.tolist(), *two.high.tolist()],
            source=[*((k, 1) for k in upper), *((k, -1) for k in lower)],
        )


def _arrays(usage: Usage, sizes: Array, first: int) -> tuple[Array, ...]:
    """Return the rows of a usage, which follow ``first`` others, as :class:`_Rows` has them."""
    own = sizes[usage.nodes]
    starts = np.cumsum(own) - own
    amounts = np.zeros(own.sum(), usage.amounts.dtype)
    amounts[starts[usage.at[:, 0]] + usage.at[:, 1]] = usage.amounts
    free = 2 * int(np.maximum.reduceat(np.abs(amounts), starts).sum()) + 1
    low = [-free if x is None else max(-free, min(x, free)) for x in usage.low]
    high = [free if x is None else max(-free, min(x, free)) for x in usage.high]
    # Sums of sums stay within four times the largest.
    kind: Any = np.int64 if 8 * free * max(1, len(usage.nodes)) < 2**62 else object
    item, begin, end = usage.spans.T
    return (
        usage.nodes[item],
        amounts[ranges(starts[item], own[item])].astype(kind),
        own[item],
        first + begin,
        first + end,
        np.array(low, kind),
        np.array(high, kind),
        first + np.arange(len(high)),
    )


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
    for u, amounts, a, b in rows.items():
        price = sums[b] - sums[a]
        if price:
            own = zip(tight.costs[u], amounts, strict=True)
            tight.costs[u] = [cost + price * x for cost, x in own]
    level(tight)


def by_columns(written: WrittenWork, rows: PricedRows) -> list[dict[int, int]]:
    """Return what each row's variables use, those that use nothing left out."""
    place = {u: k for k, u in enumerate(written.nodes)}
    found: list[dict[int, int]] = [{} for _ in rows.room]
    for u, amounts, a, b in rows.items():
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
