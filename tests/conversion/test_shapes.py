"""Shapes of results, of ops as files may state them."""

from __future__ import annotations

from typing import Any

import pytest

from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.shapes import infer, settled
from tests.support import refused


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({"strides": (1,)}, "strides must be 2 integers of 1 or more, got [1]"),
        ({"strides": (0, 1)}, "strides must be 2 integers of 1 or more, got [0, 1]"),
        ({"dilations": (1, 1, 1)}, "dilations must be 2 integers of 1 or more"),
        ({"pads": (1, 1)}, "pads must be 4 integers, got [1, 1]"),
    ],
)
def test_windows_of_other_ranks(attributes: dict[str, Any], told: str) -> None:
    """A window of an image has two strides of 1 or more, and four pads."""
    pool = Op("MaxPool", {"kernel_shape": (2, 2), **attributes}, ("x",), ("y",), ((1, 3, 8, 8),))
    with refused("MaxPool", told):
        infer(pool)


def test_pads_may_be_negative() -> None:
    """They crop: of 8 rows, 1 at either end are left out, and windows of 2 fit 5 times."""
    attributes = {"kernel_shape": (2, 2), "pads": (-1, 0, -1, 0)}
    pool = Op("MaxPool", attributes, ("x",), ("y",), ((1, 3, 8, 8),))
    assert list(infer(pool)) == [(1, 3, 5, 7)]


def test_no_more_is_known_of_a_transpose_than_of_what_it_turns() -> None:
    """Else one tensor would have two sizes, and transforms of it two costs."""
    op = Op("Transpose", {"perm": (1, 0)}, ("x",), ("y",), (("N", 4),))
    assert settled(op, [(4, 1)]) == ((4, "N"),)
    with refused("Transpose", "(5, 1)"):
        settled(op, [(5, 1)])
