"""Networks are converted as far as what comes out is sound, and users are told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

import layoutopt
import layoutopt.converting
from layoutopt.certify.conversion import Asked, certify
from layoutopt.conversion.rules.elementwise import unchanged
from layoutopt.conversion.rules.operator import Category, Operator
from layoutopt.conversion.rules.registry import OPERATORS
from layoutopt.onnx.running import largest_difference, transposes
from layoutopt.rewriting.verifying import fault
from tests.cli.conftest import Run, run
from tests.rewriting.networks import network

__all__ = ["run"]

NETWORK = """g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) {
    a = Transpose<perm=[2,0,1]>(x)
    b = Softmax<axis = 0>(a)
    y = Transpose<perm=[1,2,0]>(b)
    c = Transpose<perm=[2,0,1]>(x)
    d = Relu(c)
    z = Transpose<perm=[1,2,0]>(d) }"""


@pytest.fixture
def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Softmax be taken for an op whose axis does not matter."""
    wrong = (Operator("Softmax", Category.AGNOSTIC, unchanged),)
    monkeypatch.setitem(OPERATORS, "Softmax", wrong)


@pytest.mark.usefixtures("wrong_rule")
def test_an_op_that_is_converted_wrong_stays_as_it_is() -> None:
    """A check finds the op, and all else is converted."""
    model = network(NETWORK)
    assert largest_difference(model, layoutopt.convert(model).model) > 0.1
    result = layoutopt.convert(model, check=True)
    assert largest_difference(model, result.model) <= 1e-6
    assert transposes(result.model) == result.after.transforms == 2
    assert result.status == "feasible"  # other choices may be better
    [note] = result.notes
    assert note.startswith("Softmax 'Softmax_0' stays as it is written")
    assert "outputs differ by" in note
    with pytest.raises(layoutopt.InputError, match="no certificate"):
        certify(result, Asked("count,bytes"))


@pytest.mark.usefixtures("wrong_rule")
def test_notes_are_shown_and_written(run: Run, tmp_path: Path) -> None:
    """On the screen, and in the report."""
    onnx.save(network(NETWORK), tmp_path / "a.onnx")
    done = run("convert", str(tmp_path / "a.onnx"), "--check", "--json", str(tmp_path / "a.json"))
    assert done.code == 0
    assert "note: Softmax 'Softmax_0' stays as it is written" in done.out
    assert "Softmax_0" in json.loads((tmp_path / "a.json").read_text())["notes"][0]


def test_a_network_that_cannot_be_written_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong, the given network comes out, and the status claims nothing."""

    def broken(*_: object) -> ModelProto:
        raise KeyError("t")

    monkeypatch.setattr(layoutopt.converting, "write_model", broken)
    model = network(NETWORK)
    result = layoutopt.convert(model)
    assert list(result.model.graph.node) == list(model.graph.node)
    assert result.status == "feasible"
    assert result.before.transforms == result.after.transforms == len(result.remaining) == 4
    assert result.notes == ("the network is kept as it is given; rewritten, KeyError: 't'",)


def test_a_crash_of_one_op_keeps_this_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op that cannot be written stays, whatever error it meets."""

    def broken(*_: object) -> dict[str, int]:
        raise ZeroDivisionError

    monkeypatch.setitem(OPERATORS, "Softmax", (Operator("Softmax", Category.LIGHT, broken),))
    result = layoutopt.convert(network(NETWORK))
    assert result.after.transforms == 2
    assert "ZeroDivisionError" in result.notes[0]


FAULTS = {
    "nothing makes 'b', which is read": ("b = Softmax<axis = 0>(a)", "e = Softmax<axis = 0>(a)"),
    "Inferred shape and existing shape differ": ("y = Transpose<perm=[1,2,0]>(b)", "y = Relu(b)"),
    "Unrecognized attribute": ("d = Relu(c)", "d = Relu<axis = 1>(c)"),
}


@pytest.mark.parametrize("reason", FAULTS)
def test_faults_are_told(reason: str) -> None:
    """What is not well-formed, or does not have the types that it declares, is never written."""
    right, wrong = network(NETWORK), network(NETWORK.replace(*FAULTS[reason]))
    assert fault(right, right) == ""
    assert reason in fault(right, wrong)
    assert fault(wrong, wrong) == ("" if "nothing" not in reason else reason)


def test_weights_of_any_size_need_no_copy() -> None:
    """Types and shapes of large weights are held against their use, not their data."""
    text = "g (float[2,64] x) => (float[2,64] y) { y = MatMul(x, w) }"
    right, wrong = network(text, {"w": (64, 64)}), network(text)
    assert fault(right, right) == ""
    wrong.graph.initializer.append(numpy_helper.from_array(np.zeros((65, 64), np.float32), "w"))
    assert "Incompatible dimensions" in fault(right, wrong)
