"""All that is known of op types, a row for each, or for several of which the same is known.

The order of axes comes first: category, rule, and what this needs.  Then come other facts: see
:class:`~layoutopt.conversion.rules.operator.Operator`.  Where ONNX changed an op there is a row for
each version; facts that hold for all versions stand in the latest.  Users add rows of their own.

It is long since it has a row for each op; how one is looked up stands behind the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules import (
    axes,
    blocks,
    bodies,
    gradients,
    products,
    spatial,
    unwinding,
    views,
)
from layoutopt.conversion.rules.builder import Build
from layoutopt.conversion.rules.op import Op, OperandLayouts
from layoutopt.conversion.rules.operator import (
    Category,
    FoldingEffort,
    Operator,
    Remapped,
    Rule,
    ShapeLike,
    all_axes,
    largest_rank,
    named_axes,
    rank_of,
    unknown_axes,
    unmoved,
)
from layoutopt.layout.layout import Layout

AGNOSTIC, LIGHT, HEAVY, VIEW = Category.AGNOSTIC, Category.LIGHT, Category.HEAVY, Category.VIEW

WINDOW, PRODUCT, LONG = FoldingEffort.WINDOW, FoldingEffort.PRODUCT, FoldingEffort.LONG

BARRIERS = gradients.opaque
"""Backward pass of ops of which it is known that nothing else can be said."""

LINEAR = partial(gradients.elementwise, saved=gradients.nothing)
NORMALISATION: dict[str, Any] = {
    "build": unwinding.normalisation,
    "gradient": gradients.normalisation,
}
TAIL_NORMALISATION: dict[str, Any] = {
    "build": partial(unwinding.normalisation, channels=False),
    "gradient": partial(gradients.normalisation, channels=False),
}
FIRST = ShapeLike("Identity")
"""Results have the shape of the first input."""

DATA = "NC+ -> NC+"
"""Batch, channels, and ``+`` for the spatial axes: W, HW or DHW."""


def _each(
    names: str, category: Category, rule: Rule = unmoved, *, domain: str = "", **facts: Any
) -> list[Operator]:
    """Return rows; where another rank than that of the first operand counts, results have it."""
    if "rank" in facts:
        facts.setdefault("follow", all_axes(facts["rank"]))
    return [Operator(domain + name, category, rule, **facts) for name in names.split()]


def _light(names: str, rule: Rule, **facts: Any) -> list[Operator]:
    return _each(names, LIGHT, rule, **facts)


def _heavy(
    names: str, axes: str | Callable[[Op], str], rule: Rule = unmoved, **facts: Any
) -> list[Operator]:
    return _each(names, HEAVY, rule, axes=axes, **facts)


def _convolution(
    name: str, axes: str, weights: int = 1, bias: int | None = 2, **facts: Any
) -> list[Operator]:
    """Return a convolution, by the positions of its weights and of the bias that it may have."""
    build = partial(unwinding.convolution, weights=weights, bias=bias)
    given = {"rule": spatial.convolution(weights), "build": build, "effort": WINDOW, **facts}
    return _heavy(name, axes, **given)


def _quantised(name: str, rule: Rule, like: ShapeLike) -> list[Operator]:
    """Return an op of onnxruntime that is written channels first or last, as it tells."""
    return _microsoft(
        name,
        spatial.channels_first_only(rule),
        like=like,
        category=HEAVY,
        axes=spatial.channels_flag,
        alternatives=spatial.other_channels,
    )


def _microsoft(names: str, rule: Rule = unmoved, **facts: Any) -> list[Operator]:
    category = facts.pop("category", LIGHT)
    return _each(names, category, rule, domain="com.microsoft::", **facts)


def _elementwise(
    names: str, saved: gradients.Saved = gradients.operands, **facts: Any
) -> list[Operator]:
    """Return ops of one tensor; ``saved`` is what their gradients are computed with."""
    backward = partial(gradients.elementwise, saved=saved)
    given = {"build": unwinding.elementwise, "gradient": backward, **facts}
    return _each(names, AGNOSTIC, axes.unchanged, **given)


def _broadcast(
    names: str, saved: gradients.Saved = gradients.operands, **facts: Any
) -> list[Operator]:
    """Return ops whose operands are broadcast to the largest rank."""
    return _elementwise(names, saved, operands=None, rank=largest_rank(), **facts)


def _view(names: str, category: Category, rule: Rule, build: Build, **facts: Any) -> list[Operator]:
    """Return ops that only move elements."""
    return _each(names, category, rule, build=build, gradient=gradients.view, **facts)


def _reshaping(name: str, rule: Rule, follow: Any, **facts: Any) -> list[Operator]:
    """Return an op that gives the same elements another shape."""
    return _view(name, VIEW, rule, unwinding.reshape, follow=follow, **facts)


def _product(name: str, left: int, right: int, swap: bool = False, **facts: Any) -> list[Operator]:
    """Return a product of matrices, by the positions of its operands."""
    rule = products.product_rule(left, right, swap)
    rank, follow = largest_rank(left, right), products.product_axes(left, right)
    return _each(name, LIGHT, rule, operands=(left,), rank=rank, follow=follow, **facts)


def _opaque(names: str, reason: str, **facts: Any) -> list[Operator]:
    return _each(names, Category.OPAQUE, operands=(), follow=unknown_axes, reason=reason, **facts)


POOL: dict[str, Any] = {"rule": spatial.pool, "gradient": BARRIERS, "pads_channels": True}
WINDOWED: dict[str, Any] = {"shape": spatial.pooled, "effort": WINDOW}
RESIZE: dict[str, Any] = {
    "axes": spatial.resize_axes,
    "rule": spatial.resize,
    "alternatives": spatial.resize_orders,
    "same_rank": True,
    "shape": spatial.resized,
    "gradient": BARRIERS,
    "effort": WINDOW,
}
HEADS: dict[str, Any] = {"rule": unmoved, "operands": (), "follow": unknown_axes}
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
    *_elementwise("Ceil Floor Round Sign", gradient=gradients.flat, keeps_zeros=True),
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
        parameters={"training_mode": 2},
        at_run_time=("training_mode",),
        structure=(1, 2),
    ),
    *_each(
        "DynamicQuantizeLinear",
        AGNOSTIC,
        axes.unchanged,
        follow=axes.with_scalars,
        blocks=blocks.refused,
        gradient=gradients.flat,
    ),
    *_each(
        "Size",
        AGNOSTIC,
        axes.unchanged,
        follow=axes.fixed_axes(),
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
        gradient=gradients.flat,
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
        grows=True,
    ),
    *_light("Hardmax", axes.flattened_hardmax),
    *_light("Hardmax", axes.axis_rule(-1), since=13, gradient=gradients.flat),
    *_light("LayerNormalization RMSNormalization", axes.normalised_tail, **TAIL_NORMALISATION),
    *_light("SimplifiedLayerNormalization", axes.normalised_tail, like=FIRST, **TAIL_NORMALISATION),
    *_light("LogSoftmax Softmax", axes.flattened_softmax),
    *_light(
        "LogSoftmax Softmax",
        axes.axis_rule(-1),
        since=13,
        blocks=blocks.along(-1),
        gradient=gradients.rowwise,
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
        "Shape", axes.shape_of, follow=axes.fixed_axes(None), unread=(0,), build=unwinding.constant
    ),
    *_view(
        "Slice",
        LIGHT,
        axes.cut,
        unwinding.take,
        parameters={"axes": 3, "starts": 1, "ends": 2, "steps": 4},
        at_run_time=("starts", "ends", "steps"),
        blocks=blocks.taken,
        like=ShapeLike("Slice", range(5)),
        shape=axes.sliced_shape,
        same_rank=True,
    ),
    *_light(
        "Split",
        axes.axis_rule(0),
        blocks=blocks.along(0),
        same_rank=True,
        parameters={"split": 1},
        at_run_time=("split",),
        build=unwinding.split,
        gradient=gradients.split,
        all_differentiable=True,
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
    *_light("TopK", axes.axis_rule(-1), parameters={"k": 1}, at_run_time=("k",)),
    *_light(
        "Trilu",
        axes.triangle,
        parameters={"k": 1},
        at_run_time=("k",),
        build=unwinding.elementwise,
        gradient=LINEAR,
    ),
    # Ops that pick or place elements by index
    *_light(
        "Compress",
        axes.compress,
        follow=axes.compressed_axes,
        like=ShapeLike("Compress", (0, 1)),  # before operator set 11 ONNX infers none
        grows=True,
        shrinks=True,
    ),
    *_light(
        "Gather",
        axes.gather,
        follow=axes.gathered_axes,
        parameters={"indices": 1},
        at_run_time=("indices",),
        structure=(),
        alternatives=axes.index_orders,
        gradient=BARRIERS,
    ),
    *_light("GatherElements", axes.axis_rule(0), operands=(0, 1), gradient=BARRIERS),
    *_light(
        "GatherND",
        axes.gather_nd,
        follow=axes.gathered_nd_axes,
        alternatives=axes.index_orders,
        gradient=BARRIERS,
    ),
    *_light(
        "OneHot",
        axes.unchanged,
        follow=axes.one_hot_axes,
        structure=(1, 2),
        gradient=gradients.flat,
        grows=True,
    ),
    *_light("Scatter", axes.axis_rule(0), operands=(0, 1, 2)),
    *_light("ScatterElements", axes.axis_rule(0), operands=(0, 1, 2), gradient=BARRIERS),
    *_light("ScatterND", axes.scatter_nd, gradient=BARRIERS),
    # Ops that give the same elements another shape
    *_reshaping("Flatten", views.flatten, unknown_axes),
    *_reshaping("Reshape", views.reshape, unknown_axes, parameters={"shape": 1}),
    *_reshaping("Squeeze", views.squeeze, views.squeezed_axes, parameters={"axes": 1}),
    *_view("Transpose", VIEW, views.transpose, unwinding.transpose, follow=views.transposed_axes),
    *_reshaping("Unsqueeze", views.unsqueeze, views.unsqueezed_axes, parameters={"axes": 1}),
    # Products of matrices
    *_product(
        "MatMul",
        0,
        1,
        swap=True,
        alternatives=products.matrix_products,
        on_request=products.fused_products,
        build=unwinding.matmul,
        gradient=gradients.matmul,
        effort=PRODUCT,
    ),
    *_product("MatMulInteger", 0, 1, build=unwinding.matmul, effort=LONG),
    *_product("QLinearMatMul", 0, 3, build=partial(unwinding.matmul, rhs=3), effort=LONG),
    *_light(
        "Gemm", products.gemm, build=unwinding.gemm, gradient=gradients.gemm, **GEMM, effort=PRODUCT
    ),
    *_microsoft("FusedGemm", products.gemm, like=ShapeLike("Gemm", (0, 1)), **GEMM),
    *_microsoft(
        "FusedMatMul TransposeMatMul",
        products.fused_product,
        rank=largest_rank(0, 1),
        follow=unknown_axes,
        alternatives=products.fused_products,
        like=ShapeLike("MatMul", (0, 1), shapes=products.fused_shapes),
    ),
    *_light(
        "Einsum",
        products.einsum,
        each_alone=True,
        follow=unknown_axes,
        build=unwinding.einsum,
        gradient=gradients.einsum,
        shape=products.einsum_shape,
        effort=LONG,
    ),
    # Convolutions
    *_convolution("Conv", "NC+, OI+, O -> NC+", pads_channels=True, gradient=gradients.convolution),
    *_convolution("ConvInteger", "NC+, OI+ -> NC+", bias=None),
    *_convolution(
        "ConvTranspose",
        "NC+, IO+, O -> NC+",
        pads_channels=True,
        shape=spatial.upsampled,
        gradient=partial(gradients.convolution, transposed=True),
    ),
    *_convolution(
        "DeformConv",
        "NCHW, OIHW, N*HW, O, N*HW -> NCHW",
        rule=unmoved,
        bias=3,
        gradient=partial(gradients.convolution, bias=3),
        effort=PRODUCT,
    ),
    *_convolution(
        "QLinearConv",
        "NC+, , , OI+, , , , , O -> NC+",
        weights=3,
        bias=8,
        on_request=spatial.quantised_channels_last,
    ),
    *_microsoft(
        "FusedConv",
        spatial.convolution(1, added=3),
        category=HEAVY,
        axes="NC+, OI+, O, NC+ -> NC+",
        like=ShapeLike("Conv", (0, 1)),
    ),
    # Other ops each of whose axes has a meaning of its own
    *_heavy("AveragePool LpPool", DATA, **POOL, **WINDOWED),
    *_heavy("MaxPool", "NC+ -> NC+, NC+", **POOL, **WINDOWED),
    *_heavy("GlobalAveragePool", DATA, **POOL, alternatives=spatial.reduction("ReduceMean")),
    *_heavy("GlobalMaxPool", DATA, **POOL, alternatives=spatial.reduction("ReduceMax")),
    *_heavy("GlobalLpPool", DATA, spatial.pool, gradient=BARRIERS),
    *_heavy("MaxRoiPool RoiAlign", "NCHW -> *CHW", effort=WINDOW),
    *_heavy("MaxUnpool", "NC+, NC+ -> NC+", structure=(2,), effort=WINDOW),
    *_heavy(
        "BatchNormalization",
        "NC+, C, C, C, C -> NC+, C, C, C, C",
        spatial.channels_second,
        pads_channels=True,
        build=unwinding.normalisation,
        gradient=gradients.normalisation,
        unlearned=(3, 4),
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
        gradient=partial(gradients.rowwise, inputs=True),
        pads_channels=True,
    ),
    *_view("DepthToSpace", HEAVY, unmoved, unwinding.depth_to_space, axes="NCHW -> NCHW"),
    *_view("SpaceToDepth", HEAVY, unmoved, unwinding.space_to_depth, axes="NCHW -> NCHW"),
    *_heavy("GridSample", "NC+, N+* -> NC+", effort=WINDOW),
    *_heavy("Resize Upsample", parameters={"scales": 1}, **RESIZE),
    *_heavy("Resize", since=11, parameters={"roi": 1, "scales": 2, "sizes": 3}, **RESIZE),
    # onnxruntime's own ops, but for products and convolutions
    *_microsoft("Gelu QuickGelu", axes.unchanged, category=AGNOSTIC, like=FIRST),
    *_microsoft("BiasGelu FastGelu", axes.with_bias, like=FIRST),
    *_microsoft("QLinearLeakyRelu QLinearSigmoid", axes.unchanged, like=FIRST),
    *_microsoft("QLinearSoftmax", axes.softmax_of_opset, like=FIRST),
    *_opaque("com.microsoft::Pad", UNSTATED, like=ShapeLike("Pad", (0, 1)), parameters={"pads": 1}),
    *_opaque("com.microsoft::Inverse com.microsoft::Trilu", UNSTATED, like=FIRST),
    *_opaque("com.microsoft::DynamicQuantizeLSTM", RECURRENT, like=ShapeLike("LSTM", (0,))),
    *_opaque(
        "com.microsoft::ExpandDims",
        UNSTATED,
        like=ShapeLike("Unsqueeze", (0, 1)),
        parameters={"axes": 1},
    ),
    *_microsoft(
        "QLinearAdd QLinearMul",
        axes.unchanged,
        operands=(0, 3),
        rank=largest_rank(0, 3),
        like=ShapeLike("Add", (0, 3)),
    ),
    *_microsoft(
        "QLinearWhere",
        axes.unchanged,
        operands=(0, 1, 4),
        rank=largest_rank(0, 1, 4),
        like=ShapeLike("Where", (0, 1, 4), 1),
    ),
    *_microsoft(
        "QLinearConcat",
        axes.quantised_concat,
        rank=rank_of(2),
        like=ShapeLike("Concat", range(2, 2**31, 3), 2),
    ),
    *_quantised("QLinearConv", spatial.convolution(3), ShapeLike("Conv", (0, 3))),
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
        like=ShapeLike("Identity", also=(3,)),
    ),
    *_quantised("QLinearAveragePool", spatial.pool, ShapeLike("AveragePool")),
    *_quantised("QLinearGlobalAveragePool", spatial.pool, ShapeLike("GlobalAveragePool")),
    # Other ops of ONNX, whose operands stay as they are
    *_opaque("ConcatFromSequence Optional OptionalGetElement OptionalHasElement", SEQUENCE),
    *_opaque("RegexFullMatch SequenceAt SequenceConstruct SequenceEmpty", SEQUENCE),
    *_opaque("SequenceErase SequenceInsert SequenceLength SplitToSequence", SEQUENCE),
    *_opaque("StringNormalizer StringSplit TfIdfVectorizer", SEQUENCE),
    *_opaque("StringConcat", SEQUENCE, build=unwinding.elementwise, gradient=gradients.elementwise),
    *_opaque("Bernoulli Multinomial", SOURCE, random=True, gradient=gradients.flat),
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
        effort=FoldingEffort.UNBOUNDED,
        grows=True,
    ),
    *_opaque(
        "Range",
        SOURCE,
        structure=(0, 1, 2),
        shape=axes.counted_shape,
        build=unwinding.constant,
        grows=True,
    ),
    *_opaque("CausalConvWithState GRU LSTM RNN", RECURRENT, effort=LONG),
    *_opaque("If Loop Scan SequenceMap", "its body is a graph of its own"),
    *_light(
        bodies.TIE,
        bodies.tied,
        operands=None,
        rank=bodies.tied_rank,
        follow=unknown_axes,
        blocks=bodies.tied_blocks,
        keeps_zeros=True,
    ),
    *_opaque("NonZero", ORDER, shape=axes.places_shape, shrinks=True),
    *_opaque("Unique", ORDER, shrinks=True),
    *_opaque("LinearAttention", ATTENTION),
    *_opaque(
        "com.microsoft::Attention com.microsoft::GroupQueryAttention "
        "com.microsoft::MultiHeadAttention",
        ATTENTION,
        like=ShapeLike("Identity", shapes=products.attended_shape),
    ),
    *_light(
        "Attention",
        alternatives=products.attention(0, 1, 2, q_num_heads=0, kv_num_heads=1),
        **HEADS,
    ),
    *_light(
        "RotaryEmbedding com.microsoft::RotaryEmbedding",
        alternatives=products.attention(0, num_heads=0),
        like=FIRST,
        **HEADS,
    ),
    *_light("TensorScatter", axes.cached, operands=(0, 1)),
    *_opaque("NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", LOSS, gradient=BARRIERS),
    *_opaque("AffineGrid", BOXES, structure=(1,)),
    *_opaque("Col2Im", BOXES, structure=(1, 2), grows=True),
    *_opaque("NonMaxSuppression", BOXES, structure=(2, 3, 4)),
    *_opaque("DFT", SIGNAL, structure=(1, 2), grows=True),
    *_opaque("STFT", SIGNAL, structure=(1, 3), shape=axes.framed_shape, grows=True),
    *_opaque("Det", "its last two axes are one matrix", effort=LONG),
]
"""A row for each op type, or version of one."""


AnyRule = TypeVar("AnyRule", bound=Rule)


OPERATORS: dict[str, tuple[Operator, ...]] = {}
"""For each type of op what is known of it, latest version of the operator set first."""


def register(entry: Operator) -> None:
    """Add what is known of a type of op; it replaces what was known of the same version."""
    others = [one for one in OPERATORS.get(entry.type, ()) if one.since != entry.since]
    OPERATORS[entry.type] = tuple(sorted([*others, entry], key=lambda one: -one.since))


for _row in ROWS:
    register(_row)

UNKNOWN = Operator(
    "",
    Category.OPAQUE,
    operands=(),
    follow=unknown_axes,
    reason="no rule for this type is known",
    build=unwinding.unknown,
)
"""What is known of other types: nothing."""


_FIELDS = [field.name for field in fields(Operator)]

OTHER_FACTS = _FIELDS[_FIELDS.index("parameters") :]
"""Facts of op types that do not depend on the order of axes."""


def operator(
    *types: str, category: Category | str = Category.LIGHT, **facts: Any
) -> Callable[[AnyRule], AnyRule]:
    """Register a rule for types of ops, as a decorator of ``rule(op, permutation)``.

    What is known of a type besides the order of axes stays where it is not stated.

    Parameters
    ----------
    types
        Names of types, ``domain::Type`` in other domains than ONNX's own.
    category, facts
        Fields of :class:`~layoutopt.conversion.rules.operator.Operator`, such as ``since``,
        ``operands``, ``parameters``, ``follow`` and ``axes``.

    Raises
    ------
    InputError
        If no type is named, or there is no such category.
    """
    if not types or not all(isinstance(name, str) for name in types):
        raise InputError('name the types of ops, as in @operator("my::Roll")')
    entry = Operator(types[0], category, **facts)  # type: ignore[arg-type]  # a text is made one

    def add(rule: AnyRule) -> AnyRule:
        for name in types:
            known = OPERATORS.get(name, (entry,))[0]
            kept = {fact: getattr(known, fact) for fact in OTHER_FACTS if fact not in facts}
            register(replace(entry, type=name, rule=rule, **kept))
        return rule

    return add


def operator_of(op: Op) -> Operator:
    """Return what is known of an op; nothing is known of opaque ones."""
    found = OPERATORS.get(op.type, ())
    return next((entry for entry in found if entry.since <= op.opset), UNKNOWN)


def type_facts(type: str) -> Operator:
    """Return what is known of an op type in all its versions: that stands in its latest entry."""
    return OPERATORS.get(type, (UNKNOWN,))[0]


def build_of(type: str) -> Build:
    """Return what adds an op of a type to an unwinding graph."""
    return type_facts(type).build or (unwinding.unknown if "::" in type else unwinding.barrier)


def operand_axes(op: Op) -> OperandLayouts | None:
    """Return the axes of an op's operands and results that have names, in ONNX's order.

    None if it is not heavily sensitive, or is not written for the rank of its data.
    """
    known = operator_of(op)
    text = known.axes if isinstance(known.axes, str) else known.axes(op)
    data = op.layouts.input(0) if op.layouts else None
    rank = op.rank(0) if data is None else len(data.axes)
    return None if not text or rank is None else named_axes(text, rank)


def written_layout(op: Op, slot: int) -> Layout | None:
    """Return the layout in which an op has an operand or a result as it is written, if any.

    ``slot`` is the number of the operand, or, behind all operands, of the result.
    """
    own, axes = op.layouts and op.layouts.at(op, slot), operand_axes(op)
    return own or (axes.at(op, slot) if axes else None)


def is_unlettered(op: Op) -> bool:
    """Return whether an op's axes may be in any order, and have no letters of their own."""
    free = operator_of(op).category in (Category.AGNOSTIC, Category.LIGHT)
    return free and operand_axes(op) is None and op.layouts is None


def may_pad(op: Op) -> bool:
    """Return whether channels of an op's operands may be padded with zeros.

    Not in groups, nor if further results count or have channels, or 0 would be divided by 0.
    """
    alone = op.integer("group", 1) == 1 and not any(op.outputs[1:])
    divides = min(op.attributes.get(name, 1) for name in ("epsilon", "bias")) > 0
    return operator_of(op).pads_channels and alone and divides


def category_of(op: Op) -> Category:
    """Return how much the order of axes matters to an op."""
    return operator_of(op).category


def computes_along_axes(op: Op) -> bool:
    """Return whether the order of axes matters to how an op computes.

    It does not to elementwise ops, nor to what loops carry from round to round.
    """
    return category_of(op) is not Category.AGNOSTIC and op.type != bodies.TIE


def remap(op: Op, permutation: Iterable[int]) -> Remapped:
    """Return the op for operands whose axes are in another order.

    With the inputs in the order that is returned, and the attributes that are returned, the op
    gives the same results as before, in the order that is returned.  To leave all as it is, the
    identity, is always possible.

    Parameters
    ----------
    op
        The op.
    permutation
        As for ``numpy.transpose``: ``permutation[i]`` is the former place of axis ``i``.  It is
        for the axes of the first input; of elementwise ops and Expand, for those that operands
        are broadcast to; of products of matrices, for those of the result.

    Raises
    ------
    RemapError
        If the op cannot run so; the text says why.
    LayoutError
        If the permutation is none, or is for another rank.
    """
    return operator_of(op).remap(op, permutation)
