"""Physical shapes, strides and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from layoutopt.layout.layout import Block, Dim, Layout
from layoutopt.layout.offsets import offset_map
from layoutopt.layout.placement import (
    byte_strides,
    nbytes,
    padded_shape,
    padding,
    physical_shape,
    strides,
    zeros,
)
from tests.layout.drawn import Case, cases, cells
from tests.support import refused

STRIDES = [
    # Glow's Type.h: dims [3, 5, 10], alignments [3, 32, 1], elements of a byte.
    ("N[a=3]C[a=32]H", (3, 5, 10), 1, (162, 32, 1), 486),
    ("NCHW", (2, 3, 4, 5), 4, (60, 20, 5, 1), 480),
    # Rows of 3 floats take 12 bytes, 16 with alignment; 4 of these 64, and so on.
    ("NCH[a=16]W", (1, 2, 4, 3), 4, (32, 16, 4, 1), 128),
    ("N[a=64]CH[a=16]W", (3, 3, 1, 3), 4, (16, 4, 4, 1), 192),
    # 6 bytes are no whole floats: the next multiple of both is 12.
    ("NC[a=6]", (2, 2), 4, (6, 3), 48),
    ("N[a=6]C", (2, 2), 4, (3, 1), 24),
    ("N[a=6]C", (2, 4), 4, (6, 1), 48),
    ("NC[a=8]", (2, 3), 4, (6, 2), 48),
    ("N[a=8][after:x]C", (2, 3), 4, (4, 1), 32),
    ("N[a=64]C", (1, 3), 4, (16, 1), 64),
    ("", (), 8, (), 8),
    ("NCHW16c", (1, 20, 2, 2), 2, (128, 64, 32, 16, 1), 256),
    ("N[a=32]C", (0, 3), 4, (8, 1), 0),
    ("N[a=32]C", (3, 0), 4, (8, 1), 0),
]
"""Layout, shape, bytes of an element, strides in elements, bytes in all."""


@pytest.mark.parametrize(("layout", "shape", "width", "expected", "total"), STRIDES)
def test_strides_and_bytes(
    layout: str, shape: tuple[int, ...], width: int, expected: tuple[int, ...], total: int
) -> None:
    """A stride is what lies inside, rounded up to the alignment; the outermost one tells bytes."""
    given_layout = Layout.parse(layout)
    assert strides(given_layout, shape, width) == expected
    assert byte_strides(given_layout, shape, width) == tuple(width * step for step in expected)
    assert nbytes(given_layout, shape, width) == total
    assert padding(given_layout, shape, width) == total - width * int(np.prod(shape, dtype=int))


def test_padded_shapes_are_logical() -> None:
    """Rounded up to whole blocks, in the order of the tensor's shape."""
    layout = Layout.parse("OIhw4i16o4i")
    assert padded_shape(layout, (20, 40, 3, 3)) == (32, 48, 3, 3)
    assert padded_shape(layout, (3, 3, 40, 20), logical="HWIO") == (3, 3, 48, 32)


@given(cases())
def test_sizes_are_those_of_the_memory_written_down(case: Case) -> None:
    """Bytes and padding are counted in the memory of random layouts, cell by cell."""
    [layout] = case.layouts
    memory = cells(layout, case)
    how = {"logical": case.logical}
    assert nbytes(layout, case.shape, case.element_bytes, **how) == len(memory) * case.element_bytes
    gaps = memory.count(None) * case.element_bytes
    assert padding(layout, case.shape, case.element_bytes, **how) == gaps


@given(cases())
def test_zeros_have_the_layouts_strides(case: Case) -> None:
    """Setting the elements of zeros one by one fills just the memory at their offsets."""
    [layout] = case.layouts
    array = zeros(layout, case.shape, f"i{case.element_bytes}", logical=case.logical)
    array[...] = 1
    assert array.shape == physical_shape(layout, case.shape, logical=case.logical)
    memory = np.asarray(array.base)
    assert memory.nbytes == nbytes(layout, case.shape, case.element_bytes, logical=case.logical)
    at = offset_map(layout, case.shape, case.element_bytes, logical=case.logical)
    assert memory[at].all()
    assert memory.sum() == array.size


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: physical_shape("NC", (2,)),
        "shape (2,) has 1 entries for the 2 axes 'NC' of layout NC",
    ),
    (lambda: physical_shape("NC", (2, -1)), "shape[1] must be an integer of 0 or more, got -1"),
    (lambda: physical_shape("NC", (2, 1.5)), "shape[1] must be an integer of 0 or more, got 1.5"),
    (lambda: physical_shape("NC", "23"), "shape must be a list of integers, got '23'"),
    (lambda: physical_shape("N*C", (1, 1, 1)), "layout N*C leaves a dimension open (*)"),
    (lambda: physical_shape("*", (1,)), "layout * leaves a dimension open (*); name its axis"),
    (lambda: strides("__undef__", ()), "an undefined layout says nothing about where elements lie"),
    (lambda: physical_shape("NC", (1, 1), logical="NN"), "logical order 'NN' must name each axis"),
    (lambda: physical_shape("NC", (1, 1), logical="N"), "of layout NC once, as 'NC' does"),
    (lambda: physical_shape("NC", (1, 1), logical=["N", "C"]), "['N', 'C'] must name each axis"),
    (lambda: physical_shape(3, (1, 1)), "a layout must be a text, got 3"),
    (lambda: strides("NC", (2, 2), 0), "element_bytes must be an integer of 1 or more, got 0"),
    (lambda: nbytes("N", (2**63,), 1), "layout N of shape (9223372036854775808,) takes more bytes"),
    (lambda: nbytes("N", (2**62,), 2), "takes more bytes than 64 bits count"),
    (lambda: nbytes("N[a=4611686018427387904]C", (2, 1)), "takes more bytes than 64 bits count"),
    (lambda: physical_shape("NCHW16c", (0, 2**62, 2, 2)), "takes more bytes than 64 bits count"),
    (
        lambda: physical_shape(Layout((Dim((Block("C", 4),)),)), (1,)),
        "layout 4c: axis C has no outermost block",
    ),
    (
        lambda: physical_shape(Layout((Dim((Block("C"), Block("C"))),)), (1,)),
        "axis C is there twice",
    ),
    (
        lambda: physical_shape(Layout((Dim((Block("C"),), ("a=0",)),)), (1,)),
        "layout C[a=0]: an alignment must be 1 or more",
    ),
    (lambda: zeros("N", (2**50,), "f4"), "a tensor of layout N needs about"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_is_refused(call: Callable[[], Any], reason: str) -> None:
    """Whatever has no meaning is refused in one line that says why."""
    with refused(reason):
        call()
