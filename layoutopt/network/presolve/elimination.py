"""Dynamic programming over the nodes of a part of small treewidth.

Nodes are eliminated one after the other (non-serial dynamic programming, Bertelè and
Brioschi, 1972): a node's best reply, as a table over the labels of its neighbours, replaces
the node and its factors.  With ``k`` labels, eliminating a node with ``d`` neighbours takes a
table of ``k^(d+1)`` entries; the node with the fewest neighbours goes first.  Trees, cycles,
narrow grids and everything tiny is solved exactly, whatever the signs of its weights.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from layoutopt.base.result import Result
from layoutopt.network.problem import Labelling, WeightArray, fresh_needed, reward_table

TABLE_LIMIT = 2**18
"""Largest table, in entries."""

WORK_LIMIT = 2**26
"""Largest sum of the sizes of all tables."""


@dataclass(frozen=True)
class _Step:
    """One elimination: a node, and the neighbours that it has then."""

    node: int
    around: tuple[int, ...]


def eliminate(problem: Labelling) -> Result | None:
    """Solve a part, or return ``None`` if its tables would be too large."""
    fresh = fresh_needed(problem)
    steps = _order(problem, problem.labels + fresh)
    if steps is None:
        return None
    rewards = reward_table(problem, fresh)
    kind = object if object in (rewards.dtype, problem.weights.dtype) else np.int64
    factors: list[list[tuple[tuple[int, ...], WeightArray]]] = [[] for _ in range(problem.nodes)]
    same = np.eye(rewards.shape[1], dtype=kind)
    rank = np.zeros(problem.nodes, np.int64)
    rank[[step.node for step in steps]] = np.arange(len(steps))
    for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        factors[u if rank[u] < rank[v] else v].append(((u, v), same * w))
    replies = []
    total = 0
    for step in steps:
        scope = (*step.around, step.node)
        table = rewards[step.node].astype(kind)
        for names, factor in factors[step.node]:
            table = table + _aligned(factor, names, scope)
        replies.append(table.argmax(axis=-1))
        best = table.max(axis=-1)
        if step.around:
            first = min(step.around, key=lambda u: rank[u])
            factors[first].append((step.around, best))
        else:
            total += int(best)
        factors[step.node] = []
    labels = np.zeros(problem.nodes, np.int64)
    for step, reply in zip(reversed(steps), reversed(replies), strict=True):
        labels[step.node] = reply[tuple(labels[u] for u in step.around)]
    return Result(objective=problem.value(labels), bound=total, labelling=labels)


def _aligned(factor: WeightArray, names: tuple[int, ...], scope: tuple[int, ...]) -> WeightArray:
    """Return a factor with its axes where the scope has them, and 1 elsewhere."""
    at = [scope.index(u) for u in names]
    order = np.argsort(at)
    shape = [1] * len(scope)
    for axis in order:
        shape[at[axis]] = factor.shape[axis]
    return factor.transpose(order).reshape(shape)


def _order(problem: Labelling, labels: int) -> list[_Step] | None:
    """Return an elimination order by least degree, or ``None`` if a table is too large."""
    near: list[set[int]] = [set() for _ in range(problem.nodes)]
    for u, v in problem.edges.tolist():
        near[u].add(v)
        near[v].add(u)
    heap = [(len(around), u) for u, around in enumerate(near)]
    heapq.heapify(heap)
    gone = [False] * problem.nodes
    steps: list[_Step] = []
    work = 0
    while heap:
        degree, u = heapq.heappop(heap)
        if gone[u] or degree != len(near[u]):
            continue
        entries = labels ** (degree + 1)
        work += entries
        if entries > TABLE_LIMIT or work > WORK_LIMIT:
            return None
        gone[u] = True
        steps.append(_Step(u, tuple(sorted(near[u]))))
        for v in near[u]:
            near[v] |= near[u]
            near[v] -= {u, v}
        for v in near[u]:
            heapq.heappush(heap, (len(near[v]), v))
    return steps
