"""Evidence for bounds on sums of worths of labels and of pairs of labels.

Dynamic programming where tables stay small, else messages of the linear relaxation, with prices
of rows; else both of these behind a few nodes that are fixed to each of their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, lcm, prod
from typing import Any, NamedTuple

import numpy as np

from layoutopt.base.deadline import HIGHS_ENDS, run_stoppable
from layoutopt.base.limits import Limits
from layoutopt.certificate.bounds import DEEPEST, bound
from layoutopt.certificate.pairwise import Pairwise, fixed, split, value
from layoutopt.certificate.rows import Array
from layoutopt.network.elimination import shrink

TABLE, TOTAL = 10**6, 3 * 10**7
"""Entries of the largest table, and of all tables together, that a checker is to make."""

SEARCH = 30.0
"""Effort for one proof, in seconds of a machine of today."""

DEPTH = DEEPEST - 4
"""Nodes that are fixed at once: a class, its components and prices are around and in them."""

EACH, PER_ENTRY = 2e-3, 6e-6
"""Effort for a linear programme, and for each entry of its tables."""

ENTRIES = 3 * 10**5
"""Most entries of all tables together that a linear programme is written for."""

PARTS = (1, 2, 4, 12, 60, 720720)
"""Messages are whole numbers of parts of one: multiples of such fractions, mostly."""

LABELLINGS = 2**12
"""So many are tried where rows have to hold."""

Evidence = dict[str, Any]


def evidence(
    problem: Pairwise, labels: Sequence[int], limits: Limits | None = None, *, word: bool = True
) -> Evidence:
    """Return evidence that a labelling is the best; one that is not only makes it harder.

    ``word`` says whether what is not proved is a solver's word, or has some weaker bound.
    """
    limits = (limits or Limits()).turn(SEARCH)
    order, stuck = _order(problem)
    if not stuck and not problem.rows:
        return {"kind": "table", "order": order}
    if problem.rows:
        return _proved(problem, value(problem, labels), limits, word=word)
    hard, easy = _parts(problem, stuck)
    every = [*hard, easy] if easy else hard
    found = []
    for nodes, own in zip(every, split(problem, every), strict=True):
        proved = _proved(own, value(own, [labels[u] for u in nodes]), limits, word=word)
        found.append({"nodes": nodes, "evidence": proved})
    return {"kind": "components", "parts": found}


def _near(problem: Pairwise) -> dict[int, set[int]]:
    """Return the neighbours of nodes of several labels."""
    near: dict[int, set[int]] = {u: set() for u, width in enumerate(problem.widths) if width > 1}
    for i, j, _ in (*problem.edges, *problem.equal):
        if i in near and j in near:
            near[i].add(j)
            near[j].add(i)
    return near


def _order(problem: Pairwise) -> tuple[list[int], dict[int, set[int]]]:
    """Return nodes in an order of small tables, and those that have none, with neighbours."""
    near = _near(problem)
    alone = [u for u in range(len(problem.widths)) if u not in near]
    steps = shrink(near, dict(enumerate(problem.widths)), TABLE, TOTAL)
    return alone + [u for u, _ in steps], near


def _parts(problem: Pairwise, stuck: dict[int, set[int]]) -> tuple[list[list[int]], list[int]]:
    """Return each component that has nodes that are stuck, and all nodes of no such one."""
    near, hard = _near(problem), []
    left = dict.fromkeys(range(len(problem.widths)))
    for start in stuck:
        if start not in left:
            continue
        del left[start]
        part = [start]
        for u in part:
            for v in sorted(near[u]):
                if v in left:
                    del left[v]
                    part.append(v)
        hard.append(part)
    return hard, list(left)


def table(problem: Pairwise) -> Evidence | None:
    """Return an order of small tables, if there is one for all nodes."""
    order, stuck = _order(problem)
    return None if stuck else {"kind": "table", "order": order}


def _proved(problem: Pairwise, wanted: int, limits: Limits, *, word: bool) -> Evidence:
    """Return evidence for a bound, else a word or something weaker."""
    found = proof(problem, wanted, limits)
    if found is None and word:
        return {"kind": "word", "bound": wanted}
    return found or _least(problem, [{"kind": "dual"}, *_candidates(problem, limits)])


def _least(problem: Pairwise, every: Sequence[Evidence]) -> Evidence:
    """Return the evidence that proves most."""
    return min(every, key=lambda own: bound(problem, own)[0])


def proof(problem: Pairwise, wanted: int, limits: Limits, depth: int = 0) -> Evidence | None:
    """Return evidence for a bound, None if none is found within the limits."""
    if depth and bound(problem, {"kind": "dual"})[0] <= wanted:
        return {"kind": "dual"}
    stuck = _order(problem)[1]
    if stuck and limits.over:
        return None
    for found in _candidates(problem, limits):
        if bound(problem, found)[0] <= wanted:
            return found
    if (not stuck and not problem.rows) or depth == DEPTH or limits.over:
        return None
    near = stuck or _near(problem)
    if not near:
        return None
    node = max(near, key=lambda u: (len(near[u]), _counted(problem, u), -u))
    parts: list[Evidence | None] = []
    for label in range(problem.widths[node]):
        if not problem.allowed(problem.unary[node])[label]:
            parts.append(None)
            continue
        leaf = proof(fixed(problem, node, label), wanted, limits, depth + 1)
        if leaf is None:
            return None
        parts.append(leaf)
    return {"kind": "branch", "node": node, "leaves": parts}


def _counted(problem: Pairwise, node: int) -> int:
    """Return how many labels of a node use something of a row."""
    name = problem.names[node]
    return sum(int(np.count_nonzero(row.terms[name])) for row in problem.rows if name in row.terms)


def _candidates(problem: Pairwise, limits: Limits) -> Iterator[Evidence]:
    """Yield evidence that may be enough, the cheapest first."""
    order, stuck = _order(problem)
    if not stuck:
        yield {"kind": "table", "order": order}
        if not problem.rows:
            return
    labellings = prod(problem.widths)
    if problem.rows and (labellings == 1 or labellings * len(problem.rows) <= LABELLINGS):
        yield {"kind": "exhaustive"}
    if limits.over:
        return
    relaxed = _relax(problem, limits)
    if relaxed is not None:
        prices = _prices(problem, relaxed)
        scale = lcm(*(price.denominator for _, price in prices))
        inner = {"kind": "table", "order": order} if not stuck else None
        own = inner or _dual(problem, relaxed, scale)
        rows = [[k, ratio(price)] for k, price in prices]
        yield {"kind": "prices", "rows": rows, "evidence": own} if rows else own


@dataclass(frozen=True)
class _Relaxed:
    """Dual variables of the linear relaxation, in doubles."""

    # for each edge, those of equal labels last, what it hands to labels of its nodes
    messages: list[tuple[list[float], list[float]]]
    prices: list[float]  # for each row
    factor: int = 1  # what all of them are to be multiplied by


def _dual(problem: Pairwise, relaxed: _Relaxed, scale: int) -> Evidence:
    """Return messages in whole parts of one; worths are counted in parts of ``1 / scale``."""
    largest = max((abs(x) for pair in relaxed.messages for side in pair for x in side), default=0.0)
    near = 1e-7 * (1 + largest)
    every = np.array([x for pair in relaxed.messages for side in pair for x in side])
    parts = next(
        (p for p in PARTS if (abs(every * p - np.rint(every * p)) < near).all()), PARTS[-1]
    )
    factor = scale * relaxed.factor

    messages = []
    for pair in relaxed.messages:
        one, two = (packed([round(x * parts) * factor for x in side]) for side in pair)
        shorter = [one, None] if len(str(one)) <= len(str(two)) else [None, two]
        messages.append(shorter if any(map(any, pair)) else None)  # the other one follows
    return {"kind": "dual", "parts": parts, "messages": messages}


def packed(message: list[int]) -> Any:
    """Return a message as certificates have it: all numbers, or those that are not 0."""
    at = [i for i, x in enumerate(message) if x]
    if 2 * len(at) >= len(message):
        return message
    return {"at": at, "put": [message[i] for i in at]}


def _prices(problem: Pairwise, relaxed: _Relaxed) -> list[tuple[int, Fraction]]:
    """Return prices of rows, rounded to multiples of one number so small that it matters little."""
    found = []
    largest = max(map(abs, relaxed.prices), default=0.0)
    for k, price in enumerate(relaxed.prices):
        if abs(price) <= 1e-9 * largest:
            continue
        row = problem.rows[k]
        limit = row.high if price > 0 else row.low
        size = sum(int(max(map(abs, own))) for own in row.terms.values()) + abs(limit or 0) + 1
        exact = Fraction(round(price * 2**20), 2**20) if largest > 2**40 else Fraction(price)
        fine = 2 ** (32 * len(relaxed.prices) * size).bit_length()
        near = exact.limit_denominator(100)
        if abs(near - exact) * fine > 1:
            near = Fraction(round(exact * fine), fine)
        if near:
            found.append((k, near * relaxed.factor))
    return found


def ratio(x: Fraction) -> int | str:
    """Return a number as certificates have it."""
    return int(x) if x.denominator == 1 else str(x)


def _relax(problem: Pairwise, limits: Limits) -> _Relaxed | None:
    """Return duals of the linear relaxation, or multiples of some that prove it infeasible."""
    entries = sum(table.size for _, _, table in problem.edges)
    entries += sum(problem.widths[i] for i, _, _ in problem.equal)
    entries += sum(len(own) for row in problem.rows for own in row.terms.values())
    limits.spend(EACH + PER_ENTRY * entries)
    if entries > ENTRIES or problem.total > 2**900:
        return None
    limits.report("certificate: relaxation")
    if problem.total:
        found = _Programme(problem, elastic=False).solve(limits)
        if found is None or found[1] is not None:
            return found and found[1]
    found = _Programme(problem, elastic=True).solve(limits)
    if found is None or found[1] is None or found[0] > -1e-6:
        return None
    factor = 1 if not problem.total else int(2 * (problem.total + 1) / -found[0]) + 1
    return replace(found[1], factor=factor)


class _Programme:
    """The linear relaxation of a problem.

    An indicator per node and label, one of a node's being 1.  A table becomes the *local polytope*,
    a variable per pair of labels, whose sums over rows and columns are the indicators (Schlesinger,
    1976); one that loses the same on some rows and columns, and nothing elsewhere, a variable that
    is 1 where both are chosen; so does each label of what equal labels lose, and what they earn is
    for each label at most what either node's indicator is.

    If it is elastic, nothing is worth anything, but forbidden entries and what rows lack cost one
    each.
    """

    def __init__(self, problem: Pairwise, *, elastic: bool) -> None:
        self.problem, self.elastic = problem, elastic
        self.worth, self.most = list[float](), list[float]()
        self.equal, self.less = _Lines(), _Lines()
        self.first = []
        for own in problem.unary:
            self.first.append(len(self.worth))
            columns = [self._variable(x, u) for x, u in self._entries(own)]
            self.equal.add(columns, [1.0] * len(columns), 1.0)
        self.sent = [self._table(i, j, table) for i, j, table in problem.edges]
        for i, j, w in problem.equal:
            self.sent.append(self._agree(i, j, 0 if elastic else w))
        self.rows = [self._row(k) for k in range(len(problem.rows))]

    def _entries(self, array: Array) -> list[tuple[float, float]]:
        """Return what entries are worth, and what their variables may be at most."""
        good = self.problem.allowed(array).reshape(-1).tolist()
        if self.elastic:
            return [(0.0 if ok else -1.0, 1.0) for ok in good]
        flat = array.reshape(-1).tolist()
        return [(float(x), 1.0) if ok else (0.0, 0.0) for x, ok in zip(flat, good, strict=True)]

    def _variable(self, worth: float, most: float = inf) -> int:
        self.worth.append(worth)
        self.most.append(most)
        return len(self.worth) - 1

    def _table(self, i: int, j: int, table: Array) -> _Sent:
        u, v = self.first[i], self.first[j]
        height, width = table.shape
        entries = self._entries(table)
        top = max((x for x, most in entries if most), default=0.0)
        lost = np.array([top - x if most else inf for x, most in entries]).reshape(height, width)
        rows, columns = np.flatnonzero(lost.any(axis=1)), np.flatnonzero(lost.any(axis=0))
        if not len(rows):
            return _Sent([], [])
        block = lost[np.ix_(rows, columns)]
        if (block == block[0, 0]).all():
            ends = [*(u + rows).tolist(), *(v + columns).tolist()]
            slack = [] if block[0, 0] == inf else [self._variable(-float(block[0, 0]))]
            line = self.less.add(ends + slack, [1.0] * len(ends) + [-1.0] * len(slack), 1.0)
            own = [(line, i, 1.0) for i in rows.tolist()]
            return _Sent(own, [(line, j, 1.0) for j in columns.tolist()])
        pairs = np.array([self._variable(*entry) for entry in entries]).reshape(height, width)
        sides = list[list[tuple[int, int, float]]]()
        for start, lines in ((u, pairs), (v, pairs.T)):
            own = []
            for k, line_of in enumerate(lines.tolist()):
                factors = [1.0] + [-1.0] * len(line_of)
                own.append((self.equal.add([start + k, *line_of], factors, 0.0), k, 1.0))
            sides.append(own)
        return _Sent(sides[0], sides[1], exact=True)

    def _agree(self, i: int, j: int, w: int) -> _Sent:
        u, v = self.first[i], self.first[j]
        sent = _Sent([], [])
        for k in range(self.problem.widths[i] if w else 0):
            own = self._variable(float(w))
            if w < 0:
                line = self.less.add([u + k, v + k, own], [1.0, 1.0, -1.0], 1.0)
                sent.one.append((line, k, 1.0))
                sent.two.append((line, k, 1.0))
            else:
                sent.one.append((self.less.add([own, u + k], [1.0, -1.0], 0.0), k, -1.0))
                sent.two.append((self.less.add([own, v + k], [1.0, -1.0], 0.0), k, -1.0))
        return sent

    def _row(self, k: int) -> tuple[float, list[tuple[int, float]]]:
        """Write a row's limits; return its scale, and lines with the signs of their prices."""
        problem, row = self.problem, self.problem.rows[k]
        inside = problem.inside(row)
        if inside is None:
            return 1.0, []
        own, constant = inside
        columns = [
            (self.first[u] + i, int(x))
            for u, amounts in own.terms.items()
            for i, x in enumerate(amounts.tolist())
            if x
        ]
        scale = max((abs(x) for _, x in columns), default=1)
        lines = []
        for sign, limit in ((1.0, own.high), (-1.0, own.low)):
            if limit is not None:
                slack = [self._variable(-1.0)] if self.elastic else []
                at = [c for c, _ in columns] + slack
                factors = [sign * (x / scale) for _, x in columns] + [-1.0] * len(slack)
                lines.append(
                    (self.less.add(at, factors, sign * ((limit - constant) / scale)), sign)
                )
        return float(scale), lines

    def solve(self, limits: Limits) -> tuple[float, _Relaxed | None] | None:
        """Return the optimum with its duals, without them if there is none; None without time."""
        from scipy.optimize import linprog

        worth = np.array(self.worth)
        less, equal = self.less.matrix(len(worth)), self.equal.matrix(len(worth))
        bounds: Any = np.column_stack([np.zeros(len(worth)), self.most])
        scale = float(np.abs(worth).max(initial=0)) or 1.0
        options: Any = {}
        if limits.left < inf:
            options["time_limit"] = max(limits.left, 0.01)

        def solve() -> Any:
            return linprog(
                -worth / scale,
                A_ub=less,
                b_ub=self.less.limits or None,
                A_eq=equal,
                b_eq=self.equal.limits,
                bounds=bounds,
                method="highs-ds",
                options=options,
            )

        try:
            answer = run_stoppable(solve, lambda: None, limits, HIGHS_ENDS)
        except TimeoutError:
            return None
        if answer.status == 2:
            return -inf, None
        if answer.status:
            return None
        duals = [side.marginals * scale for side in (answer.ineqlin, answer.eqlin)]
        return -float(answer.fun) * scale, self._duals(*duals)

    def _duals(self, less: Array, equal: Array) -> _Relaxed:
        """Return messages and prices of what lines are worth."""
        messages = []
        ends = [(i, j) for i, j, _ in (*self.problem.edges, *self.problem.equal)]
        for sent, pair in zip(self.sent, ends, strict=True):
            rates = equal if sent.exact else less
            sides = [[0.0] * self.problem.widths[u] for u in pair]
            for side, own in zip(sides, (sent.one, sent.two), strict=True):
                for line, k, sign in own:
                    side[k] = sign * float(rates[line])
            messages.append((sides[0], sides[1]))
        prices = [
            sum(-sign * float(less[line]) for line, sign in lines) / by for by, lines in self.rows
        ]
        return _Relaxed(messages, prices)


class _Sent(NamedTuple):
    """Lines in which labels of an edge's nodes stand, with the sign of the message."""

    one: list[tuple[int, int, float]]
    two: list[tuple[int, int, float]]
    exact: bool = False


@dataclass
class _Lines:
    """Sums of variables with their limits."""

    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def add(self, columns: Sequence[int], factors: Sequence[float], limit: float) -> int:
        """Add a line, and return its number."""
        self.rows += [len(self.limits)] * len(columns)
        self.columns += columns
        self.factors += factors
        self.limits.append(limit)
        return len(self.limits) - 1

    def matrix(self, width: int) -> Any:
        """Return all lines as a sparse matrix, ``None`` without any."""
        from scipy.sparse import csr_array

        if not self.limits:
            return None
        shape = (len(self.limits), width)
        return csr_array((self.factors, (self.rows, self.columns)), shape=shape)
