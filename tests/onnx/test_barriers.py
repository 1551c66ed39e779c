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
