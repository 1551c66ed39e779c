"""The specification's views, against NumPy's own operations."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from layoutopt.base.result import outer_sum, written
from layoutopt.check.affine import carried, kept, moves
from layoutopt.graphs import ops
from layoutopt.graphs.ops import UnwindingOp, count_kept
from layoutopt.graphs.ops import kept as kept_indices

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def same(op: UnwindingOp, arrays: list[NDArray[Any]], expected: NDArray[Any]) -> None:
    """Compare what is carried with what NumPy gives, and look for elements in several boxes."""
    before = [a.shape for a in arrays]
    [out] = op.infer(before)
    carriers = op.carriers(len(arrays))
    flat = [arrays[i].reshape(-1) for i in carriers]
    found = carried(op, flat, [before[i] for i in carriers], out)
    assert out == expected.shape
    assert found.shape == (prod(out),)
    assert np.array_equal(found, expected.reshape(-1))
    places = [written(move) for move in moves(op, [before[i] for i in carriers], out)]
    assert np.array_equal(np.sort(np.concatenate([*places, []])), np.arange(prod(out)))


def counted(shape: tuple[int, ...], start: int = 0) -> NDArray[Any]:
    """Return an array whose elements are all different."""
    return np.arange(start, start + prod(shape)).reshape(shape)


@given(shapes, st.data())
def test_sett_sample(shape: tuple[int, ...], data: st.DataObject) -> None:
    """It is selection of the indices that stripes keep, dimension by dimension."""
    stripe = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4))
    some = st.lists(stripe.filter(lambda s: s[0] + s[1] > 0), max_size=2).map(tuple)
    setts = tuple(data.draw(some) for _ in shape)
    x = expected = counted(shape)
    for axis, (n, stripes) in enumerate(zip(shape, setts, strict=True)):
        expected = expected.take(kept_indices(n, stripes), axis)
    same(ops.SettSample(id="v", inputs=("x",), setts=setts), [x], expected)


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


def test_long_stripes() -> None:
    """Nested stripes over a million million indices are a few runs, right at every tried place."""
    n, stripes = 10**12, ((1000, 24, 5), (7, 2, 1), (3, 1, 0))
    runs = kept(0, n, stripes)
    assert len(runs) < 30
    sizes = [(to, prod(m for m, _, _ in loops)) for _, to, loops in runs]
    assert sum(count for _, count in sizes) == count_kept(n, stripes)
    small = {int(i) for i in kept_indices(3000, stripes)}
    firsts = {start for start, _, _ in runs if start < 3000}
    assert firsts <= small
    listed = kept(0, 3000, stripes)
    walks = [
        (outer_sum([np.arange(m) * t for m, _, t in loops], to), loops, start)
        for start, to, loops in listed
    ]
    places = np.concatenate([to for to, _, _ in walks])
    indices = np.concatenate(
        [outer_sum([np.arange(m) * f for m, f, _ in loops], start) for _, loops, start in walks]
    )
    assert indices[np.argsort(places)].tolist() == sorted(small)
    assert all(a < b for a, b in pairwise(np.sort(places)))


def test_barriers_carry_nothing() -> None:
    """Asking what a barrier carries, or from where its elements come, is a mistake."""
    with pytest.raises(TypeError, match="Barrier is not a view"):
        moves(ops.Barrier(id="b", inputs=("x",), shape=(2,)), [(2,)], (2,))
    with pytest.raises(TypeError, match="Barrier is not a view"):
        carried(ops.Barrier(id="b", inputs=("x",), shape=(2,)), [np.arange(2)], [(2,)], (2,))
