"""A block of a transformer, and the networks of the onnx package, from file to proof."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from layoutopt.base.result import Status
from layoutopt.io.instance import instance_bytes, parse_instance
from layoutopt.onnx.read import read_network, read_onnx
from layoutopt.unwinding import unwind
from tests.onnx.networks import model, node, save

HEADS, WIDTH = 2, 4


def block() -> list:
    """Return self-attention over ``x`` of shape (batch, length, 8), as exporters write it."""
    nodes = [
        node("Shape", "x", "size"),
        node("Slice", "size zero two", "lead"),
        node("Concat", "lead heads", "split_shape", axis=0),
        node("Concat", "lead minus", "join_shape", axis=0),
    ]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", f"x w{name}", f"{name}0"),
            node("Add", f"{name}0 b{name}", f"{name}1"),
            node("Reshape", f"{name}1 split_shape", f"{name}2"),
            node("Transpose", f"{name}2", name, perm=order),
        ]
    return nodes + [
        node("MatMul", "q k", "scores"),
        node("Div", "scores scale", "scaled"),
        node("Softmax", "scaled", "weights", axis=-1),
        node("MatMul", "weights v", "mixed"),
        node("Transpose", "mixed", "mixed1", perm=[0, 2, 1, 3]),
        node("Reshape", "mixed1 join_shape", "joined"),
        node("MatMul", "joined wo", "out"),
        node("Add", "out x", "sum"),
        node("LayerNormalization", "sum gain shift", "y"),
    ]


def test_attention_is_solved_to_a_proof(tmp_path: Path) -> None:
    """Each weight reaches its target: only ``x`` is wanted in three places at once.

    ``x`` has 3 x 8 elements.  It may follow one of its three targets (100 each), or ``out``
    (20 for the sum): a target it is.  Batch 1, so a target is worth 2400.
    """
    size = HEADS * WIDTH
    weights = {f"w{name}": np.ones((size, size), np.float32) for name in "qkvo"}
    vectors = {name: np.ones(size, np.float32) for name in ("bq", "bk", "bv", "gain", "shift")}
    numbers = {
        "zero": np.array([0]), "two": np.array([2]), "minus": np.array([-1]),
        "heads": np.array([HEADS, WIDTH]), "scale": np.float32(2),
    }  # fmt: skip
    network = model(block(), {"x": ("batch", 3, size)}, constants=weights | vectors | numbers)
    graph = read_onnx(save(network, tmp_path), dims={"batch": 1})
    assert {sink.name for sink in graph.sinks()} == {"x", "scale", *weights, *vectors}
    result = unwind(graph)
    assert result.status is Status.OPTIMAL
    earned = {(pair.a, pair.b): pair.value * pair.matched for pair in result.pairs}
    assert all(earned[name, f"{name[1]}0.rhs.target"] == 6400 for name in ("wq", "wk", "wv"))
    assert sum(earned["x", f"{name}0.lhs.target"] for name in "qkv") == 2400
    assert earned["y.parameter1.reduce", "gain"] == 160


# The nine real topologies that come with the onnx package


FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"

# Name, compute nodes (all but constants), parameters.  The last are known from elsewhere:
# AlexNet 60,965,224 and VGG-19 143,667,240 (the Caffe models), SqueezeNet 1.1 1,235,496,
# ResNet-50 25,557,032 and 53,120 batch statistics.
IMAGE = 3 * 224 * 224
NETWORKS = [
    ("bvlc_alexnet", 24, 60_965_224),
    ("densenet121", 910, 8_146_152),
    ("inception_v1", 144, 6_998_552),
    ("inception_v2", 509, 11_234_792),
    ("resnet50", 176, 25_610_152),
    ("shufflenet", 203, 1_420_152),
    ("squeezenet", 66, 1_235_496),
    ("vgg19", 46, 143_667_240),
    ("zfnet512", 22, 87_250_536),
]


@pytest.mark.parametrize(("name", "nodes", "parameters"), NETWORKS, ids=lambda v: str(v))
def test_import(name: str, nodes: int, parameters: int) -> None:
    path = FOLDER / f"light_{name}.onnx"
    network = read_network(path)
    graph = network.graph
    assert not network.unknown_ops
    assert not network.unread_bodies
    assert not network.warnings()
    model = onnx.load(path)
    compute = [n for n in model.graph.node if n.op_type != "ConstantOfShape"]
    assert len(compute) == nodes
    assert all(graph.tensor(n.output[0]).name == n.output[0] for n in compute)
    assert sum(sink.size for sink in graph.sinks()) == IMAGE + parameters
    convs = [n for n in compute if n.op_type in ("Conv", "Gemm")]
    assert [t.name for t in graph.fixed_points()] == [n.output[0] for n in convs]


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_solve(name: str) -> None:
    """Solved to a proof; the result is checked against the specification inside."""
    graph = read_onnx(FOLDER / f"light_{name}.onnx")
    result = unwind(graph, time_limit=60)
    assert result.status is Status.OPTIMAL
    assert result.objective == result.bound
    every = {pair.a: pair for pair in result.pairs if pair.b.endswith(".weights.target")}
    assert every
    assert all(pair.matched == pair.elements for pair in every.values())


def test_instance_file_round_trip() -> None:
    graph = read_onnx(FOLDER / "light_squeezenet.onnx")
    assert parse_instance(instance_bytes(graph)) == graph
