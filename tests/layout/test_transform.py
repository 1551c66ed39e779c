"""Transforms between layouts: their steps, what they do to arrays, and which are free."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from layoutopt.layout.factors import AxisFactor, items_of, order_of, steps
from layoutopt.layout.placement import Placement
from layoutopt.layout.transform import Transform, apply, restore, transform
from tests.layout.drawn import Case, cases, cells, formed, forms


def padded(array: np.ndarray, *sizes: int) -> np.ndarray:
    """Pad an array with zeros to a shape."""
    return np.pad(array, [(0, n - m) for n, m in zip(sizes, array.shape, strict=True)])


def led_back(
    layout: str, shape: tuple[int, ...], by_hand: Callable[[np.ndarray], np.ndarray]
) -> bool:
    """Return whether a physical array is what NumPy makes, and leads back."""
    x = np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    found = apply(layout, x)
    assert found.dtype == x.dtype
    assert found.flags.c_contiguous
    assert np.array_equal(restore(layout, found, shape), x)
    return np.array_equal(found, by_hand(x))


@given(cases())
def test_apply_fills_the_memory_that_is_written_down(case: Case) -> None:
    """Element by element, the memory of a random layout is what it should be, zero in padding."""
    x, [layout] = case.tensor, case.layouts
    expected = [0 if index is None else x[index] for index in cells(layout, case)]
    assert memory_of(case.place(), apply(layout, x, logical=case.logical)) == expected


def memory_of(place: Placement, array: np.ndarray) -> list[int]:
    """Return the memory that a physical array lies in, padding and gaps included."""
    return as_strided(array, (place.size,), (array.itemsize,)).tolist()


def between(case: Case, a: int = 0, b: int = 1) -> Transform:
    """Return the transform from one layout of a case to another."""
    source, target = case.layouts[a], case.layouts[b]
    return transform(source, target, case.shape, case.element_bytes, logical=case.logical)


@given(cases(2))
def test_a_transform_leads_from_one_physical_array_to_the_other(case: Case) -> None:
    """For random layouts, in values, shape, strides and memory; and its inverse leads back."""
    x = case.tensor
    before, after = (apply(layout, x, logical=case.logical) for layout in case.layouts)
    found = between(case).apply(before)
    assert np.array_equal(found, after)
    target = case.place(1)
    assert memory_of(target, found) == memory_of(target, after)
    for extent, have, want in zip(found.shape, found.strides, target.byte_strides, strict=True):
        assert have == want or extent <= 1 or found.size == 0
    assert np.array_equal(between(case).inverse.apply(after), before)


@given(cases(3))
def test_transforms_compose(case: Case) -> None:
    """From a to b and then to c is from a to c, as steps on an array and as one transform."""
    first, second, both = between(case, 0, 1), between(case, 1, 2), between(case, 0, 2)
    before = apply(case.layouts[0], case.tensor, logical=case.logical)
    assert np.array_equal(second.apply(first.apply(before)), both.apply(before))
    assert first.then(second) == both
    assert np.array_equal(first.then(first.inverse).apply(before), before)


@given(cases(2))
def test_free_transforms_are_those_that_keep_all_offsets(case: Case) -> None:
    """The rule that looks at no element agrees with the maps of all elements."""
    a, b = case.place(0), case.place(1)
    same = np.array_equal(a.offset_map(), b.offset_map())
    assert between(case).is_free == (same and a.nbytes == b.nbytes)


STEPS = (Path(__file__).parents[1] / "cases/transforms.txt").read_text()


@pytest.mark.parametrize("text", STEPS.strip().split("\n\n"))
def test_steps(text: str) -> None:
    """Steps print as a table: what is done, the dimensions afterwards, and numbers."""
    source, _, target, _, shape = text.partition(":")[0].split(" ", 4)
    assert str(transform(source, target.strip(","), ast.literal_eval(shape))) == text


SHAPES = st.lists(st.sampled_from((1, 1, 2, 3, 4, 6)), max_size=3).map(tuple)


@given(st.data(), SHAPES)
def test_steps_lead_from_any_form_to_any_other(data: st.DataObject, shape: tuple[int, ...]) -> None:
    """Elements are where enumeration puts them, in between as well, and none is moved twice.

    Only where cuts of an axis cross do two permutations lead through whole axes.
    """
    source, target = data.draw(forms(shape)), data.draw(forms(shape))
    x = 1 + np.arange(math.prod(shape)).reshape(shape)
    array, kinds = formed(x, source), list[str]()
    for step in steps(source, target, shape):
        before, array = array, step.apply(array)
        assert array.shape != before.shape or step.kind == "permute"
        np.testing.assert_array_equal(array, formed(x, step.form))
        kinds.append(step.kind)
    np.testing.assert_array_equal(array, formed(x, target))
    factors = [f for f in items_of((*source, *target)) if isinstance(f, AxisFactor)]
    crossing = any(
        low.stride < high.stride and high.stride % low.stride and low.axis == high.axis
        for low, high in product(factors, factors)
    )
    assert kinds.count("permute") <= 1 + crossing
    assert order_of(source, shape) != order_of(target, shape) or kinds in ([], ["view"])
