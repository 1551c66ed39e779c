"""Ops with their axes in another order give the same results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layoutopt.conversion.modes import ModeTable
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import RemapError, Remapped
from layoutopt.conversion.rules.registry import OPERATORS, operator_of, remap
from tests.operators.onnx_ops import op_of, results
from tests.operators.remap_cases import CASES, Case

Array = NDArray[Any]

UNTRIED = {
    "MaxUnpool": "no permutation is taken, and it needs the indices of a MaxPool",
}
"""Types without a case."""


def moved(array: Array | None, permutation: tuple[int, ...] | None) -> Array | None:
    """Return an operand in another order, with axes of 1 in front as in broadcasting.

    In place of these there may be -1 in the order.
    """
    if array is None or permutation is None:
        return array
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
    case: Case,
    op: Op,
    arrays: Sequence[Array | None],
    before: Sequence[Array],
    changed: Remapped,
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
    known = {(entry.type, entry.since) for entry in entries if not entry.type.startswith("my::")}
    assert known - tried == {(name, 1) for name in UNTRIED}
