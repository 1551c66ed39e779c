"""Followers: nodes that have no choice once a neighbour has chosen."""

from __future__ import annotations

from math import inf

from layoutopt.pbqp.normal import normalise
from layoutopt.pbqp.work import Table, Work

MANY = 64
"""Nodes of more neighbours are not looked at: they would be again and again."""


def follow(work: Work, u: int) -> list[int] | None:
    """Let a node go that has only one label for each label of some neighbour.

    Its costs and edges become the neighbour's.  This is the rule for edges that force two
    nodes to choose equal labels, or labels that a view turns into each other.

    Returns
    -------
    list or None
        Who hears of it; ``None`` if the node is nobody's follower.
    """
    for v in work.near[u] if len(work.near[u]) <= MANY else ():
        replies = _replies(work, u, v)
        if replies is not None:
            break
    else:
        return None
    leader = work.costs[v]
    seen = work.near[v][u]
    for j, i in enumerate(replies):
        if leader[j] < inf:
            leader[j] += work.costs[u][i] + seen[j][i]
    around = dict(work.near[u])
    work.leave(u)
    for w, table in around.items():
        if w != v:
            work.add(v, w, tuple([table[i] for i in replies]))
            normalise(work, v, w)
    return list(around)


def _replies(work: Work, u: int, v: int) -> list[int] | None:
    """Return the only label of ``u`` for each of ``v``'s, any one where there is no choice."""
    table: Table = work.near[v][u]
    own = work.costs[u]
    whole, most = inf not in own, len(own) - 1
    replies = []
    for cost, row in zip(work.costs[v], table, strict=True):
        if whole and cost < inf and row.count(inf) != most:
            return None
        allowed = [i for i, x in enumerate(row) if x < inf and own[i] < inf]
        if cost < inf and len(allowed) != 1:
            return None
        replies.append(allowed[0] if allowed else 0)
    return replies
