"""Networks are run, compared, and counted."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import layoutopt
from layoutopt.onnx import running
from layoutopt.onnx.running import Outputs, random_inputs
from layoutopt.onnx.runtime import CrashError, Session
from layoutopt.onnx.transposes import optimised_transposes, peer_transposes, transposes
from tests.onnx.networks import network
from tests.support import refused

PAIR = """g (float[2,3] x) => (float[2,3] y) {
    a = Transpose<perm=[1,0]>(x)
    b = %s(a)
    y = Transpose<perm=[1,0]>(b) }"""


def test_differences_are_relative_to_the_largest_element() -> None:
    """Twice the output differs by 1, a shift by 1 of 100 everywhere by a hundredth."""
    text = "g (float[2,3] x) => (float[2,3] y) { z = Sub(x, x) y = Add(z, k) }"
    whole = network(text, {"k": np.float32(100)})
    for value, expected in ((100, 0), (101, 0.01), (200, 1)):
        assert Outputs(whole).difference(network(text, {"k": np.float32(value)})) == pytest.approx(
            expected
        )


def test_other_shapes_and_missing_numbers_differ_without_bound() -> None:
    """A transposed output is not the same; a NaN is the same as a NaN only."""
    given = network("g (float[2,3] x) => (float[2,3] y) { y = Identity(x) }")
    turned = network("g (float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }")
    assert Outputs(given).difference(turned) == np.inf
    text = "g (float[2,3] x) => (float[2,3] y) { z = Sub(x, x) y = %s }"
    zero, nan = network(text % "Identity(z)"), network(text % "Div(z, z)")
    assert Outputs(zero).difference(nan) == Outputs(nan).difference(zero) == np.inf
    assert Outputs(nan).difference(nan) == 0


def test_transposes_are_counted_before_and_after_other_optimisers() -> None:
    """The pair around an op goes; those inside nodes are counted, too."""
    model = network(PAIR % "Relu")
    assert transposes(model) == 2
    assert optimised_transposes(model) == 0
    inner = network(
        """g (float[2,3] x, bool c) => (float[a,b] y) { y = If(c) <
        then_branch = one () => (t) { t = Transpose<perm=[1,0]>(x) },
        else_branch = two () => (u) { u = Transpose<perm=[1,0]>(x) } > }"""
    )
    assert transposes(inner) == 2
    own = network("g (float[2,3] x) => (float[a,b] y) { y = own.Transpose(x) }", domains=["own"])
    assert transposes(own) == 0
    called = network(
        """g (float[2,3] x) => (float[2,3] y) { a = own.Turn(x) y = own.Turn(a) }
        <domain: "own", opset_import: ["" : 17]> Turn (p) => (q) { q = Transpose(p) }""",
        domains=["own"],
    )
    assert transposes(called) == 2


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, package: str, text: str) -> None:
    """Let a package be all that is installed of other optimisers."""
    for other in ("onnxsim", "onnxslim"):
        monkeypatch.setitem(sys.modules, other, None)
    monkeypatch.delitem(sys.modules, package)
    (folder / f"{package}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)


def test_other_optimisers_are_asked_if_they_are_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that is not installed is None; one that is gets a copy."""
    text = "def simplify(model):\n    del model.graph.node[1:]\n    return model, True"
    install(monkeypatch, tmp_path, "onnxsim", text)
    model = network(PAIR % "Relu")
    counts = {"onnxruntime": 0, "onnxslim": None, "onnxsim": 1}
    assert peer_transposes(model) == (counts, ["onnxslim is not installed"])
    assert transposes(model) == 2


FITTING = {
    "a window of 5": """g (float[n,c,h] x) => (float[n,c,m] y) {
        p = Constant<value = int64[6] {0,0,9,0,0,9}>() z = Pad<mode="reflect">(x, p)
        y = Transpose<perm=[0,1,2]>(z) }""",
    "a batch of one": """g (float[b,3] x, float[1,3] w) => (float[b,c] y) {
        i = Constant<value = int64[1] {0}>() s = Constant<value = int64[2] {1,3}>()
        r = Reshape(x, s) y = Add(r, w) }""",
    "zero only": """g (float[1,3] x, int64[n] i) => (float[n,3] y) { y = Gather(x, i) }""",
    "sizes below zero": """g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }""",
}


@pytest.mark.parametrize("name", FITTING)
def test_inputs_are_drawn_in_another_way_where_a_network_does_not_run(name: str) -> None:
    """Sizes and integers that do not fit are no fault of a network, and it is compared."""
    model = network(FITTING[name])
    if name == "sizes below zero":
        for axis in range(2):
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = -1
    result = layoutopt.convert(model, check=True)
    assert result.difference == 0
    assert result.notes == ()


NEVER = {
    "an op that is not known": ("g (float[2,3] x) => (float[2,3] y) { y = my.Twist(x) }", "Twist"),
    "an index that is never there": (
        """g (float[2,3] x) => (float[1,3] y) {
        i = Constant<value = int64[1] {7}>() j = Abs(i) y = Gather(x, j) }""",
        "Gather",
    ),
}


@pytest.mark.parametrize("name", NEVER)
def test_a_network_that_never_runs_is_converted_with_a_note(name: str) -> None:
    """Nothing is compared, and the note says why, in one line."""
    text, why = NEVER[name]
    result = layoutopt.convert(network(text, domains=["my"]), check=True)
    assert result.difference is None
    [note] = result.notes
    assert note.startswith("outputs of the given network could not be computed: ")
    assert why in note
    assert "\n" not in note


def test_inputs_without_numbers_are_refused() -> None:
    """Maps are no numbers, and nothing is drawn for them."""
    text = "g (map(int64, float[2]) x) => (map(int64, float[2]) y) { y = Identity(x) }"
    with refused("input 'x' is no tensor, and cannot be drawn at random"):
        random_inputs(network(text))


@pytest.mark.parametrize(
    ("fault", "why"),
    [("raise KeyError('y and more')", "KeyError: 'y and more'"), ("os.abort()", "SIGABRT")],
)
def test_optimisers_that_fail_are_told_of_in_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, why: str
) -> None:
    """What onnxruntime cannot load, and whatever another optimiser does, ends no conversion."""
    odd = network("g (float[2,3] x) => (float[2,3] y) { y = my.Twist(x) }", domains=["my"])
    install(monkeypatch, tmp_path, "onnxslim", f"import os\ndef slim(model):\n    {fault}")
    counts, notes = peer_transposes(odd)
    assert counts == {"onnxruntime": None, "onnxslim": None, "onnxsim": None}
    assert notes[0].startswith("onnxruntime cannot load it (") and "Twist" in notes[0]
    assert "from model.onnx failed" in notes[0]
    assert notes[1].startswith("onnxslim cannot optimise it (") and why in notes[1]
    assert notes[2:] == ["onnxsim is not installed"]


def test_running_without_onnxruntime_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check needs a package that is not always there."""
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with refused('running a network needs onnxruntime, an extra: pip install ".['):
        layoutopt.convert(network(PAIR % "Relu"), check=True)


def test_outputs_that_depend_on_random_numbers_are_not_compared() -> None:
    """What is drawn anew in each run differs, though nothing is wrong."""
    model = network(
        """g (float[2,3] x) => (float[2,3] y, float[2,3] z) {
        r = RandomNormalLike(x) a = Transpose<perm=[1,0]>(x) z = Transpose<perm=[1,0]>(a)
        y = Add(x, r) }"""
    )
    result = layoutopt.convert(model, check=True)
    assert result.difference == 0
    assert result.notes == ("outputs that depend on random numbers are not compared: 'y'",)


CRASH = """g (float[2,3,4] x) => (float[2,3,4] y, float[3] v) {
    t = Transpose<perm=[0,2,1]>(x) a = Transpose<perm=[0,2,1]>(t)
    y, , v = BatchNormalization<training_mode = 1>(a, w, w, w, w) }"""
"""What ends the process that onnxruntime runs in: training without the mean's output."""

ENDLESS = """g (float[2,3] x) => (float[2,3] y) {
    a = Transpose<perm=[1,0]>(x) y = Transpose<perm=[1,0]>(a) c = Loop(rounds, yes, x)
    <body = b (int64 i, bool g, float[2,3] u) => (bool h, float[2,3] v) {
        h = Identity(g) v = Relu(u) }> }"""
"""What goes on for as many rounds as there are numbers."""


@pytest.mark.parametrize(
    ("text", "reason"), [(CRASH, r"crashed \(SIGSEGV\)"), (ENDLESS, "took longer than .* s")]
)
def test_a_crash_of_onnxruntime_is_a_note(
    text: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network is converted, and nothing is compared; the next one is."""
    monkeypatch.setattr(running, "PATIENCE", 1.0)
    model = network(text, {"w": (3,), "rounds": np.array(2**62), "yes": np.array(True)})
    result = layoutopt.convert(model, check=True)
    assert transposes(result.model) == 0
    [note] = result.notes
    assert re.fullmatch(
        "outputs of the given network could not be computed: onnxruntime cannot run it: "
        f"its process {reason}",
        note,
    )
    assert layoutopt.convert(network(PAIR % "Relu"), check=True).difference == 0


def test_constants_that_make_onnxruntime_crash_are_computed_by_other_means() -> None:
    """A constant part that ends its process stays no reason to end."""
    text = CRASH.replace("float[2,3,4] x) =>", "float[3] z) =>").replace("(x)", "(x0)")
    model = network(text, {"x0": (2, 3, 4), "w": (3,)})
    assert transposes(layoutopt.convert(model).model) == 0


def test_a_run_that_hangs_ends_at_its_limit() -> None:
    """What takes longer than it may is ended with its process, and the next run begins anew."""
    model = network(
        """g (int64 n, float x) => (float y) { c = Constant<value = bool {1}>()
        y = Loop(n, c, x) <body = b (int64 i, bool d, float v) => (bool e, float w) {
        e = Identity(d) w = Sin(v) } > }"""
    )
    begun = time.monotonic()
    session = Session(model.SerializeToString())
    with session, pytest.raises(CrashError, match=r"took longer than 0\.2 s"):
        session.run({"n": np.array(2**40), "x": np.array(1, np.float32)}, seconds=0.2)
    assert time.monotonic() - begun < 10
    with session:
        [found] = session.run({"n": np.array(0), "x": np.array(1, np.float32)})
    assert found == 1
