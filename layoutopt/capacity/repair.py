"""A placement where none was found: first what fits, then what is worth most of what fits."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np

from layoutopt.capacity.fill import Filling, Rows
from layoutopt.capacity.packing import packed
from layoutopt.capacity.pool import Pool
from layoutopt.capacity.shapes import one_copy, tables
from layoutopt.limits import Limits
from layoutopt.problem import IntArray, Labelling

TRIES = 4
"""Tiles of no worth of their own that a node looks at."""


def repaired(pool: Pool, room: IntArray, limits: Limits) -> tuple[Filling | None, bool]:
    """Place all nodes one by one, so that they fit.

    A packing says how many nodes of each size each tile gets.  Copies, those of most
    worth first, then take these places: each node the one that is worth most beside the
    nodes placed before it.

    Returns
    -------
    filling, impossible
        ``None`` if no packing was found; and whether it is proved that there is none.
    """
    shapes = [one_copy(pool, kind) for kind in range(pool.kinds)]
    copies = pool.copies.tolist()
    every = np.concatenate([size for _, size in shapes])
    many = np.repeat(pool.copies, [len(size) for _, size in shapes])
    sizes, inverse = np.unique(every[every > 0], return_inverse=True)
    numbers = np.zeros(len(sizes), np.int64)
    np.add.at(numbers, inverse.reshape(-1), many[every > 0])
    table, impossible = packed(sizes, numbers, room, limits)
    if table is None:
        return None, impossible
    places = _Places(sizes, table)
    rows = Rows()
    for kind in sorted(range(pool.kinds), key=lambda kind: -shapes[kind][0].total()):
        problem, size = shapes[kind]
        still = copies[kind]
        while still:
            labels, taken = _placed(problem, size.tolist(), places, still)
            rows.add(kind, taken, np.array(labels, np.int64), size)
            still -= taken
    return rows.filling(), False


class _Places:
    """How many nodes of each size each tile still takes."""

    def __init__(self, sizes: IntArray, table: IntArray) -> None:
        self.tiles = table.shape[1]
        self.left: dict[int, dict[int, int]] = {
            size: {tile: many for tile, many in enumerate(row) if many}
            for size, row in zip(sizes.tolist(), table.tolist(), strict=True)
        }

    def takes(self, size: int, tile: int, taken: Counter[tuple[int, int]]) -> bool:
        """Return whether a tile takes one more node of a size, beside those of this copy."""
        return not size or self.left[size].get(tile, 0) > taken[size, tile]

    def some(self, size: int, taken: Counter[tuple[int, int]]) -> list[int]:
        """Return a few tiles that take one more."""
        tiles = self.left[size] if size else range(self.tiles)
        return list(islice((tile for tile in tiles if self.takes(size, tile, taken)), TRIES))

    def take(self, taken: Counter[tuple[int, int]], most: int) -> int:
        """Take places for as many alike copies as there are places for; return how many."""
        holds = (self.left[size][tile] // count for (size, tile), count in taken.items())
        many: int = min([most, *holds])
        for (size, tile), count in taken.items():
            self.left[size][tile] -= many * count
            if not self.left[size][tile]:
                del self.left[size][tile]
        return many


def _placed(
    problem: Labelling, sizes: list[int], places: _Places, most: int
) -> tuple[list[int], int]:
    """Return labels for a copy, and how many copies take them."""
    earns, around = tables(problem)
    taken: Counter[tuple[int, int]] = Counter()
    labels = [-1] * problem.nodes
    for u in _by_stake(earns, around):
        worth = dict.fromkeys(places.some(sizes[u], taken), 0)
        near = [(labels[v], weight) for v, weight in around[u].items() if labels[v] >= 0]
        for tile in {*earns[u], *(tile for tile, _ in near)}:
            if places.takes(sizes[u], tile, taken):
                worth[tile] = 0
        for tile, value in (*earns[u].items(), *near):
            if tile in worth:
                worth[tile] += value
        labels[u] = max(worth, key=lambda tile: worth[tile])
        if sizes[u]:
            taken[sizes[u], labels[u]] += 1
    return labels, places.take(taken, most)


def _by_stake(earns: list[dict[int, int]], around: list[dict[int, int]]) -> list[int]:
    """Return the nodes of a copy, those first that most depends on."""
    stake = [
        sum(map(abs, (*mine.values(), *near.values())))
        for mine, near in zip(earns, around, strict=True)
    ]
    return sorted(range(len(stake)), key=lambda u: -stake[u])
