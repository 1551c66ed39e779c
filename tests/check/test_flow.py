"""The specification's index formulas against NumPy's own operations."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from layoutopt.base.result import outer_sum
from layoutopt.check.flow import carried, strides
from layoutopt.graphs import ops
from layoutopt.graphs.ops import UnwindingOp

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def same(op: UnwindingOp, arrays: list[NDArray[Any]], expected: NDArray[Any]) -> None:
    """Compare what the formula carries with what NumPy gives, in shape and in content."""
    before = [a.shape for a in arrays]
    [out] = op.infer(before)
    carriers = op.carriers(len(arrays))
    flat = [arrays[i].reshape(-1) for i in carriers]
    found = carried(op, flat, [before[i] for i in carriers], out)
    assert out == expected.shape
    assert found.shape == (prod(out),)
    assert np.array_equal(found, expected.reshape(-1))


def counted(shape: tuple[int, ...], start: int = 0) -> NDArray[Any]:
    """Return an array whose elements are all different."""
    return np.arange(start, start + prod(shape)).reshape(shape)


@given(shapes, st.data())
def test_dim_shuffle(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is ``numpy.transpose``."""
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    x = counted(shape)
    same(ops.DimShuffle(id="v", inputs=("x",), permutation=axes), [x], np.transpose(x, axes))


@given(shapes, st.data())
def test_reverse(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is ``numpy.flip``."""
    axes = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))
    x = counted(shape)
    same(ops.Reverse(id="v", inputs=("x",), dims=axes), [x], np.flip(x, axes))


@given(shapes, st.data())
def test_slice(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is slicing with two bounds in each dimension."""
    bounds = [sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2))) for n in shape]
    lower, upper = tuple(a for a, _ in bounds), tuple(b for _, b in bounds)
    x = counted(shape)
    expected = x[(*(slice(a, b) for a, b in bounds), ...)]
    same(ops.Slice(id="v", inputs=("x",), lower=lower, upper=upper), [x], expected)


@given(shapes, st.data())
def test_sub_sample(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is slicing with a step, from index 0."""
    steps = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    x = counted(shape)
    expected = x[(*(slice(0, None, s) for s in steps), ...)]
    same(ops.SubSample(id="v", inputs=("x",), strides=steps), [x], expected)


@given(shapes, st.data())
def test_sett_sample(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is selection by masks, repeated inside every on-run for inner stripes."""
    stripe = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4))
    some = st.lists(stripe.filter(lambda s: s[0] + s[1] > 0), max_size=2).map(tuple)
    setts = tuple(data.draw(some) for _ in shape)
    x = expected = counted(shape)
    for axis, (n, stripes) in enumerate(zip(shape, setts, strict=True)):
        inner, mask = np.arange(n), np.ones(n, bool)
        for on, off, phase in stripes:
            inner = (inner - phase) % (on + off)
            mask &= inner < on
        expected = np.compress(mask, expected, axis)
    same(ops.SettSample(id="v", inputs=("x",), setts=setts), [x], expected)


@given(shapes, st.data())
def test_expand(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is ``numpy.broadcast_to``."""
    lead = data.draw(st.lists(st.integers(0, 3), max_size=2))
    wide = [data.draw(st.integers(0, 3)) if n == 1 else n for n in shape]
    x, out = counted(shape), (*lead, *wide)
    same(ops.Expand(id="v", inputs=("x",), shape=out), [x], np.broadcast_to(x, out))


@given(shapes.filter(len), st.data())
def test_concat(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is ``numpy.concatenate``."""
    axis = data.draw(st.integers(0, len(shape) - 1))
    widths = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    arrays = []
    for k, width in enumerate(widths):
        part = list(shape)
        part[axis] = width
        arrays.append(counted(tuple(part), 1000 * k))
    names = tuple("abcd"[: len(arrays)])
    same(ops.Concat(id="v", inputs=names, axis=axis), arrays, np.concatenate(arrays, axis))


@given(shapes)
def test_position_keepers(shape: tuple[int, ...]) -> None:
    """Identity, flatten, squeeze and reshape keep row-major positions."""
    x = counted(shape)
    same(ops.Identity(id="v", inputs=("x",)), [x], x)
    same(ops.Flatten(id="v", inputs=("x",)), [x], x.flatten())
    same(ops.Squeeze(id="v", inputs=("x",)), [x], np.squeeze(x))
    turned = shape[::-1]
    same(ops.Reshape(id="v", inputs=("x",), shape=turned), [x], x.reshape(turned))


def test_sum_like() -> None:
    """The first listed unwindable input is carried, wherever it stands."""
    x, y, z = counted((2, 3)), counted((3,), 100), counted((2, 3), 200)
    for chosen, expected in [((0,), x), ((2,), z), ((2, 0), z), ((0, 2), x)]:
        op = ops.SumLike(id="v", inputs=("x", "y", "z"), unwindable_inputs=chosen)
        same(op, [x, y, z], expected)


def test_specification_and_lowering_agree() -> None:
    """``carried`` and each op's own ``view`` say the same, over small shapes of rank 2 and 3."""
    for shape in product([1, 2, 3], repeat=3):
        x = counted(shape)
        for op in (
            ops.DimShuffle(id="v", inputs=("x",), permutation=(2, 0, 1)),
            ops.Reverse(id="v", inputs=("x",), dims=(0, 2)),
            ops.Expand(id="v", inputs=("x",), shape=(2, *(n if n > 1 else 2 for n in shape))),
            ops.Concat(id="v", inputs=("x", "x"), axis=1),
        ):
            arrays = [x] * len(op.inputs)
            same(op, arrays, np.asarray(op.view(arrays)))


def test_barriers_carry_nothing() -> None:
    """Asking what a barrier carries is a mistake."""
    with pytest.raises(TypeError, match="Barrier is no view"):
        carried(ops.Barrier(id="b", inputs=("x",), shape=(2,)), [np.arange(2)], [(2,)], (2,))


def test_strides_and_sums() -> None:
    """Row-major strides, and flat positions as sums over axes, by hand."""
    assert strides((2, 3, 4)) == [12, 4, 1]
    assert strides(()) == []
    assert strides((5,)) == [1]
    assert outer_sum([np.array([0, 10]), np.array([1, 2, 3])], 100).tolist() == [
        *(101, 102, 103),
        *(111, 112, 113),
    ]
    assert outer_sum([], 7).tolist() == [7]
    assert outer_sum([np.arange(0), np.arange(3)]).tolist() == []
