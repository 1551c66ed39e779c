"""Networks are converted as far as what comes out is sound, and users are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import layoutopt
import layoutopt.converting
from layoutopt.certify.conversion import Asked, certify
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.axes import unchanged
from layoutopt.conversion.rules.op import Op, Size
from layoutopt.conversion.rules.operator import Category, Operator
from layoutopt.conversion.rules.registry import OPERATORS
from layoutopt.layout.layout import Layout
from layoutopt.onnx.running import Outputs
from layoutopt.onnx.transposes import transposes
from layoutopt.onnx.verifying import fault
from tests.cli.conftest import Run, run
from tests.onnx.networks import network

__all__ = ["run"]

NETWORK = """g (float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) {
    a = Transpose<perm=[2,0,1]>(x)
    b = Softmax<axis = 0>(a)
    y = Transpose<perm=[1,2,0]>(b)
    c = Transpose<perm=[2,0,1]>(x)
    d = Relu(c)
    z = Transpose<perm=[1,2,0]>(d) }"""


def broken(*_: object, **__: object) -> Any:
    """Raise what only a defect raises."""
    raise KeyError("t")


@pytest.fixture
def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Softmax be taken for an op whose axis does not matter."""
    wrong = (Operator("Softmax", Category.AGNOSTIC, unchanged),)
    monkeypatch.setitem(OPERATORS, "Softmax", wrong)


@pytest.mark.usefixtures("wrong_rule")
def test_an_op_that_is_converted_wrong_stays_as_it_is() -> None:
    """A check finds the op, and all else is converted."""
    model = network(NETWORK)
    assert Outputs(model).difference(layoutopt.convert(model).model) > 0.1
    result = layoutopt.convert(model, check=True)
    assert Outputs(model).difference(result.model) <= 1e-6
    assert transposes(result.model) == result.after.transforms == 2
    assert result.status == "feasible"  # other choices may be better
    [note] = result.notes
    assert note.startswith("Softmax 'Softmax_0' is kept as written")
    assert "outputs differ by" in note
    assert "a defect of layoutopt, not of the network; please report it" in note
    with pytest.raises(layoutopt.InputError, match="no certificate"):
        certify(result, Asked("count,changed,bytes"))


@pytest.mark.usefixtures("wrong_rule")
def test_notes_are_shown_and_written(run: Run, tmp_path: Path) -> None:
    """On the screen, and in the report."""
    onnx.save(network(NETWORK), tmp_path / "a.onnx")
    done = run("convert", str(tmp_path / "a.onnx"), "--check", "--json", str(tmp_path / "a.json"))
    assert done.code == 0
    assert "note: Softmax 'Softmax_0' is kept as written" in done.out
    assert "Softmax_0" in json.loads((tmp_path / "a.json").read_text())["notes"][0]


def test_a_network_that_cannot_be_written_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong, the given network comes out, and the status claims nothing."""
    monkeypatch.setattr(layoutopt.converting, "write_model", broken)
    model = network(NETWORK)
    result = layoutopt.convert(model)
    assert list(result.model.graph.node) == list(model.graph.node)
    assert result.status == "feasible"
    assert result.before.transforms == result.after.transforms == len(result.remaining) == 4
    assert result.notes == (
        "the given network is kept: the converted one is invalid (KeyError: 't'), "
        "a defect of layoutopt, not of the network; please report it",
    )


def test_a_network_that_cannot_be_simplified_is_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as it is given; a bound that only a simplified network has is not claimed."""
    monkeypatch.setattr(layoutopt.converting, "simplified", broken)
    given = network(
        """g (float[2,3,4] x) => (float[2,4,3] y, float[2,3,4] z) {
        a = Identity(x) y = Transpose<perm=[0,2,1]>(a)
        t = Transpose<perm=[2,0,1]>(x) z = Transpose<perm=[1,2,0]>(t) }"""
    )
    result = layoutopt.convert(given, check=True)
    assert (result.after.transforms, result.difference) == (1, 0)
    assert (result.bound, result.status) == ((0, 0, 0), "feasible")
    [note] = result.notes
    assert note.startswith("the network is converted without being simplified (KeyError: 't')")
    assert "a defect of layoutopt" in note


@pytest.mark.parametrize("asked", [{}, {"layout": "default=NCHW", "check": True}])
def test_a_network_that_cannot_be_read_is_kept(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither simplified nor as it is given."""
    monkeypatch.setattr(layoutopt.converting, "read_model", broken)
    model = network(NETWORK)
    result = layoutopt.convert(model, **asked)
    assert list(result.model.graph.node) == list(model.graph.node)
    assert (result.status, result.stopped, result.bound) == ("feasible", "finished", (0, 0, 0))
    assert result.before.transforms == result.after.transforms == 4
    [note] = [line for line in result.notes if "are not declared" not in line]
    assert note == (
        "the given network is kept: reading it failed (KeyError: 't'), "
        "a defect of layoutopt, not of the network; please report it"
    )


def test_layouts_that_are_not_met_are_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """No transform is left, but what was asked for is not done."""
    monkeypatch.setattr(layoutopt.converting, "write_model", broken)
    text = "g (float[1,3,4,4] x) => (float[1,2,4,4] y) { y = Conv(x, w) }"
    model = network(text, {"w": (2, 3, 1, 1)})
    result = layoutopt.convert(model, layout="Conv=NHWC,OHWI")
    assert (result.after.transforms, result.status) == (0, "feasible")
    assert layoutopt.convert(model).status == "optimal"  # nothing was asked, and nothing is left


@pytest.mark.parametrize("asked", [{"layout": "Conv=NC"}, {"objective": "time"}, {"solver": "x"}])
def test_options_that_do_not_fit_are_refused(
    asked: dict[str, str], run: Run, tmp_path: Path
) -> None:
    """What a user can mend is no reason to keep ops as they are."""
    text = "g (float[1,3,4,4] x) => (float[1,2,4,4] y) { y = Conv(x, w) }"
    onnx.save(network(text, {"w": (2, 3, 1, 1)}), tmp_path / "a.onnx")
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    assert run("convert", str(tmp_path / "a.onnx"), *words).code == 2


class Picky(Requirements):
    """A backend that fails."""

    def operand_layout(self, op: Op, axes: str, sizes: Mapping[str, Size]) -> Layout:
        """Raise what has nothing to do with the network."""
        raise KeyError(axes)


def test_what_a_backend_of_a_user_raises_is_told() -> None:
    """It is no defect of layoutopt."""
    text = "g (float[1,3,4,4] x) => (float[1,2,4,4] y) { y = Conv(x, w) }"
    with pytest.raises(layoutopt.InputError, match=r"Conv 'Conv_0': backend Picky raises KeyError"):
        layoutopt.convert(network(text, {"w": (2, 3, 1, 1)}), backend=Picky())


def test_a_network_that_does_not_run_once_rewritten_keeps_an_op(wrong_rule: None) -> None:
    """Also where a layout is asked for: what comes out wrong is no fault of the option."""
    result = layoutopt.convert(network(NETWORK), check=True, layout="default=NHWC")
    assert result.notes[0].startswith("Softmax 'Softmax_0' is kept as written")


def test_a_crash_of_one_op_keeps_this_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op that cannot be written stays, whatever error it meets."""
    monkeypatch.setitem(OPERATORS, "Softmax", (Operator("Softmax", Category.LIGHT, broken),))
    with pytest.raises(layoutopt.InputError, match=r"Softmax_0': its rule raises KeyError: 't'"):
        layoutopt.convert(network(NETWORK))  # a rule of a user
    monkeypatch.setattr(broken, "__module__", unchanged.__module__)
    result = layoutopt.convert(network(NETWORK))
    assert result.after.transforms == 2
    assert "KeyError" in result.notes[0]


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
