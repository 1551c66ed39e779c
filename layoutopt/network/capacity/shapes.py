"""One copy of any kind as a labelling problem of its own, be the kind listed or large."""

from __future__ import annotations

import numpy as np

from layoutopt.network.capacity.pool import Pool
from layoutopt.network.problem import IntArray, Labelling


def one_copy(pool: Pool, kind: int) -> tuple[Labelling, IntArray]:
    """Return the problem of one copy of a kind, and the grains of its nodes.

    Returns
    -------
    problem, grains
        Labels are the tiles of the whole; the nodes are in the order of configurations.
    """
    if kind >= pool.first[-1]:
        large = pool.large[kind - pool.first[-1]]
        return large.problem, large.bytes
    number = int(np.searchsorted(pool.first, kind, side="right")) - 1
    group, i = pool.groups[number], kind - pool.first[number]
    u, v = np.nonzero(group.weights[i])
    node, j = np.nonzero(group.rewards[i])
    problem = Labelling(
        group.bytes.shape[1],
        pool.tiles,
        np.column_stack([u, v]),
        group.weights[i][u, v],
        np.column_stack([node, group.tiles[i][j]]),
        group.rewards[i][node, j],
    )
    return problem, group.bytes[i]


def tables(problem: Labelling) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    """Return for each node what it earns on which tile, and its weight with which node."""
    earns: list[dict[int, int]] = [{} for _ in range(problem.nodes)]
    around: list[dict[int, int]] = [{} for _ in range(problem.nodes)]
    for (u, tile), value in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        earns[u][tile] = value
    for (u, v), weight in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        around[u][v] = around[v][u] = weight
    return earns, around
