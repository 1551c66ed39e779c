"""Dominated labels: those that another label can always stand in for.

Label ``j`` stands in for label ``i`` of a node if the change costs nothing, whatever the other
nodes have chosen.  Neighbours may answer the change by changing, too: an op may take another
layout if what that saves pays for all transforms that it then lacks.  They change one after the
other, each at the most that this can cost, so neighbours of each other may answer, too.  Without
answers this is Goldstein's dead-end elimination (Biophys. J. 66, 1994).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TypeAlias

from layoutopt.pbqp.work import Cost, Work

Moves: TypeAlias = dict[tuple[int, int, int], tuple[int, int, dict[int, Cost]]]
"""By node and two labels what the change may cost at its neighbours: the sum of what is
finite, how many are infinite, and each one's share."""


def dominate(work: Work, nodes: Iterable[int]) -> list[int]:
    """Take dominated labels from some nodes; return these nodes and their neighbours.

    Of labels that can stand in for each other one remains.  Edges are not tidied meanwhile,
    so what is known of moves stays true: labels can only vanish.
    """
    moves: Moves = {}
    found: dict[int, None] = {}
    for u in nodes:
        if not work.gone[u] and _thin(work, u, moves):
            found.update(dict.fromkeys([u, *work.near[u]]))
    return list(found)


def _thin(work: Work, u: int, moves: Moves) -> bool:
    """Take dominated labels from a node; return whether there were any."""
    own = work.costs[u]
    # Nodes of many labels: looking at all that they might answer takes long and finds little.
    free = {v for v in work.near[u] if len(work.costs[v]) <= 2}
    before = own.count(inf)
    for i in work.labels(u):
        for j in work.labels(u):
            # Tables hold nothing below 0, so that a label that costs more hardly ever dominates.
            if i != j and own[j] <= own[i] and _change(work, u, i, j, free, moves) <= 0:
                work.forbid(u, i)
                break
    return own.count(inf) > before


def _change(work: Work, u: int, i: int, j: int, free: set[int], moves: Moves) -> Cost:
    """Return the most that it can cost to choose ``j`` instead of ``i``.

    Parameters
    ----------
    free
        Neighbours that may answer.
    """
    total = work.costs[u][j] - work.costs[u][i]
    for v, table in work.near[u].items():
        before, after = table[i], table[j]
        if before == after:
            continue
        worst = -inf
        for m, cost in enumerate(work.costs[v]):
            if cost < inf and before[m] < inf:
                here = after[m] - before[m]
                if here > 0 and v in free:
                    answers = [
                        after[n] - before[m] + _moving(work, u, v, m, n, moves)
                        for n in work.labels(v)
                        if n != m and after[n] < inf
                    ]
                    here = min([here, *answers])
                worst = max(worst, here)
        total += worst
        if abs(total) == inf:  # neighbours forbid the one label or the other
            break
    return total


def _moving(work: Work, u: int, v: int, m: int, n: int, moves: Moves) -> Cost:
    """Return the most that it can cost ``v`` to choose ``n`` instead of ``m``, ``u`` apart."""
    known = moves.get((v, m, n))
    if known is None:
        shares = {w: _worst(work, w, t[m], t[n]) for w, t in work.near[v].items()}
        finite = sum([int(share) for share in shares.values() if share < inf])
        endless = sum([share == inf for share in shares.values()])
        known = moves[v, m, n] = (finite, endless, shares)
    finite, endless, shares = known
    if endless > (shares[u] == inf):
        return inf
    mine = shares[u] if shares[u] < inf else 0
    return work.costs[v][n] - work.costs[v][m] + finite - mine


def _worst(work: Work, w: int, before: tuple[Cost, ...], after: tuple[Cost, ...]) -> Cost:
    """Return the most that a change costs at a neighbour that does not answer."""
    changes = [
        there - here
        for cost, here, there in zip(work.costs[w], before, after, strict=True)
        if cost < inf and here < inf
    ]
    return max(changes, default=0)  # without any the label cannot be chosen anyway
