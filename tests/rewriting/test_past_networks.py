"""Small networks that were written wrong, or not at all, each once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from onnx import checker

import layoutopt
from tests.rewriting.networks import network


class Past(NamedTuple):
    """A network, and what is left of it: transforms."""

    text: str
    transforms: int
    constants: Mapping[str, Any] = MappingProxyType({})
    more: Mapping[str, Any] = MappingProxyType({})
    asked: Mapping[str, Any] = MappingProxyType({})


ROWS = {
    "a transposed weight": Past(
        "g (float[2,3] x) => (float[2,4] y) { wt = Transpose<perm=[1,0]>(w) y = MatMul(x, wt) }",
        0,
        {"w": (4, 3)},
    ),
    "a filled tensor of a known shape": Past(
        """g (float[2,3] x) => (float[2,3] y)
        { s = Shape(x) z = ConstantOfShape(s) y = Add(x, z) }""",
        0,
    ),
    "an output that is what a caller may replace": Past(
        """g (float[2,3] x, float[2,3] w) => (float[2,3] y, float[2,3] z)
        { t = Transpose<perm=[1,0]>(w) y = Transpose<perm=[1,0]>(t) z = Add(x, w) }""",
        0,
        {"w": (2, 3)},
    ),
    "a freed output without a shape": Past(
        "g (float[2,3,4] x) => (float[] y) { a = Transpose<perm=[2,0,1]>(x) y = Softmax(a) }",
        0,
        asked={"free_io": True},
    ),
    "a freed output of unknown sizes": Past(
        "g (float[2,n,4] x) => (float[a,b,c] y) { a = Transpose<perm=[2,0,1]>(x) y = Softmax(a) }",
        0,
        asked={"free_io": True},
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_networks_of_the_past(name: str) -> None:
    """It is valid, computes the same, and has as few transforms as are possible."""
    row = ROWS[name]
    model = network(row.text, row.constants, **row.more)
    if "without a shape" in name:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model, check=True, **row.asked)
    assert result.notes == ()
    checker.check_model(result.model, full_check=True)
    assert result.after.transforms == row.transforms
    assert result.difference is not None
    assert result.difference <= 1e-5
