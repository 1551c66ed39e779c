"""Dynamic programming over the nodes of a part of small treewidth.

Nodes leave one after the other (non-serial dynamic programming, Bertelè and Brioschi, 1972):
what a node's best reply costs, as a table over the labels of its neighbours, replaces the node
and its tables.  The node whose table is smallest goes first.  Graphs of networks with skips and
branches are narrow; those in which many ops read many tensors are not.
"""

from __future__ import annotations

import heapq
from math import inf
from typing import TypeAlias

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.costs.work import Cost, Infeasible, Work
from layoutopt.network.problem import IntArray

TABLE_LIMIT = 2**18
"""Largest table, in entries."""

WORK_LIMIT = 2**24
"""Largest sum of the sizes of all tables."""

NEVER = 2**60
"""Stands for forbidden; sums are cut back to it."""

Factor: TypeAlias = tuple[tuple[int, ...], IntArray]
"""Nodes in the order in which they leave, and a table with an axis for each."""


def eliminate(
    work: Work, limits: Limits, table: int = TABLE_LIMIT, total: int = WORK_LIMIT
) -> list[int] | None:
    """Return an optimal labelling of what is left, or ``None`` if tables would be too large.

    Parameters
    ----------
    table, total
        Largest table, and largest sum of all tables, in entries.

    Raises
    ------
    Infeasible
        If there is no allowed labelling.
    """
    if 2 * work.size() >= NEVER:
        return None
    labels = {u: work.labels(u) for u in work.left()}
    near = {u: set(work.near[u]) for u in labels}
    steps = shrink(near, {u: len(own) for u, own in labels.items()}, table, total)
    if near:
        return None
    rank = {u: k for k, (u, _) in enumerate(steps)}
    scopes = [(u, *sorted(around, key=rank.__getitem__)) for u, around in steps]
    factors = _factors(work, labels, rank)
    replies = []
    for scope in scopes:
        if limits.over:
            return None
        sizes = [len(labels[u]) for u in scope]
        sums = np.zeros(sizes, np.int64)
        for names, costs in factors.pop(scope[0]):
            sums += costs.reshape(
                [n if u in names else 1 for u, n in zip(scope, sizes, strict=True)]
            )
            np.minimum(sums, NEVER, out=sums)
        reply = sums.argmin(axis=0)
        least = np.take_along_axis(sums, reply[None], 0)[0]
        if least.min() == NEVER:
            raise Infeasible
        replies.append(reply.astype(np.min_scalar_type(sizes[0])))
        if len(scope) > 1:
            factors[scope[1]].append((scope[1:], least))
    chosen = dict.fromkeys(labels, 0)  # numbers among the labels that are left
    for scope, reply in zip(reversed(scopes), reversed(replies), strict=True):
        chosen[scope[0]] = int(reply[tuple([chosen[u] for u in scope[1:]])])
    whole = [0] * len(work.costs)
    for u, k in chosen.items():
        whole[u] = labels[u][k]
    return whole


def _factors(
    work: Work, labels: dict[int, list[int]], rank: dict[int, int]
) -> dict[int, list[Factor]]:
    """Return all costs by the node of theirs that leaves first, with 0 as their least."""
    factors: dict[int, list[Factor]] = {
        u: [((u,), _array([[work.costs[u][i] for i in own]])[0])] for u, own in labels.items()
    }
    for u, v, table in work.edges():
        costs = _array([[table[i][j] for j in labels[v]] for i in labels[u]])
        if rank[u] < rank[v]:
            factors[u].append(((u, v), costs))
        else:
            factors[v].append(((v, u), costs.T))
    return factors


def _array(rows: list[list[Cost]]) -> IntArray:
    least = min([min(row) for row in rows])
    if least == inf:
        raise Infeasible
    return np.array([[NEVER if c == inf else c - least for c in row] for row in rows], np.int64)


def shrink(
    near: dict[int, set[int]], widths: dict[int, int], table: int, total: int
) -> list[tuple[int, set[int]]]:
    """Let nodes leave a graph, the one of the smallest table first, as long as limits allow.

    Parameters
    ----------
    near
        For each node its neighbours.  Whoever leaves makes neighbours of its neighbours;
        what remains is what could not leave.
    widths
        For each node its number of labels.
    table, total
        Largest table, and largest sum of all tables, in entries.

    Returns
    -------
    list
        Those that left, in order, and the neighbours of each then.
    """

    def size(u: int) -> int:
        entries = widths[u]
        for v in near[u]:
            entries *= widths[v]
            if entries > table:
                break
        return min(entries, table + 1)

    heap = [(size(u), u) for u in near]
    heapq.heapify(heap)
    left = []
    while heap:
        entries, u = heapq.heappop(heap)
        if u not in near or entries != size(u):
            continue
        total -= entries
        if entries > table or total < 0:
            break
        around = near.pop(u)
        left.append((u, around))
        for v in around:
            near[v] |= around
            near[v] -= {u, v}
        for v in around:
            heapq.heappush(heap, (size(v), v))
    return left
