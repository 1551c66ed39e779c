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
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import Limits
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.programme import Programme, ProgrammeWriter, UpperRow

Rows: TypeAlias = Sequence[Sequence[float]]
"""Costs: Python integers, or ``inf`` where forbidden."""

Edge: TypeAlias = tuple[int, int, Rows]
"""Two nodes, and a row of costs for each label of the first."""

Message: TypeAlias = tuple[list[float], list[float]]
"""What an edge hands over to each label of its first and of its second node."""


Sent: TypeAlias = list[tuple[int, list[int]]]
"""Rows of the programme, and the labels of one node that stand in them."""


@dataclass(frozen=True, eq=False)
class CostProgramme:
    """An integer programme that maximises what is saved, and where its parts come from."""

    programme: Programme  # the programme; its objective is minus the cost
    first: list[int]  # for each node the variable of its label 0, and where these variables end
    widths: list[tuple[int, int]]  # for each edge its nodes' numbers of labels
    # for each edge the rows that its first, and those that its second, node stands in
    sent: list[tuple[Sent, Sent]]

    def labels(self, values: IntArray) -> list[int]:
        """Return the labels that a point chooses."""
        return [int(values[a:b].argmax()) for a, b in pairwise(self.first)]

    def point(self, labels: Sequence[int]) -> IntArray:
        """Return the indicators of a labelling, -1 for all other variables."""
        values = np.full(len(self.programme.upper), -1)
        values[: self.first[-1]] = 0
        values[[a + i for a, i in zip(self.first, labels, strict=False)]] = 1
        return values


def programme(costs: Rows, edges: Sequence[Edge]) -> CostProgramme:
    """Write a problem down as an integer programme.

    Costs of labels are finite; costs of edges, at most one for each two nodes, are not below 0.
    """
    to = ProgrammeWriter()
    first = [0]
    for own in costs:
        columns = [to.variable(-int(cost)) for cost in own]
        first.append(columns[-1] + 1)
        to.row(columns, [1] * len(columns), 1, 1)
    widths = [(len(costs[u]), len(costs[v])) for u, v, _ in edges]
    sent = [_edge(to, first[u], first[v], table) for u, v, table in edges]
    return CostProgramme(to.finished(), first, widths, sent)


def _edge(to: ProgrammeWriter, u: int, v: int, table: Rows) -> tuple[Sent, Sent]:
    """Write an edge's table; ``u`` and ``v`` are the variables of its nodes' labels 0."""
    rows = [i for i, row in enumerate(table) if any(row)]
    columns = [j for j, column in enumerate(zip(*table, strict=True)) if any(column)]
    if not rows:
        return [], []
    cost = table[rows[0]][columns[0]]
    if all(table[i][j] == cost for i in rows for j in columns):
        slack = [] if cost == inf else [to.variable(-int(cost))]
        ends = [u + i for i in rows] + [v + j for j in columns]
        row = to.row([*ends, *slack], [1] * len(ends) + [-1] * len(slack), high=1)
        return [(row, rows)], [(row, columns)]
    pairs = {
        (i, j): to.variable(-int(cost))
        for i, row in enumerate(table)
        for j, cost in enumerate(row)
        if cost < inf
    }

    def send(end: int, allowed: list[int]) -> int:
        return to.row([end, *allowed], [1] + [-1] * len(allowed), 0, 0)

    one, two = range(len(table)), range(len(table[0]))
    return (
        [(send(u + i, [pairs[i, j] for j in two if (i, j) in pairs]), [i]) for i in one],
        [(send(v + j, [pairs[i, j] for i in one if (i, j) in pairs]), [j]) for j in two],
    )


@dataclass(frozen=True)
class Relaxed:
    """A solution of the linear relaxation, in doubles."""

    point: list[list[float]]  # for each node and label its share
    # for each edge; any are sound, so that their rounding costs tightness, not truth
    messages: list[Message]
    prices: list[float]  # for each row what a unit of it saves; not below 0 but for rounding


def relax(given: CostProgramme, limits: Limits, rows: Sequence[UpperRow] = ()) -> Relaxed | None:
    """Solve the linear relaxation under more rows; ``None`` if time is too short."""
    from layoutopt.network.solvers import highs

    own = len(given.programme.low)
    found = highs.relax(given.programme.with_rows(rows), limits)
    if found is None:
        return None
    rates = found.prices[:own]
    messages = [
        (_message(rates, one, a), _message(rates, two, b))
        for (one, two), (a, b) in zip(given.sent, given.widths, strict=True)
    ]
    shares, prices = found.values.tolist(), found.prices[own:].tolist()
    return Relaxed([shares[a:b] for a, b in pairwise(given.first)], messages, prices)


def _message(rates: NDArray[np.float64], sent: Sent, width: int) -> list[float]:
    message = [0.0] * width
    for row, labels in sent:
        for i in labels:
            message[i] += float(rates[row])
    return message
