"""Conversion graphs: how they are built, refused, and hashed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from layoutopt.conversion.graph import ConversionGraph, network_hash
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.converting import convert
from layoutopt.onnx.source import read_model
from tests.conversion.onnx_ops import op_of, results
from tests.conversion.remap_cases import CASES, Case
from tests.onnx.exports import random_export
from tests.onnx.networks import network
from tests.support import refused

# Conversion graphs: what is added, what is told of shapes, and what is refused


SHAPES: list[tuple[str, dict[str, Any], list[Shape], Shape]] = [
    ("Add", {}, [("n", 3, 1), (1, 5)], ("n", 3, 5)),
    ("Add", {}, [("n", 3), (7, 1)], (7, 3)),
    ("Add", {}, [("n", 3), ("m", 3)], (None, 3)),
    ("Add", {}, [("n", 3), ("n", 1)], ("n", 3)),
    ("Add", {}, [(None, 1), (1, 1)], (None, 1)),
    ("Conv", {"strides": (2, 2)}, [("n", 3, "h", 9), (8, 3, 3, 3)], ("n", 8, None, 4)),
    ("Conv", {"strides": (2,)}, [(1, 2, 8), (4, 2, 3)], (1, 4, 3)),
    ("Conv", {"auto_pad": "SAME_LOWER", "strides": (2,)}, [(1, 2, 9), (4, 2, 3)], (1, 4, 5)),
    # One step more, as long as it does not start in the padding: 5 of 8, then (6 - 3) / 2 + 1.
    ("MaxPool", {"kernel_shape": (3,), "strides": (2,), "ceil_mode": 1}, [(1, 2, 6)], (1, 2, 3)),
    (
        "MaxPool",
        {"kernel_shape": (1,), "strides": (3,), "pads": (0, 2), "ceil_mode": 1},
        [(1, 2, 5)],
        (1, 2, 2),
    ),
    ("MaxPool", {"kernel_shape": (1,), "strides": (2,), "ceil_mode": 1}, [(1, 2, 4)], (1, 2, 2)),
    ("Concat", {"axis": 1}, [("n", 3), ("n", 4)], ("n", 7)),
    ("Concat", {"axis": 1}, [("n", 3), ("n", "c")], ("n", None)),
    ("Flatten", {}, [("n", 3, 4)], ("n", 12)),
    ("Flatten", {"axis": 2}, [("n", "m", 4)], (None, 4)),
    ("Reshape", {"shape": (0, -1)}, [("n", 3, 4)], ("n", 12)),
    ("Reshape", {"shape": (0, -1)}, [(2, 3, 4)], (2, 12)),
    ("Pad", {"pads": (0, 1, 2, 3)}, [("n", 3)], (None, 7)),
    ("MatMul", {}, [(4,), (4,)], ()),
    ("MatMul", {}, [(4,), (2, 4, 5)], (2, 5)),
    ("MatMul", {}, [("n", 3, 4), (4,)], ("n", 3)),
    ("Split", {"split": (5,)}, [(5, "n")], (5, "n")),
    ("Reshape", {}, [(2, 3), (2,)], (None, None)),
    ("Slice", {}, [(2, 3), (1,), (1,)], (None, None)),
    ("com.microsoft::QLinearAdd", {}, [("n", 3), (), (), (2, 1)], (2, 3)),
    ("com.microsoft::QLinearConcat", {"axis": 1}, [(), (), (2, 3), (), (), (2, 4)], (2, 7)),
    (
        "com.microsoft::QLinearAveragePool",
        {"kernel_shape": (2,), "channels_last": 1},
        [(1, 8, 3)],
        (1, 7, 3),
    ),
    ("Gemm", {"transA": 1, "transB": 1}, [(3, "n"), (5, 3)], ("n", 5)),
]


@pytest.mark.parametrize(("op_type", "attributes", "inputs", "shape"), SHAPES)
def test_shapes_of_results(
    op_type: str, attributes: dict[str, Any], inputs: list[Shape], shape: Shape
) -> None:
    """Sizes known by name or not at all are kept where they are one input's alone."""
    graph = ConversionGraph()
    names = [graph.input(f"x{n}", given) for n, given in enumerate(inputs)]
    y = graph.add(Op(op_type, attributes, tuple(names), ("y",), name="it"))[0]
    assert graph.tensors[y].shape == shape


UNKNOWN: list[tuple[str, dict[str, Any], list[Shape | None]]] = [
    ("ReduceSum", {}, [(2, 3), (1,)]),  # the axes are known at run time only
    ("ReduceSum", {"keepdims": 0}, [(2, 3), (1,)]),
    ("Add", {}, [(2, 3), None]),
    ("Concat", {"axis": 0}, [(2, 3), None]),
    ("Gather", {"axis": 0}, [(2, 3), None]),
    ("MatMul", {}, [(2, 3), None]),
    ("Conv", {"kernel_shape": (3,)}, [(1, 2, 8), None]),
    ("MaxPool", {}, [(1, 2, 8)]),
    ("Squeeze", {}, [("n", 3)]),
]


@pytest.mark.parametrize(("op_type", "attributes", "inputs"), UNKNOWN)
def test_shapes_that_cannot_be_told(
    op_type: str, attributes: dict[str, Any], inputs: list[Shape | None]
) -> None:
    """Because an operand, a window or an axis is not known."""
    graph = ConversionGraph()
    names = [graph.input(f"x{n}", given) for n, given in enumerate(inputs)]
    graph.add(Op(op_type, attributes, tuple(names), ("y",), name="it"))
    assert graph.tensors["y"].shape is None


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


def graph_of_two() -> ConversionGraph:
    graph = ConversionGraph()
    graph.input("x", (2, 3))
    graph.input("y", (2, 4))
    graph.op("Relu", ["x"], name="z")
    return graph


REFUSED: list[tuple[Any, str]] = [
    (lambda g: g.input("x", (1,)), "there is a tensor 'x' already"),
    (lambda g: g.constant("z", (1,)), "there is a tensor 'z' already"),
    (lambda g: g.input("", (1,)), "a tensor must have a name"),
    (lambda g: g.input("a", (1, -1)), "tensor 'a': size -1 must be 0 or more"),
    (lambda g: g.input("a", (1, 0.5)), "tensor 'a': size 0.5 must be a number, a name or None"),
    (lambda g: g.input("a", 3), "tensor 'a': shape must be a list of sizes, not 3"),
    (lambda g: g.input("a", "NC"), "tensor 'a': shape must be a list of sizes, not 'NC'"),
    (lambda g: g.input("a", (1,), "NC"), "layout NC has 2 dimensions, for a tensor of 1 dim"),
    (lambda g: g.input("a", None, "NC"), "layout NC has 2 dimensions, for a tensor of unknown"),
    (lambda g: g.input("a", (1,), "N4"), "tensor 'a': column 3 of layout 'N4'"),
    (lambda g: g.input("a", (1, 2), "ba"), "layout ba names axes by their place; give letters"),
    (lambda g: g.input("a", (1,), element_bytes=0), "element_bytes must be 1 or more, not 0"),
    (lambda g: g.op("Relu", ["q"]), "Relu 'relu0': there is no tensor 'q'"),
    (lambda g: g.op("Relu", ["x"], name="z"), "op of type Relu: name 'z' is taken"),
    (lambda g: g.op("Relu", ["x"], name="x"), "there is a tensor 'x' already"),
    (lambda g: g.op("my::Op", ["x"]), "my::Op 'op0': give its shape, which does not follow"),
    (lambda g: g.op("Conv", ["x", "y"], layouts="NHW4"), "Conv 'conv0': column"),
    (
        lambda g: g.op("my::Op", ["x"], layouts="->NHWC", shape=(2, 3)),
        "my::Op 'op0': result 0 of shape (2, 3) is written as NHWC",
    ),
    (lambda g: g.op("Add", ["x", "y"]), "Add 'add0': Incompatible dimensions"),
    (lambda g: g.op("Concat", ["x", "y"], {"axis": 0}), "Inferred=4 Declared=3 Dimension=1"),
    (lambda g: g.op("Concat", ["x", "y"], {"axis": 5}), "axis must be in [-rank, rank-1]"),
    (lambda g: g.op("Reshape", ["x"], {"shape": (4, -1)}), "incompatible shapes"),
    (lambda g: g.op("Reshape", ["x"], {"shape": (5,)}), "(2, 3) cannot have shape (5,)"),
    (lambda g: g.op("Reshape", ["x"], {"shape": (2, 3, 0)}), "Invalid position of 0"),
    (lambda g: g.add(Op("Relu", {}, ("x",), ("a",))), "op of type Relu: it has no name"),
    (lambda g: g.add(Op("Relu", {}, ("x",), (), name="a")), "it has 0 shapes for 0 results"),
    (
        lambda g: g.add(Op("Relu", {}, ("x",), ("a", "a"), name="a")),
        "Relu 'a': there is a tensor 'a' already",
    ),
    (
        lambda g: g.add(Op("Relu", {}, ("x",), ("a",), output_shapes=((1,), (1,)), name="a")),
        "it has 2 shapes for 1 results",
    ),
    (lambda g: g.output("q"), "output: there is no tensor 'q'"),
    (lambda g: g.producer("q"), "producer: there is no tensor 'q'"),
    (lambda g: g.consumers("q"), "consumers: there is no tensor 'q'"),
]


@pytest.mark.parametrize(("change", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_wrong_additions_are_refused_and_change_nothing(change: Any, reason: str) -> None:
    graph = graph_of_two()
    with refused(reason):
        change(graph)
    assert list(graph.tensors) == ["x", "y", "z"]
    assert len(graph.ops) == 1
    assert graph.consumers("x") == [(graph.ops[0], 0)]
    assert graph.outputs == []


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
