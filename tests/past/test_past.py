"""Small networks that were written wrong, or not at all, each once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker
from onnx.reference import ReferenceEvaluator

import layoutopt
from layoutopt.onnx.names import NetworkNames, recapture
from layoutopt.onnx.peers import transposes
from layoutopt.onnx.protobuf import bodies
from layoutopt.onnx.running import run
from tests.rewriting.networks import cases, network

ROWS = cases("past")


@pytest.mark.parametrize("name", ROWS)
def test_networks_of_the_past(name: str) -> None:
    """It is valid, computes the same, and has as few transforms as are possible."""
    row = ROWS[name]
    model = network(row["text"], row.get("constants"), **row.get("given", {}))
    if "without a shape" in name:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    result = layoutopt.convert(model, check=True, **row.get("asked", {}))
    assert not result.partial
    assert result.notes == ((row["note"],) if "note" in row else ())
    checker.check_model(result.model, full_check=True)
    assert result.after.transforms == row["transforms"]
    assert transposes(result.model) <= row["transforms"]
    assert result.difference is not None
    assert result.difference <= 1e-5


def test_what_is_empty_at_run_time_is_reshaped_too() -> None:
    """No size is left open beside one that is 0 only then."""
    model = network(
        "g (float[n,1,m] x) => (float[n,m,1] y) { a = Relu(x) y = Transpose<perm=[0,2,1]>(a) }"
    )
    result = layoutopt.convert(model)
    assert result.after.transforms == 0
    assert run(result.model, {"x": np.zeros((0, 1, 3), np.float32)})["y"].shape == (0, 3, 1)


def test_the_number_of_sizes_is_told_where_a_rank_becomes_known() -> None:
    """ONNX would take them for none."""
    model = network(
        """g (float[n,4] x, int64[m] k) => (float[3,4] t, float[a,b] y) {
        r = Loop(three, "", x) <body = b (int64 i, bool c, float[3,4] v) =>
            (bool d, float[3,4] w) { d = Identity(c) w = Relu(v) }>
        t = Transpose<perm=[0,1]>(r) y = Resize(r, "", "", k) }""",
        {"three": np.array(3)},
    )
    result = layoutopt.convert(model)
    assert (result.notes, result.after.transforms) == ((), 0)
    checker.check_model(result.model, full_check=True)


def test_four_bits_are_transposed_as_no_runtime_reshapes_them() -> None:
    """Where only an axis of size 1 moves, too."""
    model = network(
        """g (bool c, float[2,1,4] x) => (float[1,2,4] y) {
        q = QuantizeLinear<output_dtype=22>(x, s) t = Transpose<perm=[1,0,2]>(q)
        y = If(c) <then_branch = a () => (float[1,2,4] u) { u = DequantizeLinear(t, s) },
        else_branch = b () => (float[1,2,4] v) {
        d = DequantizeLinear(t, s) v = Relu(d) } > }""",
        {"s": np.float32(0.5)},
        opset=21,
        ir=10,
    )
    result = layoutopt.convert(model, check=True)
    assert (result.difference, result.notes, result.after.transforms) == (0, (), 0)


def test_floats_of_eight_bits_are_transposed_as_no_runtime_squeezes_them() -> None:
    """Where two sizes are open, no Reshape moves the axis of size 1."""
    model = network(
        """g (float[n,4,1,4,m] x) => (float[m,4,1,4,n] y)
        { a = Cast<to=17>(x) b = Transpose(a) y = Cast<to=1>(b) }""",
        opset=21,
        ir=10,
    )
    result = layoutopt.convert(model, layout="default=NHWC", free_io=True, check=True)
    assert (result.difference, result.notes, result.after.transforms) == (0, (), 0)
    assert transposes(result.model) == 1


def test_names_that_a_body_gives_to_something_of_its_own_are_not_mixed_up() -> None:
    """What is read there by another name is still what it was: -x less relu(x)."""
    model = network(
        """g (bool c, float[2,3] x) => (float[2,3] y) {
        t = Relu(x) h = Relu(x)
        y = If(c) <then_branch = a () => (float[2,3] u) { t = Neg(x) u = Sub(t, h) },
        else_branch = b () => (float[2,3] v) { v = Abs(t) } > }"""
    )
    new = layoutopt.convert(model).model
    inputs = {"c": np.array(True), "x": np.array([[1, 2, 3], [-1, -2, 0]], np.float32)}
    [found] = ReferenceEvaluator(new).run(None, inputs)
    assert found.tolist() == [[-2, -4, -6], [1, 2, 0]]
    assert run(new, inputs)["y"].tolist() == found.tolist()


def test_a_body_reads_what_it_captures_by_a_name_that_it_has_itself() -> None:
    """Its own tensor gets another name; no node has to copy what is captured, of whatever type."""
    model = network(
        """g (bool c, float[2,3] x) => (float[2,3] y) {
        y = If(c) <then_branch = a () => (float[2,3] u) { t = Neg(x) u = Sub(t, h) },
        else_branch = b () => (float[2,3] v) { v = Abs(h) } > }"""
    )
    node = model.graph.node[0]
    recapture(node, {"h": "t", "x": "x"}, NetworkNames(model))
    one, other = bodies(node)
    if one.output[0].name != "u":
        one, other = other, one
    assert [list(x.input) for x in one.node] == [["x"], ["t_own", "t"]]
    assert list(other.node[0].input) == ["t"]


def test_declared_sizes_of_minus_1_are_open() -> None:
    """Some exporters write them; ONNX's inference ends the process at a slice of them."""
    model = network(
        """g (float[n,3,m] x) => (float[a,3,b] y) {
        t = Transpose<perm=[2,1,0]>(x) s = Slice(t, zero, one) y = Transpose<perm=[2,1,0]>(s) }""",
        {"zero": np.array([0]), "one": np.array([1])},
    )
    for value in (model.graph.input[0], model.graph.output[0]):
        for axis in (0, 2):
            value.type.tensor_type.shape.dim[axis].dim_value = -1
    result = layoutopt.convert(model)
    assert (result.after.transforms, result.notes) == (0, ())
    assert run(result.model, {"x": np.zeros((2, 3, 4), np.float32)})["y"].shape == (2, 3, 1)
