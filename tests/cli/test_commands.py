from __future__ import annotations

import gzip
import sys
from pathlib import Path

import onnx
import pytest

from layoutopt import Evaluation, SolverError, write_instance
from layoutopt.generate.random_graphs import random_graph
from layoutopt.tiles.hooks import hook
from layoutopt.unwinding import SOLVERS
from tests.cli.conftest import Run
from tests.machine.test_capacitated import full
from tests.onnx.networks import network
from tests.support import swap_solver


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_help_names_every_solver(run: Run, command: str) -> None:
    told = run(command, "--help").out.replace(".", ",").split()
    assert {f"{name}," for name in SOLVERS} <= set(told)


@pytest.mark.parametrize("seed", range(3))
def test_check_agrees_with_solve(run: Run, tmp_path: Path, seed: int) -> None:
    path, target = tmp_path / "random.json.gz", tmp_path / "result.json.gz"
    write_instance(random_graph(seed), path)
    assert run("solve", path, "--json", target, "--quiet").code == 0
    assert gzip.decompress(target.read_bytes()).startswith(b'{"format"')
    ran = run("check", path, target)
    assert ran.code == 0
    assert "legal" in ran.out


def test_a_wrong_answer_is_never_given(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layoutopt.unwinding.evaluate", lambda *_: Evaluation(("broken",), None, 0))
    ran = run("solve", instance)
    assert (ran.code, ran.out) == (70, "")
    assert "internal error" in ran.err


def test_a_solver_that_fails_is_told_in_one_line(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SolverError("it failed")

    swap_solver(monkeypatch, "mip", fail)
    ran = run("solve", instance, "--solver", "mip")
    assert (ran.code, ran.out) == (70, "")
    assert ran.err == f"layoutopt: {instance}: internal error, no result: it failed\n"


def test_hooks_that_are_no_views(run: Run, tmp_path: Path) -> None:
    """Prices are refused in one line after the solution; opaque barriers have no hooks."""
    hook("cli-what-if")(lambda inputs, shapes, memory: [inputs[0] * 0 for _ in shapes])
    graph = full()
    odd = graph.barrier([graph.sink((2,), name="z")], (2,), hook="cli-what-if", name="odd")
    graph.valued_pair(odd, graph.source((2,), [0, 0], name="u"), 7)
    path = tmp_path / "hooked.json"
    write_instance(graph, path)
    ran = run("solve", path, "--prices")
    assert ran.code == 2
    assert "barrier 'odd': its hook is no view" in ran.err
    assert run("solve", path, "--prices", "--barriers", "opaque").code == 0


def test_pictures_in_pixels(run: Run, instance: Path) -> None:
    """``--png`` writes PNG, of layouts and of charts."""
    pytest.importorskip("matplotlib")
    first, second = instance.with_name("a.png"), instance.with_name("b.png")
    store = instance.with_name("store.sqlite")
    assert run("bench", instance, "--store", store, "--in-process", "--quiet").code == 0
    assert run("show", instance, "--png", first).code == 0
    assert run("bench", "show", store, "--png", second).code == 0
    for path in (first, second):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_weights_of_a_network_are_not_replaced(run: Run, tmp_path: Path) -> None:
    """A file that a network keeps its weights in is no place for a certificate."""
    model, weights = tmp_path / "net.onnx", tmp_path / "weights.bin"
    text = "g (float[1,8,8,4] x) => (float[1,8,8,4] y) { y = MatMul(x, w) }"
    given = network(text, {"w": (4, 4)})
    onnx.save(given, model, save_as_external_data=True, location=weights.name, size_threshold=0)
    before = weights.read_bytes()
    ran = run("convert", model, "--certificate", weights, "--overwrite")
    assert (ran.code, "is read by this command; give another name" in ran.err) == (2, True)
    assert weights.read_bytes() == before


def test_a_file_that_exists_is_known_before_anything_is_loaded(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversion is not begun when its output may not be written."""
    monkeypatch.setitem(sys.modules, "layoutopt.converting", None)
    there = instance.rename(instance.with_suffix(".onnx"))
    ran = run("convert", "instances/conversion/residual.onnx", "-o", there)
    assert "exists already" in ran.err
