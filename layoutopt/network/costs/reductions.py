"""Reductions, one after the other, until none applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import Limits
from layoutopt.network.costs.work import (
    Cost,
    Infeasible,
    Table,
    Work,
    normalise,
    normalise_all,
    overtime,
)
from layoutopt.network.elimination import Factor, minimise, narrow_order

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
    work.note("leave", u)
    work.leave(u)
    return around


def alone(work: Work, u: int) -> list[int] | None:
    """Let a node without neighbours go, ``None`` if it has some."""
    if work.near[u] or u in work.held:
        return None
    work.constant += int(min(work.costs[u]))
    work.note("leave", u)
    work.leave(u)
    return []


def leaf(work: Work, u: int) -> list[int] | None:
    """Let a node of one neighbour go, ``None`` if it has more or less."""
    if len(work.near[u]) != 1 or u in work.held:
        return None
    own = work.costs[u]
    lowest = min(own)
    best = own.index(lowest)
    for v in work.near[u]:
        other = work.costs[v]
        for j, column in enumerate(work.near[v][u]):
            if other[j] < inf:
                if column[best] == 0 == min(column):
                    least = lowest
                else:
                    least = min([a + b for a, b in zip(own, column, strict=True)])
                if least == inf:
                    work.forbid(v, j)
                other[j] += least
    around = list(work.near[u])
    work.note("leave", u)
    work.leave(u)
    return around


def between(work: Work, u: int) -> list[int] | None:
    """Let a node of two neighbours go, which an edge joins then; ``None`` if it has not two."""
    if len(work.near[u]) != 2 or u in work.held:
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
    work.note("leave", u)
    work.leave(u)
    work.add(v, w, tuple(table))
    normalise(work, v, w)
    return [v, w]


Moves: TypeAlias = dict[tuple[int, int, int], tuple[int, int, dict[int, Cost]]]
"""By node and two labels what the change may cost at its neighbours: the sum of what is
finite, how many are infinite, and each one's share."""


WIDE = 8
"""Nodes of more labels have pairs of them ruled out by arrays before one by one is looked at."""

SHARE = 0.2  # share of the time left that looking for dominated labels gets


def dominate(work: Work, nodes: Iterable[int], limits: Limits | None = None) -> list[int]:
    """Take dominated labels from some nodes; return these nodes and their neighbours.

    Of labels that can stand in for each other one remains.  Edges are not tidied meanwhile,
    so what is known of moves stays true: labels can only vanish.
    """
    moves: Moves = {}
    found: dict[int, None] = {}
    for u in nodes:
        if limits is not None and limits.over:
            break
        if not work.gone[u] and u not in work.held and _thin(work, u, moves):
            found.update(dict.fromkeys([u, *work.near[u]]))
    return list(found)


def _thin(work: Work, u: int, moves: Moves) -> bool:
    """Take dominated labels from a node; return whether there were any."""
    own = work.costs[u]
    # Nodes of many labels: looking at all that they might answer takes long and finds little.
    free = {v for v in work.near[u] if len(work.costs[v]) <= 2 and v not in work.held}
    before = own.count(inf)
    labels = work.labels(u)
    hopeful = None
    if len(labels) > WIDE and not free and work.never is inf:
        hopeful = _hopeful(work, u, labels)
    for k, i in enumerate(labels):
        others = labels if hopeful is None else [labels[n] for n in hopeful[k].nonzero()[0]]
        for j in others:
            if i == j or own[j] == inf:
                continue
            # Tables hold nothing below 0, so that a label that costs more hardly ever dominates.
            if own[j] <= own[i] and _change(work, u, i, j, free, moves) <= 0:
                work.note("instead", u, i, j)
                work.forbid(u, i)
                break
    return own.count(inf) > before


def _hopeful(work: Work, u: int, labels: list[int]) -> NDArray[np.bool_]:
    """Return for two labels whether the second may dominate the first, by doubles.

    Neighbours do not answer.  What is sure to cost more by rounding's measure is ruled out.
    """
    own = np.array([work.costs[u][i] for i in labels], np.float64)
    change = own - own[:, None]
    size = np.abs(own).max()
    with np.errstate(invalid="ignore"):
        for v, rows in work.near[u].items():
            there = [m for m, cost in enumerate(work.costs[v]) if cost < inf]
            table = np.array([rows[i] for i in labels], np.float64)[:, there]
            size += np.abs(table[table < inf]).max(initial=0.0)
            for k in range(len(labels)):
                more = np.where(table[k] < inf, table - table[k], -inf)
                change[k] += more.max(axis=1)
    return np.asarray(~(change > 1e-12 * size), np.bool_)


def _change(work: Work, u: int, i: int, j: int, free: set[int], moves: Moves) -> Cost:
    """Return the most that choosing ``j`` instead of ``i`` can cost if free neighbours answer."""
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
        total = total + worst if worst > -inf else worst
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
        return work.never
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


MANY = 64  # nodes of more neighbours are not looked at: they would be again and again


def follow(work: Work, u: int) -> list[int] | None:
    """Let a node go that has only one label for each label of some neighbour.

    Its costs and edges become the neighbour's.  This is the rule for edges that force two nodes to
    choose equal labels, or labels that a view turns into each other.  Return who hears of it;
    ``None`` if the node is nobody's follower.
    """
    for v in work.near[u] if len(work.near[u]) <= MANY and u not in work.held else ():
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
    work.note("follow", u, v)
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


Rule: TypeAlias = Callable[[Work, int], "list[int] | None"]
"""Tries to reduce a problem at a node; returns the nodes to look at again, or ``None``."""

LOOK = 50_000  # entries of tables between two looks at the limits; a node counts some besides


def renormalise(work: Work, u: int) -> list[int] | None:
    """Bring the edges of a node that lost labels back to normal form."""
    if u not in work.shrunk:
        return None
    work.shrunk.discard(u)
    around = list(work.near[u])
    for v in around:
        normalise(work, u, v)
    return [u, *around]


RULES: tuple[tuple[Rule, ...], ...] = ((renormalise, settle, alone, leaf, between), (follow,))
"""Rules by level: those of a level are tried where none of the levels before applies."""


def reduce(work: Work, limits: Limits) -> None:
    """Reduce a problem until no rule applies, or time is up, perhaps before it is in normal form.

    Raises ``Infeasible`` if no labelling is allowed.
    """
    work.below = 0
    try:
        normalise_all(work, overtime(limits))
    except TimeoutError:
        least: dict[int, int] = {}
        for _, _, table in work.edges():
            if id(table) not in least:
                least[id(table)] = int(min(0, *map(min, table)))
            work.below += least[id(table)]
        return
    touched = work.left()
    limits.report("reductions")
    while touched and not limits.over:
        apply(work, limits, touched)
        touched = dominate(work, touched, limits.within(SHARE * limits.left))


def apply(work: Work, limits: Limits, nodes: Iterable[int]) -> None:
    """Apply rules at some nodes, and on wherever something changes.

    Raises ``Infeasible`` if no labelling is allowed.
    """
    queues: list[dict[int, None]] = [dict.fromkeys(nodes) for _ in RULES]
    waiting = 0
    while any(queues):
        if waiting <= 0:
            if limits.over:
                return
            waiting = LOOK
        level = 0
        while not queues[level]:
            level += 1
        u, _ = queues[level].popitem()
        waiting -= 200 + len(work.costs[u]) ** 2 * len(work.near[u])
        touched = None if work.gone[u] else _first(work, u, RULES[level])
        if touched:
            for queue in queues:
                queue.update(dict.fromkeys(touched))


def _first(work: Work, u: int, rules: Sequence[Rule]) -> list[int] | None:
    """Apply the first rule that fires at a node."""
    for rule in rules:
        touched = rule(work, u)
        if touched is not None:
            return touched
    return None


TABLE_LIMIT = 2**18  # largest table of an elimination, in entries
WORK_LIMIT = 2**24  # largest sum of the sizes of all its tables
NEVER = 2**60  # stands for forbidden there; sums are cut back to it


def eliminate(work: Work, limits: Limits) -> list[int] | None:
    """Return an optimal labelling of what is left, or ``None`` if tables would be too large.

    Raises ``Infeasible`` if no labelling is allowed.
    """
    if 2 * work.size() >= NEVER:
        return None
    widths = {u: len(work.labels(u)) for u in work.left()}
    near = {u: set(work.near[u]) for u in widths}
    scopes = narrow_order(near, widths, TABLE_LIMIT, WORK_LIMIT)
    if scopes is None:
        return None
    found = minimise(scopes, widths, factors_of(work)[0], limits, NEVER)
    if found is None:
        return None
    chosen, least = found
    if least >= NEVER:
        raise Infeasible
    return own_labels(work, chosen)


def factors_of(work: Work) -> tuple[list[Factor], int]:
    """Return tables over the labels that are left, their least entries 0, and what all cost."""
    labels = {u: work.labels(u) for u in work.left()}
    each: list[tuple[tuple[int, ...], list[list[Cost]]]] = [
        ((u,), [[work.costs[u][i] for i in own]]) for u, own in labels.items()
    ]
    for u, v, costs in work.edges():
        each.append(((u, v), [[costs[i][j] for j in labels[v]] for i in labels[u]]))
    least = [min(map(min, rows)) for _, rows in each]
    if inf in least:
        raise Infeasible
    factors: list[Factor] = []
    for (nodes, rows), low in zip(each, least, strict=True):
        above = [[NEVER if c == inf else c - low for c in row] for row in rows]
        table = np.array(above, np.int64)
        factors.append((nodes, table if len(nodes) == 2 else table[0]))
    return factors, int(work.constant + sum(least))


def own_labels(work: Work, chosen: Mapping[int, int]) -> list[int]:
    """Return a labelling by the labels' own numbers, given by places among those left."""
    whole = [0] * len(work.costs)
    for u, k in chosen.items():
        whole[u] = work.labels(u)[k]
    return whole
