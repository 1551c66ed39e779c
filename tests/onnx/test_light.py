"""The nine real topologies that come with the onnx package."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from layoutopt.base.result import Status
from layoutopt.io.instance import instance_bytes, parse_instance
from layoutopt.onnx.read import read_network, read_onnx
from layoutopt.unwinding import unwind

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
    for node in compute:
        assert graph.tensor(node.output[0]).name == node.output[0]
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
