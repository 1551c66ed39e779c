"""Strided boxes of flat tensors as chains of views.

A box holds the elements ``start + i_0 stride_0 + i_1 stride_1 + ...`` for
``0 <= i_d < extent_d``.  It *nests* in a tensor if views can cut it out: split the tensor into
equal blocks, keep every so-manyth of them, and go on inside the blocks with the other loops.
Any other box is cut into several.

Take the loop of the largest stride ``s``, of extent ``n``, on an axis of length ``l``, and let
the other loops span ``r`` elements, the first and the last included.  Blocks of length ``b`` do
if ``b`` divides ``s``, so that every ``s / b``-th one is kept, if ``r <= b``, and if the axis has
room for them, ``(n-1) s + b <= l``.  They can then be laid so that no step of the loop crosses
a border, wherever the box starts.  To the other loops the axis has length ``b``, so the
largest ``b`` is best.  A box nests if there is one for every loop but the innermost, which is
sampled where it is.

A box that slices, strides, reversed and permuted dimensions of a row-major tensor give nests
always: the length of a row is such a ``b``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt, prod
from typing import TypeAlias

from layoutopt.graphs.op import Shape
from layoutopt.pieces import Piece
from layoutopt.program.target import Handle, Views

Loops: TypeAlias = Sequence[tuple[int, int]]
"""``(extent, stride)`` of each loop, strides of any sign."""


@dataclass(frozen=True)
class _Level:
    """A loop of a box: its number, its extent, and its stride without the sign."""

    loop: int
    extent: int
    stride: int


def parts(piece: Piece, origin_size: int, sink_size: int) -> Iterator[Piece]:
    """Cut a piece into pieces of which both sides nest, and that have no loops of extent 1.

    Parameters
    ----------
    piece
        A piece that sets no element twice.
    origin_size, sink_size
        Numbers of elements of the tensors that it reads and sets.
    """
    todo: list[Piece] = [(*piece[:3], tuple(loop for loop in piece[3] if loop[0] != 1))]
    while todo:
        origin, start, to, loops = todo.pop()
        bad = obstacle(sink_size, [(n, t) for n, _, t in loops])
        if bad is None:
            bad = obstacle(origin_size, [(n, f) for n, f, _ in loops])
        if bad is None:
            yield origin, start, to, loops
            continue
        n, f, t = loops[bad]
        before, after = loops[:bad], loops[bad + 1 :]
        shorter = ((n - 1, f, t),) if n > 2 else ()
        todo.append((origin, start + (n - 1) * f, to + (n - 1) * t, before + after))
        todo.append((origin, start, to, before + shorter + after))


def obstacle(size: int, loops: Loops) -> int | None:
    """Return which loop to shorten so that a box may nest; ``None`` if it nests as it is.

    Parameters
    ----------
    size
        Number of elements of the tensor.
    loops
        The box's loops, of extents 2 or more.  Where it starts makes no difference.
    """
    return _blocks(size, _levels(loops))[1]


def view(target: Views[Handle], x: Handle, shape: Shape, start: int, loops: Loops) -> Handle:
    """Return the elements of a box as a tensor with a dimension for each loop.

    Parameters
    ----------
    x
        A tensor.
    shape
        Its shape.
    start, loops
        A box of the flat tensor that nests there.  Extents are 2 or more.  Strides of 0 are
        expanded, so that the view is no window then.

    Returns
    -------
    Handle
        Of shape ``(1,)`` if there are no loops.
    """
    levels = _levels(loops)
    blocks, bad = _blocks(prod(shape), levels)
    if bad is not None:
        raise ValueError(f"the box does not nest: loop {bad}")
    current: Shape = (prod(shape),)
    x = x if shape == current else target.reshape(x, current)
    first = start + sum((extent - 1) * stride for extent, stride in loops if stride < 0)
    for level, block in zip(levels, blocks, strict=False):
        reach = (level.extent - 1) * level.stride + block
        inside = max(0, first + reach - current[-1])
        x, current = cut(target, x, current, -1, first - inside, first - inside + reach)
        current = (*current[:-1], reach // block, block)
        x = target.reshape(x, current)
        x, current = _sampled(target, x, current, -2, level.stride // block)
        first = inside
    last = levels[-1] if levels else _Level(0, 1, 1)
    reach = (last.extent - 1) * last.stride + 1
    x, current = cut(target, x, current, -1, first, first + reach)
    x, current = _sampled(target, x, current, -1, last.stride)
    return _in_order(target, x, loops, levels)


def cut(
    target: Views[Handle], x: Handle, shape: Shape, axis: int, low: int, high: int
) -> tuple[Handle, Shape]:
    """Return the indices ``low <= i < high`` of one axis, and the shape that they have."""
    if (low, high) == (0, shape[axis]):
        return x, shape
    lower, upper = [0] * len(shape), list(shape)
    lower[axis], upper[axis] = low, high
    after = tuple(end - start for start, end in zip(lower, upper, strict=True))
    return target.slice(x, tuple(lower), tuple(upper)), after


def _sampled(
    target: Views[Handle], x: Handle, shape: Shape, axis: int, stride: int
) -> tuple[Handle, Shape]:
    """Return every ``stride``-th index of one axis, and the shape that they have."""
    if stride == 1:
        return x, shape
    strides = [1] * len(shape)
    strides[axis] = stride
    after = tuple(-(-n // s) for n, s in zip(shape, strides, strict=True))
    return target.sub_sample(x, tuple(strides)), after


def _in_order(target: Views[Handle], x: Handle, loops: Loops, levels: list[_Level]) -> Handle:
    """Turn, permute and repeat dimensions, from one for each level to one for each loop."""
    back = tuple(d for d, level in enumerate(levels) if loops[level.loop][1] < 0)
    if back:
        x = target.reverse(x, back)
    order = tuple(sorted(range(len(levels)), key=lambda d: levels[d].loop))
    if order != tuple(range(len(levels))):
        x = target.dim_shuffle(x, order)
    if len(levels) == len(loops):
        return x
    if levels:
        x = target.reshape(x, tuple(extent if stride else 1 for extent, stride in loops))
    return target.expand(x, tuple(extent for extent, _ in loops))


def _levels(loops: Loops) -> list[_Level]:
    """Return loops by descending stride, without those of stride 0, which go nowhere."""
    levels = [_Level(d, n, abs(stride)) for d, (n, stride) in enumerate(loops) if stride]
    return sorted(levels, key=lambda level: -level.stride)


def _blocks(size: int, levels: list[_Level]) -> tuple[list[int], int | None]:
    """Return the blocks' lengths for all loops but the innermost, and a loop in their way."""
    span = 1 + sum((level.extent - 1) * level.stride for level in levels)
    found: list[int] = []
    for level, inner in pairwise(levels):
        span -= (level.extent - 1) * level.stride
        if span > level.stride:
            # Steps overlap; the loop with fewer of them is taken apart.
            return found, min(level, inner, key=lambda x: x.extent).loop
        block = _block(size - (level.extent - 1) * level.stride, level.stride, span)
        if block is None:
            return found, level.loop
        found.append(block)
        size = block
    return found, None


def _block(room: int, stride: int, span: int) -> int | None:
    """Return the largest divisor of a stride from ``span`` to ``room``, if there is one."""
    root = isqrt(stride)
    for count in range(-(-stride // room), min(stride // span, root) + 1):
        if stride % count == 0:
            return stride // count
    for block in range(min(room, root), span - 1, -1):
        if stride % block == 0:
            return block
    return None
