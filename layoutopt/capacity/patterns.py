"""The configurations of small kinds, with all tiles but a kind's own ones as *slots*.

A pattern gives each node an own tile (``0 .. k-1``) or a slot (``k, k+1, ...``).  Slots are
different tiles, none of them the kind's own; numbered in order of their first nodes, every
way to share nodes out is one pattern.  At prices ``p`` a slot is charged nothing: as bytes have
to be somewhere, a common part of all prices changes no choice, and without it the cheapest
tile is free.  So the best priced pattern is never worth less than the best priced labelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from layoutopt.capacity.kinds import Group
from layoutopt.problem import IntArray, WeightArray

CHUNK = 2 * 10**6
"""Values of patterns that are held at a time."""


def pattern_count(nodes: int, own: int, slots: int) -> int:
    """Return the number of patterns of ``nodes`` nodes with so many own tiles and slots."""
    ways = {0: 1}
    for _ in range(nodes):
        after: dict[int, int] = {}
        for used, many in ways.items():
            after[used] = after.get(used, 0) + many * (own + used)
            if used < slots:
                after[used + 1] = after.get(used + 1, 0) + many
        ways = after
    return sum(ways.values())


@lru_cache(maxsize=64)
def patterns(nodes: int, own: int, slots: int) -> IntArray:
    """Return all patterns, shape ``(pattern_count(...), nodes)``."""
    rows = np.zeros((1, 0), np.int64)
    for _ in range(nodes):
        used = np.maximum(rows.max(axis=1, initial=-1) + 1 - own, 0)
        width = own + np.minimum(used + 1, slots)
        choice = np.arange(int(width.sum())) - np.repeat(np.cumsum(width) - width, width)
        rows = np.column_stack([np.repeat(rows, width, axis=0), choice])
    rows.flags.writeable = False
    return rows


def slots_of(group: Group, tiles: int) -> int:
    """Return how many slots the kinds of a group may use at once."""
    nodes, own = group.rewards.shape[1:]
    return int(min(nodes, tiles - own))


def values(rewards: WeightArray, weights: WeightArray, rows: IntArray, slots: int) -> WeightArray:
    """Return what patterns are worth, shape ``(kinds, patterns)``."""
    kinds, nodes, _ = rewards.shape
    wide = np.concatenate([rewards, np.zeros((kinds, nodes, slots), rewards.dtype)], axis=2)
    total = wide[:, 0, rows[:, 0]]
    for u in range(1, nodes):
        total = total + wide[:, u, rows[:, u]]
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if weights[:, u, v].any():
                total = total + weights[:, u, v, None] * (rows[:, u] == rows[:, v])
    return total


def priced_patterns(
    group: Group, rows: IntArray, slots: int, prices: WeightArray, scale: int
) -> Iterator[tuple[int, WeightArray]]:
    """Yield the patterns' values times ``scale`` less prices, a chunk of kinds at a time.

    Parameters
    ----------
    prices
        Shape ``(tiles,)``: per byte and times ``scale``, whole; Python integers if the result
        may not fit 64 bits.
    """
    step = max(1, CHUNK // len(rows))
    for first in range(0, len(group.copies), step):
        part = slice(first, first + step)
        cost = group.bytes[part, :, None] * prices[group.tiles[part]][:, None, :]
        rewards, weights = group.rewards[part], group.weights[part]
        if prices.dtype == object:
            rewards, weights = rewards.astype(object), weights.astype(object)
        yield first, values(rewards * scale - cost, weights * scale, rows, slots)
