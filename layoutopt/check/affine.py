"""Views as affine maps from their elements to those of their inputs.

This defines every view op by strides, independently of the NumPy operations used by the lowering.
In a tensor with row-major strides ``s``, index ``i`` has the flat position ``sum_d i_d s_d``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, product
from math import prod

import numpy as np

from layoutopt.base.result import Loop
from layoutopt.boxes.box import Box, strides
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Array, Shape, UnwindingOp, size
from layoutopt.graphs.store import GraphStore

_zip = partial(zip, strict=True)

SAME = (ops.SumLike, ops.Identity, ops.Flatten, ops.Squeeze, ops.Reshape)
"""Views whose elements have the row-major positions of those that they come from."""

Run = tuple[int, int, tuple[Loop, ...]]
"""``(start, to, loops)``: kept indices of a dimension, and their new positions."""


def moves(op: UnwindingOp, shapes: Sequence[Shape], out: Shape) -> list[Box]:
    """Return the origins of a view's elements as boxes labelled by carrier, each element in one.

    ``shapes`` are those of the carriers (:meth:`layoutopt.graphs.ops.UnwindingOp.carriers`).
    """
    if size(out) == 0:
        return []
    if isinstance(op, ops.Concat):
        return list(_concat(op.axis, shapes, out))
    if isinstance(op, SAME):
        return [Box(0, 0, 0, ((size(out), 1, 1),))]
    if isinstance(op, ops.SettSample):
        return list(_sett_sample(op, shapes[0], out))
    start, there = _straight(op, shapes[0], out)
    return [Box(0, start, 0, tuple(_zip(out, there, strides(out))))]


def carried(op: UnwindingOp, values: Sequence[Array], shapes: Sequence[Shape], out: Shape) -> Array:
    """Pass a value for each element of each carrier, flat, on to a view's elements.

    ``shapes`` and ``out`` are as for :func:`moves`.
    """
    if isinstance(op, SAME):
        return values[0]
    if not isinstance(op, ops.Concat | ops.SettSample) and size(out):
        start, there = _straight(op, shapes[0], out)
        return _strided(values[0], start, out, there).reshape(-1)
    found = np.empty(size(out), np.result_type(*values))
    for k, start, to, loops in moves(op, shapes, out):
        extents = [n for n, _, _ in loops]
        taken = _strided(values[k], start, extents, [f for _, f, _ in loops])
        _strided(found, to, extents, [t for _, _, t in loops])[...] = taken
    return found


def passed_on(graph: GraphStore, t: int, found: Mapping[int, Array]) -> Array:
    """Return the values of a view's elements, flat, from those of its carriers, by number."""
    producer = graph.producers[t]
    carriers = graph.carriers(producer)
    shapes = [graph.shapes[c] for c in carriers]
    return carried(graph.ops[producer], [found[c] for c in carriers], shapes, graph.shapes[t])


def _strided(values: Array, start: int, extents: Sequence[int], steps: Sequence[int]) -> Array:
    """Return a bounds-checked strided view of a flat array.

    It takes a tenth of the time of ``as_strided``, which matters for many small tensors.
    """
    flat, bytes = np.ascontiguousarray(values), values.itemsize
    long = [(n, bytes * step) for n, step in zip(extents, steps, strict=True) if n != 1]
    return np.ndarray(
        [n for n, _ in long], flat.dtype, flat.data, bytes * start, [step for _, step in long]
    )


def _straight(op: UnwindingOp, shape: Shape, out: Shape) -> tuple[int, list[int]]:
    """Return the flat origin of output element 0, and its stride along each output dimension."""
    step = strides(shape)
    if isinstance(op, ops.DimShuffle):
        return 0, [step[p] for p in op.permutation]
    if isinstance(op, ops.Reverse):
        start = sum(step[d] * (shape[d] - 1) for d in op.dims)
        return start, [-s if d in op.dims else s for d, s in enumerate(step)]
    if isinstance(op, ops.Slice):
        return sum(s * low for s, low in _zip(step, op.lower)), step
    if isinstance(op, ops.SubSample):
        return 0, [s * k for s, k in _zip(step, op.strides)]
    if isinstance(op, ops.Expand):
        new = len(out) - len(shape)
        return 0, [0] * new + [0 if n == 1 else s for s, n in _zip(step, shape)]
    raise TypeError(f"{type(op).__name__} is not a view")


def _concat(axis: int, shapes: Sequence[Shape], out: Shape) -> Iterator[Box]:
    step = strides(out)
    places = accumulate((shape[axis] for shape in shapes), initial=0)
    for k, (shape, place) in enumerate(zip(shapes, places, strict=False)):
        if size(shape):
            yield Box(k, 0, place * step[axis], tuple(_zip(shape, strides(shape), step)))


def _sett_sample(op: ops.SettSample, shape: Shape, out: Shape) -> Iterator[Box]:
    axes = []
    for n, stripes, there, here in _zip(shape, op.setts, strides(shape), strides(out)):
        axes.append(
            [
                (start * there, to * here, [(m, f * there, t * here) for m, f, t in loops])
                for start, to, loops in kept(0, n, stripes)
            ]
        )
    for runs in product(*axes):
        start, to = sum(run[0] for run in runs), sum(run[1] for run in runs)
        yield Box(0, start, to, tuple([loop for run in runs for loop in run[2]]))


def kept(low: int, high: int, stripes: Sequence[tuple[int, int, int]]) -> list[Run]:
    """Return the indices ``low <= i < high`` that nested stripes ``(on, off, phase)`` keep.

    They are relative to ``low``; their new positions are 0, 1, 2, ...
    """
    if low >= high:
        return []
    if not stripes:
        return [(0, 0, ((high - low, 1, 1),))]
    (on, off, phase), inner = stripes[0], stripes[1:]
    period = on + off
    found: list[Run] = []
    done = 0
    for k, times, begin, end in _periods(low - phase, high - phase, on, period):
        runs = kept(begin, end, inner)
        one = sum(prod([n for n, _, _ in loops]) for _, _, loops in runs)
        place = phase + k * period + begin - low
        found += [
            (place + start, done + to, (*loops, (times, period, one))) for start, to, loops in runs
        ]
        done += one * times
    return found


def _periods(low: int, high: int, on: int, period: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the on-parts of periods that a range overlaps, as ``(first, count, low, high)``."""
    first, begin = divmod(low, period)
    last, end = (high - 1) // period, (high - 1) % period + 1
    if first == last:
        yield first, 1, begin, min(end, on)
        return
    if begin > 0:
        yield first, 1, begin, on
    whole = range(first + (begin > 0), last + (end >= on))
    if whole:
        yield whole[0], len(whole), 0, on
    if end < on:
        yield last, 1, 0, end
