"""Networks that cannot be read: one line each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

import layoutopt
from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.shapes import infer
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.read import read_onnx
from layoutopt.onnx.validate import ALWAYS, check_functions
from tests.onnx.networks import model, node, save

# What cannot be read is refused in one line that names file, place and reason


def refused(path: Path, **more: Any) -> str:
    """Return the reason for which a file is refused, without the file's name."""
    with pytest.raises(InputError) as caught:
        read_onnx(path, **more)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_missing_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "no.onnx") == "no such file"


def test_directory(tmp_path: Path) -> None:
    assert refused(tmp_path) == "is a directory, not a file"


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
        'reading a network needs onnx, an extra: pip install ".[onnx]" in a clone of layoutopt'
    )


SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))


def broken_data(network: onnx.ModelProto) -> None:
    network.graph.node.append(node("Reshape", "y s", "z"))
    tensor = helper.make_tensor("s", TensorProto.INT64, [1], [4])
    tensor.dims[0] = 2
    network.graph.initializer.append(tensor)
    network.graph.output[0].name = "z"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda x: x.graph.node.append(node("Relu", "x", "h")), "Relu 'h': 'h' is made already"),
        (lambda x: x.graph.ClearField("output"), "the network has no outputs"),
        (lambda x: setattr(x.graph.node[0], "domain", "my.ops"), "No opset import for domain my"),
        (lambda x: x.graph.input[0].type.CopyFrom(SEQUENCE), "input 'x' is no tensor, but a seq"),
        (lambda x: x.graph.input[0].type.tensor_type.ClearField("shape"), "input 'x' has no shape"),
        (broken_data, "tensor 's' has broken data"),
    ],
)
def test_broken_models(
    spoil: Callable[[onnx.ModelProto], object], reason: str, tmp_path: Path
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


# Networks that no exporter writes are refused in one line, or read, without taking forever


FAR = 10**12
"""More elements than any memory holds."""


def with_attribute(name: str, value: Any) -> NodeProto:
    """Return a Concat with an attribute."""
    return node("Concat", "x", **{name: value})


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (with_attribute("axis", [1]), "attribute 'axis' is of kind INTS, INT is needed"),
        (with_attribute("axes", 1), "its op has no attribute 'axes'; known: axis"),
        (node("Relu", "x x"), "has 2 inputs, its op has 1"),
        (node("Gemm", "x"), "has 1 inputs, its op has 2 to 3"),
        (node("Relu", "x", "y z"), "has 2 outputs, its op has 1"),
    ],
    ids=["kind", "unknown", "more inputs", "fewer inputs", "more outputs"],
)
def test_nodes_that_their_ops_do_not_allow(broken: NodeProto, reason: str, tmp_path: Path) -> None:
    """The node is named, and what its op has."""
    text = refused(save(model([broken], {"x": (2, 2)}), tmp_path))
    assert text == f"{broken.op_type} 'y': {reason}"


def test_attributes_without_a_value(tmp_path: Path) -> None:
    """One stands there twice, one is of no kind, one only the call of a function could give."""
    for change, reason in (
        (lambda a: a.add(name="axis", i=1, type=2), "'axis' stands there twice"),
        (lambda a: a[0].ClearField("type"), "'axis' is of kind UNDEFINED"),
        (lambda a: setattr(a[0], "ref_attr_name", "k"), "'axis' is that of a function's call"),
    ):
        network = model([with_attribute("axis", 0)], {"x": (2, 2)})
        change(network.graph.node[0].attribute)
        assert reason in refused(save(network, tmp_path))


def test_ops_of_other_versions(tmp_path: Path) -> None:
    """An op that its operator set does not have is refused, one that nobody knows is a barrier."""
    reason = "Mish 'y': ONNX's operator set of version 6 has no such op"
    assert refused(save(model([node("Mish", "x")], {"x": (2,)}, opset=6), tmp_path)) == reason


@pytest.mark.parametrize("opset", [0, 5, 99])
def test_other_operator_sets(opset: int, tmp_path: Path) -> None:
    """A version that nobody read the rules for is no silent guess."""
    reason = f"its operator set is of version {opset}; 6 to "
    assert refused(save(model([node("Relu", "x")], {"x": (2,)}, opset=opset), tmp_path)).startswith(
        reason
    )


def test_texts_that_are_not_utf_8(tmp_path: Path) -> None:
    """A name of other bytes is not taken for a text."""
    network = model([node("Relu", "x", "name")], {"x": (2,)}, outputs=("name",))
    path = save(network, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    assert "a text in it is not UTF-8" in refused(path)


def calls(names: Sequence[str], times: int) -> onnx.ModelProto:
    """Return a network whose functions call the next one so many times, and the last one Relu."""
    network = model([helper.make_node(names[0], ["x"], ["y"], domain="own")], {"x": (2, 3)})
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for name, then in zip(names, [*names[1:], "Relu"], strict=True):
        domain = "" if then == "Relu" else "own"
        steps = ["a", *(f"t{k}" for k in range(times))]
        nodes = [helper.make_node(then, [a], [b], domain=domain) for a, b in pairwise(steps)]
        made = helper.make_function("own", name, ["a"], [steps[-1]], nodes, imports)
        network.functions.append(made)
    return network


@pytest.mark.parametrize(
    ("names", "times", "reason"),
    [
        ([f"f{k}" for k in range(40)], 2, "become 1,099,511,627,776 once"),
        ([f"f{k}" for k in range(2000)], 1, "more than 100 functions call each other in a row"),
    ],
    ids=["doubling", "deep"],
)
def test_functions_that_do_not_end(
    names: Sequence[str], times: int, reason: str, tmp_path: Path
) -> None:
    """Calls are counted before they are followed: two of two of ... would be 2^40 nodes."""
    assert reason in refused(save(calls(names, times), tmp_path))


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    """The second of two functions calls the first one again."""
    network = calls(["f", "g"], 1)
    network.functions[1].node[0].domain, network.functions[1].node[0].op_type = "own", "f"
    assert refused(save(network, tmp_path)) == "function 'own::f' calls itself"


def test_functions_that_do_end(tmp_path: Path) -> None:
    """As many calls as are never too many are followed."""
    network = calls([f"f{k}" for k in range(5)], 2)
    check_functions(network)
    assert len(read_onnx(save(network, tmp_path)).ops) >= 2**5
    assert 2**14 <= ALWAYS < 2**15
    check_functions(calls([f"f{k}" for k in range(14)], 2))
    with pytest.raises(InputError):
        check_functions(calls([f"f{k}" for k in range(15)], 2))


def test_functions_that_their_calls_do_not_fit(tmp_path: Path) -> None:
    """Two operands for a function of one are refused."""
    network = calls(["f"], 1)
    network.graph.node[0].input.append("x")
    assert "its functions cannot be inlined" in refused(save(network, tmp_path))


@pytest.mark.parametrize("which", ["Range", "ConstantOfShape", "Tile", "HannWindow", "Expand"])
def test_shapes_of_any_length(which: str, tmp_path: Path) -> None:
    """What would fill the memory on the way to a shape is not computed, and so not known."""
    inputs = {"Range": "zero far one", "ConstantOfShape": "fars", "HannWindow": "far"}
    reads = inputs.get(which, "ones fars")
    nodes = [node(which, reads, "made"), node("Cast", "made", "sizes", to=7)]
    network = model(
        [*nodes, node("Reshape", "x sizes")],
        {"x": (2, 3)},
        constants={
            "zero": np.array(0),
            "one": np.array(1),
            "far": np.array(FAR),
            "ones": np.array([1]),
            "fars": np.array([FAR]),
        },
    )
    with_shapes(network)
    assert "cannot be inferred" in refused(save(network, tmp_path))


@pytest.mark.parametrize("which", ["Slice", "Concat", "Gather", "Mul", "Reshape"])
def test_vectors_of_any_length(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX is asked to follow short vectors element by element, but no long ones."""
    asked: list[bool] = []
    real = onnx.shape_inference.infer_shapes

    def heard(model: onnx.ModelProto, *, data_prop: bool, **options: bool) -> onnx.ModelProto:
        asked.append(data_prop)
        return real(model, data_prop=data_prop and length == 2, **options)

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", heard)
    for length in (2, 2**22):
        first = (2, 4) if which in ("Slice", "Reshape") else (length,)
        shapes = (first, *[(length,)] * (2 if which == "Slice" else 1))
        attributes = {"axis": 0} if which == "Concat" else {}
        op = Op(which, attributes, ("a", "b", "c")[: len(shapes)], ("y",))
        [found] = infer(replace(op, input_shapes=shapes))
        assert len(found or ()) <= 2
    assert asked == [True, False]


def test_shapes_are_still_computed(tmp_path: Path) -> None:
    """Counting, filling and repeating a little tell the shapes that they are there for."""
    constants = {"zero": np.array(0), "one": np.array(1), "two": np.array([2])}
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "rows"),
        node("Range", "zero rows one", "counted"),
        node("Add", "counted two", "sizes"),
        node("Reshape", "x sizes"),
    ]
    network = model(nodes, {"x": (2, 3)}, constants=constants)
    assert read_onnx(save(network, tmp_path)).tensor("y").shape == (2, 3)


def test_element_types_that_are_none(tmp_path: Path) -> None:
    """A constant of type -1 is refused by its name, though nobody reads it."""
    network = model([node("Relu", "x")], {"x": (2, 2)}, constants={"s": np.array([4])})
    network.graph.initializer[0].data_type = -1
    assert refused(save(network, tmp_path)) == "tensor 's': unknown ONNX element type -1"


def test_gradients_of_products_of_no_matrices(tmp_path: Path) -> None:
    """Operands that have no axes are refused."""
    nodes = [node("ReduceSum", "w", "s", keepdims=0), node("MatMul", "x s")]
    network = model(nodes, {"x": ()}, constants={"w": np.ones(3, np.float32)})
    value = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ())
    network.graph.output[0].CopyFrom(value)
    assert "a product needs operands" in refused(save(network, tmp_path), training="sgd")


@pytest.mark.parametrize("before", [(), ("Slice", "Relu")], ids=["at once", "behind another"])
def test_slices_of_less_than_nothing(before: Sequence[str], tmp_path: Path) -> None:
    """A window of 5 in an image of 2 leaves -2 rows, of which no slice may be asked for."""
    reads = {"Slice": "{} zero far zero", "Relu": "{}"}
    steps = [node(kind, reads[kind].format(f"x{k}"), f"x{k + 1}") for k, kind in enumerate(before)]
    last = f"x{len(before)}"
    nodes = [*steps, node("Conv", f"{last} w", "small"), node("Slice", "small two far two")]
    constants = {name: np.array([value]) for name, value in (("zero", 0), ("two", 2), ("far", 9))}
    constants["w"] = np.ones((1, 1, 5, 5), np.float32)
    network = model(nodes, {"x0": (1, 1, 2, 2)}, constants=constants)
    assert refused(save(network, tmp_path)) == "'small' would have a size below 0: [1, 1, -2, -2]"


SHRUNK = {
    "Split": ([node("Split", "x k", "small big")], [-1, 3]),
    "TopK": ([node("TopK", "x k", "small places", axis=0)], [-2]),
    "CenterCropPad": ([node("CenterCropPad", "x k", "small")], [-3, 2]),
    "CenterCropPad by what is computed": (
        [node("Shape", "x", "s"), node("Sub", "s k", "d"), node("CenterCropPad", "x d", "small")],
        [9, 0],
    ),
    "Multinomial": ([node("Multinomial", "x", "small", sample_size=-3)], []),
}


@pytest.mark.parametrize("case", SHRUNK)
def test_slices_of_what_ends_the_process(case: str) -> None:
    """ONNX infers sizes below 0 and ends the process at a slice of them."""
    nodes, k = SHRUNK[case]
    constants = {"k": np.array(k, np.int64), "zero": np.array([0]), "one": np.array([1])}
    bounds = node("Slice", "small zero one one" if case == "Multinomial" else "small zero one")
    network = model([*nodes, bounds], {"x": (2, 3)}, constants=constants, opset=18)
    with pytest.raises(InputError, match="'small' would have a size below 0"):
        layoutopt.convert(network)


def test_sizes_below_0(tmp_path: Path) -> None:
    """Of an input they are open, of a constant they are refused."""
    nodes = [node("Slice", "x zero one", "h"), node("Add", "h c")]
    constants = {"zero": np.array([0]), "one": np.array([1]), "c": np.ones(3, np.float32)}
    network = model(nodes, {"x": (-2, 3)}, constants=constants)
    assert "give --dim x.0=SIZE" in refused(save(network, tmp_path))
    network = model(nodes, {"x": (2, 3)}, constants=constants)
    network.graph.initializer[2].dims[0] = -3
    assert "tensor 'c' has a size below 0: [-3]" in refused(save(network, tmp_path))
