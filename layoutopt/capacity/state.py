"""What is known while a problem with capacity is solved: the best placement, the best bound."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np

from layoutopt.capacity.answer import (
    CapacityAnswer,
    CountedLabels,
    Reason,
    bytes_used,
    placement,
    worth,
)
from layoutopt.capacity.fill import Filling, placed
from layoutopt.capacity.kinds import Columns, joined
from layoutopt.capacity.master import use
from layoutopt.capacity.pool import Pool, Priced
from layoutopt.errors import InternalError
from layoutopt.limits import Limits
from layoutopt.problem import IntArray
from layoutopt.result import Result, Stopped


class State:
    """The best placement and the best bound for one capacity so far.

    Parameters
    ----------
    capacity
        Bytes of each tile.
    before
        What is known of the same pool for another capacity, to begin with what it found.
    target
        Stop as soon as this value is proved to be out of reach.
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
        self.given = joined([])
        self.last: tuple[Columns, IntArray] | None = None
        if before is not None:
            self._begin_with(before)

    def _begin_with(self, before: State) -> None:
        self.columns = before.columns
        if before.priced is not None:
            self.take(before.priced)
        if before.filling is not None:
            self.place(before.filling.columns, before.filling.counts)

    def begin(self, free: Result) -> None:
        """Take in what is known without capacities."""
        if free.bound is not None:
            self.bound = int(free.bound)
        if free.labelling is not None:
            self.given = self.pool.patterned(free.labelling)
            self.columns = joined([self.columns, self.given])

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
        left = self.room - counts @ use(columns, self.pool.tiles)
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

    def answer(self, lacking: int) -> CapacityAnswer:
        """Return what is known, in terms of the problem.

        Parameters
        ----------
        lacking
            Bytes too many for all tiles together.
        """
        problem, pool = self.pool.problem, self.pool
        found: CountedLabels | None = None
        used = None
        if self.filling is not None:
            found = placement(pool, self.filling)
            used = bytes_used(problem.bytes, found, pool.tiles)
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
            lacking=lacking,
            used=used,
            capacity=self.capacity,
            class_bytes=problem.class_bytes,
            stopped=self.stopped,
            seconds=self.seconds,
        )
