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
