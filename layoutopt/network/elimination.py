"""Non-serial dynamic programming over parts of small treewidth.

Nodes leave one after the other (Bertelè and Brioschi, 1972): what a node's best reply costs, as
a table over the labels of its neighbours, replaces the node and its tables.  With ``k`` labels
and ``d`` neighbours that takes ``k^(d+1)`` entries; the node whose table is smallest goes first.
Trees, cycles, narrow grids and everything tiny is solved exactly, whatever the signs of costs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.result import Result
from layoutopt.network.problem import Labelling, WeightArray, fresh_needed, reward_table

TABLE_LIMIT = 2**18
"""Largest table, in entries."""

WORK_LIMIT = 2**26
"""Largest sum of the sizes of all tables."""

Factor: TypeAlias = tuple[tuple[int, ...], WeightArray]
"""Nodes, and a table of costs with an axis for each."""

Scope: TypeAlias = tuple[int, ...]
"""A node that leaves, and its neighbours then in the order in which they leave."""


def eliminate(problem: Labelling) -> Result | None:
    """Solve a part without order rules, or return ``None`` if its tables would be too large."""
    fresh = fresh_needed(problem)
    near: dict[int, set[int]] = {u: set() for u in range(problem.nodes)}
    for u, v in problem.edges.tolist():
        near[u].add(v)
        near[v].add(u)
    widths = dict.fromkeys(near, problem.labels + fresh)
    scopes = narrow_order(near, widths, TABLE_LIMIT, WORK_LIMIT)
    if scopes is None:
        return None
    wide = object if problem.weights.dtype == object else np.int64
    same = np.eye(problem.labels + fresh, dtype=wide)
    pairs = zip(problem.edges.tolist(), problem.weights.tolist(), strict=True)
    factors: list[Factor] = [((u, v), same * -w) for (u, v), w in pairs]
    factors += [((u,), -row) for u, row in enumerate(reward_table(problem, fresh))]
    found = minimise(scopes, widths, factors, Limits())
    if found is None:
        return None
    chosen, cost = found
    labels = np.array([chosen[u] for u in range(problem.nodes)], np.int64)
    return Result(objective=problem.value(labels), bound=-cost, labelling=labels)


def narrow_order(
    near: dict[int, set[int]], widths: Mapping[int, int], table: int, total: int
) -> list[Scope] | None:
    """Return an order in which all nodes leave, or ``None`` if tables would be too large.

    Parameters
    ----------
    near, widths, table, total
        As for :func:`shrink`.
    """
    steps = shrink(near, widths, table, total)
    if near:
        return None
    rank = {u: k for k, (u, _) in enumerate(steps)}
    return [(u, *sorted(around, key=rank.__getitem__)) for u, around in steps]


def minimise(
    scopes: Sequence[Scope],
    widths: Mapping[int, int],
    factors: Iterable[Factor],
    limits: Limits,
    ceiling: int | None = None,
) -> tuple[dict[int, int], int] | None:
    """Return the labelling of least cost, and that cost; ``None`` if time is up.

    Parameters
    ----------
    scopes
        From :func:`narrow_order`.
    widths
        For each node its number of labels.
    factors
        The costs, each of nodes that leave a common neighbourhood.
    ceiling
        Sums are cut back to it; it stands for forbidden where it is more than all costs.
    """
    rank = {scope[0]: k for k, scope in enumerate(scopes)}
    waiting: dict[int, list[Factor]] = {u: [] for u in rank}
    for names, costs in factors:
        order = sorted(range(len(names)), key=lambda k: rank[names[k]])
        waiting[names[order[0]]].append((tuple([names[k] for k in order]), costs.transpose(order)))
    replies = []
    cost = 0
    for scope in scopes:
        if limits.over:
            return None
        sizes = [widths[u] for u in scope]
        here = waiting.pop(scope[0])
        kinds = [costs.dtype for _, costs in here]
        sums: WeightArray = np.zeros(sizes, np.result_type(np.int64, *kinds))
        for names, costs in here:
            shape = [n if u in names else 1 for u, n in zip(scope, sizes, strict=True)]
            sums += costs.reshape(shape)
            if ceiling is not None:
                np.minimum(sums, ceiling, out=sums)
        reply = sums.argmin(axis=0)
        least = np.take_along_axis(sums, reply[None], 0)[0]
        replies.append(reply.astype(np.min_scalar_type(sizes[0])))
        if len(scope) > 1:
            waiting[scope[1]].append((scope[1:], least))
        else:
            cost += int(least)
    labels: dict[int, int] = {}
    for scope, reply in zip(reversed(scopes), reversed(replies), strict=True):
        labels[scope[0]] = int(reply[tuple([labels[u] for u in scope[1:]])])
    return labels, cost


def shrink(
    near: dict[int, set[int]], widths: Mapping[int, int], table: int, total: int
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
