"""Answers to labelling problems with capacity."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np

from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.numbers import unique
from layoutopt.base.result import Answer
from layoutopt.network.capacity.fill import Filling, placed
from layoutopt.network.capacity.pool import Pool, Priced, worth
from layoutopt.network.capacity.problem import Columns, joined, starts_of
from layoutopt.network.problem import IntArray


def placement(pool: Pool, filling: Filling) -> CountedLabels:
    """Share configurations of kinds out among the classes.

    All copies of all components of a kind stand in one row, and so do its configurations;
    where either changes, an interval begins.  Then the components of each class stand side by
    side, cut wherever one of them changes.
    """
    columns, parts = filling.columns, pool.parts
    order = np.argsort(columns.kind, kind="stable")
    member = np.argsort(pool.kind_of, kind="stable")
    ends = np.cumsum(filling.counts[order])  # configurations in the row of all kinds
    part_ends = np.cumsum(pool.part_copies[member])  # components in the same row
    begin = np.zeros(len(member), np.int64)
    begin[member] = part_ends - pool.part_copies[member]
    part_class = pool.problem.class_of[parts.nodes[parts.starts[:-1]]]
    copies = pool.problem.copies
    offset = np.cumsum(copies) - copies  # classes in a row of their own
    used = np.bincount(part_class, minlength=len(copies)) > 0
    # Where a configuration ends within a component, its class is cut.
    inside = np.searchsorted(part_ends, ends, side="left")
    cut_part = member[inside]
    cuts = offset[part_class[cut_part]] + (ends - begin[cut_part])
    edges = unique(np.concatenate([cuts, (offset + copies)[used & (copies > 0)]]))
    of = np.searchsorted(offset + copies, edges, side="left")
    starts_at = np.maximum(np.concatenate([[0], edges[:-1]])[: len(edges)], offset[of])
    counts = edges - starts_at
    # Every interval holds all nodes of its class; each looks its own configuration up.
    by_class = np.argsort(pool.problem.class_of, kind="stable")
    node_starts = np.searchsorted(pool.problem.class_of[by_class], np.arange(len(copies) + 1))
    size = np.diff(node_starts)[of]
    starts = starts_of(size)
    row = np.repeat(np.arange(len(edges)), size)
    nodes = by_class[node_starts[of[row]] + np.arange(len(row)) - starts[row]]
    part = parts.of[nodes]
    position = begin[part] + starts_at[row] - offset[of[row]]
    config = order[np.searchsorted(ends, position, side="right")]
    labels = columns.labels[columns.starts[config] + parts.place[nodes]]
    return CountedLabels(of, counts, starts, nodes, labels)


class Reason(StrEnum):
    """Why nothing fits."""

    BYTES = "bytes"
    """All tiles together hold too little."""
    PACKING = "packing"
    """No way to share the nodes out fits, as a complete search has shown."""


@dataclass(frozen=True, eq=False)
class CountedLabels:
    """Numbers of copies of each class by label."""

    classes: IntArray  # shape (m,): the class of each configuration, ascending
    counts: IntArray  # shape (m,): how many copies take it, 1 or more
    starts: IntArray  # shape (m + 1,): where each configuration begins in `nodes` and `labels`
    nodes: IntArray  # shape (starts[m],): nodes of the class, ascending
    labels: IntArray  # shape (starts[m],): the tile of each

    def of(self, number: int) -> Iterator[tuple[IntArray, int]]:
        """Yield labels, in the order of the class's nodes, and count of each configuration."""
        first, last = np.searchsorted(self.classes, [number, number + 1])
        for i in range(int(first), int(last)):
            yield self.labels[self.starts[i] : self.starts[i + 1]], int(self.counts[i])


@dataclass(frozen=True, eq=False, kw_only=True)
class CapacityAnswer(Answer):
    """A placement, a bound, or a proof that nothing fits."""

    # the configurations of every class; `None` if none was found
    placement: CountedLabels | None = None
    objective: int | None = None  # their exact value over all copies
    # a proved upper bound on the value of every placement; `None` if nothing fits
    bound: int | None = None
    # the bound that the prices prove; `bound` may be lower, by rounding or search
    dual: Fraction | None = None
    # value per byte of each tile, 0 or more. For capacities `c'` in place of `c` no placement is
    # worth more than `dual + sum_t prices[t] (c'[t] - c[t])`, both rounded down to the grain
    prices: tuple[Fraction, ...] = ()
    # the greatest common divisor of all bytes, of which a tile can only hold whole numbers
    grain: int = 1
    # why nothing fits; `None` where something does, or where it is not known
    infeasible: Reason | None = None
    stopped: Stopped = Stopped.FINISHED  # why the computation ended
    seconds: dict[str, float] = field(default_factory=dict)  # wall-clock seconds by phase


class State:
    """The best placement and the best bound for one capacity so far.

    It begins with what is known of the same pool for another capacity, and ends as soon as a target
    value is proved to be out of reach.
    """

    def __init__(
        self,
        pool: Pool,
        capacity: IntArray,
        limits: Limits,
        before: State | None = None,
        target: int | None = None,
    ) -> None:
        self.pool, self.limits, self.capacity, self.target = pool, limits, capacity, target
        self.room = capacity // pool.grain
        self.columns = joined([])
        self.filling: Filling | None = None
        self.value: int | None = None
        self.priced: Priced | None = None
        self.dual: Fraction | None = None
        self.bound: int | None = None
        self.infeasible: Reason | None = None
        self.seconds: dict[str, float] = {}
        self.last: tuple[Columns, IntArray] | None = None
        if before is not None:
            self.columns = before.columns
            if before.priced is not None:
                self.take(before.priced)
            if before.filling is not None:
                self.place(before.filling.columns, before.filling.counts)

    @property
    def closed(self) -> bool:
        """Whether the placement is good enough."""
        if self.value is None or self.bound is None:
            return False
        return self.value >= self.bound or self.limits.close(self.value, self.bound)

    @property
    def done(self) -> bool:
        """Whether to stop."""
        over = self.limits.over and self.priced is not None
        missed = self.target is not None and self.bound is not None and self.bound < self.target
        return self.infeasible is not None or self.closed or over or missed

    def near(self, gap: float) -> bool:
        """Whether the relative gap is no larger than this."""
        if self.value is None or self.bound is None:
            return False
        return self.bound - self.value <= Fraction(gap) * abs(self.value)

    def price(self, prices: IntArray, scale: int) -> Priced:
        """Price all kinds; keep their best configurations, and the bound if it is the best."""
        priced = self.pool.price(prices, scale, self.limits)
        self.columns = joined([self.columns, priced.columns])
        self.take(priced)
        return priced

    def take(self, priced: Priced) -> None:
        """Note the bound that prices prove."""
        dual = priced.bound(self.room)
        if self.dual is None or dual < self.dual:
            self.dual, self.priced = dual, priced
        whole = math.floor(dual / self.pool.unit) * self.pool.unit
        self.bound = whole if self.bound is None else min(self.bound, whole)

    def place(self, columns: Columns, counts: IntArray) -> None:
        """Give slots tiles, and take the placement if it fits, is complete, and is better.

        Beyond 2**53 copies counts that were doubles may be too many or too few.
        """
        left = self.room - counts @ columns.use(self.pool.tiles)
        placed_of = np.zeros(self.pool.kinds, np.int64)
        np.add.at(placed_of, columns.kind, counts)
        if (left < 0).any() or (placed_of != self.pool.copies).any():
            return
        found = placed(columns, counts, self.room, self.pool.own)
        if found is not None:
            self.offer(found)

    def offer(self, found: Filling) -> None:
        """Take a placement if it is better."""
        values = worth(self.pool, found.columns).tolist()
        value = sum(map(operator.mul, values, found.counts.tolist()))
        if self.value is None or value > self.value:
            self.filling, self.value = found, value

    def proved(self) -> None:
        """Note that nothing is better than what is known."""
        if self.value is None:
            self.infeasible = Reason.PACKING
        else:
            self.bound = self.value

    @property
    def stopped(self) -> Stopped:
        """Why nothing more is done."""
        if self.infeasible is not None or (self.value is not None and self.value == self.bound):
            return Stopped.FINISHED
        if self.closed:
            return Stopped.GAP_LIMIT
        return self.limits.stopped or Stopped.SIZE_LIMIT

    def answer(self) -> CapacityAnswer:
        """Return what is known, in terms of the problem."""
        problem, pool = self.pool.problem, self.pool
        found: CountedLabels | None = None
        if self.filling is not None:
            found = placement(pool, self.filling)
            counts = np.repeat(found.counts, np.diff(found.starts))
            used = np.zeros(pool.tiles, np.int64)
            np.add.at(used, found.labels, counts * problem.bytes[found.nodes])
            if (used > self.capacity).any():
                raise InternalError("a tile holds more than its capacity")
        prices: tuple[Fraction, ...] = ()  # those of a proof that nothing fits mean nothing
        if self.priced is not None and self.infeasible is None:
            per_byte = self.priced.scale * pool.grain
            prices = tuple(Fraction(int(p), per_byte) for p in self.priced.prices.tolist())
        return CapacityAnswer(
            placement=found,
            objective=self.value,
            bound=None if self.infeasible else self.bound,
            dual=None if self.infeasible else self.dual,
            prices=prices,
            grain=pool.grain,
            infeasible=self.infeasible,
            stopped=self.stopped,
            seconds=self.seconds,
        )
