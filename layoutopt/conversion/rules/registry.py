"""All that is known of ops, by type; users add their own.

To see what is known of a type, look it up in the table of its kind: elementwise ops, ops whose
attributes name axes, views, ops that index, products, and spatial ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.axes import AXIS_OPS, INDEXING
from layoutopt.conversion.rules.elementwise import ELEMENTWISE
from layoutopt.conversion.rules.microsoft import MICROSOFT
from layoutopt.conversion.rules.op import Op, plain
from layoutopt.conversion.rules.operator import (
    Category,
    Follow,
    OperandAxes,
    Operator,
    RemapError,
    Remapped,
    Rule,
    carried_along,
    fitted,
    is_identity,
    same_axes,
)
from layoutopt.conversion.rules.products import PRODUCTS
from layoutopt.conversion.rules.spatial import SPATIAL
from layoutopt.conversion.rules.views import VIEWS
from layoutopt.layout.layout import Layout, LayoutError
from layoutopt.layout.permutations import checked

_SEQUENCE = "its operands are sequences, optional values or text, which have no axes"
_SOURCE = "it makes its elements in their order"
_RECURRENT = "time, batch and features each have their place in it"
_BODY = "its body is a graph of its own"
_ORDER = "its result counts elements or axes in their order"
_ATTENTION = "heads, sequences and features each have their place in it"
_LOSS = "it takes axis 1 for the classes, and may add over all others in order"
_BOXES = "its axes hold boxes and scores, each in its place"
_SIGNAL = "its last axis holds real and imaginary parts"
_MATRIX = "its last two axes are one matrix"

_TYPES = {
    _SEQUENCE: (
        "ConcatFromSequence Optional OptionalGetElement OptionalHasElement RegexFullMatch "
        "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength "
        "SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer"
    ),
    _SOURCE: (
        "Bernoulli BlackmanWindow Constant EyeLike HammingWindow HannWindow "
        "ImageDecoder MelWeightMatrix Multinomial RandomNormal RandomNormalLike RandomUniform "
        "RandomUniformLike Range"
    ),
    _RECURRENT: "CausalConvWithState GRU LSTM RNN",
    _BODY: "If Loop Scan SequenceMap",
    _ORDER: "NonZero Unique",
    _ATTENTION: "Attention LinearAttention RotaryEmbedding TensorScatter",
    _LOSS: "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    _BOXES: "AffineGrid Col2Im NonMaxSuppression",
    _SIGNAL: "DFT STFT",
    _MATRIX: "Det",
}

REASONS = {name: reason for reason, names in _TYPES.items() for name in names.split()}
"""For each opaque type of ONNX the reason."""


AnyRule = TypeVar("AnyRule", bound=Rule)


def _by_type(operators: Iterable[Operator]) -> dict[str, tuple[Operator, ...]]:
    found: dict[str, tuple[Operator, ...]] = {}
    for one in operators:
        found[one.type] = _with(found.get(one.type, ()), one)
    return found


def _with(versions: tuple[Operator, ...], one: Operator) -> tuple[Operator, ...]:
    """Add an entry, or replace that of the same version; latest first."""
    others = [other for other in versions if other.since != one.since]
    return tuple(sorted([*others, one], key=lambda entry: -entry.since))


OPERATORS = _by_type([*ELEMENTWISE, *AXIS_OPS, *VIEWS, *INDEXING, *PRODUCTS, *SPATIAL, *MICROSOFT])
"""For each type of op what is known of it, latest version of the operator set first."""


def register(entry: Operator) -> None:
    """Add what is known of a type of op; it replaces what was known of the same version."""
    OPERATORS[entry.type] = _with(OPERATORS.get(entry.type, ()), entry)


def operator(
    *types: str,
    category: Category | str = Category.LIGHT,
    since: int = 1,
    operands: tuple[int, ...] | None = (0,),
    parameters: Mapping[str, int] | None = None,
    follow: Follow = same_axes,
    axes: str | Callable[[Op], str] = "",
) -> Callable[[AnyRule], AnyRule]:
    """Register a rule for types of ops, as a decorator of ``rule(op, permutation)``.

    Parameters
    ----------
    types
        Names of types, ``domain::Type`` in other domains than ONNX's own.
    category, since, operands, parameters, follow, axes
        As in :class:`~layoutopt.conversion.rules.operator.Operator`.

    Raises
    ------
    InputError
        If no type is named, or there is no such category.
    """
    if not types or not all(isinstance(name, str) for name in types):
        raise InputError('name the types of ops, as in @operator("my::Roll")')
    entry = Operator(
        types[0],
        category,  # type: ignore[arg-type]  # a text is made one
        since=since,
        operands=operands,
        parameters=dict(parameters or {}),
        follow=follow,
        axes=axes,
    )

    def add(rule: AnyRule) -> AnyRule:
        for name in types:
            register(replace(entry, type=name, rule=rule))
        return rule

    return add


def _refuse(op: Op, permutation: tuple[int, ...]) -> Remapped:
    reason = REASONS.get(op.type, "no rule for this type is known")
    raise RemapError(f"{op}: {reason}")


def operator_of(op: Op) -> Operator:
    """Return what is known of an op; nothing is known of opaque ones."""
    for entry in OPERATORS.get(op.type, ()):
        if entry.since <= op.opset:
            return entry
    return Operator(op.type, Category.OPAQUE, _refuse, operands=(), follow=_nothing_followed)


FURTHER = {
    "Dropout": {"training_mode": 2},
    "Gather": {"indices": 1},
    "Slice": {"starts": 1, "ends": 2, "steps": 4},
    "Split": {"split": 1},
    "TopK": {"k": 1},
}
"""Inputs that rules do not change, whose values tell shapes, or whether an op is random."""


def parameter_places(op: Op) -> Mapping[str, int]:
    """Return the inputs whose values stand among an op's attributes, by name."""
    return {**operator_of(op).parameters, **FURTHER.get(op.type, {})}


ALIKE: dict[str, tuple[str, Sequence[int], int]] = {
    name: (kind, operands, typed)
    for names, kind, operands, typed in (
        ("GroupNormalization MeanVarianceNormalization", "Identity", (0,), 0),
        ("Slice", "Slice", range(5), 0),
    )
    for name in names.split()
} | {
    f"com.microsoft::{name}": (kind, operands, typed)
    for names, kind, operands, typed in (
        ("BiasGelu FastGelu Gelu QLinearLeakyRelu QLinearSigmoid", "Identity", (0,), 0),
        ("QLinearSoftmax QuickGelu SkipLayerNormalization", "Identity", (0,), 0),
        ("SkipSimplifiedLayerNormalization", "Identity", (0,), 0),
        ("DequantizeLinear", "Identity", (0,), 1),
        ("QuantizeLinear", "Identity", (0,), 2),
        ("QLinearAdd QLinearMul", "Add", (0, 3), 0),
        ("QLinearWhere", "Where", (0, 1, 4), 1),
        ("QLinearConcat", "Concat", range(2, 2**31, 3), 2),
        ("FusedConv", "Conv", (0, 1), 0),
        ("FusedMatMul", "", (), 0),
        ("QLinearConv", "Conv", (0, 3), 0),
        ("QLinearAveragePool", "AveragePool", (0,), 0),
        ("QLinearGlobalAveragePool", "GlobalAveragePool", (0,), 0),
        ("FusedGemm", "Gemm", (0, 1), 0),
        ("DynamicQuantizeMatMul", "MatMul", (0, 1), 0),
        ("MatMulIntegerToFloat", "MatMul", (0, 1), 2),
    )
    for name in names.split()
}
"""For ops whose shapes ONNX does not infer, the op of its latest version whose results have the
same shape, its operands among theirs, and the one whose type of elements results have."""


def _nothing_followed(op: Op) -> tuple[None, ...]:
    return (None,) * len(op.outputs)


def operand_axes(op: Op) -> OperandAxes | None:
    """Return the meaning of the axes of an op's operands and results, in ONNX's order.

    None if they have none, or if the op is not written for the rank of its data.
    """
    return operator_of(op).operand_axes(op)


def written_input(op: Op, n: int) -> Layout | None:
    """Return the layout in which an op reads its ``n``-th input as it is written, if any."""
    own, axes = op.layouts and op.layouts.input(n), operand_axes(op)
    return own or _plain(axes.input(n) if axes else "")


def written_output(op: Op, n: int) -> Layout | None:
    """Return the layout in which an op gives its ``n``-th result as it is written, if any."""
    own, axes = op.layouts and op.layouts.output(n), operand_axes(op)
    return own or _plain(axes.output(n) if axes else "")


def _plain(letters: str) -> Layout | None:
    return plain(letters) if letters else None


def is_unlettered(op: Op) -> bool:
    """Return whether an op's axes may be in any order, and have no letters of their own."""
    free = operator_of(op).category in (Category.AGNOSTIC, Category.LIGHT)
    return free and operand_axes(op) is None and op.layouts is None


def category_of(op: Op) -> Category:
    """Return how much the order of axes matters to an op."""
    return operator_of(op).category


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
    known = operator_of(op)
    rank = known.rank(op)
    try:
        order = checked(permutation, rank)
    except LayoutError as error:
        raise LayoutError(f"{op}: {error.reason}") from None
    if is_identity(order):
        return Remapped(dict(op.attributes), (None,) * len(op.inputs), (None,) * len(op.outputs))
    if op.layouts is not None:
        raise RemapError(f"{op}: it is written for {op.layouts}, not in ONNX's way")
    if rank is None and known.category is not Category.OPAQUE:
        raise RemapError(f"{op}: the rank of its operands is unknown")
    for name, place in known.parameters.items():
        if op.has(place) and name not in op.attributes and name not in known.at_run_time:
            raise RemapError(f"{op}: its {name} are known at run time only")
    found = known.rule(op, order)
    if not isinstance(found, Remapped):
        found = Remapped(found)
    return Remapped(
        {**op.attributes, **found.attributes},
        _inputs(op, known, order) if found.inputs is None else found.inputs,
        _outputs(op, known, order) if found.outputs is None else found.outputs,
        found.entries,
        found.operands,
        found.type,
    )


def _inputs(op: Op, known: Operator, order: tuple[int, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """Return the order that each input must come in, where the rule says nothing else."""
    found: list[tuple[int, ...] | None] = []
    for n in range(len(op.inputs)):
        taken = op.has(n) and (known.operands is None or n in known.operands)
        rank = op.rank(n)
        if taken and rank is None:
            raise RemapError(f"{op}: the rank of input {n} is unknown")
        found.append(fitted(order, rank) if taken and rank is not None else None)
    return tuple(found)


def _outputs(op: Op, known: Operator, order: tuple[int, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """Return the order that each output comes in, where the rule says nothing else."""
    followed = known.follow(op)
    if len(followed) < len(op.outputs):
        followed += (None,) * (len(op.outputs) - len(followed))
    return tuple(
        None if axes is None else carried_along(axes, order)
        for axes in followed[: max(len(op.outputs), 1)]
    )
