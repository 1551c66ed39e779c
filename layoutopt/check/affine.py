"""Views as affine maps: from where each element of a view comes.

This states the meaning of every view op a second time, by strides instead of the NumPy operations
that the lowering uses, so that the two can find each other's mistakes.  In a tensor of shape ``n``
with row-major strides ``s``, index ``i`` has the flat position ``sum_d i_d s_d``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, product
from math import prod
from typing import TypeVar

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.result import Loop
from layoutopt.boxes.box import Box, strides
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Array, Shape, UnwindingOp, size
from layoutopt.graphs.store import GraphStore

_zip = partial(zip, strict=True)

Run = tuple[int, int, tuple[Loop, ...]]
"""``(start, to, loops)``: which indices of a dimension are kept, and where they go."""


def moves(op: UnwindingOp, shapes: Sequence[Shape], out: Shape) -> list[Box]:
    """Return where the elements of a view come from.

    Parameters
    ----------
    op
        A view.
    shapes
        The shapes of its carriers (see :meth:`layoutopt.graphs.ops.UnwindingOp.carriers`).
    out
        The output's shape.

    Returns
    -------
    list of Box
        Labels are places in the list of carriers; each output element is in one box.
    """
    if size(out) == 0:
        return []
    if isinstance(op, ops.Concat):
        return list(_concat(op.axis, shapes, out))
    if isinstance(op, ops.SumLike | ops.Identity | ops.Flatten | ops.Squeeze | ops.Reshape):
        return [Box(0, 0, 0, ((size(out), 1, 1),))]
    if isinstance(op, ops.SettSample):
        return list(_sett_sample(op, shapes[0], out))
    start, there = _straight(op, shapes[0], out)
    return [Box(0, start, 0, tuple(_zip(out, there, strides(out))))]


def carried(op: UnwindingOp, values: Sequence[Array], shapes: Sequence[Shape], out: Shape) -> Array:
    """Return what a view's elements carry.

    Parameters
    ----------
    op, shapes, out
        As for :func:`moves`.
    values
        One flat array per carrier: anything that stands for its elements.

    Returns
    -------
    array
        Flat: the value of the element that each output element comes from.
    """
    if isinstance(op, ops.SumLike | ops.Identity | ops.Flatten | ops.Squeeze | ops.Reshape):
        return values[0]  # the same row-major position
    if not isinstance(op, ops.Concat | ops.SettSample) and size(out):
        start, there = _straight(op, shapes[0], out)
        return _strided(values[0], start, out, there).reshape(-1)
    found = np.empty(size(out), np.result_type(*values))
    for k, start, to, loops in moves(op, shapes, out):
        extents = [n for n, _, _ in loops]
        taken = _strided(values[k], start, extents, [f for _, f, _ in loops])
        _strided(found, to, extents, [t for _, _, t in loops])[...] = taken
    return found


def _strided(values: Array, start: int, extents: Sequence[int], steps: Sequence[int]) -> Array:
    """Return the elements of a flat array at regular places, without a copy; NumPy's bounds hold.

    Of ``as_strided`` it takes a tenth of the time, which counts where tensors are small and many.
    """
    flat, bytes = np.ascontiguousarray(values), values.itemsize
    long = [(n, bytes * step) for n, step in zip(extents, steps, strict=True) if n != 1]
    return np.ndarray(
        [n for n, _ in long], flat.dtype, flat.data, bytes * start, [step for _, step in long]
    )


def _straight(op: UnwindingOp, shape: Shape, out: Shape) -> tuple[int, list[int]]:
    """Return the flat origin of output element 0, and of a step along each output dimension."""
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
    raise TypeError(f"{type(op).__name__} is no view")


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
    """Return which indices ``low <= i < high`` nested stripes keep.

    Parameters
    ----------
    stripes
        ``(on, off, phase)``, outermost first.

    Returns
    -------
    list of Run
        Kept indices count from ``low``; they go to 0, 1, 2, ... in their order.
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
    """Yield periods that a range meets: the first, how many, and which part of each is on."""
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


T = TypeVar("T")

SMALL = 2 * 10**6
"""Graphs of up to so many elements are checked element by element."""

LARGE = 10**9
"""Graphs of up to so many elements are, where pieces turn out to be too many."""

STEPS = 2 * 10**6
"""How many steps piece by piece may take: about a minute."""

ELEMENTS_PER_STEP = 1000
"""How many elements are checked in the time of a step."""


def either(graph: GraphStore, by_elements: Callable[[], T], by_pieces: Callable[[int], T]) -> T:
    """Return what the quicker of two ways says; both say the same.

    Parameters
    ----------
    graph
        The graph; the number of its elements decides.
    by_elements
        Takes time and memory for every element.
    by_pieces
        Takes up to so many steps, or raises :class:`~layoutopt.base.errors.SizeError`.

    Raises
    ------
    SizeError
        If the graph is too large for the one way, and its layouts too irregular for the other.
    """
    count = sum(map(size, graph.shapes))
    if count > LARGE:
        return by_pieces(STEPS)
    if count > SMALL:
        try:
            return by_pieces(min(STEPS, count // ELEMENTS_PER_STEP))
        except SizeError:
            pass
    return by_elements()
