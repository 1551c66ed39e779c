"""Elementwise operations: one operand gives the locations, and all are drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations

from layoutopt.graphs.op import dominates
from layoutopt.graphs.ops import SumLike
from layoutopt.graphs.tensor import Tensor
from layoutopt.onnx.barriers import barrier
from layoutopt.onnx.sketch import Node, Outputs, Rule, Sketch

UNARY = """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu
    HardSigmoid HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu
"""
"""Op types that map each element of their only operand."""

VARIADIC = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less
    LessOrEqual Max Mean Min Mod Mul Or Pow StringConcat Sub Sum SwiGLU Xor
"""
"""Op types that map elements of several operands, which broadcast."""

NUMPY_SINCE = 7
"""Operator set since which operands broadcast by NumPy's rules."""


def elementwise(sketch: Sketch, node: Node, first: int = 0) -> Outputs:
    """Add an op whose locations follow the first operand of the output's shape.

    Parameters
    ----------
    first
        Position at which to begin to look for that operand.
    """
    operands = node.operands
    axis = broadcast_axis(node)
    if axis is not None:
        x, y = operands
        operands = x, sketch.aligned(y, len(x.shape), axis, node.name, "1")
    return _sum_like(sketch, node, operands, first)


def broadcast_axis(node: Node) -> int | None:
    """Return from which axis on the second operand stands beside the first, if not at the end.

    Operator sets before 7 name such an axis.
    """
    if node.version >= NUMPY_SINCE or len(node.operands) != 2:
        return None
    x, y = node.operands
    rank = max(len(x.shape), 1)
    if node.op_type == "PRelu":
        return 1 % rank if y.shape == x.shape[1:2] else None
    return int(node.attributes["axis"]) % rank if "axis" in node.attributes else None


def prelu(sketch: Sketch, node: Node) -> Outputs:
    """Add a leaky rectifier, whose slopes older operator sets give per channel."""
    return (per_channel if node.version < NUMPY_SINCE else elementwise)(sketch, node)


def per_channel(sketch: Sketch, node: Node) -> Outputs:
    """Add an op whose parameters may be vectors along an axis of the first operand."""
    x, *others = node.operands
    axis = int(node.attributes.get("axis", 1)) % max(len(x.shape), 1)
    along = x.shape[axis : axis + 1]
    placed = [
        sketch.aligned(p, len(x.shape), axis, node.name, str(i)) if p.shape == along else p
        for i, p in enumerate(others, 1)
    ]
    if all(dominates(x.shape, p.shape) for p in placed):
        return _sum_like(sketch, node, (x, *placed))
    return barrier(sketch, node)  # one parameter for each block of several elements


def _sum_like(sketch: Sketch, node: Node, operands: Sequence[Tensor], first: int = 0) -> Outputs:
    """Add the op, and a pair for every two operands of which one broadcasts to the other.

    With no operand of the output's shape a barrier is added, and no pairs.
    """
    order = [*range(first, len(operands)), *range(first)]
    carrier = next((i for i in order if operands[i].shape == node.shape), None)
    if carrier is None:
        return barrier(sketch, node)
    return together(sketch, node.name, operands, "elementwise", carrier)


def together(
    sketch: Sketch, name: str, operands: Sequence[Tensor], table: str, carrier: int = 0
) -> Tensor:
    """Add an op that lies like one of its operands, and draw every two of these together.

    Parameters
    ----------
    table
        The values' table: its ``equal`` is for operands of one shape, its ``broadcast`` for
        those of which one broadcasts to the other.
    carrier
        Position of the operand that the op lies like; it has the op's shape.
    """
    op = SumLike(id=name, inputs=tuple(x.name for x in operands), unwindable_inputs=(carrier,))
    (out,) = sketch.graph.add(op)
    for (i, x), (j, y) in combinations(enumerate(operands), 2):
        if x.shape == y.shape:
            sketch.pair(x, y, f"{table}.equal")
        elif dominates(x.shape, y.shape):
            sketch.tie(x, y, f"{table}.broadcast", name, str(j))
        else:
            sketch.tie(y, x, f"{table}.broadcast", name, str(i))
    return out


ELEMENTWISE = (
    dict.fromkeys((*UNARY.split(), *VARIADIC.split()), Rule(elementwise))
    | dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), Rule(per_channel))
    | {
        "Clip": Rule(elementwise, structure=(1, 2)),
        "PRelu": Rule(prelu),
        "Trilu": Rule(elementwise, structure=(1,)),
        "Where": Rule(partial(elementwise, first=1)),
    }
)
