"""Networks that cannot be read: one line each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper

import layoutopt
from layoutopt.base import limits
from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.shapes import infer
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


def test_models_that_do_not_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Protobuf does not tell lack of memory from a wrong file; free memory does."""
    path = tmp_path / "net.onnx"
    path.write_bytes(bytes(3 * 2**20))
    assert refused(path).startswith("is no ONNX model")
    monkeypatch.setattr(limits, "available_memory", lambda: 2**20)
    assert refused(path).startswith("reading the model needs about 0.00586 GiB")


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


@pytest.mark.parametrize(
    ("read", "spoiled", "reason"),
    [
        (node("Reshape", "x s"), {"dims": [2]}, "tensor 's' has broken data"),
        (node("Add", "x s"), {"dims": [-3]}, "tensor 's' has a size below 0: [1, -3]"),
        (node("Relu", "x"), {"data_type": -1}, "tensor 's': unknown ONNX element type -1"),
    ],
    ids=["values", "size", "type"],
)
def test_broken_constants(
    read: NodeProto, spoiled: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """They are refused by name, a type that is none also where nobody reads it."""
    network = model([read], {"x": (2, 2)}, constants={"s": np.array([4])})
    network.graph.initializer[0].MergeFrom(TensorProto(**spoiled))
    assert refused(save(network, tmp_path)).startswith(reason)


# Networks that no exporter writes are refused in one line, or read, without taking forever


def test_attributes_without_a_value(tmp_path: Path) -> None:
    """One stands there twice, one is of no kind, one only the call of a function could give."""
    for change, reason in (
        (lambda a: a.add(name="axis", i=1, type=2), "'axis' stands there twice"),
        (lambda a: a[0].ClearField("type"), "'axis' is of kind UNDEFINED"),
        (lambda a: setattr(a[0], "ref_attr_name", "k"), "'axis' is that of a function's call"),
    ):
        network = model([node("Concat", "x", axis=0)], {"x": (2, 2)})
        change(network.graph.node[0].attribute)
        assert reason in refused(save(network, tmp_path))


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


def test_functions_that_do_end(tmp_path: Path) -> None:
    """As many calls as are never too many are followed."""
    network = calls([f"f{k}" for k in range(5)], 2)
    check_functions(network)
    assert len(read_onnx(save(network, tmp_path)).ops) >= 2**5
    assert 2**14 <= ALWAYS < 2**15
    check_functions(calls([f"f{k}" for k in range(14)], 2))
    with pytest.raises(InputError):
        check_functions(calls([f"f{k}" for k in range(15)], 2))


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
