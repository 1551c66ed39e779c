"""The integer programme over single nodes, for kinds whose configurations are too many.

``x[u,t]``: node ``u`` of a copy is on tile ``t``; ``y[e,t]``: both ends of edge ``e`` are::

    sum_t x[u,t] = 1
    y[e,t] <= x[u,t],  y[e,t] <= x[v,t]         edges of positive weight
    y[e,t] >= x[u,t] + x[v,t] - 1               edges of negative weight
    sum_u size[u] x[u,t] <= capacity[t]

Two symmetries are taken out.  The *leader*, the first copy of the largest kind, uses tiles that
are alike for all nodes in their order: a node may be on one only if an earlier node is on the
one before it.  The other copies of each kind are ordered by the tiles of their first nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array

from layoutopt.capacity.fill import Filling, Rows
from layoutopt.capacity.pool import Pool
from layoutopt.capacity.shapes import one_copy
from layoutopt.problem import IntArray, Labelling, exact_integers
from layoutopt.solvers.integer import OPEN, Integer


def variables(pool: Pool) -> IntArray:
    """Return how many variables all copies of each kind have, Python integers."""
    one = [
        group.bytes.shape[1] + np.count_nonzero(group.weights, axis=(1, 2)) for group in pool.groups
    ]
    alone = [large.problem.nodes + len(large.problem.edges) for large in pool.large]
    each = np.concatenate([*one, np.array(alone, np.int64)]).astype(object)
    size: IntArray = each * pool.copies * pool.tiles
    return size


@dataclass(frozen=True, eq=False)
class NodeProgramme:
    """An integer programme over nodes, and what its variables mean.

    Parameters
    ----------
    integer
        Of each copy ``x``, node by node, then ``y``; the last rows are the tiles'.
    kinds
        The kind of each copy; the first is the leader.
    copies
        For each copy its problem and the grains of its nodes.
    first
        Where the variables of each copy begin.
    alike
        Tiles that are alike for all nodes, two or more each, ascending.
    """

    integer: Integer
    kinds: list[int]
    copies: list[tuple[Labelling, IntArray]]
    first: list[int]
    alike: list[list[int]]


def node_programme(pool: Pool, kinds: list[int], room: IntArray) -> NodeProgramme:
    """State the programme for all copies of some kinds.

    Parameters
    ----------
    room
        Shape ``(tiles,)``: in grains.
    """
    tiles = pool.tiles
    shapes = {kind: one_copy(pool, kind) for kind in kinds}
    order = sorted(kinds, key=lambda kind: -shapes[kind][0].nodes)
    each = [kind for kind in order for _ in range(int(pool.copies[kind]))]
    copies = [shapes[kind] for kind in each]
    size = [(problem.nodes + len(problem.edges)) * tiles for problem, _ in copies]
    first: list[int] = np.cumsum([0, *size]).tolist()
    alike = _alike(pool, room)
    rows = _Rows()
    objective: list[int] = []
    at = []
    for begin, (problem, _) in zip(first, copies, strict=False):
        x = begin + np.arange(problem.nodes * tiles).reshape(-1, tiles)
        objective += _agreement(rows, problem, x)
        at.append(x)
    _lead(rows, at[0], alike)
    for c, (kind, after) in enumerate(pairwise(each[1:]), 1):
        if kind == after:
            tile = np.arange(tiles)
            rows.add(np.concatenate([at[c][0], at[c + 1][0]])[None], np.r_[tile, -tile], -OPEN, 0)
    grains = np.concatenate([weight for _, weight in copies])
    rows.add(np.concatenate(at).T, grains, -OPEN, room)
    return NodeProgramme(rows.integer(exact_integers(objective)), each, copies, first, alike)


class _Rows:
    """The rows of a programme, as they are written down."""

    def __init__(self) -> None:
        self.entries: list[IntArray] = []
        self.limits: list[IntArray] = []
        self.count = 0

    def add(self, at: IntArray, data: IntArray, low: int, high: IntArray | int) -> None:
        """Add rows of equal length, variables ``at`` and their coefficients in columns."""
        many = len(at)
        row = np.broadcast_to(self.count + np.arange(many)[:, None], at.shape)
        entries = (row, at, np.broadcast_to(data, at.shape))
        self.entries.append(np.stack([each.reshape(-1) for each in entries]))
        self.limits.append(np.stack([np.broadcast_to(each, many) for each in (low, high)]))
        self.count += many

    def integer(self, objective: IntArray) -> Integer:
        """Return the programme of Boolean variables with these rows."""
        row, at, data = np.concatenate(self.entries, axis=1)
        low, high = np.concatenate(self.limits, axis=1)
        matrix = coo_array((data, (row, at)), shape=(self.count, len(objective))).tocsr()
        return Integer(objective, np.ones(len(objective), np.int64), matrix, low, high)


def _agreement(rows: _Rows, problem: Labelling, x: IntArray) -> list[int]:
    """Add the rows of one copy, and return what its variables earn."""
    nodes, tiles = x.shape
    rows.add(x, np.ones(1, np.int64), 1, 1)
    y = x[-1, -1] + 1 + np.arange(len(problem.edges) * tiles).reshape(-1, tiles)
    u, v = x[problem.edges[:, 0]], x[problem.edges[:, 1]]
    for end in (u, v):
        good = problem.weights > 0
        pairs = np.stack([y[good], end[good]], axis=-1).reshape(-1, 2)
        rows.add(pairs, np.array([1, -1]), -OPEN, 0)
    bad = problem.weights < 0
    triples = np.stack([u[bad], v[bad], y[bad]], axis=-1).reshape(-1, 3)
    rows.add(triples, np.array([1, 1, -1]), -OPEN, 1)
    table = np.zeros((nodes, tiles), object)
    table[tuple(problem.reward_at.T)] = problem.rewards
    earned: list[int] = table.reshape(-1).tolist()
    return earned + np.repeat(problem.weights, tiles).tolist()


def _alike(pool: Pool, room: IntArray) -> list[list[int]]:
    """Return the sets of tiles with equal room, and equal rewards of every node."""
    problem = pool.problem.problem
    earned: list[list[tuple[int, int]]] = [[] for _ in range(pool.tiles)]
    order = np.lexsort(problem.reward_at.T[::-1])
    for (node, tile), value in zip(
        problem.reward_at[order].tolist(), problem.rewards[order].tolist(), strict=True
    ):
        earned[tile].append((node, value))
    found: dict[tuple[int, tuple[tuple[int, int], ...]], list[int]] = {}
    for tile, space in enumerate(room.tolist()):
        found.setdefault((space, tuple(earned[tile])), []).append(tile)
    return [tiles for tiles in found.values() if len(tiles) > 1]


def _lead(rows: _Rows, x: IntArray, alike: list[list[int]]) -> None:
    """Make the leader use tiles that are alike in their order."""
    for tiles in alike:
        for before, tile in pairwise(tiles):
            for u in range(len(x)):
                at = np.r_[x[u, tile], x[:u, before]]
                rows.add(at[None], np.r_[1, np.full(u, -1)], -OPEN, 0)


def node_filling(given: NodeProgramme, values: IntArray) -> Filling:
    """Return the configurations that a point of a programme stands for."""
    rows = Rows()
    for kind, begin, (problem, size) in zip(given.kinds, given.first, given.copies, strict=False):
        x = values[begin : begin + problem.nodes * problem.labels].reshape(problem.nodes, -1)
        rows.add(kind, 1, x.argmax(axis=1), size)
    return rows.filling()


def node_start(given: NodeProgramme, filling: Filling) -> IntArray:
    """Return a placement as a point of a programme."""
    columns = filling.columns
    of_kind: dict[int, list[IntArray]] = {kind: [] for kind in given.kinds}
    for i, kind in enumerate(columns.kind.tolist()):
        if kind in of_kind:
            labels = columns.labels[columns.starts[i] : columns.starts[i + 1]]
            of_kind[kind] += [labels] * int(filling.counts[i])
    leader = of_kind[given.kinds[0]].pop()
    renamed = _in_order(leader, given)
    for kind, rows in of_kind.items():
        of_kind[kind] = sorted((renamed[row] for row in rows), key=lambda row: int(row[0]))
    of_kind[given.kinds[0]].insert(0, renamed[leader])
    point = np.zeros(given.first[-1], np.int64)
    for kind, begin, (problem, _) in zip(given.kinds, given.first, given.copies, strict=False):
        x = of_kind[kind].pop(0)[:, None] == np.arange(problem.labels)
        y = x[problem.edges[:, 0]] & x[problem.edges[:, 1]]
        both = np.concatenate([x, y]).reshape(-1)
        point[begin : begin + len(both)] = both
    return point


def _in_order(leader: IntArray, given: NodeProgramme) -> IntArray:
    """Return new names of tiles, such that the leader uses those alike in their order."""
    names = np.arange(given.copies[0][0].labels)
    used = list(dict.fromkeys(leader.tolist()))
    for tiles in given.alike:
        first = [tile for tile in used if tile in tiles]
        names[first + [tile for tile in tiles if tile not in first]] = tiles
    return names
