"""Integer programmes, and the one way to write them down.

::

    maximise  objective x   subject to  low <= matrix x <= high,  0 <= x <= upper,  x whole
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from layoutopt.network.problem import IntArray, WeightArray, exact_integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST = 2**55  # sums stay below this, with room for what CP-SAT adds up
OPEN = 2**60  # stands for no limit of a row


UpperRow: TypeAlias = tuple[Mapping[int, float], float]
"""Factors of variables, and the most that they may add up to."""


@dataclass(frozen=True, eq=False)
class Programme:
    """An integer programme; see the module's text."""

    objective: WeightArray  # shape (n,), whole
    upper: IntArray  # shape (n,), whole
    starts: IntArray  # shape (m + 1,): where each row begins in `columns` and `factors`
    columns: IntArray  # the variable of each entry of the matrix
    factors: IntArray  # the entries, whole
    low: IntArray  # shape (m,), whole; `-OPEN` for none
    high: IntArray  # shape (m,), whole; `OPEN` for none
    # shape (n,): variables that some optimum has whole even if nothing makes them so
    free: IntArray

    @property
    def row(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.low)), np.diff(self.starts))

    @property
    def matrix(self) -> csr_array:
        """The entries as SciPy has them."""
        from scipy.sparse import csr_array

        shape = (len(self.low), len(self.upper))
        return csr_array((self.factors, self.columns, self.starts), shape=shape)

    def total(self) -> int:
        """Return the sum of what all variables can earn, all signs aside."""
        pairs = zip(self.objective.tolist(), self.upper.tolist(), strict=True)
        return sum(abs(v) * most for v, most in pairs)

    def value(self, values: IntArray) -> int:
        """Return what a point is worth."""
        return sum(v * x for v, x in zip(self.objective.tolist(), values.tolist(), strict=True))

    def reach(self) -> float:
        """Return the largest sum that a row can have, all signs aside."""
        most = np.abs(self.factors.astype(float)) * self.upper[self.columns]
        return float(np.bincount(self.row, most).max(initial=0.0))

    def fits(self) -> bool:
        """Return whether CP-SAT can add up the objective and all rows."""
        return self.total() < LARGEST and self.reach() < LARGEST

    def holds(self, values: IntArray) -> bool:
        """Return whether a point keeps to all rows and limits."""
        rows = np.zeros(len(self.low), np.int64)
        np.add.at(rows, self.row, self.factors * values[self.columns])
        inside = ((values >= 0) & (values <= self.upper)).all()
        return bool(inside and ((rows >= self.low) & (rows <= self.high)).all())

    def with_rows(self, rows: Sequence[UpperRow]) -> Programme:
        """Return the programme with more rows; their numbers may be doubles, for a relaxation."""
        if not rows:
            return self
        length = np.array([len(factors) for factors, _ in rows])
        column = np.array([k for factors, _ in rows for k in factors], np.int64)
        factor = np.array([x for factors, _ in rows for x in factors.values()])
        return replace(
            self,
            starts=np.concatenate([self.starts, self.starts[-1] + np.cumsum(length)]),
            columns=np.concatenate([self.columns, column]),
            factors=np.concatenate([self.factors, factor]) if len(factor) else self.factors,
            low=np.concatenate([self.low, np.full(len(rows), -OPEN)]),
            high=np.concatenate([self.high, np.array([high for _, high in rows])]),
        )


@dataclass(frozen=True, eq=False)
class ProgrammeResult:
    """A point, a bound, or the proof that there is no point."""

    values: IntArray | None = None  # shape (n,); `None` if no point was found
    bound: int | None = None  # an upper bound on the objective; `None` where none is proved
    infeasible: bool = False  # whether it is proved that there is no point


Found: TypeAlias = Callable[[int | None, int], None]
"""Takes the worth of a better point, ``None`` if the bound alone is better, and the bound."""


class ProgrammeWriter:
    """Variables and rows of a programme as they are written, and how many there are so far."""

    def __init__(self) -> None:
        self.variables = self.rows = 0
        self._worth: list[int] = []
        self._upper: list[int] = []
        self._free: list[bool] = []
        self._low: list[int] = []
        self._high: list[int] = []
        self._row: list[int] = []
        self._column: list[int] = []
        self._factor: list[int] = []
        self._blocks: list[IntArray] = []

    def variable(self, worth: int = 0, upper: int = 1) -> int:
        """Add a variable, and return its number."""
        self._worth.append(worth)
        self._upper.append(upper)
        self._free.append(False)
        self.variables += 1
        return self.variables - 1

    def block(
        self, worth: WeightArray, upper: IntArray | int = 1, *, free: bool = False
    ) -> IntArray:
        """Add a variable for each worth, and return their numbers in the same shape."""
        first, many = self.variables, worth.size
        self._worth += worth.reshape(-1).tolist()
        self._upper += np.broadcast_to(upper, worth.shape).reshape(-1).tolist()
        self._free += [free] * many
        self.variables += many
        return first + np.arange(many).reshape(worth.shape)

    def row(
        self, columns: Iterable[int], factors: Sequence[int], low: int = -OPEN, high: int = OPEN
    ) -> int:
        """Add a row, and return its number."""
        self._column += columns
        self._factor += factors
        self._row += [self.rows] * len(factors)
        self._low.append(low)
        self._high.append(high)
        self.rows += 1
        return self.rows - 1

    def family(
        self,
        columns: IntArray,
        factors: IntArray | Sequence[int],
        low: IntArray | int = -OPEN,
        high: IntArray | int = OPEN,
    ) -> None:
        """Add rows over variables ``columns``, shape ``(many, length)``.

        Factors and limits are those of each row, or the same for all.
        """
        many = len(columns)
        row = np.broadcast_to(np.arange(many)[:, None], columns.shape)
        factor = np.broadcast_to(np.asarray(factors), columns.shape)
        limits = (np.broadcast_to(limit, many) for limit in (low, high))
        self.sparse(row.reshape(-1), columns.reshape(-1), factor.reshape(-1), *limits)

    def sparse(
        self, row: IntArray, column: IntArray, factor: IntArray, low: IntArray, high: IntArray
    ) -> None:
        """Add rows by their entries; rows count from 0 here, and there is one for each limit."""
        self._blocks.append(np.stack([self.rows + row, column, factor]))
        self._low += low.tolist()
        self._high += high.tolist()
        self.rows += len(low)

    def agreement(self, worth: WeightArray, edges: IntArray, weights: WeightArray) -> IntArray:
        """Add indicators of nodes' labels, each node having one, and return them.

        ``worth``, shape ``(nodes, labels)``, is what labels earn, ``weights``, shape ``(m,)``, what
        it earns that the ends of ``edges``, shape ``(m, 2)``, have one label.
        """
        labels = worth.shape[1]
        x = self.block(worth)
        self.family(x, [1] * labels, 1, 1)
        self.agree(x[edges].transpose(0, 2, 1).reshape(-1, 2), np.repeat(weights, labels))
        return x

    def agree(self, pairs: IntArray, weights: WeightArray) -> None:
        """Add a variable for each of two variables that earn a weight where both are 1.

        ``pairs`` have shape ``(m, 2)``, ``weights`` ``(m,)``::

            y[e] <= x[u],  y[e] <= x[v]       w[e] > 0, e = (u, v)
            y[e] >= x[u] + x[v] - 1           w[e] < 0
        """
        y, good, bad = self.block(weights, free=True), weights > 0, weights < 0
        for end in pairs[good].T:
            self.family(np.stack([y[good], end], axis=1), (1, -1), high=0)
        self.family(np.column_stack([y[bad], pairs[bad]]), (1, -1, -1), low=-1)

    def finished(self) -> Programme:
        """Return the programme."""
        single = np.array([self._row, self._column, self._factor], np.int64)
        row, column, factor = np.concatenate([single, *self._blocks], axis=1)
        order = np.argsort(row, kind="stable")
        return Programme(
            exact_integers(self._worth),
            np.array(self._upper, np.int64),
            np.searchsorted(row[order], np.arange(self.rows + 1)),
            column[order],
            factor[order],
            np.array(self._low, np.int64),
            np.array(self._high, np.int64),
            np.array(self._free, bool),
        )


def coarse(given: Programme) -> tuple[Programme, int]:
    """Return a programme of small objective, and its unit.

    A point is worth at most so many times what it is worth there.  The greatest common divisor is
    taken out; what is still too large for CP-SAT is divided and rounded up, so that bounds hold for
    the programme as it was given.
    """
    values = given.objective.tolist()
    unit = math.gcd(*values) or 1
    total = given.total()
    rounding = sum(given.upper.tolist())  # rounding up adds at most one for each
    while total // unit + rounding >= LARGEST > rounding:
        unit *= 2
    return replace(given, objective=exact_integers([-(-v // unit) for v in values])), unit
