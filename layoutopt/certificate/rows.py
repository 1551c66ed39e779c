"""Rows of pairwise problems: limits on sums of amounts that labels use.

Rows that follow one another often count nearly the same nodes, as what is live at one time mostly
is at the next.  A group states them by items: a node, its amounts, and the rows that count it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from layoutopt.certificate.refused import Refused

Array: TypeAlias = NDArray[Any]
Limit: TypeAlias = int | None

SMALL = 2**60
"""Upper limit of 64-bit numbers; sums of a few are exact."""


class RowLimits(NamedTuple):
    """Limits ``low <= sum of terms[i][x_i] <= high``; ``None`` for no limit."""

    terms: dict[int, Array]
    low: Limit
    high: Limit


class RowGroup(NamedTuple):
    """Rows that count items, each of them in rows that follow one another."""

    items: list[tuple[int, Array]]  # nodes, and what their labels use
    begin: Array  # item `p` is in rows `begin[p] .. end[p] - 1`
    end: Array
    limits: list[tuple[Limit, Limit]]  # for each row the least and the most; `None` for no limit

    @classmethod
    def of(cls, rows: Sequence[RowLimits]) -> RowGroup:
        """Return rows as a group in which each row has items of its own."""
        items = [item for row in rows for item in row.terms.items()]
        begin = np.repeat(np.arange(len(rows)), [len(row.terms) for row in rows])
        return cls(items, begin, begin + 1, [(row.low, row.high) for row in rows])

    def sums(self, used: Array) -> Array:
        """Return for each row the sum of what its items use."""
        change = np.zeros(len(self.limits) + 1, used.dtype)
        np.add.at(change, self.begin, used)
        np.subtract.at(change, self.end, used)
        return np.asarray(np.cumsum(change)[:-1])


class GroupedRows(Sequence[RowLimits]):
    """The rows of several groups, one after the other; each is computed on demand."""

    def __init__(self, groups: Sequence[RowGroup]) -> None:
        self.groups = [*groups]
        self._first = [0, *accumulate(len(group.limits) for group in groups)]

    def __len__(self) -> int:
        return self._first[-1]

    @overload
    def __getitem__(self, k: int) -> RowLimits: ...
    @overload
    def __getitem__(self, k: slice) -> list[RowLimits]: ...
    def __getitem__(self, k: int | slice) -> RowLimits | list[RowLimits]:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        if not 0 <= k < len(self):
            raise IndexError(k)
        place = bisect_right(self._first, k) - 1
        group, row = self.groups[place], k - self._first[place]
        terms: dict[int, Array] = {}
        for p in np.flatnonzero((group.begin <= row) & (row < group.end)).tolist():
            u, own = group.items[p]
            terms[u] = terms[u] + own if u in terms else own
        return RowLimits(terms, *group.limits[row])


def row_groups(rows: Sequence[RowLimits]) -> list[RowGroup]:
    """Return rows as groups, numbered one after the other."""
    return rows.groups if isinstance(rows, GroupedRows) else [RowGroup.of(rows)]


class ActiveRows:
    """A group's rows that may be violated, while labels are forbidden.

    ``first_label`` is for each node the position of its first label among those of all nodes,
    ``first`` the number of the first row in the problem.
    """

    def __init__(self, group: RowGroup, first_label: Array, first: int) -> None:
        self.group, self.first, self.count = group, first, len(group.limits)
        self.active = np.ones(len(group.limits), bool)
        self.nodes = np.array([u for u, _ in group.items], np.int64)
        sizes = np.array([len(own) for _, own in group.items], np.int64)
        self._first = np.cumsum(sizes) - sizes
        begins = first_label[self.nodes] - self._first
        self._sizes, self._at = sizes, np.repeat(begins, sizes) + np.arange(sizes.sum())
        amounts = np.concatenate([np.zeros(0, object), *(own for _, own in group.items)])
        # No sum reaches the number for no limit, so that limits beyond may be moved there.
        most = sum(max(map(abs, own.tolist()), default=0) for _, own in group.items)
        self._none = none = 2 * most + 1
        kind: Any = np.int64 if 4 * none < SMALL else object
        self._amounts = amounts.astype(kind)
        low = [-none if x is None else max(-none, min(x, none)) for x, _ in group.limits]
        high = [none if x is None else max(-none, min(x, none)) for _, x in group.limits]
        self._low, self._high = np.array(low, kind), np.array(high, kind)

    def _ranges(self, good: Array) -> tuple[Array, Array]:
        """Return the least and the largest amount of each item."""
        if not len(self._at):
            return self._amounts, self._amounts
        allowed = good[self._at]
        least = np.where(allowed, self._amounts, self._none)
        most = np.where(allowed, self._amounts, -self._none)
        return np.minimum.reduceat(least, self._first), np.maximum.reduceat(most, self._first)

    def _least(self, room: Array) -> Array:
        """Return for each item the least number of its rows that may be violated.

        Of rows in windows of length 1, 2, 4, ... two windows cover each item's rows.
        """
        window = np.where(self.active, room, 2 * self._none)
        found = window[self.group.begin]
        levels = np.frexp(self.group.end - self.group.begin)[1] - 1
        for level in range(1, int(levels.max(initial=0)) + 1):
            half = 1 << (level - 1)
            window = np.minimum(window[:-half], window[half:])
            own = np.flatnonzero(levels == level)
            last = self.group.end[own] - 2 * half
            found[own] = np.minimum(window[self.group.begin[own]], window[last])
        return found

    def too_much(self, good: Array) -> Array:
        """Return the positions of allowed labels that violate a row whatever others choose."""
        least, most = self._ranges(good)
        rise = least + self._least(self._high - self.group.sums(least))
        fall = most - self._least(self.group.sums(most) - self._low)
        above = self._amounts > np.repeat(rise, self._sizes)
        bad = above | (self._amounts < np.repeat(fall, self._sizes))
        return np.asarray(self._at[bad & good[self._at]])

    @property
    def entries(self) -> int:
        """Number of items of all rows that may be violated together."""
        before = np.append(0, np.cumsum(self.active))
        return int((before[self.group.end] - before[self.group.begin]).sum())

    def drop(self, good: Array) -> bool:
        """Drop rows that are always satisfied; return whether one is never."""
        least, most = self._ranges(good)
        down, up = self.group.sums(least), self.group.sums(most)
        self.active &= (down < self._low) | (up > self._high)
        return bool((self.active & (down == up)).any())

    def held(self, good: Array) -> list[int]:
        """Return nodes whose labels have different amounts in rows that may be violated."""
        least, most = self._ranges(good)
        before = np.append(0, np.cumsum(self.active))
        inside = before[self.group.end] > before[self.group.begin]
        found: list[int] = self.nodes[inside & (least != most)].tolist()
        return found

    def charge(self, prices: Sequence[tuple[int, int]]) -> tuple[int, list[tuple[int, Array]]]:
        """Return the sum of ``price * limit``, and for items ``price * amounts`` in all rows.

        Prices are above 0 for upper limits and below for lower ones.
        """
        each, paid = [0] * len(self.active), 0
        for row, price in prices:
            limit = self.group.limits[row][price > 0]
            if limit is None or not self.active[row]:
                k = self.first + row
                raise Refused(f"row {k} has a price, but no such limit, or cannot be violated")
            each[row] += price
            paid += price * limit
        sums = [0, *accumulate(each)]
        spans = zip(self.group.begin.tolist(), self.group.end.tolist(), strict=True)
        total = [sums[end] - sums[begin] for begin, end in spans]
        items = zip(self.group.items, total, strict=True)
        return paid, [(u, own.astype(object) * price) for (u, own), price in items if price]
