"""Evidence for bounds on sums of worths of labels and of pairs of labels.

Dynamic programming where tables stay small, else messages of the linear relaxation in exact
ratios, else both of these behind a few nodes that are fixed to each of their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from layoutopt.base.limits import Limits
from layoutopt.certificate.pairwise import DEEPEST, Pairwise, bound, fixed, split, value
from layoutopt.network.elimination import shrink
from layoutopt.network.solvers.pairwise import programme, relax

TABLE, TOTAL = 10**6, 3 * 10**7
"""Entries of the largest table, and of all tables together, that a checker is to make."""

SEARCH = 30.0
"""Effort for one proof, in seconds of a machine of today."""

DEPTH = DEEPEST - 2
"""Nodes that are fixed at once: a class and its components are around them."""

EACH, PER_ENTRY = 2e-3, 6e-6
"""Effort for a linear programme, and for each entry of its tables."""

FINEST = 10**4
"""Largest denominator of a message."""

ENTRIES = 3 * 10**5
"""Most entries of all tables together that a linear programme is written for."""

PRECISE = 2**40
"""What is worth more is rounded for the linear programme, whose numbers are doubles."""

Evidence = dict[str, Any]


def evidence(problem: Pairwise, labels: Sequence[int], limits: Limits | None = None) -> Evidence:
    """Return evidence that a labelling is the best, a solver's word where there is no other.

    Parameters
    ----------
    problem
        The problem.
    labels
        The best labelling; not as good a one only makes it harder.
    limits
        When to stop looking for more than a word.
    """
    limits = (limits or Limits()).turn(SEARCH)
    order, stuck = _order(problem)
    if not stuck:
        return {"kind": "table", "order": order}
    hard, easy = _parts(problem, stuck)
    every = [*hard, easy] if easy else hard
    found = []
    for nodes, own in zip(every, split(problem, every), strict=True):
        wanted = value(own, [labels[u] for u in nodes])
        proved = proof(own, wanted, limits) or {"kind": "word", "bound": wanted}
        found.append({"nodes": nodes, "evidence": proved})
    return {"kind": "components", "parts": found}


def _near(problem: Pairwise) -> dict[int, set[int]]:
    """Return the neighbours of nodes of several labels."""
    near: dict[int, set[int]] = {u: set() for u, width in enumerate(problem.widths) if width > 1}
    for i, j, _ in problem.edges:
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


def proof(problem: Pairwise, wanted: int, limits: Limits, depth: int = 0) -> Evidence | None:
    """Return evidence for a bound, None if none is found within the limits."""
    order, stuck = _order(problem)
    found: Evidence | None
    if not stuck:
        found = {"kind": "table", "order": order}
    elif limits.over:
        return None
    else:
        found = _dual(problem, limits)
    if found is not None and bound(problem, found)[0] <= wanted:
        return found
    if not stuck or depth == DEPTH:
        return None
    node = max(stuck, key=lambda u: (len(stuck[u]), -u))
    parts = []
    for label in range(problem.widths[node]):
        leaf = proof(fixed(problem, node, label), wanted, limits, depth + 1)
        if leaf is None:
            return None
        parts.append(leaf)
    return {"kind": "branch", "node": node, "leaves": parts}


def _dual(problem: Pairwise, limits: Limits) -> Evidence | None:
    """Return messages of the linear relaxation; any are right, those nearest to it the best."""
    entries = sum(table.size for _, _, table in problem.edges)
    limits.spend(EACH + PER_ENTRY * entries)
    if entries > ENTRIES:
        return None
    limits.report("certificate: relaxation")
    lost = [_lost(own) for own in problem.unary]
    edges = [
        (i, j, [_lost(row, int(table.max())) for row in table]) for i, j, table in problem.edges
    ]
    largest = max(max(map(max, rows)) for rows in ([[0]], lost, *(rows for *_, rows in edges)))
    unit = max(largest // PRECISE, 1)
    costs = [[x // unit for x in own] for own in lost]
    small = [(i, j, [[x // unit for x in row] for row in rows]) for i, j, rows in edges]
    found = relax(programme(costs, small), limits)
    if found is None:
        return None
    return {
        "kind": "dual",
        "messages": [[_ratios(one, unit), _ratios(two, unit)] for one, two in found.messages],
    }


def _lost(own: Iterable[int], most: int | None = None) -> list[int]:
    """Return what each label is worth less than the best one, or than something worth more."""
    every = list(map(int, own))
    top = max(every) if most is None else most
    return [top - x for x in every]


def _ratios(message: list[float], unit: int) -> list[int | str]:
    exact = [-unit * Fraction(x).limit_denominator(FINEST) for x in message]
    return [int(x) if x.denominator == 1 else str(x) for x in exact]
