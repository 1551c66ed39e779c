"""Contractions on tiles: matrix products and convolutions, with rules for their operands.

Nested loops are cut into parts, one for each tile in row-major order, and each operand is spread
over the tiles that use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import integers, least, ranges
from layoutopt.base.result import outer_sum
from layoutopt.tiles.blocks import Array, Steps, TileMap
from layoutopt.tiles.memory import DEFAULT_EXCHANGE, TileMemory

MOST_SPLITS = 3 * 10**5
"""Up to so many ways to cut all loops are compared; where there are more, fewer numbers of parts
are tried for each loop."""

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class OperandAxis:
    """An axis of an operand.

    ``loop`` walks along it; it is None for an axis that every part of the work reads whole.  A part
    reads ``halo`` further indices than are its own.
    """

    extent: int
    loop: int | None
    halo: int = 0


Axes = tuple[OperandAxis, ...]


@dataclass(frozen=True)
class Contraction:
    """Nested loops of multiply-accumulates, and the tensors that they read and write.

    ``loops`` are their extents, ``operands`` the tensors' axes, those of the result last, and
    ``inner`` the multiply-accumulates in the body of the loops.
    """

    loops: tuple[int, ...]
    operands: tuple[Axes, ...]
    inner: int = 1


LARGEST = 2**62
"""The longest loop; arithmetic on it stays in 64 bits."""


@dataclass(frozen=True)
class TileThroughput:
    """Number of tiles, and multiply-accumulates and received bytes per cycle of each.

    ``element_bytes`` are those of partial sums, too.
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
    """Return the ways to cut axes into ``most`` or fewer parts in all, shape ``(ways, axes)``.

    Of numbers of parts that give equally large blocks the smallest is tried, and those of ``also``.
    """
    tried = [_counts(extent, most, also) for extent in extents]
    while (found := _choices(tried, most)) is None:
        tried = [np.union1d(1, counts[::-2] if len(counts) > 2 else 1) for counts in tried]
    return found


def _counts(extent: int, most: int, also: Array) -> Array:
    """Return the smallest number of parts for each size of the largest part, and some others."""
    counts = np.arange(1, min(extent, most) + 1, dtype=np.int64)
    sizes = -(-extent // counts)
    tried: Array = counts[np.r_[True, sizes[1:] != sizes[:-1]] | np.isin(counts, also)]
    return tried


def _choices(tried: Sequence[Array], most: int) -> Array | None:
    """Return all choices whose product is not above ``most``; ``None`` if they are too many."""
    rows, products = np.zeros((1, 0), np.int64), np.ones(1, np.int64)
    for counts in tried:
        fitting = np.searchsorted(counts, most // products, side="right")
        if fitting.sum() > MOST_SPLITS:
            return None
        row = np.repeat(np.arange(len(rows)), fitting)
        own = counts[ranges(0, fitting)]
        rows = np.column_stack([rows[row], own])
        products = products[row] * own
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
    """Return for each axis what each piece of a block along it adds to the tile.

    ``spare`` has number and stride of the parts along each loop that the operand does not have.
    """
    tiles = outer_sum([stride * np.arange(number) for number, stride in spare])
    inner = [math.prod(number for number, _ in spare[i:]) for i in range(len(spare))]
    # Pieces of two axes are steps along each only where they fall into whole rows of tiles.
    numbers = np.arange(1, min(max(blocks), len(tiles)) + 1)
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
    index, (whole, rest) = np.arange(len(values)), divmod(extent, len(values))
    starts = index * whole - (-index * rest // len(values))  # no product is above the extent
    last = np.r_[starts[1:] != starts[:-1], True] & (starts < max(extent, 1))
    return Steps(starts[last], values[last]).merged()


MACS_PER_CYCLE = 16
"""Multiply-accumulates of 32-bit floats that a tile is taken to do in a cycle.

It fits the 62.5 TFLOPS that Graphcore gives for a GC200 of 1472 tiles at about 1.33 GHz."""


def _cut(memory: TileMemory, work: Contraction, macs_per_cycle: int) -> tuple[int, ...]:
    """Return into how many parts each loop is cut on a machine."""
    macs = least("macs_per_cycle", macs_per_cycle)
    received = memory.exchange_bytes_per_cycle or DEFAULT_EXCHANGE
    width = memory.bytes_of("default")
    return partition(work, TileThroughput(memory.tiles, macs, width, received))


def _unfit(shape: tuple[int, ...], wanted: str) -> InputError:
    return InputError(f"shape {list(shape)} does not fit; {wanted} is needed")


BATCH, M, K, N = range(4)
"""The loops of a product."""


def matmul_rule(rows: int, columns: int) -> Callable[..., TileMap]:
    """Return the rule for the tensor of a matrix product that has these two loops."""

    def rule(
        shape: tuple[int, ...],
        memory: TileMemory,
        *,
        m: int,
        k: int,
        n: int,
        batch: int = 1,
        macs_per_cycle: int = MACS_PER_CYCLE,
    ) -> TileMap:
        """Lay an operand or the result of a matrix product over the tiles that use it.

        The loops ``(batch, m, k, n)`` are cut into ``(pb, pm, pk, pn)`` parts (:func:`partition`),
        and part ``(b, i, j, c)`` is computed on tile ``((b * pm + i) * pk + j) * pn + c``.  Element
        ``(x, y)`` of the left operand is needed by the ``pn`` parts with ``i = x * pm // m``, ``j =
        y * pk // k``, and each of these holds a piece of the block that they need
        (:func:`spread`).  The right operand, ``(k, n)``, is needed by the parts along ``m``.  Of
        the result, ``(m, n)``, the parts along ``k`` have partial sums, and each of them adds up,
        and keeps, a piece of the block.

        A shape is ``(m, k)``, ``(batch, m, k)``, or one that reads in row-major order as these:
        several leading dimensions, or no ``m`` where that is 1.  Without the batch the operand is
        used by all batches.
        """
        work = _product(m, k, n, batch)
        parts, loops = _cut(memory, work, macs_per_cycle), work.loops
        matrix = loops[rows], loops[columns]
        lead = OperandAxis(loops[BATCH], BATCH)
        if not _reads_as(shape, (loops[BATCH], *matrix)):
            if not _reads_as(shape, matrix):
                raise _unfit(shape, f"{list(matrix)} or {[loops[BATCH], *matrix]}")
            lead = OperandAxis(1, None)
        return spread((lead, *(OperandAxis(loops[loop], loop) for loop in (rows, columns))), parts)

    return rule


def _product(m: int, k: int, n: int, batch: int) -> Contraction:
    named = {"batch": batch, "m": m, "k": k, "n": n}
    loops = tuple(least(name, extent, 0) for name, extent in named.items())
    axes = [OperandAxis(extent, loop) for loop, extent in enumerate(loops)]
    operands = [(axes[BATCH], axes[a], axes[b]) for a, b in ((M, K), (K, N), (M, N))]
    return Contraction(loops, tuple(operands))


def _reads_as(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether joining neighbouring dimensions of a shape makes it another.

    Dimensions of 1 may be missing.
    """
    places = {math.prod(shape[d:]) for d in range(len(shape) + 1)}
    sizes = [math.prod(wanted[d:]) for d in range(len(wanted) + 1)]
    return math.prod(shape) == sizes[0] and places.issuperset(sizes)


GROUP, OUT, IN, SPACE = range(1, 5)
"""The loops of a convolution behind the batch; those over the output's positions are last."""


def conv_rule(which: int) -> Callable[..., TileMap]:
    """Return the rule for the data (0), the filter (1) or the result (2) of a convolution."""

    def rule(
        shape: tuple[int, ...],
        memory: TileMemory,
        *,
        batch: int,
        in_channels: int,
        out_channels: int,
        size: Sequence[int],
        kernel: Sequence[int],
        groups: int = 1,
        out_size: Sequence[int] | None = None,
        macs_per_cycle: int = MACS_PER_CYCLE,
    ) -> TileMap:
        """Lay an operand or the result of a convolution over the tiles that use it.

        The loops ``(batch, groups, out_channels / groups, in_channels / groups, *out_size)`` are
        cut into parts; the kernel's positions are not cut.  Element ``(b, g, c, *x)`` of the data,
        ``g`` being its group, belongs to the parts with the same block of batch, groups, input
        channels and of each spatial dimension (index ``x`` of ``size`` is in block ``x * p //
        size``).  The parts along the output channels each hold a piece of that block
        (:func:`spread`).  What a part reads beyond its block, the halo of ``kernel - 1`` indices,
        is counted as received.  A block of the filter, of groups, output and input channels with
        all of the kernel, is needed by the parts along batch and spatial dimensions.  Of the
        result, the parts along the input channels have partial sums of the same block, and each of
        them adds up, and keeps, a piece of it.

        Shapes are ``(batch, in_channels, *size)``, as ONNX has it, ``(out_channels,
        in_channels / groups, *kernel)`` and ``(batch, out_channels, *out_size)``.
        """
        sizes = batch, in_channels, out_channels, size, kernel, groups, out_size
        work, shapes = _convolution(*sizes)
        if shape != shapes[which]:
            raise _unfit(shape, str(list(shapes[which])))
        return spread(work.operands[which], _cut(memory, work, macs_per_cycle))

    return rule


def _convolution(
    batch: Any, in_channels: Any, out_channels: Any, size: Any, kernel: Any, groups: Any, out: Any
) -> tuple[Contraction, tuple[tuple[int, ...], ...]]:
    """Return the work of a convolution, and the shapes of data, filter and result."""
    n, group = least("batch", batch, 0), least("groups", groups)
    before, after = least("in_channels", in_channels, 0), least("out_channels", out_channels, 0)
    if before % group or after % group:
        raise InputError(f"groups {group} must divide in_channels {before}, out_channels {after}")
    space = integers("size", size, 0)
    window = integers("kernel", kernel, 0, len(space))
    result = space if out is None else integers("out_size", out, 0, len(space))
    loops = (n, group, after // group, before // group, *result)
    axes = [OperandAxis(extent, loop) for loop, extent in enumerate(loops)]
    read = [
        OperandAxis(x, SPACE + d, max(y - 1, 0))
        for d, (x, y) in enumerate(zip(space, window, strict=True))
    ]
    operands: tuple[Axes, ...] = (
        (axes[BATCH], axes[GROUP], axes[IN], *read),
        (axes[GROUP], axes[OUT], axes[IN], *(OperandAxis(extent, None) for extent in window)),
        (axes[BATCH], axes[GROUP], axes[OUT], *axes[SPACE:]),
    )
    shapes = ((n, before, *space), (after, before // group, *window), (n, after, *result))
    return Contraction(loops, operands, max(math.prod(window), 1)), shapes
