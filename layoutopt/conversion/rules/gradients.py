"""Backward passes of operations: elementwise ones, views, contractions and barriers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate
from typing import TypeAlias, cast

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.builder import Gradients, GraphBuilder, Step, Use, column
from layoutopt.conversion.rules.unwinding import broadcast_axis, draw_product, together
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Shape, UnwindingOp, broadcast, dominates
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph


def reduced(builder: GraphBuilder, dy: Tensor, x: Tensor, placed: Shape | None = None) -> Tensor:
    """Return the gradient of an operand that was broadcast: summed up, in its shape.

    ``dy`` is the gradient before it is summed up, ``placed`` the shape of the operand ``x`` beside
    the larger one; by default its own.
    """
    shape = x.shape if placed is None else placed
    if dy.shape == x.shape:
        return dy
    last = builder.gradient_name(x)
    name = last if shape == x.shape else builder.helper(last, "reduce")
    if dominates(dy.shape, shape):
        total = builder.graph.sum_like_reduce(dy, shape, name=name)
    else:
        total = builder.graph.barrier([dy], shape, name=name)
    return total if shape == x.shape else builder.graph.reshape(total, x.shape, name=last)


Saved: TypeAlias = Callable[[Use, int], list[int]]
"""Positions of the operands that the gradient of one is computed with; -1 is the output."""


def nothing(_use: Use, _position: int) -> list[int]:
    """Of a linear operation: the gradient passes as it is, but for a factor."""
    return []


def output(_use: Use, _position: int) -> list[int]:
    """Of a function whose derivative follows from its value."""
    return [-1]


def operands(use: Use, _position: int) -> list[int]:
    """Of any other function."""
    return [i for i, x in enumerate(use.node.inputs) if x is not None]


def others(use: Use, position: int) -> list[int]:
    """Of a product."""
    return [i for i in operands(use, position) if i != position]


def quotient(_use: Use, position: int) -> list[int]:
    """Of ``y = a / b``: ``da = dy / b`` and ``db = -dy y / b``."""
    return [1, -1] if position else [1]


def condition(_use: Use, _position: int) -> list[int]:
    """Of a choice by the first operand."""
    return [0]


def elementwise(builder: GraphBuilder, use: Use, saved: Saved = operands) -> Gradients:
    """Add one op that reads the output's gradient with all that was saved for it.

    It stands for the gradients of all operands; those of broadcast ones are summed up.
    """
    axis = broadcast_axis(use.node)
    read = dict.fromkeys(i for position in use.wanted for i in saved(use, position))
    dy = use.gradient
    beside = {}
    for i in read:
        x = use.output if i < 0 else use.operand(i)
        if i == 1 and axis is not None:
            x = builder.aligned(x, len(dy.shape), axis, use.output.name, "gradient.1")
        beside[x.index] = x
    total = dy
    if beside:
        name = builder.helper(use.output.name, "gradient.back")
        total = together(builder, name, [dy, *beside.values()], "elementwise_gradient")
    for position in use.wanted:
        x = use.operand(position)
        placed = axis is not None and position == 1
        shape = column(x.shape, len(dy.shape), axis or 0) if placed else None
        yield position, reduced(builder, total, x, shape)


def opaque(builder: GraphBuilder, use: Use) -> Gradients:
    """Add a barrier for each gradient, which reads all there is, drawn to its operand."""
    present = [dy for dy in use.gradients if dy is not None]
    read = tuple({x.index: x for x in (*present, *use.node.operands)}.values())
    for position in use.wanted:
        yield position, _drawn_barrier(builder, read, use.operand(position))


def flat(_builder: GraphBuilder, _use: Use) -> Gradients:
    """Pass no gradient: of ops that are constant almost everywhere, or of integers."""
    yield from ()


def rowwise(builder: GraphBuilder, use: Use, inputs: bool = False) -> Gradients:
    """Add a barrier that reads the output's gradient with the output, element by element.

    If ``inputs``, it reads the first operand, too.
    """
    dy, y, x = use.gradient, use.output, use.operand(0)
    read = [dy, y, x] if inputs else [dy, y]
    for saved in read[1:]:
        builder.pair(dy, saved, "barrier_gradient.saved")
    for position in use.wanted:
        yield position, _drawn_barrier(builder, read, use.operand(position))


def normalisation(builder: GraphBuilder, use: Use, channels: bool = True) -> Gradients:
    """Add a barrier that reads the output's gradient with data and gain, and reductions.

    If ``channels``, a vector belongs to the channels, axis 1, rather than to the last axis.
    """
    dy, x, gain = use.gradient, use.operand(0), use.node.optional(1)
    rank = len(x.shape)
    builder.pair(dy, x, "barrier_gradient.saved")
    read = [dy, x] if gain is None else [dy, x, gain]
    for position in use.wanted:
        p = use.operand(position)
        along = channels and p.shape == x.shape[1:2]
        if position:
            yield position, reduced(builder, dy, p, column(p.shape, rank, 1) if along else None)
            continue
        if gain is not None:
            name = builder.helper(use.output.name, "gradient")
            wide = channels and gain.shape == x.shape[1:2]
            beside = builder.aligned(gain, rank, 1, name, "gain") if wide else gain
            builder.tie(dy, beside, "barrier_gradient.parameter", name, "gain")
        yield position, _drawn_barrier(builder, read, x)


def _drawn_barrier(builder: GraphBuilder, read: Collection[Tensor], x: Tensor) -> Tensor:
    dx = builder.graph.barrier(read, x.shape, name=builder.gradient_name(x))
    builder.pair(dx, x, "barrier_gradient.operand")
    return dx


def view(builder: GraphBuilder, use: Use) -> Gradients:
    """Pass the gradient back through the inverse of each view that the node became.

    What was cut away has a gradient of zeros, which are made where they are wanted.  A node
    that became no view has an opaque backward pass.
    """
    for position in use.wanted:
        t, dy, x = use.output, use.gradient, use.operand(position)
        while t.index != x.index:
            inputs = builder.graph.inputs(t)
            slot = position if len(inputs) > 1 else 0
            passed = _inverse(builder, t.op, inputs, slot, dy)
            if passed is None:
                yield from opaque(builder, Use(use.node, use.outputs, use.gradients, (position,)))
                break
            t, dy = inputs[slot], passed
        else:
            yield position, dy


def _inverse(
    builder: GraphBuilder, op: UnwindingOp, inputs: Sequence[Tensor], slot: int, dy: Tensor
) -> Tensor | None:
    """Return the gradient of a view's input by that of the view, None if the op is no view."""
    graph, x = builder.graph, inputs[slot] if inputs else dy
    match op:
        case ops.Identity():
            return dy
        case ops.Expand():
            return reduced(builder, dy, x)
        case ops.Reshape():
            return graph.reshape(dy, x.shape, name=builder.gradient_name(x))
        case ops.Reverse():
            return graph.reverse(dy, op.dims, name=builder.gradient_name(x))
        case ops.DimShuffle():
            back = sorted(range(len(op.permutation)), key=op.permutation.__getitem__)
            return graph.dim_shuffle(dy, back, name=builder.gradient_name(x))
        case ops.Concat():
            starts = [*accumulate((part.shape[op.axis] for part in inputs), initial=0)]
            lower, upper = [0] * len(dy.shape), list(dy.shape)
            lower[op.axis], upper[op.axis] = starts[slot], starts[slot + 1]
            return graph.slice(dy, lower, upper, name=builder.gradient_name(x))
        case ops.Slice():
            return _padded(builder, op, x, dy)
        case ops.SubSample():
            return _interleaved(builder, op, x, dy)
    return None


def split(builder: GraphBuilder, use: Use) -> Gradients:
    """Join the parts' gradients; parts that nobody learns from have zeros."""
    x = use.operand(0)
    parts = [builder.graph.op(y) for y in use.outputs if y is not None]
    if not all(isinstance(op, ops.Slice) for op in parts):
        yield from opaque(builder, use)
        return
    slices = cast(list[ops.Slice], parts)
    found = [dy for y, dy in zip(use.outputs, use.gradients, strict=True) if y is not None]
    axis = use.node.op.integer("axis", 0) % len(x.shape)
    pieces, end = [], 0
    order = sorted(zip(slices, found, strict=True), key=lambda pair: (pair[0].lower, pair[0].upper))
    for op, dy in order:
        if dy is not None:
            pieces += [*_zeros(builder, x, axis, op.lower[axis] - end), dy]
            end = op.upper[axis]
    pieces += _zeros(builder, x, axis, x.shape[axis] - end)
    yield 0, builder.graph.concat(pieces, axis, name=builder.gradient_name(x))


def _padded(builder: GraphBuilder, cut: ops.Slice, x: Tensor, dy: Tensor) -> Tensor:
    """Put zeros around, axis by axis."""
    for axis, (low, high, n) in enumerate(zip(cut.lower, cut.upper, x.shape, strict=True)):
        if (low, high) != (0, n):
            before = _zeros(builder, x, axis, low, dy.shape)
            after = _zeros(builder, x, axis, n - high, dy.shape)
            pieces = [*before, dy, *after]
            dy = builder.graph.concat(pieces, axis, name=builder.gradient_name(x))
    return dy


def _interleaved(builder: GraphBuilder, op: ops.SubSample, x: Tensor, dy: Tensor) -> Tensor:
    """Put zeros between, axis by axis: ``(n,) -> (n, 1) -> (n, s) -> (n s,)``, and cut the end."""
    graph = builder.graph
    for axis, stride in enumerate(op.strides):
        if stride == 1:
            continue
        shape = dy.shape
        apart = (*shape[: axis + 1], 1, *shape[axis + 1 :])
        single = graph.reshape(dy, apart, name=builder.gradient_name(x))
        zeros = _zeros(builder, x, axis + 1, stride - 1, apart)
        wide = graph.concat([single, *zeros], axis + 1, name=builder.gradient_name(x))
        joined = (*shape[:axis], shape[axis] * stride, *shape[axis + 1 :])
        dy = graph.reshape(wide, joined, name=builder.gradient_name(x))
        upper = [*joined]
        upper[axis] = x.shape[axis]
        dy = graph.slice(dy, [0] * len(upper), upper, name=builder.gradient_name(x))
    return dy


def _zeros(
    builder: GraphBuilder, x: Tensor, axis: int, count: int, shape: Shape | None = None
) -> list[Tensor]:
    """Return zeros of a shape but for one axis, or nothing if there are none."""
    full = list(x.shape if shape is None else shape)
    full[axis] = count
    name = builder.helper(x.name, "gradient.zeros") if count else ""
    return [builder.graph.fixed_point([], full, name=name)] if count else []


def convolution(
    builder: GraphBuilder, use: Use, bias: int = 2, transposed: bool = False
) -> Gradients:
    """Add the convolutions that give the gradients of data and weights.

    The data's gradient is that of the output, convolved with the weights, which are turned around
    with input and output channels exchanged; going back from a ``transposed`` convolution, weights
    are not turned.  The weights' gradient is the data, convolved with the output's gradient.  What
    is neither has an opaque gradient.  ``bias`` is the position of the bias, which has one element
    per output channel.
    """
    dy = use.gradient
    for position in use.wanted:
        x = use.operand(position)
        if position == 0:
            yield position, _data_gradient(builder, use, transposed)
        elif position == 1:
            name = builder.gradient_name(x)
            dw = builder.graph.fixed_point([use.operand(0), dy], x.shape, name=name)
            builder.target(use.operand(0), "weights_gradient.data", name, "data")
            builder.target(dy, "weights_gradient.gradient", name, "gradient")
            yield position, dw
        elif position == bias:
            yield position, reduced(builder, dy, x, column(x.shape, len(dy.shape), 1))
        else:
            yield from opaque(builder, Use(use.node, use.outputs, use.gradients, (position,)))


def _data_gradient(builder: GraphBuilder, use: Use, transposed: bool) -> Tensor:
    x, w, dy = use.operand(0), use.operand(1), use.gradient
    name = builder.gradient_name(x)
    used = w if transposed else _turned(builder, w, use.node.op.integer("group", 1), name)
    dx = builder.graph.fixed_point([dy, used], x.shape, name=name)
    builder.target(dy, "data_gradient.gradient", name, "gradient")
    builder.target(used, "data_gradient.weights", name, "weights")
    builder.pair(dy, dx, "data_gradient.chain")
    return dx


def _turned(builder: GraphBuilder, w: Tensor, groups: int, base: str) -> Tensor:
    """Return weights (M, C / g, ...) as (C, M / g, ...), exchanged in each group, and turned."""
    m, c, *kernel = w.shape
    spatial = range(3, 3 + len(kernel))
    apart: Shape = (groups, m // groups, c, *kernel)
    joined: Shape = (groups * c, m // groups, *kernel)
    steps: list[Step] = (
        [(Graph.dim_shuffle, (1, 0, *range(2, len(w.shape))))]
        if groups == 1
        else [
            (Graph.reshape, apart),
            (Graph.dim_shuffle, (0, 2, 1, *spatial)),
            (Graph.reshape, joined),
        ]
    )
    steps.append((Graph.reverse, range(2, len(w.shape))))
    return builder.chain(w, builder.helper(base, "weights.turned"), steps)


def matmul(builder: GraphBuilder, use: Use) -> Gradients:
    """Add the products ``dA = dY B'`` and ``dB = A' dY``, summed over what was broadcast.

    An operand of rank 1 counts as a row on the left, and as a column on the right.
    """
    a, b, dy = use.operand(0), use.operand(1), use.gradient
    if not (a.shape and b.shape):
        raise InputError("a product needs operands that are vectors or matrices")
    left = _as(builder, a, (1, *a.shape) if len(a.shape) == 1 else a.shape)
    right = _as(builder, b, (*b.shape, 1) if len(b.shape) == 1 else b.shape)
    batch = broadcast([left.shape[:-2], right.shape[:-2]])
    grown = _as(builder, dy, (*batch, left.shape[-2], right.shape[-1]))
    for position in use.wanted:
        x, placed = ((a, left), (b, right))[position]
        lhs, rhs = (left, grown) if position else (grown, right)
        lhs, rhs = (_swapped(builder, lhs), rhs) if position else (lhs, _swapped(builder, rhs))
        product = _product(builder, lhs, rhs, x)
        yield position, _as(builder, reduced(builder, product, placed), x.shape)


def gemm(builder: GraphBuilder, use: Use) -> Gradients:
    """Add the products for ``A' B' + C``, where a prime is a transposition, if asked for."""
    flags = [bool(use.node.op.integer(flag, 0)) for flag in ("transA", "transB")]
    dy = use.gradient
    for position in use.wanted:
        x = use.operand(position)
        if position == 2:
            yield position, reduced(builder, dy, x)
            continue
        other, stored_turned = use.operand(1 - position), flags[1 - position]
        other = other if stored_turned else _swapped(builder, other)
        operands = (other, dy) if position else (dy, other)
        product = _product(builder, *operands, x)
        yield position, _swapped(builder, product) if flags[position] else product


def einsum(builder: GraphBuilder, use: Use) -> Gradients:
    """Add a product of the output's gradient and the other operand, if there are two."""
    if len(use.node.operands) != 2:
        yield from opaque(builder, use)
        return
    for position in use.wanted:
        x, operands = use.operand(position), (use.gradient, use.operand(1 - position))
        yield position, _product(builder, *(operands[::-1] if position else operands), x, x.shape)


def _product(
    builder: GraphBuilder, lhs: Tensor, rhs: Tensor, x: Tensor, shape: Shape | None = None
) -> Tensor:
    """Add a product, of the shape of a matrix product if not given, named as a gradient."""
    if shape is None:
        if min(len(lhs.shape), len(rhs.shape)) < 2:
            raise InputError("a product needs operands that are matrices")
        batch = broadcast([lhs.shape[:-2], rhs.shape[:-2]])
        shape = (*batch, lhs.shape[-2], rhs.shape[-1])
    out = builder.graph.fixed_point([lhs, rhs], shape, name=builder.gradient_name(x))
    draw_product(builder, lhs, rhs, out, "matmul_gradient")
    return out


def _swapped(builder: GraphBuilder, x: Tensor) -> Tensor:
    rank = len(x.shape)
    order: Sequence[int] = (*range(rank - 2), rank - 1, rank - 2)
    return builder.graph.dim_shuffle(x, order, name=builder.helper(x.name, "transposed"))


def _as(builder: GraphBuilder, x: Tensor, shape: Shape) -> Tensor:
    if x.shape == shape:
        return x
    return builder.graph.reshape(x, shape, name=builder.helper(x.name, "reshaped"))
