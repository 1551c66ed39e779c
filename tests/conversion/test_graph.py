"""Conversion graphs: how they are built, refused, and hashed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from layoutopt.conversion.graph import ConversionGraph, network_hash
from layoutopt.conversion.rules.op import Op
from layoutopt.converting import convert
from layoutopt.onnx.source import read_model
from tests.conversion.onnx_ops import op_of, results
from tests.conversion.remap_cases import CASES, Case
from tests.onnx.exports import random_export
from tests.onnx.networks import network

# Conversion graphs: what is added, what is told of shapes, and what is refused


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shapes_are_those_that_come_out(case: Case) -> None:
    """Whatever is told of a shape without running the op is what running it gives."""
    arrays = case.arrays()
    op = op_of(case.type, arrays, case.attributes, case.opset, case.outputs)
    graph = ConversionGraph(opset=case.opset)
    for name, array in zip(op.inputs, arrays, strict=True):
        if array is not None:
            graph.input(name, array.shape)
    graph.add(Op(op.type, op.attributes, op.inputs, op.outputs, name="it", opset=op.opset))
    for name, array in zip(op.outputs, results(op, arrays, case.runtime), strict=True):
        shape = graph.tensors[name].shape
        if shape is not None:
            assert len(shape) == np.ndim(array)
            assert all(a in (None, b) for a, b in zip(shape, np.shape(array), strict=True))
    told = graph.tensors["y0"].shape is not None
    assert told == (case.type not in UNTOLD.split())


UNTOLD = "com.microsoft::QGemm"
"""Types whose shapes must be given."""


def test_shapes_of_ops_that_the_operator_set_does_not_have() -> None:
    """They are those of the newest version: Attention came with operator set 23."""
    graph = ConversionGraph(opset=22)
    operands = [graph.input(name, (1, 4, 8, 16)) for name in "qkv"]
    assert graph.tensors[graph.op("Attention", operands)].shape == (1, 4, 8, 16)


# Equal networks have equal hashes, whatever their weights and file; others have others


TEXT = """g (float[1,6,"n",5] x) => (y) <float[3,6,1,1] w> {
    a = Conv <group=1, strides=[1,1]> (x, w)
    b = Softmax <axis=1> (a)
    y = Transpose <perm=[0,2,3,1]> (b)
}"""


def hash_of(model: onnx.ModelProto) -> str:
    """Return the hash of a network as the command line tells it."""
    return convert(model).instance_hash


@pytest.fixture
def model() -> onnx.ModelProto:
    """Return a network with a weight, whose shapes are known."""
    found = network(TEXT)
    weight = np.ones((3, 6, 1, 1), np.float32)
    found.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return found


def test_the_hash_is_that_of_the_documented_text() -> None:
    """The digest is of the text in ``docs/reproducibility.md``, here by hand."""
    graph = ConversionGraph("any name")
    x = graph.input("x", (1, "n", None, 8), "NHWC", element_bytes=2)
    w = graph.constant("w", (8,))
    y = graph.op("Add", [x, w], {"b": (1, 2), "a": 0.5}, layouts="NHWC", shape=(1, "n", None, 8))
    graph.output(y)
    text = (
        '{"format":"layoutopt/network/1","graphs":[{"ops":[["add0","Add",22,["x","w"],'
        '[["add0"],[[1,"n",null,8]],[2]],{"a":0.5,"b":[1,2]},"NHWC->NHWC"]],"out":["add0"],'
        '"tensors":[["input","x",[1,"n",null,8],2,"NHWC"],["constant","w",[8],4,"*"]]}]}'
    )
    assert network_hash(graph) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_weights_beside_a_network_are_the_same_weights(
    model: onnx.ModelProto, tmp_path: Path
) -> None:
    """A file with external data is the same network."""
    path = tmp_path / "out.onnx"
    before = hash_of(model)
    onnx.save(model, path, save_as_external_data=True, size_threshold=0)
    assert convert(path).instance_hash == before


def test_no_two_of_many_networks_share_a_hash() -> None:
    """Thirty random exports are thirty networks."""
    exports = [random_export(seed, 20) for seed in range(30)]
    assert len({network_hash(read_model(export).graph) for export in exports}) == 30


def test_attributes_that_json_cannot_hold_are_left_out(model: onnx.ModelProto) -> None:
    """Lists of types are no attributes to layouts; a network with them is converted."""
    model.graph.node[1].op_type, model.graph.node[1].domain = "Twist", "my"
    model.opset_import.append(onnx.helper.make_opsetid("my", 1))
    before = hash_of(model)
    kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, (1,))
    model.graph.node[1].attribute.append(onnx.helper.make_attribute("kinds", [kind]))
    assert hash_of(model) == before
