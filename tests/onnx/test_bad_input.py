"""What cannot be read is refused in one line that names file, place and reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from layoutopt.base.errors import InputError
from layoutopt.onnx.read import read_onnx
from tests.onnx.networks import model, node, save


def refused(path: Path) -> str:
    """Return the reason for which a file is refused, without the file's name."""
    with pytest.raises(InputError) as caught:
        read_onnx(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_missing_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "no.onnx") == "no such file"


def test_directory(tmp_path: Path) -> None:
    assert refused(tmp_path) == "is a directory, a file is needed"


@pytest.mark.parametrize("raw", [b"", b"   ", b"not a network\n", b"\x08", bytes(100)])
def test_bytes_that_are_no_model(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(raw)
    assert refused(path).startswith("is no ONNX model")


def test_truncated_model(tmp_path: Path) -> None:
    """At every length the file is refused with a reason, not a traceback."""
    network = model([node("MatMul", "x w")], {"x": (2, 3)}, constants={"w": np.ones((3, 4))})
    whole = network.SerializeToString()
    path = tmp_path / "net.onnx"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        refused(path)


def test_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(model([node("Relu", "x")], {"x": (2,)}), tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert refused(path) == (
        'reading a network needs onnx, which an extra brings: pip install ".[onnx]" in a clone of '
        "layoutopt"
    )


def no_outputs(network: onnx.ModelProto) -> None:
    del network.graph.output[:]


def no_node_for_the_output(network: onnx.ModelProto) -> None:
    network.graph.output[0].name = "z"


def made_twice(network: onnx.ModelProto) -> None:
    network.graph.node.append(node("Relu", "x", "h"))


def no_operator_set(network: onnx.ModelProto) -> None:
    network.graph.node[0].domain = "my.ops"


def sequence_input(network: onnx.ModelProto) -> None:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    network.graph.input[0].type.CopyFrom(helper.make_sequence_type_proto(element))


def input_without_rank(network: onnx.ModelProto) -> None:
    network.graph.input[0].type.tensor_type.ClearField("shape")


def broken_data(network: onnx.ModelProto) -> None:
    network.graph.node.append(node("Reshape", "y s", "z"))
    tensor = helper.make_tensor("s", TensorProto.INT64, [1], [4])
    tensor.dims[0] = 2
    network.graph.initializer.append(tensor)
    network.graph.output[0].name = "z"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (no_outputs, "the network has no outputs"),
        (no_node_for_the_output, "no node makes the output 'z'"),
        (made_twice, "Relu 'h': 'h' is made already"),
        (no_operator_set, "No opset import for domain my.ops"),
        (sequence_input, "input 'x' is no tensor, but a sequence, map or optional"),
        (input_without_rank, "input 'x' has no shape, not even a rank"),
        (broken_data, "tensor 's' has broken data"),
    ],
)
def test_broken_models(
    spoil: Callable[[onnx.ModelProto], None], reason: str, tmp_path: Path
) -> None:
    network = model([node("Relu", "x", "h"), node("Transpose", "h")], {"x": (2, 2)})
    spoil(network)
    assert reason in refused(save(network, tmp_path))


def test_operands_that_do_not_fit_give_the_reason_of_shape_inference(tmp_path: Path) -> None:
    network = model([node("MatMul", "a b")], {"a": (2, 3), "b": (4, 5)})
    text = refused(save(network, tmp_path))
    assert text.startswith("MatMul 'y': the shape of 'y' cannot be inferred (Incompatible dim")


def test_sequences_are_no_tensors(tmp_path: Path) -> None:
    nodes = [node("SplitToSequence", "x", "s"), node("SequenceAt", "s i")]
    network = model(nodes, {"x": (2, 3)}, constants={"i": np.array(0)})
    assert refused(save(network, tmp_path)) == (
        "SplitToSequence 's': 's' is no tensor, but a sequence, map or optional"
    )


@pytest.mark.parametrize(
    ("broken", "shape", "reason"),
    [
        (node("Transpose", "x", perm=[0, 0]), (2, 2), "permutation"),
        (node("Concat", "x", axis=5), (2, 2), "axis 5 does not exist in a tensor of rank 2"),
        (node("Slice", "x one one one zero"), (2, 2), "a step is 0"),
        (node("Slice", "x one two"), (2, 2), "have different lengths"),
        (node("Slice", "x - -"), (2, 2), "starts or ends are missing"),
        (node("Split", "x two", "y"), (2, 2), "2 sizes for 1 outputs"),
        (node("DepthToSpace", "x"), (1, 1, 4, 4), "attribute 'blocksize' is missing"),
        (node("DepthToSpace", "x", blocksize=2), (1, 1, 4, 4), "1 channels are no multiple"),
        (node("SpaceToDepth", "x", blocksize=3), (1, 1, 4, 4), "do not divide into blocks"),
        (node("SpaceToDepth", "x", blocksize=2), (2, 2), "needs an operand of rank 4"),
        (node("Reshape", "- one"), (2, 2), "operand 0 is missing"),
        (node("Conv", "x -"), (2, 2), "operand 1 is missing"),
        (node("Add", "x x3"), (2, 2), "do not broadcast"),
        (node("MatMul", "x x3"), (2, 2), "operands of shapes [2, 2] and [3, 3] do not fit"),
        (node("Gemm", "x3 x", transA=1), (2, 2), "operands of shapes [3, 3] and [2, 2] do not fit"),
    ],
    ids=lambda v: v.op_type if isinstance(v, onnx.NodeProto) else "",
)
def test_broken_nodes(
    broken: onnx.NodeProto, shape: tuple[int, ...], reason: str, tmp_path: Path
) -> None:
    """The output's shape is claimed, so that shape inference is not asked."""
    constants = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([1, 1])}
    network = model([broken], {"x": shape, "x3": (3, 3)}, constants=constants)
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    network.graph.output[0].CopyFrom(value)
    text = refused(save(network, tmp_path))
    assert text.startswith(f"{broken.op_type} 'y': ")
    assert reason in text


def test_tensors_beyond_any_memory(tmp_path: Path) -> None:
    network = model([node("Relu", "x")], {"x": (2**40, 2**40)})
    assert "2^62" in refused(save(network, tmp_path))
