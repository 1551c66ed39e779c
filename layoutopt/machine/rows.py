"""Elements on tiles as an integer programme that grows by rows.

::

    x[u,t] = 1: element u is on tile t      sum_t x[u,t] = 1
    y[e,t] = 1: both ends of e are there    y <= x of either end, or y >= their sum - 1 if e costs
    n[k,t]: loose elements of kind k there  sum_t n[k,t] = count[k]
    sum_u bytes[u] x[u,t] + sum_k bytes[k] n[k,t] <= room

A row says where an element is if certain others are on certain tiles::

    x[u_1,t_1] + ... + x[u_k,t_k] - x[v,s] <= k - 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array

from layoutopt.problem import IntArray, exact_integers
from layoutopt.solvers.integer import OPEN, Integer

Row = tuple[tuple[tuple[int, int], ...], int, int]
"""Pairs of element and tile, then the element and the tile that follow."""


@dataclass(frozen=True, eq=False)
class OnTiles:
    """Elements that are to be put on tiles.

    Parameters
    ----------
    nodes, tiles
        How many there are.
    edges
        What two elements earn on one tile, by their numbers, the smaller first.
    rewards
        What an element earns on a tile, by element and tile.
    width
        Shape ``(nodes,)``: the bytes of each element, 0 for those that take no room.
    loose
        Bytes of further elements that earn nothing, and how many are of so many bytes.
    room
        The bytes of a tile; ``None`` if everything fits one.
    """

    nodes: int
    tiles: int
    edges: dict[tuple[int, int], int]
    rewards: dict[tuple[int, int], int]
    width: IntArray
    loose: Sequence[tuple[int, int]] = ()
    room: int | None = None

    def value(self, on: IntArray) -> int:
        """Return what elements earn on given tiles."""
        together = sum(w for (u, v), w in self.edges.items() if on[u] == on[v])
        return together + sum(r for (u, t), r in self.rewards.items() if on[u] == t)


@dataclass
class _Table:
    """Rows of a programme, by entries."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)

    def add(self, columns: Iterable[int], entries: Iterable[int], low: int, high: int) -> None:
        """Append a row."""
        columns = list(columns)
        self.row += [len(self.low)] * len(columns)
        self.column += columns
        self.entry += entries
        self.low.append(low)
        self.high.append(high)


def programme(problem: OnTiles, rows: Iterable[Row]) -> Integer:
    """State the programme with some rows."""
    tiles, edges = problem.tiles, list(problem.edges.items())
    together = problem.nodes * tiles
    loose = together + len(edges) * tiles
    table = _Table()
    every = range(tiles)
    for u in range(problem.nodes):
        table.add((u * tiles + t for t in every), [1] * tiles, 1, 1)
    for e, ((u, v), weight) in enumerate(edges):
        for t in every:
            y, ends = together + e * tiles + t, (u * tiles + t, v * tiles + t)
            if weight > 0:
                for x in ends:
                    table.add((y, x), (1, -1), -OPEN, 0)
            else:
                table.add((y, *ends), (1, -1, -1), -1, OPEN)
    for conditions, v, tile in rows:
        columns = [u * tiles + t for u, t in conditions]
        entries = [1] * len(columns)
        table.add([*columns, v * tiles + tile], [*entries, -1], -OPEN, len(columns) - 1)
    kinds = len(problem.loose) if problem.room is not None else 0
    for k in range(kinds):
        count = problem.loose[k][1]
        table.add((loose + k * tiles + t for t in every), [1] * tiles, count, count)
    if problem.room is not None:
        for t in every:
            columns = [*range(t, together, tiles), *range(loose + t, loose + kinds * tiles, tiles)]
            entries = [*problem.width.tolist(), *(width for width, _ in problem.loose)]
            table.add(columns, entries, 0, problem.room)
    return _stated(problem, table, kinds)


def _stated(problem: OnTiles, table: _Table, kinds: int) -> Integer:
    """Return a table of rows with objective and limits of variables."""
    tiles = problem.tiles
    earned = [0] * (problem.nodes * tiles)
    for (u, t), reward in problem.rewards.items():
        earned[u * tiles + t] += reward
    earned += [weight for weight in problem.edges.values() for _ in range(tiles)]
    counts = [count for _, count in problem.loose[:kinds] for _ in range(tiles)]
    upper = [1] * len(earned) + counts
    matrix = coo_array(
        (table.entry, (table.row, table.column)), shape=(len(table.low), len(upper)), dtype=np.int64
    )
    return Integer(
        exact_integers([*earned, *([0] * len(counts))]),
        np.array(upper, np.int64),
        matrix.tocsr(),
        np.array(table.low, np.int64),
        np.array(table.high, np.int64),
    )


def chosen(problem: OnTiles, values: IntArray) -> tuple[IntArray, IntArray]:
    """Return what a point of the programme means.

    Returns
    -------
    on
        Shape ``(nodes,)``: the tile of each element.
    loose
        Shape ``(kinds, tiles)``: how many loose elements of each kind are on each tile; no
        kinds if everything fits one tile.
    """
    first = problem.nodes * problem.tiles
    on = values[:first].reshape(problem.nodes, problem.tiles).argmax(axis=1)
    rest = values[first + len(problem.edges) * problem.tiles :]
    return on.astype(np.int64), rest.reshape(-1, problem.tiles)


def point(problem: OnTiles, on: IntArray) -> IntArray:
    """Return elements on tiles as a point to begin with; ``-1`` for what is not said."""
    tiles = problem.tiles
    x = np.zeros((problem.nodes, tiles), np.int64)
    x[np.arange(problem.nodes), on] = 1
    y = [x[u] * x[v] for u, v in problem.edges]
    kinds = len(problem.loose) if problem.room is not None else 0
    return np.concatenate([x.reshape(-1), *y, np.full(kinds * tiles, -1)])
