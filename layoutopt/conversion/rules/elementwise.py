"""Elementwise ops: the order of axes does not matter to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import Axes, Category, Operator, RemapError, Remapped
from layoutopt.layout.permutations import Permutation

ONE_OPERAND = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitCast BitwiseNot Cast Ceil Celu Cos Cosh Elu Erf Exp "
    "Floor Gelu HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal "
    "Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
    "ThresholdedRelu com.microsoft::Gelu com.microsoft::QuickGelu"
)
"""Ops of one tensor, whatever other inputs they have: scalars or types."""

BROADCAST = (
    "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less "
    "LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum SwiGLU Where Xor"
)
"""Ops whose operands are broadcast to the largest rank."""


def unchanged(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Change no attribute."""
    return {}


def broadcast_rank(op: Op) -> int | None:
    """Return the largest rank of all inputs, None if one is unknown."""
    ranks = [op.rank(n) for n in range(len(op.inputs)) if op.has(n)]
    known = [rank for rank in ranks if rank is not None]
    return max(known, default=None) if len(known) == len(ranks) else None


def broadcast_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return that the result has all axes that operands are broadcast to."""
    rank = broadcast_rank(op)
    return (None if rank is None else tuple(range(rank)),)


def with_bias(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the last axis, which a bias is added along, in its place."""
    if op.has(1) and permutation[-1] != len(permutation) - 1:
        raise RemapError(f"{op}: its bias is of the last axis, which must stay last")
    return {}


def dropout(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Change nothing, unless elements are dropped at random: others would be."""
    if op.has(2) and op.integer("training_mode", 1):
        raise RemapError(f"{op}: in training it drops elements by their order")
    return {}


def scaled_axis(op: Op, permutation: Permutation) -> Mapping[str, Any] | Remapped:
    """Move the axis that scales are given along; scales of blocks move with the data."""
    rank, scale = len(permutation), op.rank(1)
    if scale is None:
        raise RemapError(f"{op}: the rank of its scale is unknown")
    if scale > 1:
        every = tuple(permutation if op.has(n) else None for n in range(len(op.inputs)))
        return Remapped(_scaled(op, permutation), every)
    if scale == 0 or not -rank <= op.integer("axis", 1) < rank:
        return {}  # one scale for all: the axis is ignored
    return _scaled(op, permutation)


def _scaled(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    return {"axis": permutation.index(op.axis(1, len(permutation)))}


def _with_scalars(op: Op) -> tuple[Axes | None, ...]:
    rank = op.rank(0)
    return (None if rank is None else tuple(range(rank)), (), ())[: len(op.outputs)]


def _nothing(op: Op) -> tuple[Axes | None, ...]:
    return ((),)


def _table() -> list[Operator]:
    agnostic, light = Category.AGNOSTIC, Category.LIGHT
    one = [Operator(name, agnostic, unchanged) for name in ONE_OPERAND.split()]
    several = [
        Operator(
            name,
            agnostic,
            unchanged,
            operands=None,
            rank=broadcast_rank,
            follow=broadcast_axes,
        )
        for name in BROADCAST.split()
    ]
    return [
        *one,
        *several,
        Operator("CastLike", agnostic, unchanged),
        Operator("Clip", agnostic, unchanged),
        Operator("Dropout", agnostic, dropout),
        Operator("DynamicQuantizeLinear", agnostic, unchanged, follow=_with_scalars),
        Operator("Size", agnostic, unchanged, follow=_nothing),
        Operator("QuantizeLinear", agnostic, unchanged),
        Operator("QuantizeLinear", light, scaled_axis, since=13),
        Operator("DequantizeLinear", agnostic, unchanged),
        Operator("DequantizeLinear", light, scaled_axis, since=13),
    ]


ELEMENTWISE = _table()
"""Elementwise ops, and those that count or quantise elements."""
