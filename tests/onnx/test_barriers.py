"""Barriers, their parameters, and tensors that are made from nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from layoutopt.onnx.read import read_network, read_onnx
from tests.onnx.networks import graph_of, model, node, pairs, save, types


def test_batch_normalisation_ties_each_parameter_to_the_data(tmp_path: Path) -> None:
    """A reduce of the output would wait for the parameter itself; one of the data does not."""
    inputs = {"x": (2, 3, 4, 4)} | dict.fromkeys("sbmv", (3,))
    graph = graph_of(tmp_path, [node("BatchNormalization", "x s b m v")], inputs)
    assert types(graph)["y"] == "barrier"
    assert pairs(graph) == [
        (f"y.parameter{i}.reduce", f"y.parameter{i}.aligned", 20) for i in range(1, 5)
    ]
    assert graph.tensor("y.parameter1.aligned").shape == (3, 1, 1)
    reduce = graph.producers[graph.tensor("y.parameter1.reduce").index]
    assert graph.op_inputs[reduce] == (graph.tensor("x").index,)


def test_channels_that_come_last_need_no_alignment(tmp_path: Path) -> None:
    inputs = {"x": (2, 3)} | dict.fromkeys("sbmv", (3,))
    graph = graph_of(tmp_path, [node("BatchNormalization", "x s b m v")], inputs)
    assert pairs(graph)[0] == ("y.parameter1.reduce", "s", 20)


def test_layer_normalisation_parameters_broadcast_to_the_last_axes(tmp_path: Path) -> None:
    """The second axis has the parameters' size, too, and must not be taken for it."""
    inputs = {"x": (2, 4, 4), "s": (4,), "b": (4,)}
    graph = graph_of(tmp_path, [node("LayerNormalization", "x s b", axis=-1)], inputs)
    assert pairs(graph) == [("y.parameter1.reduce", "s", 20), ("y.parameter2.reduce", "b", 20)]


@pytest.mark.parametrize(
    ("nodes", "constants", "shape"),
    [
        ([node("MaxPool", "x", kernel_shape=[2, 2])], {}, (1, 4, 3, 3)),
        ([node("GlobalAveragePool", "x")], {}, (1, 4, 1, 1)),
        ([node("LRN", "x", size=3)], {}, (1, 4, 4, 4)),
        ([node("Softmax", "x", axis=1)], {}, (1, 4, 4, 4)),
        ([node("ReduceMean", "x", axes=[2, 3], keepdims=0)], {}, (1, 4)),
        ([node("ReduceSum", "x a", keepdims=0)], {"a": np.array([-1])}, (1, 4, 4)),
        ([node("Pad", "x p")], {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}, (1, 4, 6, 6)),
        ([node("Resize", "x - - s", mode="nearest")], {"s": np.array([1, 4, 8, 8])},
         (1, 4, 8, 8)),
        ([node("Upsample", "x s", mode="nearest")],
         {"s": np.array([1, 1, 2, 2], np.float32)}, (1, 4, 8, 8)),
        ([node("TopK", "x k", "y i", axis=1)], {"k": np.array([2])}, (1, 2, 4, 4)),
    ],
    ids=lambda v: v[0].op_type if isinstance(v, list) else "",
)  # fmt: skip
def test_others_are_barriers_of_their_data_alone(
    nodes: list, constants: dict, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Sizes, axes and paddings are no tensors."""
    opset = 9 if nodes[0].op_type == "Upsample" else 17 if "axes" in str(nodes) else 13
    graph = graph_of(tmp_path, nodes, {"x": (1, 4, 4, 4)}, constants=constants, opset=opset)
    assert types(graph) == {"x": "sink", "y": "barrier"}
    assert graph.tensor("y").shape == shape


def test_gathered_indices_are_a_tensor(tmp_path: Path) -> None:
    constants = {"i": np.array([[0, 2]])}
    graph = graph_of(tmp_path, [node("Gather", "x i")], {"x": (3, 5)}, constants=constants)
    assert types(graph) == {"x": "sink", "i": "sink", "y": "barrier"}
    assert graph.tensor("y").shape == (1, 2, 5)


def test_each_output_that_is_read_keeps_its_name(tmp_path: Path) -> None:
    """Both wait for the same operands, so they become known together."""
    constants = {"k": np.array([2])}
    nodes = [node("TopK", "x k", "values places")]
    outputs = ["values", "places"]
    graph = graph_of(tmp_path, nodes, {"x": (5,)}, constants=constants, outputs=outputs)
    assert [t.name for t in graph.barriers()] == outputs
    assert {graph.op_inputs[graph.producers[t.index]] for t in graph.barriers()} == {(0,)}


def test_constants_are_sinks_with_weak_linear_sources(tmp_path: Path) -> None:
    """Only what carries a shape is none."""
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.5])
    nodes = [
        node("Constant", "", "c", value_floats=[1.0, 2.0]),
        node("ConstantOfShape", "s", "f", value=value),
        node("Sum", "x c f w"),
    ]
    constants = {"s": np.array([3, 2]), "w": np.zeros((3, 2), np.float32)}
    graph = graph_of(tmp_path, nodes, {"x": (3, 2)}, constants=constants)
    assert [sink.name for sink in graph.sinks()] == ["x", "w", "c", "f"]
    for sink in graph.sinks():
        linear = [(p.name, int(v)) for p, v in graph.valued_partners(sink) if v == 1]
        assert linear == [(f"{sink.name}.linear", 1)]
        assert graph.tensor(f"{sink.name}.linear").shape == sink.shape


def test_what_no_output_needs_is_left_out(tmp_path: Path) -> None:
    constants = {"unused": np.zeros(3, np.float32)}
    nodes = [node("Relu", "x"), node("Relu", "z", "dead")]
    graph = graph_of(tmp_path, nodes, {"x": (2,), "z": (2,)}, constants=constants)
    assert types(graph) == {"x": "sink", "y": "sum_like"}


def body(name: str, reads: str) -> object:
    out = helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
    return helper.make_graph([node("Relu", reads, name)], name, [], [out])


def test_a_branch_is_a_barrier_of_what_its_bodies_read(tmp_path: Path) -> None:
    constants = {"c": np.array(True)}
    branch = node("If", "c", then_branch=body("t", "a"), else_branch=body("e", "b"))
    path = save(model([branch], {"a": (2,), "b": (2,)}, constants=constants), tmp_path)
    network = read_network(path)
    assert types(network.graph) == {"a": "sink", "b": "sink", "c": "sink", "y": "barrier"}
    barrier = network.graph.producers[network.graph.tensor("y").index]
    names = [network.graph.tensor_name(t) for t in network.graph.op_inputs[barrier]]
    assert names == ["c", "a", "b"]
    assert network.unread_bodies == {"If": 1}
    assert network.warnings() == ("graphs inside ops, which became barriers, are not read: If (1)",)


def test_unknown_ops_are_barriers_and_listed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [
        helper.make_node("Fancy", ["x", "p"], ["h"], domain="my.ops"),
        helper.make_node("Fancy", ["h"], ["y"], domain="my.ops"),
    ]
    network = model(nodes, {"x": (2, 3), "p": (3,)})
    for name in ("h", "y"):
        network.graph.value_info.append(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 3))
        )
    path = save(network, tmp_path)
    found = read_network(path)
    assert found.unknown_ops == {"my.ops::Fancy": 2}
    assert types(found.graph)["y"] == types(found.graph)["h"] == "barrier"
    assert pairs(found.graph) == [("h.parameter1.reduce", "p", 20)]
    assert not caplog.records
    read_onnx(path)
    text = f"{path}: unknown op types, taken for barriers: my.ops::Fancy (2)"
    assert [record.getMessage() for record in caplog.records] == [text]
