"""Shapes that files tell, leave open, tell wrong, or that only nodes tell."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from layoutopt.base.errors import InputError
from layoutopt.onnx.protobuf import load_model, write_proto
from layoutopt.onnx.read import UnwindingModel, read_network, read_onnx
from tests.onnx.networks import graph_of, model, node, passed_on, save, types

# Shapes: symbolic dimensions, shapes that the network computes, and functions


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ({"batch": 1, "bach": 1}, "no input has an open dimension 'bach'; open ones: batch"),
        ({"batch": -1}, "dimension 'batch': size -1 is no integer of 0 to 2^62"),
        ({"batch": 1.5}, "dimension 'batch': size 1.5 is no integer of 0 to 2^62"),
    ],
)
def test_bad_sizes_are_refused(dims: dict, reason: str, tmp_path: Path) -> None:
    path = save(model([node("Relu", "x")], {"x": ("batch", 3)}), tmp_path)
    with pytest.raises(InputError) as caught:
        read_onnx(path, dims=dims)
    assert str(caught.value) == f"{path}: {reason}"


def test_computing_a_shape_leaves_no_trace(tmp_path: Path) -> None:
    """``h.reshape(h.shape[0], -1)``, as exporters write it."""
    nodes = [
        node("Softmax", "x", "h"),
        node("Shape", "h", "shape"),
        node("Gather", "shape zero", "rows", axis=0),
        node("Unsqueeze", "rows axes", "rows1"),
        node("Concat", "rows1 rest", "target", axis=0),
        node("Reshape", "h target", "y"),
    ]
    constants = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    network = model(nodes, {"x": ("batch", 3, 4)}, constants=constants)
    graph = read_onnx(save(network, tmp_path), dims={"batch": 2})
    assert types(graph) == {"x": "sink", "h": "barrier", "y": "reshape"}
    assert graph.tensor("y").shape == (2, 12)


def test_what_is_computed_from_shapes_enters_data_as_a_constant(tmp_path: Path) -> None:
    """The scale ``sqrt(x.shape[1])`` is one sink, not a chain of ops."""
    nodes = [
        node("Shape", "x", "s", start=1),
        node("Cast", "s", "f", to=TensorProto.FLOAT),
        node("Sqrt", "f", "scale"),
        node("Div", "x scale"),
    ]
    graph = graph_of(tmp_path, nodes, {"x": (2, 3)})
    assert types(graph) == {
        "x": "sink",
        "scale": "sink",
        "y": "sum_like",
        "y.1.reduce": "sum_like_reduce",
    }


def test_weights_are_not_folded(tmp_path: Path) -> None:
    """A class token expanded to the batch: the token is the sink, the expansion a view."""
    nodes = [
        node("Shape", "x", "s", end=1),
        node("Concat", "s rest", "t", axis=0),
        node("Expand", "token t", "e"),
        node("Concat", "e x", axis=1),
    ]
    constants = {"rest": np.array([1, 4]), "token": np.ones((1, 1, 4), np.float32)}
    graph = graph_of(tmp_path, nodes, {"x": (2, 3, 4)}, constants=constants)
    assert types(graph) == {"x": "sink", "token": "sink", "e": "expand", "y": "concat"}
    data = {"x": np.arange(24), "token": np.array([-1, -2, -3, -4])}
    assert passed_on(graph, data)["y"][:8].tolist() == [-1, -2, -3, -4, 0, 1, 2, 3]


def test_random_numbers_are_no_constants(tmp_path: Path) -> None:
    nodes = [
        node("Bernoulli", "p", "b"),
        node("Cast", "b", "s", to=TensorProto.INT64),
        node("Reshape", "x s"),
    ]
    constants = {"p": np.array([1.0], np.float32)}
    network = model(nodes, {"x": (1,)}, constants=constants)
    [note] = read_network(save(network, tmp_path)).notes
    assert note.endswith("of one run on random inputs, from these ops on: Reshape (1)")


def test_data_in_other_files_is_not_needed(tmp_path: Path) -> None:
    network = model([node("MatMul", "x w")], {"x": (2, 3)}, constants={"w": np.ones((3, 4))})
    weights = network.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    entry = weights.external_data.add()
    entry.key, entry.value = "location", "missing.bin"
    network.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    assert read_onnx(save(network, tmp_path)).tensor("y").shape == (2, 4)


def test_large_weights_lose_their_data_at_once(tmp_path: Path) -> None:
    """As initialisers and as constant nodes; only their shapes matter."""
    big = np.ones((40, 50), np.float32)
    nodes = [node("Constant", "", "c", value=numpy_helper.from_array(big)), node("Add", "w c")]
    graph = graph_of(tmp_path, nodes, {}, constants={"w": big})
    assert [(s.name, s.shape) for s in graph.sinks()] == [("w", (40, 50)), ("c", (40, 50))]
    assert load_model(tmp_path / "net.onnx").ByteSize() < 1000 < 8 * big.size


def test_sparse_initialisers_are_sinks(tmp_path: Path) -> None:
    network = model([node("MatMul", "x w")], {"x": (2, 3)})
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    places = numpy_helper.from_array(np.array([5]), "w_places")
    network.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3, 4]))
    assert read_onnx(save(network, tmp_path)).tensor("w").shape == (3, 4)


def test_functions_are_inlined(tmp_path: Path) -> None:
    opsets = [helper.make_opsetid("", 17)]
    inside = [node("Transpose", "a", "t"), node("Relu", "t", "r")]
    function = helper.make_function("my", "Flip", ["a"], ["r"], inside, opsets)
    nodes = [helper.make_node("Flip", ["x"], ["y"], domain="my")]
    graph = graph_of(tmp_path, nodes, {"x": (2, 3)}, functions=[function])
    assert graph.tensor("y").shape == (3, 2)
    assert passed_on(graph, {"x": np.arange(6)})["y"].tolist() == [0, 3, 1, 4, 2, 5]


def test_constant_nodes_of_every_kind_carry_structure(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.array([1], np.int64))
    nodes = [
        node("Constant", "", "s", value_ints=[0]),
        node("Constant", "", "e", value_ints=[2]),
        node("Constant", "", "a", value=tensor),
        node("Slice", "x s e a", "h"),
        node("Constant", "", "k", value_int=1),
        node("Constant", "", "f", value_float=1.0),
        node("Constant", "", "g", value_floats=[1.0, 2.0]),
        node("Resize", "h - g", "r", mode="nearest"),
        node("Trilu", "r k", "u"),
        node("Clip", "u f"),
    ]
    graph = graph_of(tmp_path, nodes, {"x": (4, 3)})
    assert [sink.name for sink in graph.sinks()] == ["x"]
    assert graph.tensor("y").shape == (4, 4)


def test_of_a_split_shape_only_one_part_may_be_named(tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Split", "s", "- last", axis=0),
        node("ReduceProd", "last", "n"),
        node("Reshape", "p n"),
    ]
    graph = graph_of(tmp_path, nodes, {"x": (2, 3), "p": (3, 1)})
    assert graph.tensor("y").shape == (3,)
    assert [sink.name for sink in graph.sinks()] == ["p"]


def test_optional_parameters_may_be_left_out(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("LayerNormalization", "x s -")], {"x": (2, 3), "s": (3,)})
    assert graph.tensor("y").shape == (2, 3)


# Shapes that follow from no node: measured, declared, or taken for 1; and nodes out of order


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


OWN_OPS = {
    """g (float[1,2,5,5] x, float[3,2,3,3] w) => (y) {
    h = com.microsoft.FusedConv<activation="Relu">(x, w) y = Neg(h) }""": (1, 3, 3, 3),
    """g (uint8[2,3] x, float s, uint8 z) => (y) {
    h = com.microsoft.QLinearAdd(x, s, z, x, s, z, s, z) y = DequantizeLinear(h, s, z) }""": (2, 3),
}


@pytest.mark.parametrize(("text", "shape"), OWN_OPS.items())
def test_shapes_of_the_runtime_s_own_ops(text: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    network = read_network(written(text, tmp_path))
    assert network.graph.tensor("y").shape == shape and not network.notes


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


def test_an_open_dimension_of_an_input_that_is_an_output(tmp_path: Path) -> None:
    network = model([node("Relu", "z")], {"z": (2,), "x": ("n",)}, ["y", "x"])
    with pytest.raises(InputError, match="give --dim n=SIZE"):
        read_onnx(save(network, tmp_path))
    graph = read_onnx(save(network, tmp_path), dims={"n": 3})
    assert [sink.name for sink in graph.sinks()] == ["z", "x"]
