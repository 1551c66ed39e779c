"""Backward passes of operations that only move elements: the gradient moves back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import cast

from layoutopt.graphs import ops
from layoutopt.graphs.op import Shape, UnwindingOp
from layoutopt.graphs.tensor import Tensor
from layoutopt.onnx.gradients import Backward, Gradients, Use, opaque, reduced
from layoutopt.onnx.sketch import Sketch
from layoutopt.onnx.views import VIEWS


def view(sketch: Sketch, use: Use) -> Gradients:
    """Pass the gradient back through the inverse of each view that the node became.

    What was cut away has a gradient of zeros, which are made where they are wanted.  A node
    that became no view has an opaque backward pass.
    """
    for position in use.wanted:
        t, dy, x = use.output, use.gradient, use.operand(position)
        while t.index != x.index and type(t.op) in INVERSES:
            inputs = sketch.graph.inputs(t)
            slot = position if len(inputs) > 1 else 0
            dy = INVERSES[type(t.op)](sketch, t.op, inputs, slot, dy)
            t = inputs[slot]
        if t.index == x.index:
            yield position, dy
        else:
            yield from opaque(sketch, Use(use.node, use.outputs, use.gradients, (position,)))


def split(sketch: Sketch, use: Use) -> Gradients:
    """Join the parts' gradients; parts that nobody learns from have zeros."""
    x = use.operand(0)
    parts = [sketch.graph.op(y) for y in use.outputs if y is not None]
    if not all(isinstance(op, ops.Slice) for op in parts):
        yield from opaque(sketch, use)
        return
    slices = cast(list[ops.Slice], parts)
    found = [dy for y, dy in zip(use.outputs, use.gradients, strict=True) if y is not None]
    axis = int(use.node.attributes.get("axis", 0)) % len(x.shape)
    pieces, end = [], 0
    order = sorted(zip(slices, found, strict=True), key=lambda pair: (pair[0].lower, pair[0].upper))
    for op, dy in order:
        if dy is not None:
            pieces += [*_zeros(sketch, x, axis, op.lower[axis] - end), dy]
            end = op.upper[axis]
    pieces += _zeros(sketch, x, axis, x.shape[axis] - end)
    yield 0, sketch.graph.concat(pieces, axis, name=sketch.gradient_name(x))


def _same(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    return dy


def _reshape(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    x = inputs[slot]
    return sketch.graph.reshape(dy, x.shape, name=sketch.gradient_name(x))


def _dim_shuffle(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    forth = cast(ops.DimShuffle, op).permutation
    back = sorted(range(len(forth)), key=forth.__getitem__)
    return sketch.graph.dim_shuffle(dy, back, name=sketch.gradient_name(inputs[slot]))


def _reverse(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    dims = cast(ops.Reverse, op).dims
    return sketch.graph.reverse(dy, dims, name=sketch.gradient_name(inputs[slot]))


def _concat(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    x, axis = inputs[slot], cast(ops.Concat, op).axis
    starts = [*accumulate((part.shape[axis] for part in inputs), initial=0)]
    lower, upper = [0] * len(dy.shape), list(dy.shape)
    lower[axis], upper[axis] = starts[slot], starts[slot + 1]
    return sketch.graph.slice(dy, lower, upper, name=sketch.gradient_name(x))


def _expand(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    return reduced(sketch, dy, inputs[slot])


def _slice(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    """Put zeros around, axis by axis."""
    x, cut = inputs[slot], cast(ops.Slice, op)
    for axis, (low, high, n) in enumerate(zip(cut.lower, cut.upper, x.shape, strict=True)):
        if (low, high) != (0, n):
            before = _zeros(sketch, x, axis, low, dy.shape)
            after = _zeros(sketch, x, axis, n - high, dy.shape)
            pieces = [*before, dy, *after]
            dy = sketch.graph.concat(pieces, axis, name=sketch.gradient_name(x))
    return dy


def _sub_sample(
    sketch: Sketch, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor:
    """Put zeros between, axis by axis: ``(n,) -> (n, 1) -> (n, s) -> (n s,)``, and cut the end."""
    x, graph = inputs[slot], sketch.graph
    for axis, stride in enumerate(cast(ops.SubSample, op).strides):
        if stride == 1:
            continue
        shape = dy.shape
        apart = (*shape[: axis + 1], 1, *shape[axis + 1 :])
        single = graph.reshape(dy, apart, name=sketch.gradient_name(x))
        zeros = _zeros(sketch, x, axis + 1, stride - 1, apart)
        wide = graph.concat([single, *zeros], axis + 1, name=sketch.gradient_name(x))
        joined = (*shape[:axis], shape[axis] * stride, *shape[axis + 1 :])
        dy = graph.reshape(wide, joined, name=sketch.gradient_name(x))
        upper = [*joined]
        upper[axis] = x.shape[axis]
        dy = graph.slice(dy, [0] * len(upper), upper, name=sketch.gradient_name(x))
    return dy


def _zeros(
    sketch: Sketch, x: Tensor, axis: int, count: int, shape: Shape | None = None
) -> list[Tensor]:
    """Return zeros of a shape but for one axis, or nothing if there are none."""
    full = list(x.shape if shape is None else shape)
    full[axis] = count
    name = sketch.helper(x.name, "gradient.zeros") if count else ""
    return [sketch.graph.fixed_point([], full, name=name)] if count else []


INVERSES: dict[
    type[UnwindingOp], Callable[[Sketch, UnwindingOp, Sequence[Tensor], int, Tensor], Tensor]
] = {
    ops.Identity: _same,
    ops.Reshape: _reshape,
    ops.DimShuffle: _dim_shuffle,
    ops.Reverse: _reverse,
    ops.Slice: _slice,
    ops.SubSample: _sub_sample,
    ops.Concat: _concat,
    ops.Expand: _expand,
}
"""From the gradient of a view to that of its input in the given slot, by type of view."""

VIEW_GRADIENTS = dict.fromkeys(VIEWS, Backward(view)) | {"Split": Backward(split, every=True)}
