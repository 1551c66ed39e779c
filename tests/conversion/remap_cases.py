"""Ops with operands and attributes, and how many orders of axes each can run in.

The numbers are worked out by hand; the comment behind a case says how where it is not obvious.
An op of ``r`` axes to which order does not matter takes all ``r!``: 6 of three, 24 of four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.conversion.rules.op import LATEST

Array = NDArray[Any]
Operand = Sequence[int] | Array | None
"""A shape, to be filled at random; an array; or None for one that is left out."""


@dataclass(frozen=True)
class Case:
    """An op.

    Parameters
    ----------
    type
        Its type.
    operands
        What it is given.
    taken
        Of all permutations, how many it can run in.
    attributes
        Its attributes, inputs of axes and sizes among them.
    every
        In how many ways it runs in all, if operands are permuted each alone.
    opset, outputs, runtime
        Of :func:`tests.layout.onnx_ops.op_of` and ``results``.
    kind
        What operands are filled with: ``real``, ``positive`` (below 1), ``whole`` (small
        integers) or ``bool``.
    """

    type: str
    operands: Sequence[Operand]
    taken: int
    attributes: dict[str, Any] = field(default_factory=dict)
    every: int = 0
    opset: int = LATEST
    outputs: int = 1
    runtime: str = "onnx"
    kind: str = "real"

    def __str__(self) -> str:
        settings = ",".join(f"{k}={v}" for k, v in self.attributes.items())
        return f"{self.type}-{self.opset}({settings})".replace(" ", "")

    def arrays(self) -> list[Array | None]:
        """Return the operands."""
        draw = np.random.default_rng(len(self.type) + 7 * self.opset)
        return [
            one if one is None or isinstance(one, np.ndarray) else filled(draw, one, self.kind)
            for one in self.operands
        ]


def filled(draw: np.random.Generator, shape: Sequence[int], kind: str) -> Array:
    """Return a random array."""
    if kind == "whole":
        return draw.integers(1, 5, shape).astype(np.int64)
    if kind == "bool":
        return draw.integers(0, 2, shape).astype(bool)
    values = draw.uniform(0.2, 0.9, shape) if kind == "positive" else draw.normal(size=shape)
    return values.astype(np.float32)


def whole(*values: int) -> Array:
    """Return integers as an array."""
    return np.array(values, np.int64)


R3, R4 = (2, 3, 4), (2, 3, 4, 5)
UINT8 = np.arange(24, dtype=np.uint8).reshape(R3)

REAL = (
    "Asinh Atan Ceil Celu Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsNaN "
    "LeakyRelu Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Softplus Softsign Tan "
    "Tanh ThresholdedRelu Abs Cosh Sinh IsInf"
)
POSITIVE = "Acos Asin Atanh Log Sqrt"
BINARY = "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mul PRelu Sub Sum"

ONE = [
    *(Case(name, [R3], 6) for name in REAL.split()),
    *(Case(name, [R3], 6, kind="positive") for name in POSITIVE.split()),
    Case("Acosh", [np.linspace(1, 3, 24, dtype=np.float32).reshape(R3)], 6),
    Case("BitwiseNot", [R3], 6, kind="whole"),
    Case("BitCast", [R3], 6, {"to": 6}, opset=26),
    Case("Cast", [R3], 6, {"to": 7}),
    Case("CastLike", [R3, whole(1)], 6),
    Case("Clip", [R3, np.array(-0.5, np.float32), np.array(0.5, np.float32)], 6),
    Case("Clip", [R3, None, np.array(0.5, np.float32)], 6),
    Case("Dropout", [R3], 6, outputs=2),
    Case("DynamicQuantizeLinear", [R3], 6, outputs=3),
    Case("Not", [R3], 6, kind="bool"),
    Case("Size", [R3], 6),
    Case("Swish", [R3], 6, opset=24),
    Case("SwiGLU", [R3, R3], 6, opset=28),
    Case("com.microsoft::Gelu", [R3], 6, runtime="ort"),
    Case("com.microsoft::QuickGelu", [R3], 6, {"alpha": 1.5}, runtime="ort"),
    Case("com.microsoft::FastGelu", [R3], 6, runtime="ort"),
    Case("com.microsoft::FastGelu", [R3, (4,)], 2, runtime="ort"),  # the last axis stays
]

SEVERAL = [
    *(Case(name, [R3, R3], 6) for name in BINARY.split()),
    *(Case(name, [R3, (3, 1)], 6) for name in ["Add", "Mul", "PRelu"]),
    *(Case(name, [(4,), R3], 6) for name in ["Sub", "Div", "Less"]),
    *(Case(name, [R3, R3], 6, kind="bool") for name in ["And", "Or", "Xor"]),
    *(Case(f"Bitwise{name}", [R3, (3, 1)], 6, kind="whole") for name in ["And", "Or", "Xor"]),
    Case("Add", [R3, ()], 6),
    Case("BitShift", [UINT8, np.ones(4, np.uint8)], 6, {"direction": "LEFT"}),
    Case("Max", [(1, 3, 1), R3, (4,)], 6),
    Case("Mod", [R3, (4,)], 6, kind="whole"),
    Case("Mul", [(3, 1), (2, 1, 4)], 6),  # no operand has the result's shape
    Case("Pow", [R3, (3, 4)], 6, kind="positive"),
    Case("Where", [np.array([True, False, True, True]), R3, (2, 1, 1)], 6),
]

QUANTISED = [
    Case("QuantizeLinear", [R3, np.array(0.1, np.float32), np.array(7, np.uint8)], 6),
    Case("QuantizeLinear", [R3, np.array(0.1, np.float32), np.array(7, np.uint8)], 6, opset=10),
    Case("QuantizeLinear", [R3, np.array([0.1, 0.2, 0.4], np.float32)], 6),
    Case("QuantizeLinear", [R3, np.array([0.1, 0.2, 0.4, 0.3], np.float32)], 6, {"axis": -1}),
    Case("QuantizeLinear", [(2, 3), np.array([0.1, 0.2, 0.4], np.float32)], 2),
    Case("DequantizeLinear", [UINT8, np.array(0.1, np.float32)], 6, opset=10, runtime="ort"),
    Case(
        "DequantizeLinear",
        [UINT8, np.array([0.1, 0.2], np.float32), np.array([3, 4], np.uint8)],
        6,
        {"axis": 0},
    ),
    Case("DequantizeLinear", [UINT8, (2, 3, 2)], 6, {"axis": 2, "block_size": 2}),
]

REDUCTIONS = [
    *(
        Case(f"Reduce{name}", [R3], 6, {"axes": (0, -1), "keepdims": keep}, kind="positive")
        for name in [
            "L1",
            "L2",
            "LogSum",
            "LogSumExp",
            "Max",
            "Mean",
            "Min",
            "Prod",
            "Sum",
            "SumSquare",
        ]
        for keep in (0, 1)
    ),
    Case("ReduceMean", [R4], 24, {"axes": (2, 3)}, opset=11),
    Case("ReduceSum", [R4], 24, {"axes": (1,), "keepdims": 0}, opset=11),
    Case("ReduceSum", [R3], 6, {"keepdims": 0}),
    Case("ReduceSum", [R3], 6),
    Case("ReduceSum", [R3], 6, {"noop_with_empty_axes": 1}),
    *(Case(f"Arg{name}", [R3], 6, {"axis": 1}) for name in ("Max", "Min")),
    *(Case(f"Arg{name}", [R3], 6, {"axis": -1, "keepdims": 0}) for name in ("Max", "Min")),
    Case("ArgMax", [R3], 6, {"select_last_index": 1}, kind="whole"),
]

AXES = [
    Case("Concat", [R3, (2, 5, 4)], 6, {"axis": 1}),
    Case("Concat", [R3, (2, 3, 1), (2, 3, 2)], 6, {"axis": -1}),
    Case("Split", [(2, 6, 4)], 6, {"axis": 1, "num_outputs": 2}, outputs=2),
    Case("Split", [(2, 6, 4), whole(1, 5)], 6, {"axis": 1}, outputs=2),
    Case("Split", [(2, 6, 4)], 6, {"split": (1, 1)}, opset=11, outputs=2),
    *(Case(name, [R3], 6, {"axis": 1}) for name in ("Softmax", "LogSoftmax", "Hardmax")),
    *(Case(name, [R3], 6) for name in ("Softmax", "LogSoftmax", "Hardmax")),
    # Before opset 13, axes 1 and 2 are one: they may change places, but for the first maximum.
    *(Case(name, [R3], 2, opset=11, runtime="ort") for name in ("Softmax", "LogSoftmax")),
    Case("Softmax", [R3], 2, {"axis": 2}, opset=11, runtime="ort"),
    Case("Softmax", [R4], 4, {"axis": -2}, opset=11, runtime="ort"),
    Case("Hardmax", [R3], 1, opset=11, runtime="ort"),
    Case("Hardmax", [R3], 2, {"axis": 2}, opset=11, runtime="ort"),
    Case("CumSum", [R3], 6, {"axis": 1, "reverse": 1}),
    Case("CumProd", [R3], 6, {"axis": -1}, opset=26),
    Case("LpNormalization", [R3], 6, {"p": 1}),
    Case("MeanVarianceNormalization", [R4], 24),
    Case("MeanVarianceNormalization", [R3], 6, {"axes": (1,)}),
    Case("TopK", [R3, whole(2)], 6, {"axis": 1}, outputs=2),
    Case("TopK", [R3, whole(2)], 6, {"largest": 0}, outputs=2),
    Case("LayerNormalization", [R3, (4,), (4,)], 2),
    Case("LayerNormalization", [R4, (4, 5)], 4, {"axis": 2}),
    Case("LayerNormalization", [R4, (4, 5), (5,)], 4, {"axis": -2}, outputs=3),
    Case("RMSNormalization", [R3, (4,)], 2, opset=23),
    Case("RMSNormalization", [R3, (3, 4)], 2, {"axis": 1}, opset=23),
    Case("ReverseSequence", [(4, 2, 3), whole(1, 3)], 2),  # the last axis stays
    Case("ReverseSequence", [(2, 4, 3), whole(4, 2)], 2, {"batch_axis": 0, "time_axis": 1}),
    Case("Trilu", [R3], 2),
    Case("Trilu", [R4], 4, {"upper": 0, "k": 1}),
]

SEVEN = np.array(7, np.float32)

EXTENTS = [
    Case("Pad", [R3], 6, {"pads": (0, 1, 2, 3, 0, 1)}),
    Case(
        "Pad", [R3, None, np.array(7, np.float32)], 6, {"pads": (0, 1, -1, 0, 2, 0)}, runtime="ort"
    ),
    Case("Pad", [R3], 6, {"pads": (0, 1, 2, 1, 2, 0), "mode": "reflect"}),
    Case("Pad", [R3], 6, {"pads": (0, 1, 2, 1, 0, 0), "mode": "edge"}, opset=11),
    Case("Pad", [R3], 6, {"pads": (1, 2, 0, 3), "axes": (-1, 0)}),
    Case("Pad", [R3], 6, {"pads": (0, 1, 2, 3, 0, 1), "value": 2.0}, opset=10, runtime="ort"),
    Case("Slice", [R4, whole(1, 0), whole(3, 9)], 24),
    Case("Slice", [R4, whole(1, -1), whole(3, -9)], 24, {"axes": (2, -1), "steps": (1, -2)}),
    Case("Slice", [R3], 6, {"starts": (1,), "ends": (3,), "axes": (1,)}, opset=9, runtime="ort"),
    Case("Slice", [R3], 6, {"starts": (0, 1), "ends": (1, 3)}, opset=9, runtime="ort"),
    Case("Tile", [R3], 6, {"repeats": (1, 2, 3)}),
    Case("Expand", [(3, 1)], 6, {"shape": (2, 3, 4)}),
    Case("Expand", [R3], 6, {"shape": (3, 1)}),
    Case("Expand", [(2, 1, 4)], 6, {"shape": (1, 3, 1)}),
    Case("CenterCropPad", [R3], 6, {"shape": (4, 3, 2)}),
    Case("CenterCropPad", [R3], 6, {"shape": (5, 1), "axes": (-1, 0)}),
    Case(
        "Slice", [R3], 6, {"starts": (1, 0), "ends": (5, 2), "axes": (2, 1)}, opset=9, runtime="ort"
    ),
]

AT_RUN_TIME = [
    Case("Tile", [R3, whole(1, 2, 3)], 6),
    Case("Expand", [(3, 1), whole(2, 3, 4)], 6),
    Case("Expand", [R3, whole(2, 3, 1)], 6),
    Case("Expand", [R3, whole(3, 1)], 1),  # there is no entry for the first axis
    Case("Pad", [R3, whole(0, 1, 2, 3, 0, 1)], 6),
    Case("Pad", [R3, whole(0, 1, -1, 0, 2, 0), SEVEN], 6, opset=13, runtime="ort"),
    Case("Pad", [R3, whole(1, 2, 0, 3)], 6, {"axes": (-1, 0)}),
    Case("Pad", [R3, whole(1, 2, 0, 3), None, whole(-1, 0)], 1),
    Case("CenterCropPad", [R3, whole(4, 3, 2)], 6),
    Case("Slice", [R3, whole(1, 0), whole(5, 2), whole(2, 1)], 1),
    Case("Shape", [R3], 6),
    Case("Shape", [R3], 6, opset=13),
    Case("Shape", [R4], 24, {"start": 1}),
    Case("Shape", [R4], 24, {"start": -3, "end": -1}),
    Case("Shape", [R4], 24, {"start": 2, "end": 1}),
    Case("ConstantOfShape", [whole(2, 3, 4)], 6),
]

VIEWS = [
    Case("Transpose", [R3], 6),
    Case("Transpose", [R4], 24, {"perm": (0, 3, 1, 2)}),
    Case("Reshape", [(2, 6, 5)], 6, {"shape": (2, 3, 2, 5)}),
    Case("Reshape", [R3], 2, {"shape": (6, 4)}),  # axes 0 and 1 stay side by side
    Case("Reshape", [R3], 2, {"shape": (0, -1)}),
    Case("Reshape", [R3], 1, {"shape": (-1,)}),
    Case("Reshape", [R3], 1, {"shape": (4, 6)}),  # no smaller products are equal
    Case("Reshape", [(2, 1, 3)], 6, {"shape": (2, 3)}),  # axes of 1 go anywhere
    Case("Reshape", [(2, 3)], 2, {"shape": (1, 2, 1, 3)}),
    Case("Reshape", [(4, 1, 6, 5)], 24, {"shape": (2, 2, 1, 6, -1)}),
    Case("Reshape", [(4, 6, 5)], 2, {"shape": (2, 12, 5)}),
    Case("Reshape", [R3], 6, {"shape": (2, 3, 4), "allowzero": 1}),
    Case("Flatten", [R3], 2),  # (1, 2, 0) gives the transposed result
    Case("Flatten", [R4], 2, {"axis": -2}),
    Case("Flatten", [(2, 1, 3)], 6, {"axis": 2}),
    Case("Flatten", [R3], 1, {"axis": 0}),
    Case("Flatten", [R3], 1, {"axis": 3}),
    Case("Flatten", [(1, 3, 1, 1)], 24),
    Case("Squeeze", [(2, 1, 3)], 6, {"axes": (1,)}),
    Case("Squeeze", [(1, 2, 1, 3)], 24, {"axes": (-2, 0)}, opset=11, runtime="ort"),
    Case("Squeeze", [(2, 1, 3)], 6),
    Case("Unsqueeze", [R3], 6, {"axes": (0, -1)}),
    Case("Unsqueeze", [R3], 6, {"axes": (2,)}, opset=11),
]

BELOW_3 = np.array([[[2, 0, 1, 1], [0, 1, 2, 0]], [[1, 2, 0, 2], [2, 0, 1, 0]]])
"""Places along the middle axis of :data:`R3`, no two the same in a column."""

INDEXING = [
    Case("Gather", [R3, whole(1, 0)], 6),
    Case("Gather", [R3, np.array([[2, 0], [1, 1]])], 6, {"axis": 1}),
    Case("Gather", [R4, np.array(2)], 24, {"axis": -2}),
    Case("GatherElements", [R3, BELOW_3], 6, {"axis": 1}),
    Case("GatherND", [R3, np.array([[1], [0]])], 2),
    Case("GatherND", [R3, np.array([[[1], [0]]])], 2),
    Case("GatherND", [R4, np.array([[0, 2], [1, 1]])], 2),  # two axes stay in front
    Case("GatherND", [R4, np.array([[2], [1]])], 2, {"batch_dims": 1}),
    Case("ScatterElements", [R3, BELOW_3, (2, 2, 4)], 6, {"axis": 1}),
    Case("ScatterElements", [R3, BELOW_3, (2, 2, 4)], 6, {"axis": 1, "reduction": "add"}),
    Case("Scatter", [R3, BELOW_3, (2, 2, 4)], 6, {"axis": 1}, opset=9, runtime="ort"),
    Case("ScatterND", [R3, np.array([[1]]), (1, 3, 4)], 2),
    Case("ScatterND", [R4, np.array([[1, 2], [0, 0], [1, 0]]), (3, 4, 5)], 2),
    Case("OneHot", [np.array([[0, 2, 1], [1, 1, 0]]), np.array(3), (2,)], 2),
    Case("OneHot", [np.array([[0, 2, 1], [1, 1, 0]]), np.array(3), (2,)], 2, {"axis": 1}),
    Case("Compress", [R3, np.array([True, False, True])], 6, {"axis": 1}),
    Case("Compress", [R3, np.array([True, False, True])], 1),
]

BYTES_A = np.arange(120, dtype=np.uint8).reshape(2, 3, 4, 5)
BYTES_B = (np.arange(180) % 7).astype(np.uint8).reshape(2, 3, 5, 6)
TENTH, POINT = np.array(0.1, np.float32), np.array(3, np.uint8)

FUSED_GEMM = {"activation": "Relu", "transA": 0}

PRODUCTS = [
    Case("MatMul", [R4, (2, 3, 5, 6)], 4, every=4),  # the batch, and transposed
    Case("MatMul", [R4, (3, 5, 6)], 4),
    Case("MatMul", [(4, 5), (2, 3, 5, 6)], 8),  # the columns may be anywhere in front of the rows
    Case("MatMul", [R3, (4, 5)], 3),  # batch and rows are alike, or transposed
    Case("MatMul", [R4, (1, 5, 6)], 6 + 2),
    Case("MatMul", [(3, 4), (4, 5)], 2, every=8),  # also as Gemm, each operand alone
    Case("MatMul", [R4, (5,)], 1),
    Case("MatMulInteger", [BYTES_A, BYTES_B, POINT], 2, runtime="ort"),
    Case("QLinearMatMul", [BYTES_A, TENTH, POINT, BYTES_B, TENTH, POINT, TENTH, POINT], 2),
    Case("Gemm", [(3, 4), (4, 5)], 2, every=8),
    Case("Gemm", [(4, 3), (4, 5), (5,)], 2, {"transA": 1, "alpha": 2.0}, every=8),
    Case("Gemm", [(4, 3), (4, 5), (3, 1)], 2, {"transA": 1, "beta": 0.5}, every=8),
    Case("Gemm", [(4, 3), (5, 4), (3, 5)], 2, {"transA": 1, "transB": 1}, every=8),
    Case("Gemm", [(3, 4), (4, 5), ()], 2, every=8),
    Case("com.microsoft::FusedGemm", [(3, 4), (4, 5), (5,)], 2, FUSED_GEMM, 8, runtime="ort"),
    Case("com.microsoft::FusedMatMul", [R4, (2, 3, 5, 6)], 4, {"alpha": 2.0}, 64, runtime="ort"),
    Case("com.microsoft::FusedMatMul", [R3, (2, 5, 4)], 2, {"transB": 1}, 32, runtime="ort"),
    Case("com.microsoft::FusedMatMul", [R3, (4, 5)], 2, {}, 8, runtime="ort"),
    Case("Einsum", [R3, (2, 4, 5)], 6, {"equation": "bij, bjk -> bik"}),
    Case("Einsum", [R3, (4, 5)], 6, {"equation": "zij,jk"}),
]

IMAGE, KERNEL = (2, 3, 8, 7), (4, 3, 3, 2)
WINDOW = {"pads": (0, 1, 2, 0), "strides": (2, 1)}
BYTE_IMAGE = (np.arange(336) % 251).astype(np.uint8).reshape(IMAGE)
BYTE_KERNEL = (np.arange(72) % 5).astype(np.uint8).reshape(KERNEL)

CONVOLUTIONS = [
    Case("Conv", [IMAGE, KERNEL], 2),
    Case("Conv", [IMAGE, KERNEL, (4,)], 2, {**WINDOW, "dilations": (1, 2)}),
    Case("Conv", [IMAGE, (3, 1, 3, 2)], 2, {**WINDOW, "kernel_shape": (3, 2), "group": 3}),
    Case("Conv", [IMAGE, KERNEL], 2, {"auto_pad": "SAME_UPPER", "strides": (2, 1)}, runtime="ort"),
    Case("Conv", [(2, 3, 8), (4, 3, 3)], 1, {"pads": (1, 0)}),
    Case("Conv", [(1, 2, 4, 5, 3), (3, 2, 2, 3, 1)], 6, {"strides": (1, 2, 1)}),
    Case("ConvInteger", [BYTE_IMAGE, BYTE_KERNEL, POINT], 2, WINDOW, runtime="ort"),
    Case("ConvTranspose", [IMAGE, (3, 4, 3, 2), (4,)], 2, {**WINDOW, "output_padding": (1, 0)}),
    Case(
        "ConvTranspose",
        [IMAGE, (3, 4, 3, 2)],
        2,
        {"strides": (3, 2), "output_shape": (22, 13)},
        runtime="ort",
    ),
    Case("DeformConv", [(1, 3, 4, 4), (4, 3, 2, 2), (1, 8, 3, 3)], 1),
    Case(
        "QLinearConv",
        [BYTE_IMAGE, TENTH, POINT, BYTE_KERNEL, TENTH, POINT, TENTH, POINT],
        2,
        WINDOW,
        runtime="ort",
    ),
    Case(
        "com.microsoft::FusedConv",
        [IMAGE, KERNEL, (4,), (2, 4, 6, 6)],
        2,
        {"activation": "Relu"},
        runtime="ort",
    ),
]

POOLS = [
    *(
        Case(name, [IMAGE], 4, {**WINDOW, "kernel_shape": (3, 2)})  # batch and channels, H and W
        for name in ("MaxPool", "AveragePool", "LpPool")
    ),
    Case("AveragePool", [IMAGE], 4, {**WINDOW, "kernel_shape": (3, 2), "count_include_pad": 1}),
    Case("MaxPool", [IMAGE], 4, {"kernel_shape": (3, 2), "dilations": (2, 1), "ceil_mode": 1}),
    Case("MaxPool", [IMAGE], 1, {"kernel_shape": (3, 2)}, outputs=2),  # indices count in order
    *(Case(f"Global{name}Pool", [IMAGE], 4) for name in ("Average", "Max")),
    Case("GlobalLpPool", [IMAGE], 4, opset=12, runtime="ort"),
    Case("MaxRoiPool", [IMAGE, (1, 5)], 1, {"pooled_shape": (2, 2)}, opset=12, runtime="ort"),
    Case("RoiAlign", [IMAGE, (1, 4), whole(0)], 1),
    Case(
        "com.microsoft::QLinearAveragePool",
        [BYTE_IMAGE, TENTH, POINT, TENTH, POINT],
        4,
        {"kernel_shape": (3, 1)},  # no sum of three lies between two bytes: nothing is rounded up
        runtime="ort",
    ),
    Case(
        "com.microsoft::QLinearGlobalAveragePool",
        [BYTE_IMAGE, TENTH, POINT, TENTH, POINT],
        4,
        runtime="ort",
    ),
    Case(
        "com.microsoft::QLinearGlobalAveragePool",
        [BYTE_IMAGE, TENTH, POINT, TENTH, POINT],
        1,
        {"channels_last": 1},
        runtime="ort",
    ),
]

CHANNELS = [
    Case("BatchNormalization", [IMAGE, (3,), (3,), (3,), (3,)], 6, kind="positive"),
    Case("BatchNormalization", [(2, 3), (3,), (3,), (3,), (3,)], 1, kind="positive"),
    Case("LRN", [IMAGE], 6, {"size": 3}, runtime="ort"),
    Case("InstanceNormalization", [IMAGE, (3,), (3,)], 2),
    Case("GroupNormalization", [(2, 4, 3, 5), (4,), (4,)], 2, {"num_groups": 2}),
    Case("GroupNormalization", [(2, 4, 3, 5), (2,), (2,)], 2, {"num_groups": 2}, opset=18),
    Case("DepthToSpace", [(2, 4, 3, 5)], 1, {"blocksize": 2}),
    Case("SpaceToDepth", [(2, 1, 4, 6)], 1, {"blocksize": 2}),
    Case("GridSample", [IMAGE, (2, 3, 3, 2)], 1),
]

LINEAR = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
CROPPED = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
REGION = (0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.9, 0.7)

RESIZES = [
    Case("Resize", [R4], 24, {"scales": (1, 1, 2, 3)}),
    Case("Resize", [R4], 24, {"sizes": (2, 3, 8, 7)}),
    Case("Resize", [R4], 24, {"scales": (1, 1, 2, 1.5), **LINEAR}),
    Case("Resize", [R4], 24, {"sizes": (2, 3, 8, 7), "roi": REGION, **CROPPED}),
    Case("Resize", [R4], 24, {"scales": (2, 3), "axes": (2, 3)}),
    Case("Resize", [R4], 24, {"sizes": (7, 8), "axes": (-1, 2)}, runtime="ort"),
    Case("Resize", [R4], 24, {"scales": (1, 1, 2, 3)}, opset=10, runtime="ort"),
    Case("Upsample", [R4], 24, {"scales": (1, 1, 2, 3)}, opset=9, runtime="ort"),
]

SCALED = [TENTH, POINT]
EACH = np.linspace(0.1, 0.3, 5, dtype=np.float32)
BYTES_C = np.arange(20, dtype=np.uint8).reshape(4, 5)

MICROSOFT = [
    Case("com.microsoft::QLinearAdd", [UINT8, *SCALED, UINT8, *SCALED, *SCALED], 6),
    Case("com.microsoft::QLinearMul", [UINT8, *SCALED, UINT8[0], *SCALED, *SCALED], 6),
    Case(
        "com.microsoft::QLinearWhere",
        [UINT8 > 9, UINT8, *SCALED, UINT8[:, :1], *SCALED, *SCALED],
        6,
    ),
    Case("com.microsoft::QLinearSigmoid", [UINT8, *SCALED, *SCALED], 6),
    Case("com.microsoft::QLinearLeakyRelu", [UINT8, *SCALED, *SCALED], 6, {"alpha": 0.2}),
    Case("com.microsoft::QLinearSoftmax", [UINT8, *SCALED, *SCALED], 6, {"axis": -2, "opset": 13}),
    Case("com.microsoft::QLinearSoftmax", [UINT8, *SCALED, *SCALED], 2, {"axis": 1, "opset": 11}),
    Case("com.microsoft::QLinearConcat", [*SCALED, UINT8, *SCALED, UINT8, *SCALED], 6, {"axis": 1}),
    Case("com.microsoft::QuantizeLinear", [R3, *SCALED], 6),
    Case("com.microsoft::QuantizeLinear", [(2, 5), EACH, np.zeros(5, np.uint8)], 2, {"axis": 1}),
    Case("com.microsoft::DequantizeLinear", [UINT8, *SCALED], 6),
    Case(
        "com.microsoft::QGemm",
        [BYTES_C, *SCALED, BYTES_C, *SCALED, None, TENTH, POINT],
        1,
        {"transB": 1},
        4,
    ),
    Case("com.microsoft::DynamicQuantizeMatMul", [R3, BYTES_C, EACH, np.zeros(5, np.uint8)], 2),
    Case("com.microsoft::MatMulIntegerToFloat", [UINT8, BYTES_C, TENTH, TENTH], 2),
    Case("com.microsoft::BiasGelu", [R3, (4,)], 2),
    Case("com.microsoft::SkipLayerNormalization", [R3, R3, (4,), (4,)], 2),
    Case("com.microsoft::SkipSimplifiedLayerNormalization", [R3, R3, (4,)], 2),
]
MICROSOFT = [replace(case, runtime="ort") for case in MICROSOFT]

CASES = [
    *MICROSOFT,
    *ONE,
    *SEVERAL,
    *QUANTISED,
    *REDUCTIONS,
    *AXES,
    *EXTENTS,
    *AT_RUN_TIME,
    *VIEWS,
    *INDEXING,
    *PRODUCTS,
    *CONVOLUTIONS,
    *POOLS,
    *CHANNELS,
    *RESIZES,
]
"""All of them."""
