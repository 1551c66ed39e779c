"""Shapes of results, of ops as files may state them."""

from __future__ import annotations

from typing import Any

import pytest

from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.shapes import infer
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
