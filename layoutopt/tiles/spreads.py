"""Rules that look at nothing but a tensor's shape: linear spreads and grids."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from layoutopt.errors import InputError
from layoutopt.tiles.arguments import integers, least
from layoutopt.tiles.blocks import Steps, TileMap, even_steps
from layoutopt.tiles.memory import TileMemory


def linear(
    shape: tuple[int, ...],
    memory: TileMemory,
    *,
    min_elements_per_tile: int = 1,
    grain: int | None = None,
    boxes: bool = False,
) -> TileMap:
    """Lay a tensor's elements, in row-major order, over the tiles from tile 0 on.

    With ``grains = ceil(elements / grain)``, element ``f`` is on tile ``f // chunk``, where
    ``chunk = max(ceil(min_elements_per_tile / grain), ceil(grains / tiles)) * grain``.

    Parameters
    ----------
    shape, memory
        The tensor's shape, and the machine.
    min_elements_per_tile
        How many elements a tile gets at least, but for the last tile; 1 by default.
    grain
        How many consecutive elements share a tile; the memory's by default.
    boxes
        Whether every tile gets a box of the tensor, which makes larger chunks: with ``p`` tiles
        to fill, outer dimensions are cut into single indices while their product ``o`` is at
        most ``p``, and the next one, of ``n`` indices, into blocks of ``ceil(n / (p // o))``.
        Where grains would cross blocks, chunks are as without.

    Raises
    ------
    InputError
        If a number is below 1, or ``boxes`` neither true nor false.

    Notes
    -----
    The same idea as ``poputil::mapTensorLinearly`` in Graphcore's poplibs.
    """
    grain = least("grain", memory.grain if grain is None else grain)
    fewest = least("min_elements_per_tile", min_elements_per_tile)
    size = math.prod(shape)
    if not isinstance(boxes, bool):
        raise InputError(f"boxes must be true or false, got {boxes!r}")
    found = _boxes(shape, min(memory.tiles, max(size // fewest, 1)), grain) if boxes else None
    if found is not None:
        return found
    grains = -(-size // grain)
    chunk = max(-(-fewest // grain), -(-grains // memory.tiles)) * grain
    return TileMap((size,), (even_steps(size, chunk),))


def _boxes(shape: tuple[int, ...], tiles: int, grain: int) -> TileMap | None:
    """Return a linear spread of boxes; ``None`` where grains would cross them, or is nothing."""
    if not math.prod(shape):
        return None
    blocks: list[int] = []
    outer, cut = 1, False
    for a, extent in enumerate(shape):
        stride = math.prod(shape[a + 1 :])
        if cut:
            blocks.append(extent)
        elif outer * extent <= tiles and stride % grain == 0:
            blocks.append(1)
            outer *= extent
        else:
            unit = grain // math.gcd(grain, stride)
            even = -(-extent // (tiles // outer))
            blocks.append(-(-even // unit) * unit)
            cut = True
            if outer > 1 and extent * stride % grain:
                return None
    counts = [-(-extent // block) for extent, block in zip(shape, blocks, strict=True)]
    steps = [
        even_steps(extent, block, math.prod(counts[a + 1 :]))
        for a, (extent, block) in enumerate(zip(shape, blocks, strict=True))
    ]
    return TileMap(shape, tuple(steps))


def grid(
    shape: tuple[int, ...], memory: TileMemory, *, blocks: Sequence[int], first: int = 0
) -> TileMap:
    """Cut each dimension into blocks, and give every block a tile.

    The element at index ``i`` is on tile ``first + sum_a (i_a // size_a) * stride_a`` with
    ``size_a = ceil(shape_a / blocks_a)`` and ``stride_a = blocks_{a+1} * blocks_{a+2} * ...``:
    blocks are numbered in row-major order.  The last blocks of a dimension may be smaller, or
    missing.

    Parameters
    ----------
    shape, memory
        The tensor's shape, and the machine.
    blocks
        The number of blocks along each dimension, 1 or more.
    first
        The tile of the first block.

    Raises
    ------
    InputError
        If there is not one number for each dimension, or there are more blocks than tiles.
    """
    counts = integers("blocks", blocks, 1)
    start = least("first", first, 0)
    if len(counts) != len(shape):
        raise InputError(f"blocks has {len(counts)} entries for {len(shape)} dimensions")
    if start + math.prod(counts) > memory.tiles:
        raise InputError(
            f"{math.prod(counts)} blocks from tile {start} on need more than the "
            f"{memory.tiles} tiles"
        )
    steps = [
        even_steps(extent, max(-(-extent // count), 1), math.prod(counts[a + 1 :]))
        for a, (extent, count) in enumerate(zip(shape, counts, strict=True))
    ]
    # An axis of its own for the first tile, so that a tensor of rank 0 has a place for it.
    origin = Steps(np.zeros(1, np.int64), np.array([start], np.int64))
    return TileMap((1, *shape), (origin, *steps)) if start else TileMap(shape, tuple(steps))
