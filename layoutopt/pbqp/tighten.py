"""The relaxation's bound as costs: whatever is left in the problem is above it.

Messages of the linear relaxation move costs between edges and nodes, exactly, in whole parts of
a unit.  In normal form the constant is the bound then, and the rest says what each choice costs
beyond it (optimal soft arc consistency, Cooper et al., Artificial Intelligence 174, 2010).
What costs more than a known labelling is out of the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from layoutopt.pbqp.normal import level, normalise_all
from layoutopt.pbqp.work import Work
from layoutopt.solvers.pairwise import Message


def tighten(
    work: Work, scale: int, messages: Sequence[Message], labels: Sequence[Sequence[int]]
) -> Work:
    """Return the problem in parts of a unit, with what messages prove as its constant.

    Parameters
    ----------
    scale
        What one unit is in the problem that is returned.
    messages
        For each edge.
    labels
        For each node that is left the labels that messages speak of.
    """
    tight = work.copy()
    tight.constant *= scale
    nodes = work.left()
    own = dict(zip(nodes, labels, strict=True))
    for u in nodes:
        tight.costs[u] = [cost * scale for cost in work.costs[u]]
    for (u, v, table), (one, two) in zip(list(work.edges()), messages, strict=True):
        first = _whole(one, own[u], len(table), scale)
        second = _whole(two, own[v], len(table[0]), scale)
        rows = [
            tuple([x * scale - a - b for x, b in zip(row, second, strict=True)])
            for row, a in zip(table, first, strict=True)
        ]
        tight.put(u, v, tuple(rows))
        tight.costs[u] = [cost + a for cost, a in zip(tight.costs[u], first, strict=True)]
        tight.costs[v] = [cost + b for cost, b in zip(tight.costs[v], second, strict=True)]
    normalise_all(tight)
    level(tight)
    return tight


def _whole(message: list[float], labels: Sequence[int], width: int, scale: int) -> list[int]:
    """Return a message in whole parts, 0 for labels that are out of the question."""
    whole = [0] * width
    for i, amount in zip(labels, message, strict=True):
        whole[i] = round(amount * scale)
    return whole


def forbid(work: Work, worth: int) -> None:
    """Forbid what makes every labelling cost more than a known one.

    Parameters
    ----------
    work
        A problem in normal form, each node's least cost being 0.
    worth
        The cost of a known labelling, which stays allowed.
    """
    room = worth - work.constant
    for u in work.left():
        for i in work.labels(u):
            least = work.costs[u][i]
            for v, table in work.near[u].items():
                least += min([a + b for a, b in zip(table[i], work.costs[v], strict=True)])
            if least > room:
                work.forbid(u, i)
    for u, v, table in list(work.edges()):
        if any(room < cost < inf for row in table for cost in row):
            work.put(u, v, tuple(tuple([inf if c > room else c for c in row]) for row in table))
