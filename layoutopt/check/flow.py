"""Origins of each element of a view, as formulas over indices.

This states the meaning of every view op a second time, by index arithmetic instead of the
NumPy operations that the lowering uses, so that the two can find each other's mistakes.
In a tensor of shape ``n`` with row-major strides ``s``, index ``i`` has the flat position
``sum_d i_d s_d``; ``i_d`` below is an index of the output, along axis ``d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.result import Index, outer_sum
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Array, Shape, UnwindingOp

_zip = partial(zip, strict=True)


def strides(shape: Shape) -> list[int]:
    """Return the row-major stride of each dimension, in elements."""
    steps = [1]
    for n in shape[:0:-1]:
        steps.append(steps[-1] * n)
    return steps[::-1][: len(shape)]


def carried(op: UnwindingOp, values: Sequence[Array], shapes: Sequence[Shape], out: Shape) -> Array:
    """Return what a view's elements carry.

    Parameters
    ----------
    op
        A view.
    values
        One flat array per carrier (see :meth:`layoutopt.graphs.ops.UnwindingOp.carriers`): anything
        that stands for its elements.
    shapes
        The carriers' shapes.
    out
        The output's shape.

    Returns
    -------
    array
        Flat: the value of the element that each output element comes from.
    """
    if isinstance(op, ops.Concat):
        return _concat(op.axis, values, shapes, out)
    if isinstance(op, ops.SumLike | ops.Identity | ops.Flatten | ops.Squeeze | ops.Reshape):
        return values[0]  # the same row-major position
    return np.asarray(values[0][_origin(op, shapes[0], out)])


def _origin(op: UnwindingOp, shape: Shape, out: Shape) -> Index:
    """Return the flat input position of each output element."""
    step = strides(shape)
    axes = [np.arange(n) for n in out]
    if isinstance(op, ops.DimShuffle):
        # in.dim(permutation[d]) = out.dim(d)
        return outer_sum([step[p] * i for p, i in _zip(op.permutation, axes)])
    if isinstance(op, ops.Reverse):
        back = [n - 1 - i if d in op.dims else i for d, (n, i) in enumerate(_zip(out, axes))]
        return outer_sum([s * i for s, i in _zip(step, back)])
    if isinstance(op, ops.Slice):
        return outer_sum([s * (low + i) for s, low, i in _zip(step, op.lower, axes)])
    if isinstance(op, ops.SubSample):
        return outer_sum([s * (k * i) for s, k, i in _zip(step, op.strides, axes)])
    if isinstance(op, ops.SettSample):
        kept = [np.flatnonzero(_on(np.arange(n), x)) for n, x in _zip(shape, op.setts)]
        return outer_sum([s * i for s, i in _zip(step, kept)])
    if isinstance(op, ops.Expand):
        # Axes align at the end; axes of size 1 stay at index 0.
        pad = len(out) - len(shape)
        full = [0] * pad + [s if n != 1 else 0 for s, n in _zip(step, shape)]
        return outer_sum([s * i for s, i in _zip(full, axes)])
    raise TypeError(f"{type(op).__name__} is no view")


def _on(i: Index, stripes: Sequence[tuple[int, int, int]]) -> NDArray[np.bool_]:
    """Return which indices all nested stripes keep."""
    if not stripes:
        return np.ones(i.shape, bool)
    on, off, phase = stripes[0]
    inside = np.mod(i - phase, on + off)
    return (inside < on) & _on(inside, stripes[1:])


def _concat(axis: int, values: Sequence[Array], shapes: Sequence[Shape], out: Shape) -> Array:
    joint = np.empty(int(np.prod(out, dtype=np.int64)), np.result_type(*values))
    step = strides(out)
    start = 0
    for value, shape in _zip(values, shapes):
        block = outer_sum([s * np.arange(n) for s, n in _zip(step, shape)])
        joint[block + start * step[axis]] = value
        start += shape[axis]
    return joint
