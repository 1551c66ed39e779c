"""Nested loops cut into parts, one for each tile, and their operands spread over the tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.base.result import outer_sum
from layoutopt.tiles.blocks import Array, Steps, TileMap

MOST_SPLITS = 3 * 10**5
"""Up to so many ways to cut all loops are compared; where there are more, fewer numbers of parts
are tried for each loop."""

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class OperandAxis:
    """An axis of an operand.

    Parameters
    ----------
    extent
        How many indices there are.
    loop
        The loop that walks along it; ``None`` for one that every part of the work reads whole.
    halo
        How many further indices a part reads than are its own.
    """

    extent: int
    loop: int | None
    halo: int = 0


Axes = tuple[OperandAxis, ...]


@dataclass(frozen=True)
class Contraction:
    """Nested loops of multiply-accumulates, and the tensors that they read and write.

    Parameters
    ----------
    loops
        The extent of each loop.
    operands
        Their axes, those of the result last.
    inner
        Multiply-accumulates in the body of the loops.
    """

    loops: tuple[int, ...]
    operands: tuple[Axes, ...]
    inner: int = 1


LARGEST = 2**62
"""The longest loop; arithmetic on it stays in 64 bits."""


@dataclass(frozen=True)
class TileThroughput:
    """Operations and bytes per cycle of a tile.

    Parameters
    ----------
    tiles
        Number of tiles.
    macs_per_cycle
        Multiply-accumulates of a tile in a cycle.
    element_bytes
        Bytes of an element, of partial sums too.
    bytes_per_cycle
        What a tile receives in a cycle.
    """

    tiles: int
    macs_per_cycle: int
    element_bytes: int
    bytes_per_cycle: int


@lru_cache(maxsize=1024)
def partition(work: Contraction, speed: TileThroughput) -> tuple[int, ...]:
    """Return into how many parts each loop is best cut.

    A part of the work is a tile's.  The cost of a partition is the number of cycles of the
    largest part: ``ceil(macs / macs_per_cycle)``, and ``ceil(received / bytes_per_cycle)`` for
    the bytes that it must receive.  Of each operand it needs a block, with halo, and holds an
    even share of that block, of which there are as many as parts that need it.  So it receives
    ``needed - block // sharers`` elements.  For the result, whose partial sums are added up where
    its shares are, that is the same, and each of them counts as a multiply-accumulate, too.  The
    cheapest partition is taken, of equally cheap ones one of fewest tiles, of these the first in
    lexicographic order.

    Raises
    ------
    InputError
        If an extent is more than 2^62.
    """
    if max(work.loops, default=0) > LARGEST:
        raise InputError(f"a loop has {max(work.loops)} steps, 2^62 are the most")
    extents = [max(extent, 1) for extent in work.loops]
    parts = splits(extents, speed.tiles)
    blocks = -(-np.array(extents) // parts)
    macs = work.inner * blocks.prod(axis=1, dtype=np.float64)
    *read, summed = [_received(axes, parts) for axes in work.operands]
    received = sum(read, summed)
    cycles = np.ceil((macs + summed) / speed.macs_per_cycle)
    cycles += np.ceil(received * speed.element_bytes / speed.bytes_per_cycle)
    order = np.lexsort((*parts.T[::-1], parts.prod(axis=1), cycles))
    return tuple(map(int, parts[order[0]]))


def _received(axes: Axes, parts: Array) -> NDArray[np.float64]:
    """Return how many elements of an operand a tile receives, by partition."""
    needed, block = np.ones(len(parts)), np.ones(len(parts))
    for axis in axes:
        cut = np.ones(len(parts), np.int64) if axis.loop is None else parts[:, axis.loop]
        own = -(-axis.extent // cut)
        block *= own
        needed *= np.minimum(own + axis.halo * (cut > 1), axis.extent)
    used = {axis.loop for axis in axes}
    sharers = np.ones(len(parts))
    for loop in set(range(parts.shape[1])) - used:
        sharers *= parts[:, loop]
    return needed - np.floor_divide(block, sharers)


def splits(extents: Sequence[int], most: int, also: Array = NONE) -> Array:
    """Return the ways to cut axes into ``most`` or fewer parts in all.

    Parameters
    ----------
    extents
        The extents of the axes, 1 or more.
    most
        The largest product of the numbers of parts.
    also
        Numbers of parts to be tried although a smaller one gives equally large blocks.

    Returns
    -------
    Array
        Shape ``(ways, axes)``: the number of parts of each axis.  Of numbers that give equally
        large blocks the smallest is tried.
    """
    tried = [_counts(extent, most, also) for extent in extents]
    while (found := _products(tried, most)) is None:
        tried = [np.union1d(1, counts[::-2] if len(counts) > 2 else 1) for counts in tried]
    return found


def _counts(extent: int, most: int, also: Array) -> Array:
    """Return the smallest number of parts for each size of the largest part, and some others."""
    counts = np.arange(1, min(extent, most) + 1, dtype=np.int64)
    sizes = -(-extent // counts)
    tried: Array = counts[np.r_[True, sizes[1:] != sizes[:-1]] | np.isin(counts, also)]
    return tried


def _products(tried: Sequence[Array], most: int) -> Array | None:
    """Return all choices whose product is not above ``most``; ``None`` if they are too many."""
    rows, products = np.zeros((1, 0), np.int64), np.ones(1, np.int64)
    for counts in tried:
        fitting = np.searchsorted(counts, most // products, side="right")
        if fitting.sum() > MOST_SPLITS:
            return None
        row = np.repeat(np.arange(len(rows)), fitting)
        column = np.arange(len(row)) - np.repeat(np.cumsum(fitting) - fitting, fitting)
        rows = np.column_stack([rows[row], counts[column]])
        products = products[row] * counts[column]
    return rows


def spread(axes: Axes, parts: Sequence[int]) -> TileMap:
    """Return the map that spreads an operand over the tiles that use it.

    Tiles are the parts in row-major order: part ``(p_0, p_1, ...)`` has tile
    ``sum_l p_l * stride_l`` with ``stride_l = parts[l+1] * parts[l+2] * ...``.  Index ``i`` of an
    axis of extent ``e``, along a loop of ``p`` parts, is in block ``i * p // e``.  Which tile of
    those that need the same block of all axes holds an element is decided by a further cut of
    each axis' blocks into ``q`` pieces: index ``i`` is in piece ``(i * p * q // e) % q``, and
    the pieces of all axes, numbered in row-major order, take these tiles in ascending order.
    The ``q`` are those that make the largest piece smallest, cutting the first axes first.

    Parameters
    ----------
    axes
        The operand's axes.
    parts
        Into how many parts each loop is cut.
    """
    strides = [math.prod(parts[loop + 1 :]) for loop in range(len(parts))]
    cuts = [1 if axis.loop is None else parts[axis.loop] for axis in axes]
    used = {axis.loop for axis in axes}
    spare = [loop for loop in range(len(parts)) if loop not in used]
    blocks = tuple(max(-(-axis.extent // cut), 1) for axis, cut in zip(axes, cuts, strict=True))
    pieces = _pieces(blocks, tuple((parts[loop], strides[loop]) for loop in spare))
    steps = []
    for axis, cut, offsets in zip(axes, cuts, pieces, strict=True):
        stride = 0 if axis.loop is None else strides[axis.loop]
        values = outer_sum([stride * np.arange(cut), np.array(offsets, np.int64)])
        steps.append(_even(axis.extent, values))
    return TileMap(tuple(axis.extent for axis in axes), tuple(steps))


@lru_cache(maxsize=1024)
def _pieces(
    blocks: tuple[int, ...], spare: tuple[tuple[int, int], ...]
) -> tuple[tuple[int, ...], ...]:
    """Return how a block is cut into pieces for the tiles that need it.

    Parameters
    ----------
    blocks
        The block's extents.
    spare
        Number and stride of the parts along each loop that the operand does not have.

    Returns
    -------
    tuple of tuple of int
        For each axis what each piece along it adds to the tile.
    """
    tiles = outer_sum([stride * np.arange(number) for number, stride in spare])
    inner = [math.prod(number for number, _ in spare[i:]) for i in range(len(spare))]
    # Pieces of two axes are steps along each only where they fall into whole rows of tiles.
    numbers = np.arange(1, max(blocks) + 1)
    whole = [numbers[size % numbers == 0] for size in inner]
    counts = splits(blocks, len(tiles), np.concatenate([numbers[:1], *whole]))
    largest = (-(-np.array(blocks) // counts)).prod(axis=1, dtype=np.float64)
    ordered = counts[np.lexsort((*counts.T, largest))]
    return next(found for row in ordered if (found := _sums(tiles, row)) is not None)


def _sums(tiles: Array, row: Array) -> tuple[tuple[int, ...], ...] | None:
    """Return the first tiles, as an array of a shape, as sums of terms along its axes, if they are.

    They always are for shapes that are longer than 1 along one axis only.
    """
    table = tiles[: row.prod()].reshape(row)
    along = [np.moveaxis(table, a, 0).reshape(row[a], -1)[:, 0] for a in range(len(row))]
    if not np.array_equal(outer_sum(along), table.reshape(-1)):
        return None
    return tuple(tuple(map(int, values)) for values in along)


def _even(extent: int, values: Array) -> Steps:
    """Return even steps of given values: index ``i`` has value ``i * len(values) // extent``."""
    starts = -(-np.arange(len(values)) * extent // len(values))
    last = np.r_[starts[1:] != starts[:-1], True] & (starts < max(extent, 1))
    return Steps(starts[last], values[last]).merged()
