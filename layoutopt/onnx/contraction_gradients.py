"""Backward passes of convolutions and matrix products: two contractions of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from layoutopt.errors import InputError
from layoutopt.graphs.op import Shape, broadcast
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.contractions import draw_product
from layoutopt.onnx.gradients import Backward, Gradients, Use, opaque, reduced
from layoutopt.onnx.sketch import Sketch, Step, column


def convolution(sketch: Sketch, use: Use, bias: int = 2, transposed: bool = False) -> Gradients:
    """Add the convolutions that give the gradients of data and weights.

    The data's gradient is that of the output, convolved with the weights, which are turned
    around with input and output channels exchanged.  The weights' gradient is the data,
    convolved with the output's gradient.  What is neither has an opaque gradient.

    Parameters
    ----------
    bias
        Position of the bias, which has one element per output channel.
    transposed
        Whether the operation is a transposed convolution, whose weights are not turned:
        going back is a plain one.
    """
    dy = use.gradient
    for position in use.wanted:
        x = use.operand(position)
        if position == 0:
            yield position, _data_gradient(sketch, use, transposed)
        elif position == 1:
            name = sketch.gradient_name(x)
            dw = sketch.graph.fixed_point([use.operand(0), dy], x.shape, name=name)
            sketch.target(use.operand(0), "weights_gradient.data", name, "data")
            sketch.target(dy, "weights_gradient.gradient", name, "gradient")
            yield position, dw
        elif position == bias:
            yield position, reduced(sketch, dy, x, column(x.shape, len(dy.shape), 1))
        else:
            yield from opaque(sketch, Use(use.node, use.outputs, use.gradients, (position,)))


def _data_gradient(sketch: Sketch, use: Use, transposed: bool) -> Tensor:
    x, w, dy = use.operand(0), use.operand(1), use.gradient
    name = sketch.gradient_name(x)
    used = w if transposed else _turned(sketch, w, int(use.node.attributes.get("group", 1)), name)
    dx = sketch.graph.fixed_point([dy, used], x.shape, name=name)
    sketch.target(dy, "data_gradient.gradient", name, "gradient")
    sketch.target(used, "data_gradient.weights", name, "weights")
    sketch.pair(dy, dx, "data_gradient.chain")
    return dx


def _turned(sketch: Sketch, w: Tensor, groups: int, base: str) -> Tensor:
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
    return sketch.chain(w, sketch.helper(base, "weights.turned"), steps)


def matmul(sketch: Sketch, use: Use) -> Gradients:
    """Add the products ``dA = dY B'`` and ``dB = A' dY``, summed over what was broadcast.

    An operand of rank 1 counts as a row on the left, and as a column on the right.
    """
    a, b, dy = use.operand(0), use.operand(1), use.gradient
    if not (a.shape and b.shape):
        raise InputError("a product needs operands that are vectors or matrices")
    left = _as(sketch, a, (1, *a.shape) if len(a.shape) == 1 else a.shape)
    right = _as(sketch, b, (*b.shape, 1) if len(b.shape) == 1 else b.shape)
    batch = broadcast([left.shape[:-2], right.shape[:-2]])
    grown = _as(sketch, dy, (*batch, left.shape[-2], right.shape[-1]))
    for position in use.wanted:
        x, placed = ((a, left), (b, right))[position]
        lhs, rhs = (left, grown) if position else (grown, right)
        lhs, rhs = (_swapped(sketch, lhs), rhs) if position else (lhs, _swapped(sketch, rhs))
        product = _product(sketch, lhs, rhs, x)
        yield position, _as(sketch, reduced(sketch, product, placed), x.shape)


def gemm(sketch: Sketch, use: Use) -> Gradients:
    """Add the products for ``A' B' + C``, where a prime is a transposition, if asked for."""
    flags = [bool(use.node.attributes.get(flag, 0)) for flag in ("transA", "transB")]
    dy = use.gradient
    for position in use.wanted:
        x = use.operand(position)
        if position == 2:
            yield position, reduced(sketch, dy, x)
            continue
        other, stored_turned = use.operand(1 - position), flags[1 - position]
        other = other if stored_turned else _swapped(sketch, other)
        operands = (other, dy) if position else (dy, other)
        product = _product(sketch, *operands, x)
        yield position, _swapped(sketch, product) if flags[position] else product


def einsum(sketch: Sketch, use: Use) -> Gradients:
    """Add a product of the output's gradient and the other operand, if there are two."""
    if len(use.node.operands) != 2:
        yield from opaque(sketch, use)
        return
    for position in use.wanted:
        x, operands = use.operand(position), (use.gradient, use.operand(1 - position))
        yield position, _product(sketch, *(operands[::-1] if position else operands), x, x.shape)


def _product(
    sketch: Sketch, lhs: Tensor, rhs: Tensor, x: Tensor, shape: Shape | None = None
) -> Tensor:
    """Add a product, of the shape of a matrix product if not given, named as a gradient."""
    if shape is None:
        if min(len(lhs.shape), len(rhs.shape)) < 2:
            raise InputError("a product needs operands that are matrices")
        batch = broadcast([lhs.shape[:-2], rhs.shape[:-2]])
        shape = (*batch, lhs.shape[-2], rhs.shape[-1])
    out = sketch.graph.fixed_point([lhs, rhs], shape, name=sketch.gradient_name(x))
    draw_product(sketch, lhs, rhs, out, "matmul_gradient")
    return out


def _swapped(sketch: Sketch, x: Tensor) -> Tensor:
    rank = len(x.shape)
    order: Sequence[int] = (*range(rank - 2), rank - 1, rank - 2)
    return sketch.graph.dim_shuffle(x, order, name=sketch.helper(x.name, "transposed"))


def _as(sketch: Sketch, x: Tensor, shape: Shape) -> Tensor:
    if x.shape == shape:
        return x
    return sketch.graph.reshape(x, shape, name=sketch.helper(x.name, "reshaped"))


CONTRACTION_GRADIENTS = {
    "Conv": Backward(convolution),
    "ConvTranspose": Backward(partial(convolution, transposed=True)),
    "DeformConv": Backward(partial(convolution, bias=3)),
    "MatMul": Backward(matmul),
    "Gemm": Backward(gemm),
    "Einsum": Backward(einsum),
}
