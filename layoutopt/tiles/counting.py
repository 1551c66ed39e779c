"""Numbers of elements of strided boxes on each tile, without listing them.

A box walks through a tensor by loops.  Where no loop carries from one axis of the tile map into
another, the tile is a sum of terms of independent loops, and how often each sum occurs is found
by convolving how often each term does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.numbers import unique
from layoutopt.base.result import outer_sum
from layoutopt.tiles.blocks import Array, TileMap

LIMIT = 2 * 10**7
"""The most steps that loops which depend on each other may take together."""

Counts: TypeAlias = tuple[Array, Array]
"""Tiles, ascending, and their counts; all other tiles have 0."""


def counted(tiles: Array) -> Counts:
    """Return how often each tile occurs in a list."""
    found, counts = np.unique(tiles, return_counts=True)
    return found.astype(np.int64), counts.astype(np.int64)


def summed(parts: Iterable[Counts]) -> Counts:
    """Return the sums of counts by tile."""
    listed = [part for part in parts if len(part[0])]
    if len(listed) < 2:
        return listed[0] if listed else (np.zeros(0, np.int64), np.zeros(0, np.int64))
    tiles, of = np.unique(np.concatenate([tiles for tiles, _ in listed]), return_inverse=True)
    return tiles, _added(np.concatenate([numbers for _, numbers in listed]), of, len(tiles))


def on_each(tiles: TileMap, start: int, loops: Sequence[tuple[int, int]]) -> Counts:
    """Return the tiles that hold elements of a box, ascending, and how many.

    The box begins at flat element ``start``; its loops are ``(extent, step)``.
    """
    steps = tuple([step for _, step in loops])
    return _sums([StridedWalk(tiles, start, steps)], [1], [n for n, _ in loops])


Pairs: TypeAlias = Sequence[tuple[int, tuple[int, ...]]]
"""``(extent, (step, step))`` of loops that run through two tensors at once."""


def together(maps: tuple[TileMap, TileMap], start: tuple[int, ...], loops: Pairs) -> int:
    """Return for how many pairs of elements of two tensors both are on the same tile."""
    apart, counts = _sums(_walks(maps, start, loops), [1, -1], [n for n, _ in loops])
    return int(counts[apart == 0].sum())


def on_both(
    maps: tuple[TileMap, TileMap], start: tuple[int, ...], loops: Pairs
) -> tuple[Array, Array]:
    """Return the tiles on which both elements of some pair are, ascending, and how many pairs."""
    if not maps[1].size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    above = maps[1].span()[1] + 1
    both, counts = _sums(_walks(maps, start, loops), [above, 1], [n for n, _ in loops])
    tiles, others = np.divmod(both, above)
    same = tiles == others
    return tiles[same], counts[same]


@dataclass(frozen=True, eq=False)
class StridedWalk:
    """A walk through the elements of a tensor on tiles.

    All loops begin at one flat element; one step of each goes on by so many flat elements.
    """

    tiles: TileMap
    start: int
    steps: tuple[int, ...]


def _walks(maps: Sequence[TileMap], start: Sequence[int], loops: Pairs) -> list[StridedWalk]:
    """Return the walk of each side of pairs."""
    steps = zip(*(step for _, step in loops), strict=True) if loops else [()] * len(maps)
    return [StridedWalk(*walk) for walk in zip(maps, start, steps, strict=True)]


def _sums(
    walks: Sequence[StridedWalk], signs: Sequence[int], extents: Sequence[int]
) -> tuple[Array, Array]:
    """Return the values of a signed sum of walks' tiles, and how often each occurs."""
    walks, extents = _refined(walks, extents)
    spans = [_spans(walk, extents) for walk in walks]
    values, counts = np.zeros(1, np.int64), np.ones(1, np.int64)
    for loops in _coupled(spans, len(extents)):
        moved = [
            (walk, sign, [a for members, axes in own if members & loops for a in axes])
            for walk, sign, own in zip(walks, signs, spans, strict=True)
        ]
        steps, often = _stretches(moved, extents, sorted(loops))
        terms = np.zeros(len(often), np.int64)
        for (walk, sign, axes), flat in zip(moved, steps, strict=True):
            terms += sign * _along(walk.tiles, axes, flat)
        values, counts = _combined(values, counts, terms, often)
    still = sum(
        sign * int(_along(walk.tiles, axes, np.array([walk.start]))[0])
        for walk, sign, own in zip(walks, signs, spans, strict=True)
        for members, axes in own
        if not members
    )
    return values + still, counts


def _refined(
    walks: Sequence[StridedWalk], extents: Sequence[int]
) -> tuple[list[StridedWalk], list[int]]:
    """Write loops that run through several axes as several loops, where they divide evenly."""
    found: list[tuple[int, list[int]]] = []
    for k, extent in enumerate(extents):
        steps = [walk.steps[k] for walk in walks]
        inner = 1
        for size in sorted({q for walk in walks for q in _lengths(walk, walk.steps[k])}):
            if size < extent and extent % size == 0 and size % inner == 0 and size > inner:
                found.append((size // inner, [step * inner for step in steps]))
                inner = size
        found.append((extent // inner, [step * inner for step in steps]))
    moved = [
        StridedWalk(walk.tiles, walk.start, tuple(steps[w] for _, steps in found))
        for w, walk in enumerate(walks)
    ]
    return moved, [extent for extent, _ in found]


def _lengths(walk: StridedWalk, step: int) -> list[int]:
    """Return after how many steps a loop has gone once through each axis."""
    bounds = walk.tiles.strides if step else ()
    return [bound // abs(step) for bound in bounds if bound % step == 0]


def _combined(values: Array, counts: Array, terms: Array, often: Array) -> tuple[Array, Array]:
    """Return the sums of two independent numbers, and how often each occurs."""
    if len(terms) == 1:
        return values + terms, counts * often
    found, of = np.unique(terms, return_inverse=True)
    often = _added(often, of, len(found))
    _check(len(values) * len(found))
    if len(values) == 1:
        return values + found, counts * often
    sums, of = np.unique(np.add.outer(values, found), return_inverse=True)
    return sums, _added(np.multiply.outer(counts, often), of, len(sums))


def _stretches(
    moved: Sequence[tuple[StridedWalk, int, list[int]]],
    extents: Sequence[int],
    loops: Sequence[int],
) -> tuple[list[Array], Array]:
    """Return where each walk's stretches on one tile begin, as flat elements, and their lengths."""
    total = math.prod(extents[k] for k in loops)
    if not any(axes for _, _, axes in moved):
        return [np.array([walk.start]) for walk, _, _ in moved], np.array([total])
    if len(loops) > 1 or any(len(axes) > 1 for _, _, axes in moved):
        _check(total)
        flats = [
            outer_sum([np.arange(extents[k]) * walk.steps[k] for k in loops], walk.start)
            for walk, _, _ in moved
        ]
        return flats, np.ones(total, np.int64)
    cuts = [np.zeros(1, np.int64)]
    for walk, _, axes in moved:
        for axis in axes:
            cuts.append(_cuts(walk, axis, walk.steps[loops[0]]))
    every = unique(np.concatenate(cuts))
    every = every[(every >= 0) & (every < total)]
    flats = [walk.start + every * walk.steps[loops[0]] for walk, _, _ in moved]
    return flats, np.diff(every, append=total)


def _cuts(walk: StridedWalk, axis: int, step: int) -> Array:
    """Return at which numbers of steps a walk along one axis may come to another tile."""
    stride, extent = walk.tiles.strides[axis], walk.tiles.shape[axis]
    around = stride * extent
    ends = walk.start // around * around + walk.tiles.steps[axis].starts * stride
    if step > 0:
        return -((walk.start - ends) // step)
    return (walk.start - ends) // -step + 1


def _added(numbers: Array, of: Array, count: int) -> Array:
    total = np.zeros(count, np.int64)
    np.add.at(total, of.reshape(-1), numbers.reshape(-1))
    return total


def _along(tiles: TileMap, axes: Sequence[int], flat: Array) -> Array:
    """Return what some axes add to the tiles of elements."""
    total = np.zeros(len(flat), np.int64)
    for axis in axes:
        index = flat // tiles.strides[axis] % tiles.shape[axis]
        total += tiles.steps[axis].at(index)
    return total


def _spans(walk: StridedWalk, extents: Sequence[int]) -> list[tuple[set[int], list[int]]]:
    """Return groups of axes between which no loop carries, each with the loops that move in it."""
    tiles = walk.tiles
    moving = {k for k, n in enumerate(extents) if n > 1 and walk.steps[k]}
    low = walk.start + sum(min(0, walk.steps[k] * (extents[k] - 1)) for k in moving)
    found: list[tuple[set[int], list[int]]] = []
    axes: list[int] = []
    below: set[int] = set()
    for axis in range(len(tiles.shape) - 1, -1, -1):
        axes.append(axis)
        bound = tiles.strides[axis] * tiles.shape[axis]
        members = {k for k in moving - below if walk.steps[k] % bound or axis == 0}
        reach = sum(abs(walk.steps[k]) * (extents[k] - 1) for k in members)
        unit = tiles.strides[axes[0]]
        if axis == 0 or low % bound // unit * unit + reach < bound:
            found.append((members, axes))
            below |= members
            axes = []
    return found


def _coupled(spans: Sequence[Sequence[tuple[set[int], list[int]]]], loops: int) -> list[set[int]]:
    """Return sets of loops that move in a common group of axes of some walk; each loop once."""
    sets: list[set[int]] = [{k} for k in range(loops)]
    for own in spans:
        for members, _ in own:
            touched = [s for s in sets if s & members]
            if len(touched) > 1:
                sets = [s for s in sets if not s & members] + [set().union(*touched)]
    return sets


def _check(steps: int) -> None:
    if steps > LIMIT:
        raise SizeError(
            f"the tiles of {steps:,} elements would have to be looked up one by one; the limit is "
            f"{LIMIT:,}"
        )
