"""Placements that fit: whole counts from shares, tiles for slots, packings, and moves of nodes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import unique
from layoutopt.network.capacity.pool import Pool, one_copy, tables
from layoutopt.network.capacity.problem import Columns, concatenated, starts_of
from layoutopt.network.problem import IntArray, Labelling
from layoutopt.network.solvers.cpsat import solve_programme
from layoutopt.network.solvers.programme import ProgrammeWriter


def rounded(
    columns: Columns, shares: IntArray, reduced: IntArray, copies: IntArray, room: IntArray
) -> IntArray | None:
    """Return whole counts that fit the own tiles of kinds, near to given shares.

    Whole parts of shares come first, those kinds before others that would lose most by another
    choice; the copies left over take what is best at ``reduced`` worths, prices taken off, where
    there is room.  ``columns`` has at least one of each kind.  ``None`` if some copies are left
    over.
    """
    counts = np.floor(shares + 1e-6).astype(np.int64)
    first = columns.first
    wanted = np.add.reduceat(counts, first)
    counts[(wanted > copies)[columns.kind]] = 0
    taking = _Taking(columns, room)
    order = np.lexsort((-reduced, columns.kind))
    regret = regrets(reduced[order], first)
    if not taking.all(counts):
        chosen = np.flatnonzero(counts)
        by_regret = np.argsort(-regret[columns.kind[chosen]], kind="stable")
        for column in chosen[by_regret].tolist():
            counts[column] = taking.take(column, int(counts[column]))
    lacking = copies - np.add.reduceat(counts, first)
    bounds = np.append(first, len(columns.kind))
    some = np.flatnonzero(lacking)
    for kind in some[np.argsort(-regret[some], kind="stable")].tolist():
        still = int(lacking[kind])
        for column in order[bounds[kind] : bounds[kind + 1]].tolist():
            if not still:
                break
            more = taking.take(column, still)
            counts[column] += more
            still -= more
        if still:
            return None
    return counts


class _Taking:
    """Room on tiles, taken by copies of configurations."""

    def __init__(self, columns: Columns, room: IntArray) -> None:
        self.matrix = columns.use(len(room))
        self.left = room.tolist()

    def all(self, counts: IntArray) -> bool:
        """Take the room of as many copies of each configuration, if there is enough for all."""
        left = np.array(self.left) - counts @ self.matrix
        if (left < 0).any():
            return False
        self.left = left.tolist()
        return True

    def take(self, column: int, most: int) -> int:
        """Take the room of up to so many copies, and return how many fit."""
        begin, end = self.matrix.indptr[column : column + 2].tolist()
        tiles = self.matrix.indices[begin:end].tolist()
        sizes = self.matrix.data[begin:end].tolist()
        for tile, size in zip(tiles, sizes, strict=True):
            if size:
                most = min(most, self.left[tile] // size)
        for tile, size in zip(tiles, sizes, strict=True):
            self.left[tile] -= most * size
        return most


def regrets(ordered: IntArray, first: IntArray) -> IntArray:
    """Return what each kind loses by its second best choice, infinity where it has none.

    Worths of choices are ordered by kind, best first; each kind's begin at ``first``.
    """
    second = np.minimum(first + 1, np.append(first[1:], len(ordered)) - 1)
    lost: IntArray = ordered[first] - ordered[second]
    lost[first == second] = np.inf
    return lost


@dataclass(frozen=True, eq=False)
class Filling:
    """Configurations without slots, and how many copies take them."""

    columns: Columns  # their values are those of the pattern that they were made from
    counts: IntArray  # shape (columns,), 1 or more


Row: TypeAlias = tuple[int, int, IntArray, IntArray]
"""A kind, how many copies of it, and labels, all of them tiles, and grains of its nodes."""


def filled(rows: Sequence[Row]) -> Filling:
    """Return configurations as they were found."""
    # An empty list would be an array of doubles, which do not hold all counts.
    kind, counts = (np.array([row[k] for row in rows], np.int64) for k in (0, 1))
    none, starts = np.zeros(0, np.int64), starts_of([len(row[2]) for row in rows])
    labels, size = (np.concatenate([none, *(row[k] for row in rows)]) for k in (2, 3))
    return Filling(Columns(kind, np.zeros(len(kind), np.int64), starts, labels, size), counts)


def placed(
    columns: Columns, counts: IntArray, room: IntArray, own: dict[int, set[int]]
) -> Filling | None:
    """Give every slot a tile with room, large ones first; ``None`` where that fails.

    Slots avoid the own tiles of their kind as long as they can.  The room is in grains; what has
    tiles fits already.
    """
    tiles = len(room)
    chosen = columns.chosen(np.flatnonzero(counts))
    number = counts[np.flatnonzero(counts)]
    left = room - number @ chosen.use(tiles)
    slotted = np.zeros(len(number), bool)
    slotted[chosen.column[chosen.labels >= tiles]] = True
    rows: list[Row] = []
    size = np.zeros(len(number), np.int64)
    np.maximum.at(size, chosen.column[chosen.labels >= tiles], chosen.bytes[chosen.labels >= tiles])
    heap = [(-space, tile) for tile, space in enumerate(left.tolist())]
    heapq.heapify(heap)
    for i in sorted(np.flatnonzero(slotted).tolist(), key=lambda i: -int(size[i])):
        part = slice(int(chosen.starts[i]), int(chosen.starts[i + 1]))
        labels, weight = chosen.labels[part], chosen.bytes[part]
        still = int(number[i])
        while still:
            found = _tiles_for(labels, weight, heap, own[int(chosen.kind[i])], tiles, still)
            if found is None:
                return None
            named, many = found
            rows.append((int(chosen.kind[i]), many, named, weight))
            still -= many
    added, whole = filled(rows), chosen.chosen(np.flatnonzero(~slotted))
    return Filling(
        concatenated([whole, added.columns]), np.concatenate([number[~slotted], added.counts])
    )


def _tiles_for(
    labels: IntArray,
    weight: IntArray,
    heap: list[tuple[int, int]],
    own: set[int],
    tiles: int,
    copies: int,
) -> tuple[IntArray, int] | None:
    """Give the slots of some copies the emptiest tiles; return labels, and how many copies."""
    named = labels.copy()
    slots = unique(labels[labels >= tiles]).tolist()
    needs = sorted(((int(weight[labels == s].sum()), s) for s in slots), reverse=True)
    avoid = own | set(labels[labels < tiles].tolist())
    taken: list[tuple[int, int, int]] = []
    for need, slot in needs:
        tile = _emptiest(heap, avoid, need)
        if tile is None:  # two slots on one tile, or an own tile, may be worth less, but fit
            tile = _emptiest(heap, set(), need)
        if tile is None:
            for space, t, _ in taken:
                heapq.heappush(heap, (-space, t))
            return None
        space, t = tile
        avoid = avoid | {t}
        named[labels == slot] = t
        taken.append((space, t, need))
    many = min([copies, *(space // need for space, _, need in taken if need)])
    # A tile gets its fair share, so that slots of other sizes find room, too.
    for space, t, need in taken:
        heapq.heappush(heap, (-(space - many * need), t))
    return named, many


def _emptiest(heap: list[tuple[int, int]], avoid: set[int], need: int) -> tuple[int, int] | None:
    """Take the emptiest tile that is not to be avoided off a heap, if it is empty enough."""
    skipped = []
    found = None
    while heap and -heap[0][0] >= need:
        space, tile = heapq.heappop(heap)
        if tile not in avoid:
            found = (-space, tile)
            break
        skipped.append((space, tile))
    for entry in skipped:
        heapq.heappush(heap, entry)
    return found


NODES = 50_000
"""Nodes of all configurations that are moved."""

PASSES = 20  # passes over all nodes
TRIALS = 2_000_000  # exchanges that are looked at; a few seconds at most


class _Moves:
    """A placement whose nodes move; all copies of a configuration move together."""

    def __init__(self, pool: Pool, filling: Filling, room: IntArray) -> None:
        columns, counts = filling.columns, filling.counts
        self.trials = TRIALS
        self.labels: list[int] = columns.labels.tolist()
        self.size: list[int] = (columns.bytes * counts[columns.column]).tolist()
        self.count: list[int] = counts[columns.column].tolist()
        self.left: list[int] = room.tolist()
        self.on: list[dict[int, None]] = [{} for _ in self.left]
        for u, (tile, size) in enumerate(zip(self.labels, self.size, strict=True)):
            self.left[tile] -= size
            self.on[tile][u] = None
        self.earns: list[dict[int, int]] = []
        self.around: list[dict[int, int]] = []
        known = {kind: tables(one_copy(pool, kind)[0]) for kind in unique(columns.kind).tolist()}
        for i, kind in enumerate(columns.kind.tolist()):
            begin = int(columns.starts[i])
            earns, around = known[kind]
            self.earns += earns
            self.around += [{begin + v: w for v, w in near.items()} for near in around]

    def worth(self, u: int) -> dict[int, int]:
        """Return what a node is worth on tiles, the others where they are; 0 if not told."""
        worth = dict(self.earns[u])
        for v, weight in self.around[u].items():
            worth[self.labels[v]] = worth.get(self.labels[v], 0) + weight
        return {tile: self.count[u] * value for tile, value in worth.items()}

    def at(self, u: int, tile: int) -> int:
        """Return what a node is worth on one tile."""
        near = sum(weight for v, weight in self.around[u].items() if self.labels[v] == tile)
        return self.count[u] * (self.earns[u].get(tile, 0) + near)

    def move(self, u: int, tile: int) -> None:
        """Put a node on another tile."""
        here = self.labels[u]
        self.left[here] += self.size[u]
        self.left[tile] -= self.size[u]
        del self.on[here][u]
        self.on[tile][u] = None
        self.labels[u] = tile

    def better(self, u: int) -> bool:
        """Move a node to where it is worth more, if there is room; or try an exchange.

        Exchanges are those with neighbours, and with nodes where it is worth more.  Any other one
        can only gain for the other node, whose turn comes, too.
        """
        worth, here = self.worth(u), self.labels[u]
        if worth.get(here, 0) < 0:
            worth.setdefault(max(range(len(self.left)), key=self.left.__getitem__), 0)
        wanted = [tile for tile, value in worth.items() if value > worth.get(here, 0)]
        for tile in sorted(wanted, key=lambda t: -worth[t]):
            if self.left[tile] >= self.size[u]:
                self.move(u, tile)
                return True
        others = dict.fromkeys([*self.around[u], *(v for t in wanted for v in self.on[t])])
        self.trials -= len(others)
        return any(self._exchange(u, v, worth) for v in others)

    def _exchange(self, u: int, v: int, worth: dict[int, int]) -> bool:
        """Exchange the tiles of two nodes, if that fits and pays."""
        here, there = self.labels[u], self.labels[v]
        more = self.size[u] - self.size[v]
        if here == there or self.left[there] < more or self.left[here] < -more:
            return False
        gain = worth.get(there, 0) - worth.get(here, 0)
        gain += self.at(v, here) - self.at(v, there)
        gain -= 2 * self.count[u] * self.around[u].get(v, 0)  # neither is where the other was
        if gain <= 0:
            return False
        self.move(u, there)
        self.move(v, here)
        return True


def moved(pool: Pool, filling: Filling, room: IntArray, limits: Limits) -> Filling:
    """Return a placement that no such move makes better, unless passes, trials or time run out.

    One of more than :data:`NODES` nodes in all configurations is returned as it is.
    """
    columns = filling.columns
    if len(columns.labels) > NODES:
        return filling
    moves = _Moves(pool, filling, room)
    for _ in range(PASSES):
        nodes = range(len(moves.labels))
        better = [moves.better(u) for u in nodes if moves.trials > 0 and not limits.over]
        if not any(better):
            break
    again = replace(columns, labels=np.array(moves.labels, np.int64))
    return Filling(again, filling.counts)


EFFORT = 20.0  # of the search, see `Limits.turn`
VARIABLES = 50_000  # sizes times tiles that are searched


def packed(
    sizes: IntArray, numbers: IntArray, room: IntArray, limits: Limits
) -> tuple[IntArray | None, bool]:
    """Share nodes out among tiles so that all fit, or prove that to be impossible.

    ``numbers`` of nodes have each of ``sizes``, which are distinct and 1 or more.  Return how many
    nodes of each size each tile gets, shape ``(sizes, tiles)``, or ``None``, and whether it is
    proved that there is no such table.
    """
    table = best_fit(sizes, numbers, room)
    if table is not None or len(sizes) * len(room) > VARIABLES:
        return table, False
    to, shape = ProgrammeWriter(), (len(sizes), len(room))
    most = np.minimum(numbers[:, None], room // sizes[:, None])
    taken = to.block(np.zeros(shape, np.int64), most)
    to.family(taken, [1] * len(room), numbers, numbers)
    to.family(taken.T, sizes, high=room)
    asked = to.finished()
    if not asked.fits():
        return None, False
    found = solve_programme(asked, limits.within(limits.left / 3).turn(EFFORT))
    if found.values is None:
        return None, found.infeasible
    return found.values.reshape(shape), False


def best_fit(sizes: IntArray, numbers: IntArray, room: IntArray) -> IntArray | None:
    """Put large nodes first, each on the fullest tile that has room; ``None`` if that fails."""
    left = room.copy()
    table = np.zeros((len(sizes), len(room)), np.int64)
    for s in np.argsort(-sizes, kind="stable").tolist():
        order = np.argsort(left, kind="stable")
        holds = left[order] // sizes[s]
        before = np.cumsum(holds) - holds
        table[s, order] = np.clip(int(numbers[s]) - before, 0, holds)
        if int(table[s].sum()) < int(numbers[s]):
            return None
        left -= table[s] * sizes[s]
    return table


TRIES = 4  # tiles of no worth of their own that a node looks at


def repaired(pool: Pool, room: IntArray, limits: Limits) -> tuple[Filling | None, bool]:
    """Place all nodes one by one, so that they fit, or prove that to be impossible.

    A packing says how many nodes of each size each tile gets.  Copies, those of most worth first,
    then take these places: each node the one that is worth most beside the nodes placed before it.
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
    rows: list[Row] = []
    for kind in sorted(range(pool.kinds), key=lambda kind: -shapes[kind][0].total()):
        problem, size = shapes[kind]
        still = copies[kind]
        while still:
            labels, taken = _placed(problem, size.tolist(), places, still)
            rows.append((kind, taken, np.array(labels, np.int64), size))
            still -= taken
    return filled(rows), False


class _Places:
    """Numbers of nodes of each size that each tile still takes."""

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
    """Return labels for a copy, and how many copies take them.

    Nodes come first that most depends on.
    """
    earns, around = tables(problem)
    stakes = [
        sum(map(abs, (*mine.values(), *near.values())))
        for mine, near in zip(earns, around, strict=True)
    ]
    taken: Counter[tuple[int, int]] = Counter()
    labels = [-1] * problem.nodes
    for u in sorted(range(len(stakes)), key=lambda u: -stakes[u]):
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
