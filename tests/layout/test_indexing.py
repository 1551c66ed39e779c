"""Logical and physical indices, and both in two layouts: the values of TVM's bijective layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from layoutopt.layout.layout import Block, Dim, Layout
from layoutopt.layout.offsets import (
    convert_index,
    convert_shape,
    logical_index,
    offset_map,
    physical_index,
)
from layoutopt.layout.placement import padded_shape, physical_shape, strides
from layoutopt.layout.transform import apply
from tests.layout.drawn import Case, cases
from tests.support import refused

CONVERTED_SHAPES = [
    ("NCHW", "NCHW16c", (1, 32, 7, 7), (1, 2, 7, 7, 16)),
    ("OIHW", "OIHW[4o4i]", (64, 28, 7, 7), (16, 7, 7, 7, 16)),
    ("NHWC", "NCHW", (1, 7, 9, 32), (1, 32, 7, 9)),
    ("NCHW16c", "NHWC8c", (1, 2, 7, 7, 16), (1, 7, 7, 4, 8)),
]
"""The first two are those of TVM's tests, which go both ways."""


@pytest.mark.parametrize(("source", "target", "shape", "other"), CONVERTED_SHAPES)
def test_converted_shapes(
    source: str, target: str, shape: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """The physical shape of one layout tells that of another, in both directions."""
    assert convert_shape(Layout.parse(source), Layout.parse(target), shape) == other
    assert convert_shape(Layout.parse(target), Layout.parse(source), other) == shape


CONVERTED_INDICES = [
    ("NCHW", "NCHW16c", (1, 32, 7, 7), (0, 18, 6, 6), (0, 1, 6, 6, 2)),
    # TVM converts the next two for a tensor of (64, 28, 7, 7), which has no such elements, as it
    # checks no index; here the tensor is as large as they need.
    ("OIHW", "OIHW[4o4i]", (64, 32, 8, 8), (63, 29, 7, 7), (15, 7, 7, 7, 13)),
    ("OIHW[4o4i]", "OIHW", (64, 32, 8, 8), (4, 7, 4, 4, 13), (19, 29, 4, 4)),
    ("OIHW[4o4i]", "OIHW", (64, 48, 7, 7), (2, 11, 4, 4, 0), (8, 44, 4, 4)),
]


@pytest.mark.parametrize(("source", "target", "shape", "index", "other"), CONVERTED_INDICES)
def test_converted_indices(
    source: str,
    target: str,
    shape: tuple[int, ...],
    index: tuple[int, ...],
    other: tuple[int, ...],
) -> None:
    """The place of an element in one layout tells that in another, in both directions."""
    found = convert_index(Layout.parse(source), Layout.parse(target), index, shape)
    assert tuple(map(int, found)) == other
    back = convert_index(Layout.parse(target), Layout.parse(source), other, shape)
    assert tuple(map(int, back)) == index


def test_indices_convert_as_arrays() -> None:
    """Whole arrays of indices convert at once, and broadcast."""
    found = convert_index("NC", "NC4c", ([[0], [1]], [3, 4]), (2, 6))
    assert [along.tolist() for along in np.broadcast_arrays(*found)] == [
        [[0, 0], [1, 1]],
        [[0, 1], [0, 1]],
        [[3, 0], [3, 0]],
    ]


@given(cases(2))
def test_indices_lead_to_the_same_values(case: Case) -> None:
    """At converted indices, the physical arrays of one tensor in two layouts have one value."""
    source, target = case.layouts
    how = {"logical": case.logical}
    tensor = np.arange(1, 1 + np.prod(case.shape, dtype=int)).reshape(case.shape)
    index = physical_index(source, np.indices(case.shape), case.shape, **how)
    assert np.array_equal(apply(source, tensor, **how)[index], tensor)
    again = logical_index(source, index, case.shape, **how)
    assert all(np.array_equal(a, b) for a, b in zip(again, np.indices(case.shape), strict=True))
    other = convert_index(source, target, index, case.shape, **how)
    assert np.array_equal(apply(target, tensor, **how)[other], tensor)
    steps = strides(target, case.shape, 8, **how)
    at = sum(np.multiply(a, b) for a, b in zip(other, steps, strict=True))
    assert np.array_equal(np.broadcast_to(at, case.shape), offset_map(target, case.shape, 8, **how))


@given(cases(2, least=1))
def test_shapes_convert_for_whole_blocks(case: Case) -> None:
    """The physical shape of a tensor that fills its blocks leads to that of any other layout."""
    source, target = case.layouts
    order = source.logical
    sizes = dict(zip(case.logical, case.shape, strict=True))
    whole = padded_shape(source, [sizes[axis] for axis in order])
    if any(sum(block.size is None for block in dim.blocks) > 1 for dim in source.dims):
        return  # several axes packed with their outermost blocks: no shape tells their sizes
    found = convert_shape(source, target, physical_shape(source, whole))
    assert found == physical_shape(target, whole, logical=order)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: physical_index("NC", (0, 3), (2, 3)), "C: 3 is out of range; there are 3, from 0"),
    (
        lambda: logical_index("NC4c", (0, 0, 4), (2, 3)),
        "dimension 2: 4 is out of range; there are 4",
    ),
    (
        lambda: logical_index("NC4c", (0, 0, [1, 3]), (2, 3)),
        "index 3 along axis C of size 3 is padding of layout NC4c",
    ),
    (lambda: convert_index("NC4c", "NC", (0, 0, 3), (2, 3)), "is padding of layout NC4c"),
    (lambda: convert_index("NC", "NCH", (0, 0), (2, 3)), "logical order 'NC' must name each axis"),
    (lambda: convert_index("NC", "NC", 3, (2, 3)), "an index has 2 arrays of integers, not 3"),
    (lambda: convert_shape("NC", "NH", (2, 3)), "logical order 'NC' must name each axis of layout"),
    (lambda: convert_shape("NC4c", "NC", (2, 3)), "has 2 entries for the 3 dimensions of layout"),
    (lambda: convert_shape("NC4c", "NC", (2, 3, 5)), "(2, 3, 5) does not tell one size of each"),
    (lambda: convert_shape("[4n4c]NC", "NC", (15, 1, 1)), "(15, 1, 1) does not tell one size"),
    (
        lambda: convert_shape(Layout((Dim((Block("N"), Block("C"))),)), "NC", (6,)),
        "physical shape (6,) does not tell one size of each axis of layout [NC]",
    ),
    (lambda: convert_shape("*", "NC", (6,)), "layout * leaves a dimension open"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_is_refused(call: Callable[[], Any], reason: str) -> None:
    """Padding is no element, and layouts of other axes have nothing in common."""
    with refused(reason):
        call()
