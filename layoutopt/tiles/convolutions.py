"""Rules for the operands and results of convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from layoutopt.base.arguments import integers, least
from layoutopt.base.errors import InputError
from layoutopt.tiles.blocks import TileMap
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.partitions import Axes, Contraction, OperandAxis, partition, spread
from layoutopt.tiles.products import MACS_PER_CYCLE, speed_of

BATCH, GROUP, OUT, IN, SPACE = range(5)
"""The loops of a convolution; those over the output's positions begin at ``SPACE``."""


def conv_data(
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
    """Lay the data of a convolution over the tiles that use it.

    The loops ``(batch, groups, out_channels / groups, in_channels / groups, *out_size)`` are cut
    into parts, one for each tile in row-major order, see
    :func:`~layoutopt.tiles.partitions.partition`; the kernel's positions are not cut.  Element
    ``(b, g, c, *x)`` of the data, ``g`` being its group, belongs to the parts with the same block
    of batch, groups, input channels and of each spatial dimension (index ``x`` of ``size`` is in
    block ``x * p // size``).  The parts along the output channels each hold a piece of that
    block, see :func:`~layoutopt.tiles.partitions.spread`.  What a part reads beyond its block,
    the halo of ``kernel - 1`` indices, is counted as received.

    Parameters
    ----------
    shape, memory
        ``(batch, in_channels, *size)``, as ONNX has it, and the machine.
    batch, in_channels, out_channels, groups
        As the convolution has them; ``groups`` divides both numbers of channels.
    size, kernel, out_size
        Extents of data, kernel and output in each spatial dimension.  By default the output
        has those of the data.
    macs_per_cycle
        Multiply-accumulates that a tile does in a cycle.

    Raises
    ------
    InputError
        If a number is wrong, or the shape is another.
    """
    conv = _conv(batch, in_channels, out_channels, size, kernel, groups, out_size)
    return _operand(shape, memory, conv, 0, macs_per_cycle)


def conv_filter(
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
    """Lay the filter of a convolution over the tiles that use it.

    As :func:`conv_data`, but for shape ``(out_channels, in_channels / groups, *kernel)``: a block
    of groups, output and input channels, with all of the kernel, is needed by the parts along
    batch and spatial dimensions, and each of these holds a piece of it.
    """
    conv = _conv(batch, in_channels, out_channels, size, kernel, groups, out_size)
    return _operand(shape, memory, conv, 1, macs_per_cycle)


def conv_out(
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
    """Lay the result of a convolution over the tiles that compute it.

    As :func:`conv_data`, but for shape ``(batch, out_channels, *out_size)``: the parts along the
    input channels have partial sums of the same block, and each of them adds up, and keeps, a
    piece of it.
    """
    conv = _conv(batch, in_channels, out_channels, size, kernel, groups, out_size)
    return _operand(shape, memory, conv, 2, macs_per_cycle)


@dataclass(frozen=True)
class _Conv:
    """A convolution: its work, and the shapes of data, filter and result."""

    work: Contraction
    shapes: tuple[tuple[int, ...], ...]


def _conv(
    batch: Any, in_channels: Any, out_channels: Any, size: Any, kernel: Any, groups: Any, out: Any
) -> _Conv:
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
    return _Conv(Contraction(loops, operands, max(math.prod(window), 1)), shapes)


def _operand(
    shape: tuple[int, ...], memory: TileMemory, conv: _Conv, which: int, macs_per_cycle: int
) -> TileMap:
    if shape != conv.shapes[which]:
        wanted = list(conv.shapes[which])
        raise InputError(f"shape {list(shape)} does not fit; {wanted} is needed")
    parts = partition(conv.work, speed_of(memory, macs_per_cycle))
    return spread(conv.work.operands[which], parts)
