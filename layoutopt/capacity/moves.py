"""Local moves: one node to a tile with room, or two nodes in each other's place."""

from __future__ import annotations

import numpy as np

from layoutopt.capacity.columns import Columns
from layoutopt.capacity.fill import Filling
from layoutopt.capacity.pool import Pool
from layoutopt.capacity.shapes import one_copy, tables
from layoutopt.limits import Limits
from layoutopt.problem import IntArray

NODES = 300
"""Nodes of all configurations that are moved."""

PASSES = 20
"""Passes over all nodes."""


class _Moves:
    """A placement whose nodes move; all copies of a configuration move together."""

    def __init__(self, pool: Pool, filling: Filling, room: IntArray) -> None:
        columns, counts = filling.columns, filling.counts
        self.tiles = pool.tiles
        self.labels: list[int] = columns.labels.tolist()
        self.size: list[int] = (columns.bytes * counts[columns.column]).tolist()
        self.count: list[int] = counts[columns.column].tolist()
        self.left: list[int] = room.tolist()
        for tile, size in zip(self.labels, self.size, strict=True):
            self.left[tile] -= size
        self.earns: list[dict[int, int]] = []
        self.around: list[dict[int, int]] = []
        for i, kind in enumerate(columns.kind.tolist()):
            begin = int(columns.starts[i])
            earns, around = tables(one_copy(pool, kind)[0])
            self.earns += earns
            self.around += [{begin + v: w for v, w in near.items()} for near in around]

    def worth(self, u: int) -> list[int]:
        """Return what a node is worth on each tile, the others where they are."""
        worth = [0] * self.tiles
        for tile, value in self.earns[u].items():
            worth[tile] += value
        for v, weight in self.around[u].items():
            worth[self.labels[v]] += weight
        return [self.count[u] * value for value in worth]

    def at(self, u: int, tile: int) -> int:
        """Return what a node is worth on one tile."""
        near = sum(weight for v, weight in self.around[u].items() if self.labels[v] == tile)
        return self.count[u] * (self.earns[u].get(tile, 0) + near)

    def move(self, u: int, tile: int) -> None:
        """Put a node on another tile."""
        self.left[self.labels[u]] += self.size[u]
        self.left[tile] -= self.size[u]
        self.labels[u] = tile

    def better(self, u: int) -> bool:
        """Move a node to where it is worth more, if there is room; or try an exchange."""
        worth, here = self.worth(u), self.labels[u]
        for tile in sorted(range(self.tiles), key=lambda t: -worth[t]):
            if worth[tile] <= worth[here]:
                break
            if self.left[tile] >= self.size[u]:
                self.move(u, tile)
                return True
        return any(self._exchange(u, v, worth) for v in range(len(self.labels)))

    def _exchange(self, u: int, v: int, worth: list[int]) -> bool:
        """Exchange the tiles of two nodes, if that fits and pays."""
        here, there = self.labels[u], self.labels[v]
        more = self.size[u] - self.size[v]
        if here == there or self.left[there] < more or self.left[here] < -more:
            return False
        gain = worth[there] - worth[here]
        gain += self.at(v, here) - self.at(v, there)
        gain -= 2 * self.count[u] * self.around[u].get(v, 0)  # neither is where the other was
        if gain <= 0:
            return False
        self.move(u, there)
        self.move(v, here)
        return True


def moved(pool: Pool, filling: Filling, room: IntArray, limits: Limits) -> Filling:
    """Return a placement that no such move makes better, unless passes or time run out.

    Parameters
    ----------
    filling
        Of at most :data:`NODES` nodes in all configurations; others are returned as they are.
    room
        Shape ``(tiles,)``: in grains.
    """
    columns = filling.columns
    if len(columns.labels) > NODES:
        return filling
    moves = _Moves(pool, filling, room)
    for _ in range(PASSES):
        better = [moves.better(u) for u in range(len(moves.labels)) if not limits.over]
        if not any(better):
            break
    labels = np.array(moves.labels, np.int64)
    again = Columns(columns.kind, columns.value, columns.starts, labels, columns.bytes)
    return Filling(again, filling.counts)
