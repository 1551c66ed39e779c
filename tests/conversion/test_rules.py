"""Rules of ops: what each does to axes, sizes and attributes, held against runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import onnx.defs
import pytest
from numpy.typing import NDArray

from layoutopt.conversion.modes import ModeTable
from layoutopt.conversion.rules.axes import unchanged
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.operator import Category, Operator, RemapError, Remapped
from layoutopt.conversion.rules.products import permuted_equation
from layoutopt.conversion.rules.registry import (
    OPERATORS,
    category_of,
    operand_axes,
    operator,
    operator_of,
    register,
    remap,
    type_facts,
)
from layoutopt.layout.factors import Form, axis_of, is_whole, items_of, sizes_of
from layoutopt.layout.permutations import Permutation
from tests.conversion.onnx_ops import op, op_of, results
from tests.conversion.remap_cases import CASES, Case

# The registry of ops: what is refused and why, versions, and rules of one's own


LAST = (0, 2, 3, 1)
"""Channels last."""


@pytest.fixture
def registry() -> Iterator[None]:
    """Let a test add entries that are gone after it."""
    before = dict(OPERATORS)
    yield
    OPERATORS.clear()
    OPERATORS.update(before)


def test_every_standard_op_is_known_or_listed_as_opaque() -> None:
    """Ops of ONNX's own set, of all its versions, have an entry; opaque ones have a reason."""
    schemas = onnx.defs.get_all_schemas_with_history()
    standard = {schema.name for schema in schemas if schema.domain == ""}
    own = {name: entries for name, entries in OPERATORS.items() if "::" not in name}
    assert standard | {"SimplifiedLayerNormalization"} == set(own)  # which is onnxruntime's
    for entries in own.values():
        assert all((one.category is Category.OPAQUE) == (one.reason != "") for one in entries)


CATEGORIES = {
    Category.AGNOSTIC: "Relu Add Where PRelu Clip Cast Dropout",
    Category.LIGHT: "Concat Split Softmax Pad Slice ReduceMean ArgMax Gather TopK MatMul Gemm",
    Category.HEAVY: "Conv ConvTranspose MaxPool GlobalAveragePool Resize BatchNormalization LRN",
    Category.VIEW: "Transpose Reshape Flatten Squeeze Unsqueeze",
    Category.OPAQUE: "LSTM If NonZero my::Op",
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_categories(category: Category) -> None:
    for name in CATEGORIES[category].split():
        assert category_of(op(name)) is category


def test_the_version_of_the_operator_set_decides() -> None:
    """Softmax of four axes takes channels last from opset 13 on only if its axis moves."""
    x = (2, 3, 4, 5)
    assert remap(op("Softmax", x, axis=1), LAST).attributes == {"axis": 3}
    assert remap(op("Softmax", x, axis=1, opset=12), LAST).attributes == {"axis": 1}
    assert remap(op("Softmax", x, opset=12), LAST).attributes == {}
    with pytest.raises(RemapError):
        remap(op("Softmax", x, axis=2, opset=12), LAST)
    with pytest.raises(RemapError, match="axes are those of four by default"):
        remap(op("MeanVarianceNormalization", (2, 3, 4)), (0, 2, 1))
    assert operator_of(op("Resize", opset=10)).parameters == {"scales": 1}
    assert operator_of(op("Resize", opset=11)).parameters == {"roi": 1, "scales": 2, "sizes": 3}


def test_versions_are_those_of_onnx() -> None:
    """What is true from a version on is so because ONNX changed the op in that version."""
    later = [entry for entries in OPERATORS.values() for entry in entries if entry.since > 1]
    own = [entry for entry in later if "::" not in entry.type]
    assert len(own) >= 7
    for entry in own:
        assert onnx.defs.get_schema(entry.type, entry.since).since_version == entry.since


SYMBOLIC: list[tuple[Shape, tuple[int, ...], tuple[int, ...], int]] = [
    (("batch", 6, 5), (4, 6, 5), (0, 2, 3, 5), 6),
    (("batch", "channels", 5), (4, 3, 5), (0, 0, -1), 6),
    # Of the orders of batch, channels and (4, 5), three leave two sizes open: 0 copies the size
    # at its own place only.
    (("batch", "channels", 4, 5), (2, 3, 4, 5), (0, -1, 20), 3),
    ((None, 3, 4), (2, 3, 4), (-1, 12), 2),
    ((None, 3, 4), (2, 3, 4), (0, 12), 2),
    (("batch", 3, 4), (2, 3, 4), (-1, 4), 2),  # batch and 3 are one
]


@pytest.mark.parametrize(("symbolic", "real", "shape", "taken"), SYMBOLIC)
def test_reshapes_need_no_numbers(
    symbolic: Shape, real: tuple[int, ...], shape: tuple[int, ...], taken: int
) -> None:
    """What is written for symbolic sizes is true of real ones."""
    x = np.random.default_rng(0).normal(size=real).astype(np.float32)
    [before] = results(op("Reshape", real, shape=shape), [x])
    found = 0
    for permutation in permutations(range(len(real))):
        try:
            changed = remap(op("Reshape", symbolic, shape=shape), permutation)
        except RemapError:
            continue
        found += 1
        operand = x.transpose(permutation)
        after = results(op("Reshape", operand.shape, **changed.attributes), [operand])[0]
        [order] = changed.outputs or ()
        wanted = before if order is None else before.transpose(order)
        np.testing.assert_array_equal(after, wanted)
    assert found == taken


def test_resize_of_channels_last_data_says_so() -> None:
    """Scales tell: those of 1 are the batch and the channels."""
    for scales, letters in {
        (1, 1, 2, 2): "NCHW",
        (1, 2, 2, 1): "NHWC",
        (1, 2, 1, 1): "NHWC",
        (1, 2, 2, 2): "NCHW",
        (2, 2, 2, 1): "NCHW",
        (1, 1, 1, 1): "NCHW",
    }.items():
        found = operand_axes(op("Resize", (1, 4, 4, 3), scales=scales))
        assert str(found) == f"{letters}->{letters}"
    on_two = op("Resize", (1, 4, 4, 3), scales=(1, 2), axes=(0, 1))
    assert str(operand_axes(on_two)) == "NCHW->NCHW"


@pytest.mark.usefixtures("registry")
def test_rules_of_ones_own() -> None:
    """A decorated function is asked for ops of its types, from its version on; all else stays."""

    @operator("my::Roll", "my::Unroll", category="lightly sensitive", since=2)
    def roll(given: Op, permutation: Permutation) -> Mapping[str, Any]:
        return {"axis": permutation.index(given.axis(-1, len(permutation)))}

    assert remap(op("my::Roll", (2, 3, 4), axis=1), (1, 0, 2)).attributes == {"axis": 0}
    assert remap(op("my::Unroll", (2, 3, 4)), (2, 0, 1)).attributes == {"axis": 0}
    assert category_of(op("my::Roll", opset=1)) is Category.OPAQUE
    before = type_facts("GroupNormalization").gradient
    operator("GroupNormalization", since=21)(unchanged)
    assert type_facts("GroupNormalization").gradient is before


@pytest.mark.usefixtures("registry")
def test_sensitive_ops_of_ones_own_and_replacements() -> None:
    """A later entry of the same version replaces the first; other versions stay."""
    register(Operator("my::Conv", Category.HEAVY, axes="NC+, OI+ -> NC+"))
    assert str(operand_axes(op("my::Conv", (1, 2, 3)))) == "NCW,OIW->NCW"
    with pytest.raises(RemapError):
        remap(op("my::Conv", (1, 2, 3)), (0, 2, 1))
    register(Operator("my::Conv", Category.OPAQUE))
    assert category_of(op("my::Conv")) is Category.OPAQUE
    register(Operator("Softmax", Category.OPAQUE, since=13))
    assert category_of(op("Softmax")) is Category.OPAQUE
    assert category_of(op("Softmax", opset=12)) is Category.LIGHT


# Ops with their axes in another order give the same results


Array = NDArray[Any]

UNTRIED = {
    "layoutopt::Tie": "it is no op of its own; networks with bodies are its cases",
    "MaxUnpool": "no permutation is taken, and it needs the indices of a MaxPool",
}
"""Types without a case."""


def moved(array: Array | None, permutation: Form | None) -> Array | None:
    """Return an operand in another order, with axes of 1 in front as in broadcasting.

    In place of these there may be -1 in the order.  Some axes may be joined.
    """
    if array is None or permutation is None:
        return array
    if not is_whole(permutation):
        axes = [axis_of(item) for item in items_of(permutation)]
        return array.transpose(axes).reshape(*map(int, sizes_of(permutation, array.shape)))
    if -1 in permutation:
        front = permutation.count(-1)
        new = iter(range(front))
        permutation = tuple(next(new) if axis < 0 else axis + front for axis in permutation)
    return np.transpose(
        array.reshape((1,) * (len(permutation) - array.ndim) + array.shape), permutation
    )


def op_again(op: Op, changed: Remapped, arrays: Sequence[Array | None]) -> Op:
    """Return the op with its new attributes, for operands in their new order."""
    new = op.type if not changed.type else changed.type
    return op_of(new, arrays, dict(changed.attributes), op.opset, len(op.outputs))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_remapped_ops_agree(case: Case) -> None:
    """``op'(p(x)) == q(op(x))`` for all orders p that an op takes, and it takes all it can."""
    arrays = case.arrays()
    op = op_of(case.type, arrays, case.attributes, case.opset, case.outputs)
    before = results(op, arrays, case.runtime)
    taken = 0
    rank = operator_of(op).rank(op)
    assert rank is not None
    for permutation in permutations(range(rank)):
        try:
            changed = remap(op, permutation)
        except RemapError as error:
            assert len(str(error).splitlines()) == 1
            assert str(error).startswith(f"{op.type}: ")
            continue
        taken += 1
        compare(case, op, arrays, before, changed)
    assert taken == case.taken


@pytest.mark.parametrize("case", [case for case in CASES if case.every], ids=str)
def test_other_ways_to_run_agree(case: Case) -> None:
    """Ops whose operands and results are permuted each alone give the same in every way."""
    arrays = case.arrays()
    op = op_of(case.type, arrays, case.attributes, case.opset, case.outputs, kinds=True)
    before = results(op, arrays, case.runtime)
    op = replace(op, output_shapes=tuple(np.shape(array) for array in before))
    modes = ModeTable().of(op).every
    assert len(modes) == case.every
    for mode in modes:
        forms = mode.attributes, mode.inputs, mode.outputs
        compare(case, op, arrays, before, Remapped(*forms, mode.entries, mode.operands, mode.type))


def compare(
    case: Case, op: Op, arrays: Sequence[Array | None], before: Sequence[Array], changed: Remapped
) -> None:
    """Run an op again, for operands in their new order, and hold it against its results."""
    count, inputs, outputs = len(op.inputs), changed.inputs or (), changed.outputs or ()
    assert len(inputs) == count and len(outputs) == len(before)
    operands = [moved(x, p) for x, p in zip(arrays, inputs, strict=True)]
    for n, picked in changed.entries.items():
        if n < count:
            operands[n] = np.asarray(operands[n])[list(picked)]
    operands = [operands[n] for n in changed.operands or range(count)]
    after = results(op_again(op, changed, operands), operands, case.runtime)
    for n, (x, y, p) in enumerate(zip(before, after, outputs, strict=True)):
        picked = changed.entries.get(count + n)
        found = y if picked is None else y[list(picked)]
        np.testing.assert_allclose(
            found, moved(x, p), rtol=1e-5, atol=1e-6, err_msg=str((inputs, outputs))
        )


def test_every_type_is_tried() -> None:
    """No rule of the registry is without a case."""
    tried = {
        (case.type, operator_of(op_of(case.type, [], opset=case.opset)).since) for case in CASES
    }
    entries = [entry for versions in OPERATORS.values() for entry in versions]
    # The guide's own types are in the registry once it has been run.
    ruled = [one for one in entries if not (one.reason or one.type.startswith("my::"))]
    known = {(entry.type, entry.since) for entry in ruled}
    assert known - tried == {(name, 1) for name in UNTRIED}


def test_minus_one_is_what_is_left() -> None:
    """So it is whatever the result's size is called, and where it is called as one before."""
    for name in ("b", None, "elsewhere"):
        op = Op("Reshape", {"shape": (-1, 0)}, ("x",), ("y",), (("b", "c"),), ((name, "c"),))
        assert remap(op, (1, 0)).attributes["shape"] in ((0, 0), (0, -1))
    op = Op("Reshape", {"shape": (-1, 0)}, ("x",), ("y",), ((None, "c"),), (("b", "c"),))
    assert remap(op, (1, 0)).attributes == {"shape": (0, -1)}


EQUATIONS = {
    "ab,bc->ac": ([(2, 3), (3, 4)], 8),
    "...ab,...bc->...ac": ([(5, 6, 2, 3), (6, 3, 4)], 216),
    "aab->b": ([(2, 2, 3)], 6),
    "cb,ba": ([(2, 3), (3, 4)], 8),
    "a...,b->...ab": ([(2, 5, 6), (3,)], 12),
    "...a,...b": ([(2, 3), (2, 4)], 24),
    "a...->...": ([(2, 3, 4)], 2),
}
"""Equations with shapes of operands, and in how many ways their axes may come."""


@pytest.mark.parametrize("equation", EQUATIONS)
def test_each_operand_of_an_einsum_may_come_in_any_order(equation: str) -> None:
    """So may the result, where axes that dots stand for stay side by side."""
    shapes, ways = EQUATIONS[equation]
    arrays = [np.random.default_rng(0).random(shape) for shape in shapes]
    wanted = np.einsum(equation, *arrays)
    names = tuple("xyz"[: len(arrays)])
    op = Op("Einsum", {"equation": equation}, names, input_shapes=tuple(shapes))
    taken = 0
    for orders in product(*(permutations(range(x.ndim)) for x in (*arrays, wanted))):
        with suppress(RemapError):
            written = permuted_equation(op, orders)
            found = np.einsum(written, *map(np.transpose, arrays, orders))
            np.testing.assert_allclose(found, wanted.transpose(orders[-1]))
            taken += 1
    assert taken == ways
