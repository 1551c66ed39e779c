"""Reduced-cost fixing: what messages prove forbids labels that are in no better labelling.

Messages of a relaxation move costs from tables to labels, in exact numbers, so that the least costs
of all nodes add up to a bound.  A label or a pair whose own cost then exceeds the gap between that
bound and the best labelling is in none that costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from layoutopt.base.limits import Limits
from layoutopt.network.costs.work import Cost, Work, level, normalise_all, overtime
from layoutopt.network.solvers.pairwise import Message


def tighten(work: Work, scale: int, messages: Sequence[Message], limits: Limits) -> Work:
    """Return the problem in parts of a unit, with what messages prove as its constant.

    ``scale`` of its units make one; messages speak of the labels that nodes may still choose.
    Raises ``TimeoutError`` if time has been up for longer than ``OVERTIME``.
    """
    stop = overtime(limits)
    tight = work.copy()
    tight.constant *= scale
    own = {u: work.labels(u) for u in work.left()}
    for u in own:
        tight.costs[u] = [cost * scale for cost in work.costs[u]]
    for (u, v, table), (one, two) in zip(list(work.edges()), messages, strict=True):
        if stop():
            raise TimeoutError
        first = whole_parts(one, own[u], len(table), scale)
        second = whole_parts(two, own[v], len(table[0]), scale)
        rows = [
            tuple([x * scale - a - b for x, b in zip(row, second, strict=True)])
            for row, a in zip(table, first, strict=True)
        ]
        tight.put(u, v, tuple(rows))
        tight.costs[u] = [cost + a for cost, a in zip(tight.costs[u], first, strict=True)]
        tight.costs[v] = [cost + b for cost, b in zip(tight.costs[v], second, strict=True)]
    normalise_all(tight, stop)
    level(tight)
    return tight


def whole_parts(message: list[float], labels: Sequence[int], width: int, scale: int) -> list[int]:
    """Return a message in whole parts, 0 for labels that are out of the question."""
    whole = [0] * width
    for i, amount in zip(labels, message, strict=True):
        whole[i] = round(amount * scale)
    return whole


def outlook(work: Work, u: int, i: int) -> Cost:
    """Return what a label costs if each neighbour suits itself."""
    total = work.costs[u][i]
    for v, table in work.near[u].items():
        total += min([a + b for a, b in zip(table[i], work.costs[v], strict=True)])
    return total


def forbid(work: Work, worth: int) -> None:
    """Forbid what makes every labelling cost more than a known one, which stays allowed.

    The problem is in normal form, each node's least cost being 0.
    """
    room = worth - work.constant
    for u in work.left():
        for i in work.labels(u):
            if outlook(work, u, i) > room:
                work.forbid(u, i)
    for u, v, table in list(work.edges()):
        if any(room < cost < inf for row in table for cost in row):
            rows = (tuple([work.never if c > room else c for c in row]) for row in table)
            work.put(u, v, tuple(rows))
