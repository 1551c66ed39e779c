"""Prices of tiles from configurations: the linear programme over them, or its dual made smooth.

With configurations ``k`` of worth ``v_k`` and use ``a_tk`` of tiles the dual is::

    minimise  sum_t c_t p_t + sum_kinds n max_k (v_k - sum_t a_tk p_t)   over p >= 0

Small ones go to HiGHS.  Large ones are solved with the maximum replaced by
``m log sum_k exp(. / m)``, for smaller and smaller ``m``, by L-BFGS (Byrd, Lu, Nocedal and Zhu,
SIAM J. Sci. Comput. 16, 1995); the weights of the exponentials are shares of copies
(Nesterov, *Smooth minimization of non-smooth functions*, Math. Programming 103, 2005).  Both
are rounded: what prices prove is computed elsewhere, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from layoutopt.base.limits import Limits
from layoutopt.network.capacity.problem import Columns
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers import highs
from layoutopt.network.solvers.programme import OPEN, Programme

LEAST = 1_000
"""Fewer kinds are not worth choosing from."""


def undecided(
    columns: Columns,
    matrix: csr_array,
    reduced: IntArray,
    copies: IntArray,
    room: IntArray,
    per_tile: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return what prices leave open: everything, if the rest does not fit.

    These are the columns of open kinds, by number, the counts of all columns, 0 for open kinds, and
    the grains that are left on tiles.
    ``columns`` has at least one of each kind, ``matrix`` the grains that they use on tiles, and
    ``reduced`` their worths, prices taken off; at least ``per_tile`` kinds are open for each tile.
    """
    first = np.flatnonzero(np.r_[True, np.diff(columns.kind) != 0])
    best = np.maximum.reduceat(reduced, first)[columns.kind]
    order = np.lexsort((-reduced, columns.kind))
    leads = np.zeros(len(reduced), bool)
    leads[order[first]] = True
    regret = np.minimum.reduceat(np.where(leads, np.inf, best - reduced), first)
    rank = np.argsort(regret, kind="stable")
    count = max(LEAST, per_tile * len(room))
    while count < len(first):
        still = np.zeros(len(first), bool)
        still[rank[:count]] = True
        counts = np.where(leads & ~still[columns.kind], copies[columns.kind], 0)
        left = room - counts @ matrix
        if (left >= 0).all():
            return np.flatnonzero(still[columns.kind]), counts, left
        count *= 2
    return np.arange(len(reduced)), np.zeros(len(reduced), np.int64), room


LINEAR = 30_000  # configurations that the linear programme may have
CORE = 60_000  # configurations of undecided kinds that it may have

TEMPERATURES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
"""Smoothing, relative to the mean spread of a kind's values."""

STEPS = 80  # steps of L-BFGS at each temperature


@dataclass(frozen=True, eq=False)
class Master:
    """Prices, and what share of copies goes where."""

    prices: IntArray  # shape (tiles,): per grain, 0 or more
    counts: IntArray  # shape (columns,): copies, not whole, that take each configuration
    complete: bool  # whether all kinds were open


def solve_master(
    columns: Columns,
    copies: IntArray,
    capacity: IntArray,
    start: IntArray,
    limits: Limits,
    smooth: bool,
    per_tile: int,
) -> Master | None:
    """Return prices for some configurations, or ``None`` if they do not fit or time is up.

    ``columns`` has at least one of each kind, ``start`` a price for each tile.  Of many
    configurations only those of ``per_tile`` kinds for each tile are open; the others are decided
    at these prices, or at better ones if it is to be ``smooth``.
    """
    value = columns.value.astype(float)
    scale = float(np.abs(value).max(initial=0)) or 1.0
    matrix = columns.use(len(capacity))
    value = value / scale
    found: Master | None = None
    if len(value) <= LINEAR:
        found = _linear(columns.kind, value, matrix, copies, capacity, limits)
    else:
        if smooth:
            found = SmoothDual(columns, matrix, value, copies, capacity, limits).run(start / scale)
        prices = start / scale if found is None else found.prices
        reduced = value - matrix @ prices
        at, decided, left = undecided(columns, matrix, reduced, copies, capacity, per_tile)
        if len(at) <= CORE and not limits.over:
            core = _linear(columns.kind[at], value[at], matrix[at], copies, left, limits)
            if core is not None:
                counts = decided.astype(float)
                counts[at] = core.counts
                found = Master(core.prices, counts, len(at) == len(value))
    return None if found is None else Master(found.prices * scale, found.counts, found.complete)


def _linear(
    kind: IntArray,
    value: IntArray,
    matrix: csr_array,
    copies: IntArray,
    capacity: IntArray,
    limits: Limits,
) -> Master | None:
    """Solve the linear programme over configurations by HiGHS."""
    many = len(value)
    kinds, row = np.unique(kind, return_inverse=True)
    once = csr_array((np.ones(many), (row, np.arange(many))), shape=(len(kinds), many))
    rows = csr_array(vstack([once, matrix.T], format="csr"))
    given = Programme(
        value,
        copies[kind],
        *(rows.indptr, rows.indices, rows.data),
        np.concatenate([copies[kinds], np.full(len(capacity), -OPEN)]),
        np.concatenate([copies[kinds], capacity]),
        np.ones(many, bool),
    )
    found = highs.relax(given, limits, "highs")
    if found is None:
        return None
    return Master(np.maximum(found.prices[len(kinds) :], 0.0), found.values, complete=True)


class SmoothDual:
    """The smoothed dual of all configurations; ``heat`` is its temperature."""

    def __init__(
        self,
        columns: Columns,
        matrix: csr_array,
        value: IntArray,
        copies: IntArray,
        capacity: IntArray,
        limits: Limits,
    ) -> None:
        self.kind, self.value, self.limits = columns.kind, value, limits
        self.copies, self.capacity = copies.astype(float), capacity.astype(float)
        self.use = matrix.astype(float)
        self.first = np.flatnonzero(np.r_[True, np.diff(columns.kind) != 0])
        self.back = self.use.T.tocsr()
        self.heat = 1.0
        low = np.minimum.reduceat(value, self.first)
        high = np.maximum.reduceat(value, self.first)
        self.spread = float(np.average(high - low, weights=self.copies + 1e-9)) or 1.0
        size = np.bincount(columns.column, columns.bytes.astype(float), minlength=len(value))
        # Prices per mean copy, and the objective per copy, are near 1.
        self.size = float(size.mean()) or 1.0
        self.whole = float(self.copies.sum()) or 1.0

    def shares(self, prices: IntArray) -> tuple[float, IntArray]:
        """Return the smoothed dual without capacities, and how many copies go where."""
        worth = self.value - self.use @ prices
        best = np.maximum.reduceat(worth, self.first)
        worth = np.exp((worth - best[self.kind]) / self.heat)
        total = np.add.reduceat(worth, self.first)
        shares = worth * (self.copies / total)[self.kind]
        return float(self.copies @ (best + self.heat * np.log(total))), shares

    def dual(self, scaled: IntArray) -> tuple[float, IntArray]:
        """Return value and slope at prices of a mean copy, both for a mean copy."""
        prices = scaled * self.spread / self.size
        worth, shares = self.shares(prices)
        unit = self.whole * self.spread
        slope = (self.capacity - self.back @ shares) * (self.spread / self.size)
        return (worth + float(self.capacity @ prices)) / unit, slope / unit

    def run(self, start: IntArray) -> Master:
        """Return prices at the lowest temperature that time allows."""
        at = np.maximum(start, 0.0) * self.size / self.spread
        for heat in TEMPERATURES:
            self.heat = heat * self.spread
            if self.limits.over:
                break
            answer: Any = minimize(  # type: ignore[call-overload]  # nor functions with slopes
                self.dual,
                at,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * len(at),
                options={"maxiter": STEPS, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-12},
                callback=self._watch,
            )
            at = answer.x
        prices = at * self.spread / self.size
        return Master(prices, self.shares(prices)[1], complete=False)

    def _watch(self, _at: IntArray) -> None:
        if self.limits.over:
            raise StopIteration
