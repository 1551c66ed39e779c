"""Shapes that follow from no node: measured, declared, or taken for 1; and nodes out of order."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

from layoutopt.base.errors import InputError
from layoutopt.onnx.protobuf import write_proto
from layoutopt.onnx.read import UnwindingModel, read_network
from tests.onnx.networks import model, node, save

OPSETS = '"" : 17, "com.microsoft" : 1'


def written(text: str, folder: Path) -> Path:
    """Write a network in ONNX's text format."""
    return save(parser.parse_model(f"<ir_version: 8, opset_import: [{OPSETS}]> {text}"), folder)


UNKNOWN = {
    "an If": (
        """g (float[2,3] x, bool c) => (float[a,b] y) { h = If(c) <
        then_branch = one () => (t) { t = Transpose<perm=[1,0]>(x) },
        else_branch = two () => (u) { u = Concat<axis=0>(x, x) } > y = Relu(h) }""",
        "If (1)",
        {(3, 2), (4, 3)},
    ),
    "a Loop": (
        """g (float[2,3] x, int64 n, bool c) => (float[a,b] y) { h, s = Loop(n, c, x) <
        body = one (int64 i, bool d, float[2,3] u) => (bool e, float[2,3] v, float[2,3] w) {
        e = Identity(d) v = Relu(u) w = Relu(u) } > y = Relu(s) }""",
        "Loop (1)",
        {(0, 2, 3), (1, 2, 3)},
    ),
    "a NonMaxSuppression": (
        """g (float[1,4,4] x, float[1,1,4] s) => (int64[a,b] y) {
        n = Constant<value = int64 {9}>() h = NonMaxSuppression(x, s, n) y = Abs(h) }""",
        "NonMaxSuppression (1)",
        {(k, 3) for k in range(5)},
    ),
    "a fused op": (
        """g (float[1,2,5,5] x, float[3,2,3,3] w) => (y) {
        h = com.microsoft.FusedConv<activation="Relu">(x, w) y = Neg(h) }""",
        "com.microsoft::FusedConv (1)",
        {(1, 3, 3, 3)},
    ),
    "a quantised op": (
        """g (uint8[2,3] x, float s, uint8 z) => (y) {
        h = com.microsoft.QLinearAdd(x, s, z, x, s, z, s, z) y = DequantizeLinear(h, s, z) }""",
        "com.microsoft::QLinearAdd (1)",
        {(2, 3)},
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_shapes_that_only_a_run_can_tell(name: str, tmp_path: Path) -> None:
    """A run tells them, and what follows from them, and a line says from where on."""
    text, origin, shapes = UNKNOWN[name]
    network = read_network(written(text, tmp_path))
    assert network.graph.tensor("y").shape in shapes
    assert any(
        line == f"shapes that are those of one run on random inputs, from these ops on: {origin}"
        for line in network.warnings()
    )


def test_weights_beside_the_network_are_read_for_the_run(tmp_path: Path) -> None:
    """They tell a size, though they are not needed for anything else."""
    nodes = [node("NonZero", "w", "h"), node("Relu", "x", "z"), node("Transpose", "h")]
    network = model(nodes, {"x": (2,)}, ["y", "z"], {"w": np.eye(40, dtype=np.float32)})
    write_proto(network, tmp_path / "net.onnx", {"w"})
    assert read_network(tmp_path / "net.onnx").graph.tensor("y").shape == (40, 2)


def without_a_run(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> UnwindingModel:
    """Read a network where onnxruntime is not installed."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    return read_network(written(text, folder))


def test_sizes_are_taken_for_one_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors of known rank become results of barriers; the line says why there was no run."""
    text = "g (float[2,3] x) => (int64[a,b] y) { h = NonZero(x) y = Transpose<perm=[1,0]>(h) }"
    network = without_a_run(text, tmp_path, monkeypatch)
    assert network.graph.tensor("h").shape == (2, 1)
    assert network.graph.tensor("y").shape == (1, 2)
    [line] = network.warnings()
    assert line.startswith("sizes that nothing tells, taken for 1 (running a network needs onnxr")
    assert line.endswith("): NonZero (1)")


def test_ops_that_sizes_of_one_do_not_fit_become_barriers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view of 1 element cannot have the 12 that its shape says."""
    text = """g (float[2,3] x) => (int64[3,4] y) { s = Constant<value = int64[2] {3,4}>()
        h = NonZero(x) y = Reshape(h, s) }"""
    network = without_a_run(text, tmp_path, monkeypatch)
    assert network.graph.tensor("y").shape == (3, 4)
    assert (
        network.warnings()[-1] == "ops that sizes of 1 do not fit, taken for barriers: Reshape (1)"
    )


def test_declared_shapes_give_way_to_those_of_nodes(tmp_path: Path) -> None:
    """Also types of weights, as converters to 16 bits leave them behind."""
    weights = {"w": np.ones(2, np.float16)}
    network = model(
        [node("Relu", "x", "h"), node("Transpose", "h"), node("Neg", "w", "z")],
        {"x": (2, 3)},
        ["y", "z"],
        weights,
    )
    for name, shape in (("h", [3, 2]), ("w", [2])):
        value = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        network.graph.value_info.append(value)
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, [7])
    network.graph.output[0].CopyFrom(value)
    found = read_network(save(network, tmp_path))
    assert found.graph.tensor("y").shape == (3, 2)
    [line] = found.warnings()
    assert line.startswith(
        "declared shapes that give way: 'h' is declared with shape [3, 2]; [2, 3]"
    )
    assert line.endswith("; and 1 more")


def test_nodes_out_of_order_are_sorted(tmp_path: Path) -> None:
    """As some converters write them; a cycle is refused."""
    network = model([node("Transpose", "h"), node("Relu", "x", "h")], {"x": (2, 3)})
    assert read_network(save(network, tmp_path)).graph.tensor("y").shape == (3, 2)
    network.graph.node.append(onnx.helper.make_node("Neg", ["a"], ["a"]))
    with pytest.raises(InputError, match="nodes there form a cycle"):
        read_network(save(network, tmp_path))
