"""All that is known of op types, a row for each, or for several of which the same is known.

The order of axes comes first: category, rule, and what this needs.  Then come other facts: see
:class:`~layoutopt.conversion.rules.operator.Operator`.  Where ONNX changed an op there is a row for
each version; facts that hold for all versions stand in the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from layoutopt.conversion.rules import axes, blocks, gradients, products, spatial, unwinding, views
from layoutopt.conversion.rules.builder import Backward, Build
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import (
    Category,
    Effort,
    Operator,
    Rule,
    ShapeLike,
    all_axes,
    largest_rank,
    rank_of,
    unknown_axes,
    unmoved,
)

AGNOSTIC, LIGHT, HEAVY, VIEW = Category.AGNOSTIC, Category.LIGHT, Category.HEAVY, Category.VIEW

BARRIERS = Backward(gradients.opaque)
"""Backward pass of ops of which it is known that nothing else can be said."""

VIEW_GRADIENT = Backward(gradients.view)
ROWWISE = Backward(gradients.rowwise)
ELEMENTWISE_GRADIENT = Backward(gradients.elementwise)
LINEAR = Backward(partial(gradients.elementwise, saved=gradients.nothing))
NORMALISATION: dict[str, Any] = {
    "build": unwinding.normalisation,
    "gradient": Backward(gradients.normalisation),
}
TAIL_NORMALISATION: dict[str, Any] = {
    "build": partial(unwinding.normalisation, channels=False),
    "gradient": Backward(partial(gradients.normalisation, channels=False)),
}
FIRST = ShapeLike("Identity")
"""Results have the shape of the first input."""

DATA = "NC+ -> NC+"
"""Batch, channels, and ``+`` for the spatial axes: W, HW or DHW."""


def _each(
    names: str, category: Category, rule: Rule = unmoved, *, domain: str = "", **facts: Any
) -> list[Operator]:
    return [Operator(domain + name, category, rule, **facts) for name in names.split()]


def _light(names: str, rule: Rule, **facts: Any) -> list[Operator]:
    return _each(names, Category.LIGHT, rule, **facts)


def _heavy(
    names: str, axes: str | Callable[[Op], str], rule: Rule = unmoved, **facts: Any
) -> list[Operator]:
    return _each(names, Category.HEAVY, rule, axes=axes, **facts)


def _microsoft(names: str, rule: Rule = unmoved, **facts: Any) -> list[Operator]:
    category = facts.pop("category", LIGHT)
    return _each(names, category, rule, domain="com.microsoft::", **facts)


def _elementwise(
    names: str, saved: gradients.Saved = gradients.operands, **facts: Any
) -> list[Operator]:
    """Return ops of one tensor; ``saved`` is what their gradients are computed with."""
    backward = Backward(partial(gradients.elementwise, saved=saved))
    given = {"build": unwinding.elementwise, "gradient": backward, **facts}
    return _each(names, AGNOSTIC, axes.unchanged, **given)


def _broadcast(
    names: str, saved: gradients.Saved = gradients.operands, **facts: Any
) -> list[Operator]:
    """Return ops whose operands are broadcast to the largest rank."""
    rank = largest_rank()
    return _elementwise(names, saved, operands=None, rank=rank, follow=all_axes(rank), **facts)


def _view(names: str, category: Category, rule: Rule, build: Build, **facts: Any) -> list[Operator]:
    """Return ops that only move elements."""
    return _each(names, category, rule, build=build, gradient=VIEW_GRADIENT, **facts)


def _product(name: str, left: int, right: int, swap: bool = False, **facts: Any) -> list[Operator]:
    """Return a product of matrices, by the positions of its operands."""
    rule = products.product_rule(left, right, swap)
    rank, follow = largest_rank(left, right), products.product_axes(left, right)
    return _each(name, LIGHT, rule, operands=(left,), rank=rank, follow=follow, **facts)


def _opaque(names: str, reason: str, **facts: Any) -> list[Operator]:
    return _each(names, Category.OPAQUE, operands=(), follow=unknown_axes, reason=reason, **facts)


GEMM: dict[str, Any] = {"follow": products.gemm_axes, "alternatives": products.matrix_products}

SEQUENCE = "its operands are sequences, optional values or text, which have no axes"
SOURCE = "it makes its elements in their order"
RECURRENT = "time, batch and features each have their place in it"
ATTENTION = "heads, sequences and features each have their place in it"
LOSS = "it takes axis 1 for the classes, and may add over all others in order"
BOXES = "its axes hold boxes and scores, each in its place"
UNSTATED = "no rule for it is known"
ORDER = "its result counts elements or axes in their order"
SIGNAL = "its last axis holds real and imaginary parts"


ROWS: list[Operator] = [
    # Elementwise ops
    *_elementwise("Acos Acosh BitwiseNot Celu Cos Cosh Gelu HardSigmoid HardSwish IsInf IsNaN"),
    *_elementwise("Log Mish Not Shrink Softplus Swish ThresholdedRelu"),
    *_elementwise("Abs Asin Asinh Atan Atanh Erf Sin Sinh Softsign Tan", keeps_zeros=True),
    *_elementwise("Elu LeakyRelu Relu Selu Sqrt Tanh", gradients.output, keeps_zeros=True),
    *_elementwise("Exp Reciprocal Sigmoid", gradients.output),
    *_elementwise("Neg", gradients.nothing, keeps_zeros=True),
    *_elementwise("Ceil Floor Round Sign", gradient=gradients.FLAT, keeps_zeros=True),
    *_elementwise("Clip", structure=(1, 2)),
    *_broadcast("And BitShift BitwiseAnd BitwiseOr BitwiseXor Equal Greater GreaterOrEqual"),
    *_broadcast("Less LessOrEqual Mod Or Pow SwiGLU Xor"),
    *_broadcast("Add Mean Sub Sum", gradients.nothing, keeps_zeros=True),
    *_broadcast("Div", gradients.quotient),
    *_broadcast("Max Min", keeps_zeros=True),
    *_broadcast("Mul", gradients.others, keeps_zeros=True),
    *_broadcast("PRelu", build=unwinding.prelu),
    *_broadcast("Where", gradients.condition, build=partial(unwinding.elementwise, first=1)),
    *_view("BitCast Cast", AGNOSTIC, axes.unchanged, unwinding.identity),
    *_view("CastLike", AGNOSTIC, axes.unchanged, unwinding.identity, unread=(1,)),
    *_view("Identity", AGNOSTIC, axes.unchanged, unwinding.identity, keeps_zeros=True),
    *_view(
        "Dropout",
        AGNOSTIC,
        axes.dropout,
        unwinding.dropout,
        blocks=blocks.dropout,
        values={"training_mode": 2},
        structure=(1, 2),
    ),
    *_each(
        "DynamicQuantizeLinear",
        AGNOSTIC,
        axes.unchanged,
        follow=axes.with_scalars,
        blocks=blocks.refused,
        gradient=gradients.FLAT,
    ),
    *_each(
        "Size",
        AGNOSTIC,
        axes.unchanged,
        follow=axes.no_axes,
        blocks=blocks.refused,
        unread=(0,),
        build=unwinding.constant,
    ),
    *_each("DequantizeLinear QuantizeLinear", AGNOSTIC, axes.unchanged, blocks=blocks.quantised),
    *_light(
        "DequantizeLinear QuantizeLinear",
        axes.scaled_axis,
        since=13,
        blocks=blocks.quantised,
        build=unwinding.per_channel,
        gradient=gradients.FLAT,
    ),
    # Ops whose attributes name axes
    *_light(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum ReduceSumSquare",
        axes.moved_axes,
        parameters={"axes": 1},
        follow=axes.kept_axes,
        blocks=blocks.reduced,
        gradient=BARRIERS,
    ),
    *_light(
        "ArgMax ArgMin", axes.axis_rule(0), follow=axes.kept_but_one, blocks=blocks.reduced_to_index
    ),
    *_light(
        "CenterCropPad", axes.crop, parameters={"shape": 1}, at_run_time=("shape",), same_rank=True
    ),
    *_view(
        "Concat", LIGHT, axes.concatenated, unwinding.concat, operands=None, blocks=blocks.concat
    ),
    *_light(
        "ConstantOfShape",
        axes.filled_shape,
        operands=(),
        rank=axes.filled_rank,
        follow=all_axes(axes.filled_rank),
        structure=(0,),
        build=unwinding.constant,
        grows=True,
    ),
    *_light("CumProd CumSum", axes.axis_rule(None), parameters={"axis": 1}),
    *_view(
        "Expand",
        LIGHT,
        axes.expand,
        unwinding.expand,
        parameters={"shape": 1},
        at_run_time=("shape",),
        rank=axes.expanded_rank,
        follow=all_axes(axes.expanded_rank),
        grows=True,
    ),
    *_light("Hardmax", axes.flattened_hardmax),
    *_light("Hardmax", axes.axis_rule(-1), since=13, gradient=gradients.FLAT),
    *_light("LayerNormalization RMSNormalization", axes.normalised_tail, **TAIL_NORMALISATION),
    *_light("LogSoftmax Softmax", axes.flattened_softmax),
    *_light(
        "LogSoftmax Softmax",
        axes.axis_rule(-1),
        since=13,
        blocks=blocks.along(-1),
        gradient=ROWWISE,
    ),
    *_light("LpNormalization", axes.axis_rule(-1)),
    *_light("MeanVarianceNormalization", axes.mean_variance, like=FIRST),
    *_light(
        "Pad",
        axes.pad,
        parameters={"pads": 1, "axes": 3},
        at_run_time=("pads", "axes"),
        blocks=blocks.padded,
        same_rank=True,
        structure=(1, 2, 3),
        gradient=BARRIERS,
        grows=True,
    ),
    *_light("ReverseSequence", axes.reverse_sequence),
    *_light(
        "Shape", axes.shape_of, follow=axes.one_new_axis, unread=(0,), build=unwinding.constant
    ),
    *_view(
        "Slice",
        LIGHT,
        axes.cut,
        unwinding.take,
        parameters={"axes": 3},
        blocks=blocks.taken,
        like=ShapeLike("Slice", range(5)),
        same_rank=True,
        values={"starts": 1, "ends": 2, "steps": 4},
    ),
    *_light(
        "Split",
        axes.axis_rule(0),
        blocks=blocks.along(0),
        same_rank=True,
        values={"split": 1},
        build=unwinding.split,
        gradient=Backward(gradients.split, every=True),
    ),
    *_view(
        "Tile",
        LIGHT,
        axes.tile,
        unwinding.tile,
        parameters={"repeats": 1},
        at_run_time=("repeats",),
        grows=True,
    ),
    *_light("TopK", axes.axis_rule(-1), values={"k": 1}),
    *_light(
        "Trilu", axes.triangle, parameters={"k": 1}, build=unwinding.elementwise, gradient=LINEAR
    ),
    # Ops that pick or place elements by index
    *_light("Compress", axes.compress, follow=axes.compressed_axes, grows=True, shrinks=True),
    *_light(
        "Gather",
        axes.gather,
        follow=axes.gathered_axes,
        values={"indices": 1},
        structure=(),
        gradient=BARRIERS,
    ),
    *_light("GatherElements", axes.axis_rule(0), operands=(0, 1), gradient=BARRIERS),
    *_light("GatherND", axes.gather_nd, follow=axes.gathered_nd_axes, gradient=BARRIERS),
    *_light(
        "OneHot",
        axes.unchanged,
        follow=axes.one_hot_axes,
        structure=(1, 2),
        gradient=gradients.FLAT,
        grows=True,
    ),
    *_light("Scatter", axes.axis_rule(0), operands=(0, 1, 2)),
    *_light("ScatterElements", axes.axis_rule(0), operands=(0, 1, 2), gradient=BARRIERS),
    *_light("ScatterND", axes.scatter_nd, gradient=BARRIERS),
    # Ops that give the same elements another shape
    *_view("Flatten", VIEW, views.flatten, unwinding.reshape, follow=unknown_axes),
    *_view(
        "Reshape",
        VIEW,
        views.reshape,
        unwinding.reshape,
        parameters={"shape": 1},
        follow=unknown_axes,
    ),
    *_view(
        "Squeeze",
        VIEW,
        views.squeeze,
        unwinding.reshape,
        parameters={"axes": 1},
        follow=views.squeezed_axes,
    ),
    *_view("Transpose", VIEW, views.transpose, unwinding.transpose, follow=views.transposed_axes),
    *_view(
        "Unsqueeze",
        VIEW,
        views.unsqueeze,
        unwinding.reshape,
        parameters={"axes": 1},
        follow=views.unsqueezed_axes,
    ),
    # Products of matrices
    *_product(
        "MatMul",
        0,
        1,
        swap=True,
        alternatives=products.matrix_products,
        on_request=products.fused_products,
        build=unwinding.matmul,
        gradient=Backward(gradients.matmul),
        effort=Effort.PRODUCT,
    ),
    *_product("MatMulInteger", 0, 1, build=unwinding.matmul, effort=Effort.LONG),
    *_product("QLinearMatMul", 0, 3, build=partial(unwinding.matmul, rhs=3), effort=Effort.LONG),
    *_light(
        "Gemm",
        products.gemm,
        build=unwinding.gemm,
        gradient=Backward(gradients.gemm),
        **GEMM,
        effort=Effort.PRODUCT,
    ),
    *_microsoft("FusedGemm", products.gemm, like=ShapeLike("Gemm", (0, 1)), **GEMM),
    *_microsoft(
        "FusedMatMul",
        products.fused_product,
        rank=largest_rank(0, 1),
        follow=unknown_axes,
        alternatives=products.fused_products,
        like=ShapeLike("", ()),
    ),
    *_light(
        "Einsum",
        products.einsum,
        each_alone=True,
        follow=unknown_axes,
        build=unwinding.einsum,
        gradient=Backward(gradients.einsum),
        effort=Effort.LONG,
    ),
    # Convolutions
    *_heavy(
        "Conv",
        "NC+, OI+, O -> NC+",
        spatial.convolution(1),
        pads_channels=True,
        build=unwinding.convolution,
        gradient=Backward(gradients.convolution),
        effort=Effort.WINDOW,
    ),
    *_heavy(
        "ConvInteger",
        "NC+, OI+ -> NC+",
        spatial.convolution(1),
        build=partial(unwinding.convolution, bias=None),
        effort=Effort.WINDOW,
    ),
    *_heavy(
        "ConvTranspose",
        "NC+, IO+, O -> NC+",
        spatial.convolution(1),
        pads_channels=True,
        build=unwinding.convolution,
        gradient=Backward(partial(gradients.convolution, transposed=True)),
        effort=Effort.WINDOW,
    ),
    *_heavy(
        "DeformConv",
        "NCHW, OIHW, N*HW, O, N*HW -> NCHW",
        build=partial(unwinding.convolution, bias=3),
        gradient=Backward(partial(gradients.convolution, bias=3)),
        effort=Effort.UNBOUNDED,
    ),
    *_heavy(
        "QLinearConv",
        "NC+, , , OI+, , , , , O -> NC+",
        spatial.convolution(3),
        build=partial(unwinding.convolution, weights=3, bias=8),
        effort=Effort.WINDOW,
    ),
    *_microsoft(
        "FusedConv",
        spatial.convolution(1, added=3),
        category=HEAVY,
        axes="NC+, OI+, O, NC+ -> NC+",
        like=ShapeLike("Conv", (0, 1)),
    ),
    # Other ops each of whose axes has a meaning of its own
    *_heavy(
        "AveragePool LpPool",
        DATA,
        spatial.pool,
        gradient=BARRIERS,
        shape=spatial.pooled,
        pads_channels=True,
        effort=Effort.WINDOW,
    ),
    *_heavy(
        "MaxPool",
        "NC+ -> NC+, NC+",
        spatial.pool,
        gradient=BARRIERS,
        shape=spatial.pooled,
        pads_channels=True,
        effort=Effort.WINDOW,
    ),
    *_heavy(
        "GlobalAveragePool GlobalMaxPool", DATA, spatial.pool, gradient=BARRIERS, pads_channels=True
    ),
    *_heavy("GlobalLpPool", DATA, spatial.pool, gradient=BARRIERS),
    *_heavy("MaxRoiPool RoiAlign", "NCHW -> *CHW", effort=Effort.WINDOW),
    *_heavy("MaxUnpool", "NC+, NC+ -> NC+", structure=(2,), effort=Effort.WINDOW),
    *_heavy(
        "BatchNormalization",
        "NC+, C, C, C, C -> NC+, C, C, C, C",
        spatial.channels_second,
        pads_channels=True,
        build=unwinding.normalisation,
        gradient=Backward(gradients.normalisation, constant=(3, 4)),
    ),
    *_heavy("GroupNormalization", DATA, spatial.planes),
    *_heavy(
        "GroupNormalization",
        "NC+, C, C -> NC+",
        spatial.planes,
        since=21,
        like=FIRST,
        **NORMALISATION,
    ),
    *_heavy(
        "InstanceNormalization",
        "NC+, C, C -> NC+",
        spatial.planes,
        pads_channels=True,
        **NORMALISATION,
    ),
    *_heavy(
        "LRN",
        DATA,
        spatial.channels_second,
        gradient=Backward(partial(gradients.rowwise, inputs=True)),
        pads_channels=True,
    ),
    *_view("DepthToSpace", HEAVY, unmoved, unwinding.depth_to_space, axes="NCHW -> NCHW"),
    *_view("SpaceToDepth", HEAVY, unmoved, unwinding.space_to_depth, axes="NCHW -> NCHW"),
    *_heavy("GridSample", "NC+, N+* -> NC+", effort=Effort.WINDOW),
    *_heavy(
        "Resize Upsample",
        spatial.resize_axes,
        spatial.resize,
        alternatives=spatial.resize_orders,
        parameters={"scales": 1},
        same_rank=True,
        gradient=BARRIERS,
        effort=Effort.WINDOW,
    ),
    *_heavy(
        "Resize",
        spatial.resize_axes,
        spatial.resize,
        alternatives=spatial.resize_orders,
        since=11,
        parameters={"roi": 1, "scales": 2, "sizes": 3},
        same_rank=True,
        gradient=BARRIERS,
        effort=Effort.WINDOW,
    ),
    # onnxruntime's own ops, but for products and convolutions
    *_microsoft("Gelu QuickGelu", axes.unchanged, category=AGNOSTIC, like=FIRST),
    *_microsoft("BiasGelu FastGelu", axes.with_bias, like=FIRST),
    *_microsoft("QLinearLeakyRelu QLinearSigmoid", axes.unchanged, like=FIRST),
    *_microsoft("QLinearSoftmax", axes.softmax_of_opset, like=FIRST),
    *_opaque("com.microsoft::Pad", UNSTATED, like=ShapeLike("Pad", (0, 1)), values={"pads": 1}),
    *_opaque("com.microsoft::Inverse com.microsoft::Trilu", UNSTATED, like=FIRST),
    *_microsoft(
        "QLinearAdd QLinearMul",
        axes.unchanged,
        operands=(0, 3),
        rank=largest_rank(0, 3),
        follow=all_axes(largest_rank(0, 3)),
        like=ShapeLike("Add", (0, 3)),
    ),
    *_microsoft(
        "QLinearWhere",
        axes.unchanged,
        operands=(0, 1, 4),
        rank=largest_rank(0, 1, 4),
        follow=all_axes(largest_rank(0, 1, 4)),
        like=ShapeLike("Where", (0, 1, 4), 1),
    ),
    *_microsoft(
        "QLinearConcat",
        axes.quantised_concat,
        rank=rank_of(2),
        follow=all_axes(rank_of(2)),
        like=ShapeLike("Concat", range(2, 2**31, 3), 2),
    ),
    *_microsoft(
        "QLinearConv",
        spatial.channels_first_only(spatial.convolution(3)),
        like=ShapeLike("Conv", (0, 3)),
        category=HEAVY,
        axes=spatial.channels_flag,
        alternatives=spatial.other_channels,
    ),
    *_microsoft("QuantizeLinear", axes.scaled_axis, like=ShapeLike("Identity", (0,), 2)),
    *_microsoft("DequantizeLinear", axes.scaled_axis, like=ShapeLike("Identity", (0,), 1)),
    *_microsoft(
        "DynamicQuantizeMatMul",
        products.rows,
        like=ShapeLike("MatMul", (0, 1)),
        follow=products.multiplied_axes,
    ),
    *_microsoft(
        "MatMulIntegerToFloat",
        products.rows,
        like=ShapeLike("MatMul", (0, 1), 2),
        follow=products.multiplied_axes,
    ),
    *_microsoft("QGemm", alternatives=products.quantised_products),
    *_microsoft(
        "SkipLayerNormalization SkipSimplifiedLayerNormalization",
        axes.skip_normalisation,
        operands=(0, 1),
        like=FIRST,
    ),
    *_microsoft(
        "QLinearAveragePool",
        spatial.channels_first_only(spatial.pool),
        like=ShapeLike("AveragePool"),
        category=HEAVY,
        axes=spatial.channels_flag,
        alternatives=spatial.other_channels,
    ),
    *_microsoft(
        "QLinearGlobalAveragePool",
        spatial.channels_first_only(spatial.pool),
        like=ShapeLike("GlobalAveragePool"),
        category=HEAVY,
        axes=spatial.channels_flag,
        alternatives=spatial.other_channels,
    ),
    # Other ops of ONNX, whose operands stay as they are
    *_opaque("ConcatFromSequence Optional OptionalGetElement OptionalHasElement", SEQUENCE),
    *_opaque("RegexFullMatch SequenceAt SequenceConstruct SequenceEmpty", SEQUENCE),
    *_opaque("SequenceErase SequenceInsert SequenceLength SplitToSequence", SEQUENCE),
    *_opaque("StringNormalizer StringSplit TfIdfVectorizer", SEQUENCE),
    *_opaque("StringConcat", SEQUENCE, build=unwinding.elementwise, gradient=ELEMENTWISE_GRADIENT),
    *_opaque("Bernoulli Multinomial", SOURCE, random=True, gradient=gradients.FLAT),
    *_opaque(
        "BlackmanWindow HammingWindow HannWindow", SOURCE, structure=(0,), build=unwinding.constant
    ),
    *_opaque("Constant", SOURCE, build=unwinding.constant),
    *_opaque("EyeLike", SOURCE, unread=(0,), grows=True),
    *_opaque("ImageDecoder", SOURCE),
    *_opaque("RandomNormal RandomUniform", SOURCE, random=True),
    *_opaque("RandomNormalLike RandomUniformLike", SOURCE, random=True, unread=(0,)),
    *_opaque(
        "MelWeightMatrix",
        SOURCE,
        structure=(0, 1, 2, 3, 4),
        build=unwinding.constant,
        effort=Effort.UNBOUNDED,
        grows=True,
    ),
    *_opaque("Range", SOURCE, structure=(0, 1, 2), build=unwinding.constant, grows=True),
    *_opaque("CausalConvWithState GRU LSTM RNN", RECURRENT, effort=Effort.LONG),
    *_opaque("If Loop Scan SequenceMap", "its body is a graph of its own"),
    *_opaque("NonZero", ORDER, shape=axes.places_shape, shrinks=True),
    *_opaque("Unique", ORDER, shrinks=True),
    *_opaque("Attention LinearAttention RotaryEmbedding TensorScatter", ATTENTION),
    *_opaque("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", LOSS, gradient=BARRIERS),
    *_opaque("AffineGrid", BOXES, structure=(1,), effort=Effort.UNBOUNDED),
    *_opaque("Col2Im", BOXES, structure=(1, 2), effort=Effort.UNBOUNDED),
    *_opaque("NonMaxSuppression", BOXES, structure=(2, 3, 4)),
    *_opaque("DFT", SIGNAL, structure=(1, 2), effort=Effort.UNBOUNDED),
    *_opaque("STFT", SIGNAL, structure=(1, 3), effort=Effort.UNBOUNDED),
    *_opaque("Det", "its last two axes are one matrix", effort=Effort.LONG),
]
"""A row for each op type, or version of one."""
