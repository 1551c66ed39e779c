"""Sums of costs of labels and of pairs of labels as integer programmes, and their relaxation.

An indicator per node and label, one of a node's being 1.  A table of costs becomes the *local
polytope*: a variable per pair of labels, whose sums over rows and columns are the indicators
(Schlesinger, 1976; Koster, van Hoesel and Kolen, Oper. Res. Lett. 23, 1998).  A table with
one cost ``c`` on some rows ``R`` and columns ``C``, and 0 elsewhere, needs one row instead ::

    sum_{i in R} x_u(i) + sum_{j in C} x_v(j) - z <= 1,   z costs c, and is 0 where c is infinite

The dual variables of these rows are *messages* from edges to their nodes: costs that may move
from one to the other without any labelling's noticing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.deadline import HIGHS_ENDS, run_stoppable
from layoutopt.base.limits import Limits
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.integer import OPEN, Integer

Rows: TypeAlias = Sequence[Sequence[float]]
"""Costs: Python integers, or ``inf`` where forbidden."""

Edge: TypeAlias = tuple[int, int, Rows]
"""Two nodes, and a row of costs for each label of the first."""

Message: TypeAlias = tuple[list[float], list[float]]
"""What an edge hands over to each label of its first and of its second node."""


@dataclass
class _Writer:
    """Columns and rows as they are written."""

    costs: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    factors: list[int] = field(default_factory=list)
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)

    def variable(self, cost: float) -> int:
        self.costs.append(int(cost))
        return len(self.costs) - 1

    def row(self, plus: Sequence[int], minus: Sequence[int], low: int, high: int) -> int:
        self.columns += [*plus, *minus]
        self.factors += [1] * len(plus) + [-1] * len(minus)
        self.rows += [len(self.low)] * (len(plus) + len(minus))
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def finished(self) -> Integer:
        from scipy.sparse import csr_array

        shape = (len(self.low), len(self.costs))
        return Integer(
            -np.array(self.costs, np.int64),
            np.ones(len(self.costs), np.int64),
            csr_array((np.array(self.factors, np.int64), (self.rows, self.columns)), shape=shape),
            np.array(self.low, np.int64),
            np.array(self.high, np.int64),
        )


Sent: TypeAlias = list[tuple[int, list[int]]]
"""Rows of the programme, and the labels of one node that stand in them."""


@dataclass(frozen=True, eq=False)
class CostProgramme:
    """An integer programme that maximises what is saved, and where its parts come from.

    Parameters
    ----------
    integer
        The programme; its objective is minus the cost.
    first
        For each node the variable of its label 0, and where these variables end.
    widths
        For each edge its nodes' numbers of labels.
    sent
        For each edge the rows that its first, and those that its second, node stands in.
    """

    integer: Integer
    first: list[int]
    widths: list[tuple[int, int]]
    sent: list[tuple[Sent, Sent]]

    def labels(self, values: IntArray) -> list[int]:
        """Return the labels that a point chooses."""
        return [int(values[a:b].argmax()) for a, b in pairwise(self.first)]

    def point(self, labels: Sequence[int]) -> IntArray:
        """Return the indicators of a labelling, -1 for all other variables."""
        values = np.full(len(self.integer.upper), -1)
        values[: self.first[-1]] = 0
        values[[a + i for a, i in zip(self.first, labels, strict=False)]] = 1
        return values


def programme(costs: Rows, edges: Sequence[Edge]) -> CostProgramme:
    """Write a problem down as an integer programme.

    Parameters
    ----------
    costs
        For each node the costs of its labels, all finite.
    edges
        At most one for each two nodes; no costs below 0.
    """
    to = _Writer()
    first = [0]
    for own in costs:
        columns = [to.variable(cost) for cost in own]
        first.append(columns[-1] + 1)
        to.row(columns, [], 1, 1)
    widths = [(len(costs[u]), len(costs[v])) for u, v, _ in edges]
    sent = [_edge(to, first[u], first[v], table) for u, v, table in edges]
    return CostProgramme(to.finished(), first, widths, sent)


def _edge(to: _Writer, u: int, v: int, table: Rows) -> tuple[Sent, Sent]:
    """Write an edge's table; ``u`` and ``v`` are the variables of its nodes' labels 0."""
    rows = [i for i, row in enumerate(table) if any(row)]
    columns = [j for j, column in enumerate(zip(*table, strict=True)) if any(column)]
    if not rows:
        return [], []
    cost = table[rows[0]][columns[0]]
    if all(table[i][j] == cost for i in rows for j in columns):
        slack = [] if cost == inf else [to.variable(cost)]
        ends = [u + i for i in rows] + [v + j for j in columns]
        row = to.row(ends, slack, -OPEN, 1)
        return [(row, rows)], [(row, columns)]
    pairs = {
        (i, j): to.variable(cost)
        for i, row in enumerate(table)
        for j, cost in enumerate(row)
        if cost < inf
    }
    one, two = range(len(table)), range(len(table[0]))
    return (
        [(to.row([u + i], [pairs[i, j] for j in two if (i, j) in pairs], 0, 0), [i]) for i in one],
        [(to.row([v + j], [pairs[i, j] for i in one if (i, j) in pairs], 0, 0), [j]) for j in two],
    )


@dataclass(frozen=True)
class Relaxed:
    """A solution of the linear relaxation, in doubles.

    Parameters
    ----------
    point
        For each node and label its share.
    messages
        For each edge; any are sound, so that their rounding costs tightness, not truth.
    prices
        For each row what a unit of it saves; not below 0 but for rounding.
    """

    point: list[list[float]]
    messages: list[Message]
    prices: list[float]


LinearRow: TypeAlias = tuple[dict[int, float], float]
"""Factors of variables, and the most that they may add up to."""


def relax(given: CostProgramme, limits: Limits, rows: Sequence[LinearRow] = ()) -> Relaxed | None:
    """Solve the linear relaxation by HiGHS, return ``None`` if time is too short.

    Parameters
    ----------
    rows
        What must hold besides.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    integer = given.integer
    equal = integer.low == integer.high
    costs = -integer.objective.astype(float)
    scale = float(np.abs(costs).max(initial=0)) or 1.0
    matrix = integer.matrix.astype(float)
    options: Any = {}
    if limits.left < inf:
        options["time_limit"] = max(limits.left, 0.01)
    places = [r for r, (factors, _) in enumerate(rows) for _ in factors]
    at = [column for factors, _ in rows for column in factors]
    values = [factor for factors, _ in rows for factor in factors.values()]
    more = csr_array((values, (places, at)), shape=(len(rows), len(costs)))

    def solve() -> Any:
        return linprog(
            costs / scale,
            A_ub=vstack([matrix[~equal], more]),
            b_ub=np.concatenate([integer.high[~equal], [high for _, high in rows]]),
            A_eq=matrix[equal],
            b_eq=integer.high[equal],
            bounds=(0, None),
            method="highs-ds",
            options=options,
        )

    try:
        answer = run_stoppable(solve, lambda: None, limits, HIGHS_ENDS)
    except TimeoutError:
        return None
    if answer.status != 0:
        return None
    dual = np.zeros(len(equal))
    own = int((~equal).sum())
    dual[equal], dual[~equal] = answer.eqlin.marginals, answer.ineqlin.marginals[:own]
    rates = dual * -scale
    messages = [
        (_message(rates, one, a), _message(rates, two, b))
        for (one, two), (a, b) in zip(given.sent, given.widths, strict=True)
    ]
    shares = answer.x.tolist()
    prices = (answer.ineqlin.marginals[own:] * -scale).tolist()
    return Relaxed([shares[a:b] for a, b in pairwise(given.first)], messages, prices)


def _message(rates: NDArray[np.float64], sent: Sent, width: int) -> list[float]:
    message = [0.0] * width
    for row, labels in sent:
        for i in labels:
            message[i] += float(rates[row])
    return message
