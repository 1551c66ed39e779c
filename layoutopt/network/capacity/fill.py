"""Placements that fit: transportation, whole counts from shares, and tiles for slots."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from layoutopt.base.numbers import unique
from layoutopt.network.capacity.master import use
from layoutopt.network.capacity.problem import Columns, joined
from layoutopt.network.problem import IntArray


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
    first = np.flatnonzero(np.r_[True, np.diff(columns.kind) != 0])
    wanted = np.add.reduceat(counts, first)
    counts[(wanted > copies)[columns.kind]] = 0
    taking = _Taking(columns, room)
    order = np.lexsort((-reduced, columns.kind))
    regret = _regret(reduced[order], first)
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
        self.matrix = use(columns, len(room))
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


def _regret(ordered: IntArray, first: IntArray) -> IntArray:
    """Return what each kind loses by its second best choice."""
    second = np.minimum(first + 1, np.append(first[1:], len(ordered)) - 1)
    lost: IntArray = ordered[first] - ordered[second]
    lost[first == second] = np.inf
    return lost


@dataclass(frozen=True, eq=False)
class Filling:
    """Configurations without slots, and how many copies take them."""

    columns: Columns  # their values are those of the pattern that they were made from
    counts: IntArray  # shape (columns,), 1 or more

    @staticmethod
    def joined(parts: list[Filling]) -> Filling:
        """Put fillings of different kinds together."""
        rows = Rows()
        for part in parts:
            columns = part.columns
            for i, (a, b) in enumerate(pairwise(columns.starts.tolist())):
                kind, count = int(columns.kind[i]), int(part.counts[i])
                rows.add(kind, count, columns.labels[a:b], columns.bytes[a:b])
        return rows.filling()


@dataclass(eq=False)
class Rows:
    """Configurations with tiles for all nodes, as they are found."""

    kind: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    labels: list[IntArray] = field(default_factory=list)
    bytes: list[IntArray] = field(default_factory=list)

    def add(self, kind: int, count: int, labels: IntArray, size: IntArray) -> None:
        """Add copies of a kind, with labels and grains of their nodes."""
        self.kind.append(kind)
        self.counts.append(count)
        self.labels.append(labels)
        self.bytes.append(size)

    def filling(self) -> Filling:
        """Return them all."""
        return _together(joined([]), np.zeros(0, np.int64), self)


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
    left = room - number @ use(chosen, tiles)
    slotted = np.zeros(len(number), bool)
    slotted[chosen.column[chosen.labels >= tiles]] = True
    rows = Rows()
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
            rows.add(int(chosen.kind[i]), many, named, weight)
            still -= many
    return _together(chosen.chosen(np.flatnonzero(~slotted)), number[~slotted], rows)


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


def _together(named: Columns, counts: IntArray, rows: Rows) -> Filling:
    """Put configurations that had tiles, and those that got them, together."""
    # An empty list would be an array of doubles, which do not hold all counts.
    kind, more, added = (
        np.array(x, np.int64)
        for x in (rows.kind, rows.counts, [len(labels) for labels in rows.labels])
    )
    size = np.concatenate([np.diff(named.starts), added])
    columns = Columns(
        np.concatenate([named.kind, kind]),
        np.zeros(len(size), np.int64),
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.concatenate([named.labels, *rows.labels]).astype(np.int64),
        np.concatenate([named.bytes, *rows.bytes]).astype(np.int64),
    )
    return Filling(columns, np.concatenate([counts, more]))
