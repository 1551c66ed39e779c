"""Sums of costs of labels and of pairs of labels as integer programmes, and their relaxation.

An indicator per node and label, one of a node's being 1.  A table of costs becomes the *local
polytope*: a variable per pair of labels, whose sums over rows and columns are the indicators
(Schlesinger, 1976; Koster, van Hoesel and Kolen, Oper. Res. Lett. 23, 1998).  A table with
one cost ``c`` on some rows ``R`` and columns ``C``, and 0 elsewhere, needs one row instead ::

    sum_{i in R} x_u(i) + sum_{j in C} x_v(j) - z <= 1,   z costs c, and is 0 where c is infinite

What equal labels cost needs such a row for each label, and what they earn, ``z <= x_u(i)`` and
``z <= x_v(i)``.  For search, a table that is a sum of costs of labels but for a few entries, as
messages make of tables of graph colouring, is written as these costs and such rows.

The dual variables of these rows are *messages* from edges to their nodes: costs that may move
from one to the other without any labelling's noticing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from operator import add, sub
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import Limits
from layoutopt.network.costs.work import Work
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.programme import Found, Programme, ProgrammeWriter, UpperRow

Rows: TypeAlias = Sequence[Sequence[float]]
"""Costs: Python integers, or ``inf`` where forbidden."""

Edge: TypeAlias = tuple[int, int, Rows]
"""Two nodes, and a row of costs for each label of the first."""

Deviation: TypeAlias = tuple[list[int], list[int], float]
"""Labels of two nodes, and what each pair of them costs more than both labels together."""

Message: TypeAlias = tuple[list[float], list[float]]
"""What an edge hands over to each label of its first and of its second node."""


@dataclass(frozen=True, eq=False)
class CostProgramme:
    """An integer programme that maximises what is saved, and where its parts come from."""

    programme: Programme  # the programme; its objective is minus the cost
    first: list[int]  # for each node the variable of its label 0, and where these variables end
    ends: list[tuple[int, int]]  # the nodes of each edge
    rows: list[int]  # for each edge its first row, and where these rows end

    def labels(self, values: IntArray) -> list[int]:
        """Return the labels that a point chooses."""
        return [int(values[a:b].argmax()) for a, b in pairwise(self.first)]

    def point(self, labels: Sequence[int]) -> IntArray:
        """Return the indicators of a labelling, -1 for all other variables."""
        values = np.full(len(self.programme.upper), -1)
        values[: self.first[-1]] = 0
        values[[a + i for a, i in zip(self.first, labels, strict=False)]] = 1
        return values


def programme(
    costs: Rows,
    edges: Sequence[Edge],
    equal: Sequence[tuple[int, int, int]] = (),
    slacks: int = 0,
    *,
    sparse: bool = False,
) -> CostProgramme:
    """Write a problem down as an integer programme.

    ``edges`` have no costs below 0; ``equal`` are two nodes, and what equal labels cost.  Variables
    of cost 1, of which ``slacks`` follow the indicators, are there for rows that are added.  With
    ``sparse``, a table that mostly is a sum of costs of labels is written as these costs and rows
    for where it deviates: search is faster, the relaxation weaker.
    """
    to = ProgrammeWriter()
    deviations: list[list[Deviation] | None] = [None] * len(edges)
    if sparse:
        costs = changed = [list(own) for own in costs]
        deviations = [_deviations(table, changed[u], changed[v]) for u, v, table in edges]
    first = [0]
    for own in costs:
        columns = [to.variable(0 if cost == inf else -int(cost)) for cost in own]
        first.append(columns[-1] + 1)
        to.row(columns, [1] * len(columns), 1, 1)
        for column, cost in zip(columns, own, strict=True):
            if cost == inf:
                to.row([column], [1], high=0)
    to.block(np.full(slacks, -1))
    begins = []
    for (u, v, table), few in zip(edges, deviations, strict=True):
        begins.append(to.rows)
        if few is None:
            _table(to, first[u], first[v], table)
        else:
            _write_deviations(to, first[u], first[v], few)
    for u, v, cost in equal:
        begins.append(to.rows)
        _write_deviations(
            to, first[u], first[v], [([i], [i], cost) for i in range(len(costs[u])) if cost]
        )
    nodes = [(u, v) for u, v, _ in (*edges, *equal)]
    return CostProgramme(to.finished(), first, nodes, [*begins, to.rows])


FEW = 4  # a table deviates in few places if it has so many times as many entries
SMALL = 16  # with costs in smaller tables, CP-SAT's bounds lose more than its search gains


def _deviations(table: Rows, one: list[float], two: list[float]) -> list[Deviation] | None:
    """Return where a table deviates from sums of costs of labels, which become the nodes' own.

    These costs are what most entries of a row, or of a column, have in common.  ``None`` if the
    table deviates in many places.
    """
    rows, columns = [0] * len(table), [0] * len(table[0])
    transposed = list(zip(*table, strict=True))
    for _ in range(2):
        rows = [_mode(map(sub, row, columns)) for row in table]
        columns = [_mode(map(sub, column, rows)) for column in transposed]
    by_row = [([i], js, c) for i, js, c in _lines(table, rows, columns)]
    by_column = [(js, [i], c) for i, js, c in _lines(transposed, columns, rows)]
    few = min(by_row, by_column, key=len)
    required = 0 if all(cost == inf for *_, cost in few) else max(FEW * len(few), SMALL)
    if len(table) * len(transposed) < required:
        return None
    one[:], two[:] = map(add, one, rows), map(add, two, columns)
    return few


def _lines(
    table: Rows, own: Sequence[int], others: Sequence[int]
) -> Iterator[tuple[int, list[int], float]]:
    """Yield the columns of each row that deviate by one cost."""
    for i, row in enumerate(table):
        found: dict[float, list[int]] = {}
        for j, cost in enumerate(row):
            if cost != own[i] + others[j]:
                found.setdefault(cost - own[i] - others[j], []).append(j)
        for cost, columns in found.items():
            yield i, columns, cost


def _mode(costs: Iterable[float]) -> int:
    """Return the most frequent of the finite costs, 0 without any."""
    counts = Counter(cost for cost in costs if cost < inf)
    return int(counts.most_common(1)[0][0]) if counts else 0


def _write_deviations(to: ProgrammeWriter, u: int, v: int, few: Sequence[Deviation]) -> None:
    """Write an edge's table by its deviations."""
    for rows, columns, cost in few:
        ends = [u + i for i in rows], [v + j for j in columns]
        both = [] if cost == inf else [to.variable(-int(cost))]
        if cost > 0:
            every = [*ends[0], *ends[1]]
            to.row([*every, *both], [1] * len(every) + [-1] * len(both), high=1)
        for end in ends if cost < 0 else ():
            to.row([*both, *end], [1] + [-1] * len(end), high=0)


def _table(to: ProgrammeWriter, u: int, v: int, table: Rows) -> None:
    """Write an edge's table; ``u`` and ``v`` are the variables of its nodes' labels 0."""
    rows = [i for i, row in enumerate(table) if any(row)]
    columns = [j for j, column in enumerate(zip(*table, strict=True)) if any(column)]
    if not rows:
        return
    cost = table[rows[0]][columns[0]]
    if all(table[i][j] == cost for i in rows for j in columns):
        _write_deviations(to, u, v, [(rows, columns, cost)])
        return
    pairs = {
        (i, j): to.variable(-int(cost))
        for i, row in enumerate(table)
        for j, cost in enumerate(row)
        if cost < inf
    }
    one, two = range(len(table)), range(len(table[0]))
    lines = [(u + i, [pairs[i, j] for j in two if (i, j) in pairs]) for i in one]
    lines += [(v + j, [pairs[i, j] for i in one if (i, j) in pairs]) for j in two]
    for end, allowed in lines:
        to.row([end, *allowed], [1] + [-1] * len(allowed), 0, 0)


@dataclass(frozen=True)
class Relaxed:
    """A solution of the linear relaxation, in doubles."""

    point: list[list[float]]  # for each node and label its share
    # for each edge; any are sound, so that their rounding costs tightness, not truth
    messages: list[Message]
    prices: list[float]  # for each added row what a unit saves; not below 0 but for rounding
    cost: float  # the least cost, or a bound on it


def relax(given: CostProgramme, limits: Limits, rows: Sequence[UpperRow] = ()) -> Relaxed | None:
    """Solve the linear relaxation under more rows; ``None`` if it is not solved in time."""
    from layoutopt.network.solvers import highs

    own = len(given.programme.low)
    found = highs.relax(given.programme.with_rows(rows), limits)
    if found is None:
        return None
    shares, prices = found.values.tolist(), found.prices[own:].tolist()
    cost = -float(given.programme.objective.astype(float) @ found.values)
    point = [shares[a:b] for a, b in pairwise(given.first)]
    return Relaxed(point, _messages(given, found.prices), prices, cost)


def _messages(given: CostProgramme, prices: NDArray[np.float64]) -> list[Message]:
    """Return what edges hand over: prices of their rows, times the factors of indicators there."""
    row, column, first = given.programme.row, given.programme.columns, np.array(given.first)
    sent = np.flatnonzero((row >= given.rows[0]) & (column < first[-1]))
    row, column, factor = row[sent], column[sent], given.programme.factors[sent]
    edge = np.searchsorted(given.rows, row, side="right") - 1
    node = np.searchsorted(first, column, side="right") - 1
    ends = np.array(given.ends, np.int64).reshape(-1, 2)
    starts = np.concatenate([[0], np.cumsum(np.diff(first)[ends])])
    side = 2 * edge + (node != ends[edge, 0])
    amounts = np.zeros(starts[-1])
    np.add.at(amounts, starts[side] + column - first[node], factor * prices[row])
    whole = amounts.tolist()
    each = [whole[a:b] for a, b in pairwise(starts.tolist())]
    return list(zip(each[::2], each[1::2], strict=True))


@dataclass(frozen=True)
class WrittenWork:
    """A part as an integer programme, with its nodes and their labels that are left."""

    given: CostProgramme
    nodes: list[int]
    labels: list[list[int]]
    constant: int  # what the part costs besides

    def chosen(self, values: IntArray | None) -> list[int] | None:
        """Return the labelling of a point; ``None`` if there is no point."""
        if values is None:
            return None
        whole = [0] * (max(self.nodes) + 1)
        for u, own, k in zip(self.nodes, self.labels, self.given.labels(values), strict=True):
            whole[u] = own[k]
        return whole

    def point(self, labels: list[int] | None) -> IntArray | None:
        """Return a labelling as a point with open entries."""
        if labels is None:
            return None
        each = zip(self.nodes, self.labels, strict=True)
        return self.given.point([own.index(labels[u]) for u, own in each])

    def cost(self, worth: int, unit: int) -> int:
        """Return what a point of such a worth, in units, costs."""
        return self.constant - worth * unit

    def told(self, limits: Limits, unit: int) -> Found:
        """Return what tells limits about points and bounds, which are in units."""

        def found(worth: int | None, bound: int) -> None:
            known = None if worth is None else self.cost(worth, unit)
            limits.report("search", known, self.cost(bound, unit))

        return found


def write(work: Work, *, sparse: bool = False) -> WrittenWork:
    """Return what is left as an integer programme; ``sparse`` is that of its writer."""
    nodes = work.left()
    place = {u: k for k, u in enumerate(nodes)}
    labels = {u: work.labels(u) for u in nodes}
    part = {u for u in nodes if len(labels[u]) < len(work.costs[u])}
    edges: list[Edge] = []
    for u, v, table in work.edges():
        if u in part or v in part:
            table = tuple(tuple([table[i][j] for j in labels[v]]) for i in labels[u])
        edges.append((place[u], place[v], table))
    costs = [[work.costs[u][i] for i in labels[u]] for u in nodes]
    given = programme(costs, edges, sparse=sparse)
    return WrittenWork(given, nodes, [labels[u] for u in nodes], work.constant)
