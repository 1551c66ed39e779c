"""Small networks that were written wrong, or not at all, each once."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from onnx import checker

import layoutopt
from layoutopt.rewriting.running import largest_difference
from tests.rewriting.networks import network


class Past(NamedTuple):
    """A network, and what is left of it: transforms."""

    text: str
    constants: dict[str, Any]
    transforms: int
    more: dict[str, Any]


def past(text: str, transforms: int, constants: dict[str, Any] | None = None, **more: Any) -> Past:
    """Return a network by its text."""
    return Past(text, constants or {}, transforms, more)


ROWS = {
    "a transposed weight": past(
        "g (float[2,3] x) => (float[2,4] y) { wt = Transpose<perm=[1,0]>(w) y = MatMul(x, wt) }",
        0,
        {"w": (4, 3)},
    ),
    "a filled tensor of a known shape": past(
        """g (float[2,3] x) => (float[2,3] y)
        { s = Shape(x) z = ConstantOfShape(s) y = Add(x, z) }""",
        0,
    ),
    "an output that is what a caller may replace": past(
        """g (float[2,3] x, float[2,3] w) => (float[2,3] y, float[2,3] z)
        { t = Transpose<perm=[1,0]>(w) y = Transpose<perm=[1,0]>(t) z = Add(x, w) }""",
        0,
        {"w": (2, 3)},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_networks_of_the_past(name: str) -> None:
    """It is valid, computes the same, and has as few transforms as are possible."""
    row = ROWS[name]
    model = network(row.text, row.constants, **row.more)
    result = layoutopt.convert(model)
    checker.check_model(result.model, full_check=True)
    assert result.after.transforms == row.transforms
    assert largest_difference(model, result.model) <= 1e-5
