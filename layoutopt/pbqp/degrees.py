"""Nodes that leave: those with one label, and those with up to two neighbours.

With one label, or none, one or two neighbours, what a node's best reply costs is a table of at
most two other nodes (reductions R0, RI and RII of Scholz and Eckstein, 2002).
"""

from __future__ import annotations

from math import inf

from layoutopt.pbqp.normal import normalise
from layoutopt.pbqp.work import Work

LARGEST = 2**18
"""Three nodes' numbers of labels multiply to no more than this when the middle one leaves."""


def settle(work: Work, u: int) -> list[int] | None:
    """Let a node of one label go; return who hears of it, ``None`` if it has more."""
    labels = work.labels(u)
    if len(labels) > 1:
        return None
    around = list(work.near[u])
    for v in around:
        other = work.costs[v]
        for j, cost in enumerate(work.near[u][v][labels[0]]):
            if cost == inf and other[j] < inf:
                work.forbid(v, j)
            other[j] += cost
    work.constant += int(work.costs[u][labels[0]])
    work.leave(u)
    return around


def alone(work: Work, u: int) -> list[int] | None:
    """Let a node without neighbours go, ``None`` if it has some."""
    if work.near[u]:
        return None
    work.constant += int(min(work.costs[u]))
    work.leave(u)
    return []


def leaf(work: Work, u: int) -> list[int] | None:
    """Let a node of one neighbour go, ``None`` if it has more or less."""
    if len(work.near[u]) != 1:
        return None
    own = work.costs[u]
    for v in work.near[u]:
        other = work.costs[v]
        for j, column in enumerate(work.near[v][u]):
            if other[j] < inf:
                least = min([a + b for a, b in zip(own, column, strict=True)])
                if least == inf:
                    work.forbid(v, j)
                other[j] += least
    around = list(work.near[u])
    work.leave(u)
    return around


def between(work: Work, u: int) -> list[int] | None:
    """Let a node of two neighbours go, which an edge joins then; ``None`` if it has not two."""
    if len(work.near[u]) != 2:
        return None
    own = work.costs[u]
    v, w = work.near[u]
    if len(own) * len(work.costs[v]) * len(work.costs[w]) > LARGEST:
        return None
    second = work.near[w][u]
    table = []
    for column in work.near[v][u]:
        at = [a + b for a, b in zip(own, column, strict=True)]
        table.append(
            tuple([min([a + b for a, b in zip(at, other, strict=True)]) for other in second])
        )
    work.leave(u)
    work.add(v, w, tuple(table))
    normalise(work, v, w)
    return [v, w]
