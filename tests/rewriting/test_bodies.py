"""Graphs inside nodes read what they capture, whatever becomes of it outside."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker

import layoutopt
from layoutopt.onnx.running import largest_difference
from tests.rewriting.networks import network


def either(
    result: str, then: str, otherwise: str = "q = Neg(u)", kind: str = "1,2,3,4", inner: str = ""
) -> str:
    """Return the text of an If whose branches give ``p`` and ``q``, inside another ``p2``."""
    p, q = f"p{inner}", f"q{inner}"
    first = f"then_branch = a{p} () => (float[{kind}] {p}) {{ {then} }}"
    second = f"else_branch = b{p} () => (float[{kind}] {q}) {{ {otherwise} }}"
    return f"{result} = If(c) <{first}, {second}>"


PAIR = "t = Transpose<perm=[0,2,3,1]>(x) u = Transpose<perm=[0,3,1,2]>(t) "
INNER = either("p", "k = Relu(u) p2 = Add(k, a)", "q2 = Neg(u)", inner="2")
LOOP = """<body = b (int64 i, bool k, float[1,2,3,4] {v}) => (bool k2, float[1,2,3,4] w)
    {{ k2 = Identity(k) w = Add({v}, u) }}>"""

CASES = {
    "if": PAIR + either("y", "p = Relu(u)"),
    "nested": PAIR + either("y", f"a = Abs(u) {INNER}"),
    "loop": PAIR
    + "n = Constant<value_int = 3>() s = Neg(x) y = Loop(n, c, s)"
    + LOOP.format(v="v"),
    "hidden": PAIR + "n = Constant<value_int = 2>() y = Loop(n, c, u)" + LOOP.format(v="x"),
    "scan": PAIR
    + """y = Scan(x) <num_scan_inputs = 1, body = b (float[2,3,4] v) => (float[2,3,4] w) {
        z = Constant<value_ints = [0]>() f = Squeeze(u, z) w = Add(v, f) }>""",
    "own transposes": PAIR
    + either(
        "y",
        "a = Transpose<perm=[0,2,3,1]>(u) r = Relu(a) p = Transpose<perm=[0,3,1,2]>(r)",
    ),
    "captured as it is": PAIR + either("y", "p = Identity(u)"),
    "pair inside": PAIR
    + either("y", "a = Transpose<perm=[1,0,2,3]>(u) p = Transpose<perm=[1,0,2,3]>(a)"),
    "another order": "t = Transpose<perm=[0,2,3,1]>(x) r = Relu(t) "
    + either("z", "p = Abs(r)", "q = Neg(t)", "1,3,4,2")
    + "y = Transpose<perm=[0,3,1,2]>(z)",
    "constant": PAIR
    + either(
        "y",
        "p = Relu(u)",
        "n = Constant<value_ints = [1,2,3,4]>() q = ConstantOfShape(n)",
    ),
    "initialiser": """t = Transpose<perm=[0,2,3,1]>(x) wt = Transpose<perm=[0,2,3,1]>(w)
        a = Add(t, wt) u = Transpose<perm=[0,3,1,2]>(a) """
    + either("y", "b = Transpose<perm=[0,3,1,2]>(wt) p = Add(u, b)"),
}


@pytest.mark.parametrize("name", CASES)
def test_bodies_read_what_they_capture(name: str) -> None:
    """The rewritten network is valid, and computes the same whichever branch is taken."""
    text = f"g (bool c, float[1,2,3,4] x) => (float[1,2,3,4] y) {{ {CASES[name]} }}"
    model = network(text, {"w": (1, 2, 3, 4)} if name == "initialiser" else None)
    result = layoutopt.convert(model)
    checker.check_model(result.model, full_check=True)
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 4)).astype(np.float32)
    for taken in (True, False):
        inputs = {"c": np.array(taken), "x": x}
        assert largest_difference(model, result.model, inputs=inputs) <= 1e-6
