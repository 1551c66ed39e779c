"""Evidence for bounds on sums of worths of labels and of pairs of labels.

Dynamic programming where tables stay small, else messages of the linear relaxation, with prices
of rows; else both of these behind a few nodes that are fixed to each of their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from math import inf, lcm, prod
from typing import Any

import numpy as np

from layoutopt.base.limits import Limits, Unlimited
from layoutopt.certificate.bounds import DEEPEST, bound
from layoutopt.certificate.pairwise import Pairwise, fixed, split, value
from layoutopt.certificate.rows import Array
from layoutopt.network.components import components
from layoutopt.network.elimination import shrink
from layoutopt.network.solvers.pairwise import Message, Relaxed, programme, relax
from layoutopt.network.solvers.programme import UpperRow

TABLE, TOTAL = 10**6, 3 * 10**7
"""Entries of the largest table, and of all tables together, that a checker is to make."""

SEARCH = 30.0  # effort for one proof, in seconds of a machine of today

DEPTH = DEEPEST - 4
"""Nodes that are fixed at once: a class, its components and prices are around and in them."""

EACH, PER_ENTRY = 2e-3, 6e-6  # effort for a linear programme, and for each entry of its tables
ENTRIES = 3 * 10**5  # most entries of all tables together that a linear programme is written for

PARTS = (1, 2, 4, 12, 60, 720720)
"""Messages are whole numbers of parts of one: multiples of such fractions, mostly."""

LABELLINGS = 2**12  # so many are tried where rows have to hold

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
    steps = shrink(near, dict(enumerate(problem.widths)), TABLE, TOTAL, Unlimited())
    return alone + [u for u, _ in steps], near


def _parts(problem: Pairwise, stuck: dict[int, set[int]]) -> tuple[list[list[int]], list[int]]:
    """Return each component that has nodes that are stuck, and all nodes of no such one."""
    links = np.array([(u, v) for u, near in _near(problem).items() for v in near], np.int64)
    of = components(len(problem.widths), *links.reshape(-1, 2).T)[1]
    hard = dict.fromkeys(of[list(stuck)].tolist())
    easy = np.flatnonzero(~np.isin(of, list(hard)))
    return [np.flatnonzero(of == k).tolist() for k in hard], easy.tolist()


def table(problem: Pairwise) -> Evidence | None:
    """Return an order of small tables, if there is one for all nodes."""
    order, stuck = _order(problem)
    return None if stuck else {"kind": "table", "order": order}


def _proved(problem: Pairwise, wanted: int, limits: Limits, *, word: bool) -> Evidence:
    """Return evidence for a bound, else a word or something weaker."""
    found = proof(problem, wanted, limits)
    if found is None and word:
        return {"kind": "word", "bound": wanted}
    every = [{"kind": "dual"}, *_candidates(problem, limits)]
    return found or min(every, key=lambda own: bound(problem, own)[0])


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
    found = _relax(problem, limits)
    if found is not None:
        relaxed, factor = found
        prices = _prices(problem, relaxed.prices, factor)
        scale = lcm(*(price.denominator for _, price in prices))
        inner = {"kind": "table", "order": order} if not stuck else None
        own = inner or _dual(relaxed.messages, -scale * factor)
        rows = [[k, ratio(price)] for k, price in prices]
        yield {"kind": "prices", "rows": rows, "evidence": own} if rows else own


def _dual(costs: Sequence[Message], factor: int) -> Evidence:
    """Return messages in whole parts of one; a factor makes worths of costs."""
    every = np.array([x for pair in costs for side in pair for x in side])
    near = 1e-7 * (1 + np.abs(every).max(initial=0.0))
    parts = next(
        (p for p in PARTS if (abs(every * p - np.rint(every * p)) < near).all()), PARTS[-1]
    )
    messages = []
    for pair in costs:
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


def _prices(problem: Pairwise, prices: Sequence[float], factor: int) -> list[tuple[int, Fraction]]:
    """Return prices of rows times a factor, rounded by so little that it hardly matters."""
    found = []
    largest = max(map(abs, prices), default=0.0)
    for k, price in enumerate(prices):
        if abs(price) <= 1e-9 * largest:
            continue
        row = problem.rows[k]
        limit = row.high if price > 0 else row.low
        size = sum(int(max(map(abs, own))) for own in row.terms.values()) + abs(limit or 0) + 1
        exact = Fraction(round(price * 2**20), 2**20) if largest > 2**40 else Fraction(price)
        fine = 2 ** (32 * len(prices) * size).bit_length()
        near = exact.limit_denominator(100)
        if abs(near - exact) * fine > 1:
            near = Fraction(round(exact * fine), fine)
        if near:
            found.append((k, near * factor))
    return found


def ratio(x: Fraction) -> int | str:
    """Return a number as certificates have it."""
    return int(x) if x.denominator == 1 else str(x)


def _relax(problem: Pairwise, limits: Limits) -> tuple[Relaxed, int] | None:
    """Return the solved linear relaxation, and a factor of its messages and prices.

    The factor is 1, or so large that those of an elastic relaxation prove that nothing is allowed.
    """
    entries = sum(table.size for _, _, table in problem.edges)
    entries += sum(problem.widths[i] for i, _, _ in problem.equal)
    entries += sum(len(own) for row in problem.rows for own in row.terms.values())
    limits.spend(EACH + PER_ENTRY * entries)
    if entries > ENTRIES or problem.total > 2**900:
        return None
    limits.report("certificate: relaxation")
    found = _solved(problem, limits, elastic=False) if problem.total else None
    if found is not None:
        return found, 1
    if problem.total and limits.over:
        return None
    found = _solved(problem, limits, elastic=True)
    if found is None or found.cost < 1e-6:
        return None
    factor = 1 if not problem.total else int(2 * (problem.total + 1) / found.cost) + 1
    return found, factor


def _solved(problem: Pairwise, limits: Limits, *, elastic: bool) -> Relaxed | None:
    """Solve the linear relaxation, with a price for each row; ``None`` if it has none in time.

    If it is elastic, nothing is worth anything, but forbidden entries and what rows lack cost one
    each.
    """

    def costs(array: Array) -> list[Any]:
        """Return what entries cost, the best one nothing."""
        good = problem.allowed(array)
        lost: Array = np.zeros(array.shape, object)
        if not elastic and good.any():
            lost += array[good].max() - array
        lost[~good] = 1 if elastic else inf
        listed: list[Any] = lost.tolist()
        return listed

    rows, scales = _rows(problem, elastic=elastic)
    given = programme(
        [costs(own) for own in problem.unary],
        [(i, j, costs(table)) for i, j, table in problem.edges],
        [(i, j, 0 if elastic else -w) for i, j, w in problem.equal],
        len(rows) if elastic else 0,
    )
    found = relax(given, limits, rows)
    if found is None:
        return None
    prices = [0.0] * len(problem.rows)
    for (k, scale), price in zip(scales, found.prices, strict=True):
        prices[k] += scale * price
    return replace(found, prices=prices)


def _rows(problem: Pairwise, *, elastic: bool) -> tuple[list[UpperRow], list[tuple[int, float]]]:
    """Return the limits of rows, scaled, and for each the row's number and the signed scale.

    Variables are indicators, node by node, and in elastic ones a slack for each limit after these.
    """
    first = [0, *accumulate(problem.widths)]
    rows, scales = list[UpperRow](), list[tuple[int, float]]()
    for k, row in enumerate(problem.rows):
        inside = problem.inside(row)
        if inside is None:
            continue
        own, constant = inside
        amounts = {
            first[u] + i: int(x)
            for u, each in own.terms.items()
            for i, x in enumerate(each.tolist())
            if x
        }
        size = max(map(abs, amounts.values()), default=1)
        for sign, limit in ((1, own.high), (-1, own.low)):
            if limit is not None:
                factors = {at: sign * x / size for at, x in amounts.items()}
                if elastic:
                    factors[first[-1] + len(rows)] = -1.0
                rows.append((factors, sign * (limit - constant) / size))
                scales.append((k, sign / size))
    return rows, scales
