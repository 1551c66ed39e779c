"""Convolutions and matrix products: operands with target layouts, outputs as fixed points."""

from __future__ import annotations

from functools import partial

from layoutopt.errors import InputError
from layoutopt.graphs.tensor import Tensor
from layoutopt.onnx.barriers import barrier
from layoutopt.onnx.sketch import Node, Outputs, Rule, Sketch


def convolution(
    sketch: Sketch, node: Node, data: int = 0, weights: int = 1, bias: int | None = 2
) -> Outputs:
    """Add a convolution.

    Parameters
    ----------
    data, weights, bias
        Positions of the operands; the bias has one element per output channel.
    """
    x = node.operand(data)
    out = _fixed_point(sketch, node)
    sketch.target(x, "convolution.data", node.name, "data")
    sketch.target(node.operand(weights), "convolution.weights", node.name, "weights")
    addend = None if bias is None else node.optional(bias)
    if addend is not None:
        column = sketch.aligned(addend, len(out.shape), 1, node.name, "bias")
        sketch.tie(out, column, "convolution.bias", node.name, "bias")
    sketch.pair(x, out, "convolution.chain")
    return out


def matmul(sketch: Sketch, node: Node, lhs: int = 0, rhs: int = 1) -> Outputs:
    """Add a matrix product, of batches too.

    Parameters
    ----------
    lhs, rhs
        Positions of the operands.
    """
    left, right = node.operand(lhs), node.operand(rhs)
    _check_summed(left, right)
    return _product(sketch, node, left, right)


def _check_summed(lhs: Tensor, rhs: Tensor) -> None:
    """Refuse operands whose summed axes differ: the last of one, the last but one of the other."""
    if lhs.shape and rhs.shape and lhs.shape[-1] != rhs.shape[-2:][0]:
        raise InputError(f"operands of shapes {list(lhs.shape)} and {list(rhs.shape)} do not fit")


def gemm(sketch: Sketch, node: Node) -> Outputs:
    """Add ``A' B' + C``, where a prime stands for a transposition that the node may ask for."""
    lhs = _transposed(sketch, node, 0, "transA", "lhs")
    rhs = _transposed(sketch, node, 1, "transB", "rhs")
    _check_summed(lhs, rhs)
    out = _product(sketch, node, lhs, rhs)
    addend = node.optional(2)
    if addend is not None:
        sketch.tie(out, addend, "matmul.bias", node.name, "bias")
    return out


def einsum(sketch: Sketch, node: Node) -> Outputs:
    """Add a product of two operands, or a barrier for any other number."""
    if len(node.operands) != 2:
        return barrier(sketch, node)
    return _product(sketch, node, node.operand(0), node.operand(1))


def _product(sketch: Sketch, node: Node, lhs: Tensor, rhs: Tensor) -> Tensor:
    out = _fixed_point(sketch, node)
    draw_product(sketch, lhs, rhs, out, "matmul")
    return out


def draw_product(sketch: Sketch, lhs: Tensor, rhs: Tensor, out: Tensor, table: str) -> None:
    """Draw a product's operands to their targets, and to the output if they have its shape.

    Parameters
    ----------
    table
        The values' table, which has ``lhs``, ``rhs`` and ``chain``.
    """
    sketch.target(lhs, f"{table}.lhs", out.name, "lhs")
    sketch.target(rhs, f"{table}.rhs", out.name, "rhs")
    sketch.pair(lhs, out, f"{table}.chain")
    sketch.pair(rhs, out, f"{table}.chain")


def _transposed(sketch: Sketch, node: Node, position: int, flag: str, role: str) -> Tensor:
    x = node.operand(position)
    if not node.attributes.get(flag, 0):
        return x
    name = sketch.helper(node.name, f"{role}.transposed")
    return sketch.graph.dim_shuffle(x, (1, 0), name=name)


def _fixed_point(sketch: Sketch, node: Node) -> Tensor:
    return sketch.graph.fixed_point(node.operands, node.shape, name=node.name)


CONTRACTIONS = {
    "Conv": Rule(convolution),
    "ConvTranspose": Rule(convolution),
    "ConvInteger": Rule(partial(convolution, bias=None)),
    "DeformConv": Rule(partial(convolution, bias=3)),
    "QLinearConv": Rule(partial(convolution, weights=3, bias=8)),
    "MatMul": Rule(matmul),
    "MatMulInteger": Rule(matmul),
    "QLinearMatMul": Rule(partial(matmul, rhs=3)),
    "Gemm": Rule(gemm),
    "Einsum": Rule(einsum),
}
