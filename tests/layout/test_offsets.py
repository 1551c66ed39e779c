"""Offsets of elements in memory, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from layoutopt.layout.layout import Layout
from layoutopt.layout.offsets import indices, offset_map, offsets
from layoutopt.layout.placement import nbytes
from tests.layout.drawn import Case, cases, cells
from tests.support import refused


@given(cases())
def test_offsets_are_a_bijection_onto_the_unpadded_part(case: Case) -> None:
    """In memory written down cell by cell, elements are where offsets say, and nothing else is."""
    [layout] = case.layouts
    how = {"element_bytes": case.element_bytes, "logical": case.logical}
    memory = cells(layout, case)
    found = offset_map(layout, case.shape, **how)
    assert found.shape == case.shape
    assert found.dtype == np.int64
    where = {index: at for at, index in enumerate(memory) if index is not None}
    assert {index: int(found[index]) for index in np.ndindex(case.shape)} == where
    index, inside = indices(layout, np.arange(len(memory)), case.shape, **how)
    assert inside.tolist() == [element is not None for element in memory]
    nowhere = (-1,) * len(case.shape)
    listed = [tuple(int(along[at]) for along in index) for at in range(len(memory))]
    assert listed == [nowhere if element is None else element for element in memory]


@given(cases())
def test_offsets_of_some_elements(case: Case) -> None:
    """Index arrays of any shapes that broadcast give the same offsets as the map of all."""
    [layout] = case.layouts
    how = {"element_bytes": case.element_bytes, "logical": case.logical}
    every = offset_map(layout, case.shape, **how)
    dense = np.indices(case.shape)
    assert np.array_equal(offsets(layout, dense, case.shape, **how), every)
    open_mesh = np.ix_(*(np.arange(n)[::-1] for n in case.shape))
    turned = every[tuple(slice(None, None, -1) for _ in case.shape)]
    assert np.array_equal(offsets(layout, open_mesh, case.shape, **how), turned)
    for index in list(np.ndindex(case.shape))[:3]:
        found = offsets(layout, index, case.shape, **how)
        assert found.shape == ()
        assert found == every[index]


def test_values_by_hand() -> None:
    """TVM's index (0, 18, 6, 6) of NCHW is (0, 1, 6, 6, 2) of NCHW16c; the others are drawn."""
    layout = Layout.parse("NCHW16c")
    assert offsets(layout, (0, 18, 6, 6), (1, 32, 7, 7)) == 16 * (49 + 6 * 7 + 6) + 2
    assert offset_map("HW", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert offset_map("WH", (2, 3)).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert offset_map("HW", (3, 2), logical="WH").tolist() == [[0, 3], [1, 4], [2, 5]]
    assert offset_map("HW2h", (3, 2)).tolist() == [[0, 2], [1, 3], [4, 6]]
    assert offset_map("4cC", (6,)).tolist() == [0, 2, 4, 6, 1, 3]
    # Two floats of a row in 16 bytes.
    assert offset_map("N[a=16]C", (2, 2)).tolist() == [[0, 1], [4, 5]]
    assert offset_map("N[a=16]C", (2, 2), 8).tolist() == [[0, 1], [2, 3]]
    # Tiles (2, 4), and in them (2, 1) of XLA: neighbours along the outer axis lie side by side.
    tiled = offset_map("{1,0:T(2,4)(2,1)}", (2, 8))
    assert tiled.tolist() == [[0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]]


def test_padding_is_marked() -> None:
    """Offsets in blocks that are not full, and in gaps of alignment, hold no element."""
    index, inside = indices("N4n", [[0, 4], [5, 6]], (6,))
    assert index[0].tolist() == [[0, 4], [5, -1]]
    assert inside.tolist() == [[True, True], [True, False]]
    index, inside = indices("N[a=4]C", range(8), (2, 3), 1)
    assert inside.tolist() == [True, True, True, False, True, True, True, False]
    assert index[1].tolist() == [0, 1, 2, -1, 0, 1, 2, -1]
    index, inside = indices("", [0, 0], ())
    assert index == ()
    assert inside.tolist() == [True, True]


def test_offsets_of_huge_tensors() -> None:
    """Sums come out right where one of their terms is beyond 64 bits."""
    n = 2**60
    assert offsets("4cC", (n - 1,), (n,), 1) == n - 1
    assert offsets("4cC", [[n - 4, n - 3]], (n,), 1).tolist() == [n // 4 - 1, n // 2 - 1]
    assert offsets("N4cC", ([0], n - 1), (1, n), 1).tolist() == [n - 1]
    index, _ = indices("4cC", n // 2 - 1, (n,), 1)
    assert index[0] == n - 3
    assert nbytes("4cC", (n,), 1) == n


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: offsets("NC", (0, 3), (2, 3)), "C: 3 is out of range; there are 3, from 0"),
    (lambda: offsets("NC", (-1, 0), (2, 3)), "N: -1 is out of range; there are 2, from 0"),
    (
        lambda: offsets("NC", (0, np.uint64(2**63)), (2, 3)),
        "C: 9223372036854775808 is out of range",
    ),
    (lambda: offsets("NC", (0, 2**70), (2, 3)), "C: indices must be integers, not object"),
    (lambda: offsets("NC", (0.0, 0), (2, 3)), "N: indices must be integers, not float64"),
    (lambda: offsets("NC", (True, 0), (2, 3)), "N: indices must be integers, not bool"),
    (lambda: offsets("NC", (0,), (2, 3)), "an index has 2 entries here, got 1"),
    (lambda: offsets("NC", 0, (2, 3)), "an index has 2 arrays of integers, not 0"),
    (lambda: offsets("NC", ([[1], [1, 0]], 0), (2, 3)), "an index has 2 arrays of integers, not"),
    (lambda: offsets("NC", ([0, 1], [0, 1, 2]), (2, 3)), "shapes (2,), (3,) do not broadcast"),
    (lambda: offsets("NC", (0, 0), (2, 0)), "C: 0 is out of range; there are 0, from 0"),
    (lambda: indices("NC", 6, (2, 3)), "offset: 6 is out of range; there are 6, from 0"),
    (lambda: indices("N4n", [-1], (3,)), "offset: -1 is out of range; there are 4, from 0"),
    (lambda: offset_map("NC", (2**20, 2**30)), "the offsets of all elements of shape"),
    (lambda: offset_map("*", (2,)), "layout * leaves a dimension open"),
    (lambda: indices("NC", 0, (1,)), "shape (1,) has 1 entries for the 2 axes 'NC' of layout NC"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_is_refused(call: Callable[[], Any], reason: str) -> None:
    """Indices and offsets outside a tensor, and what is none, are refused in one line."""
    with refused(reason):
        call()
