"""``layoutopt explain``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layoutopt import write_instance
from tests.cli.conftest import Run
from tests.cli.test_bad_input import refused
from tests.explain.test_pair import rivals, split, tight
from tests.explain.test_told import CHAINED, FIGURES

CALLS = FIGURES / "chained_calls_copies.json"


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Return an instance: one sink that three pairs pull apart."""
    path = tmp_path / "split.json"
    write_instance(split(), path)
    return path


def test_a_pair_and_a_sink(run: Run) -> None:
    """Without a result the instance is solved first."""
    ran = run("explain", CALLS, "--pair", "x", "target_x")
    assert (ran.code, ran.out) == (0, f"{CHAINED}\n")
    ran = run("explain", CALLS, "--sink", "x")
    assert (ran.code, ran.out) == (
        0,
        f"x: 6 elements\n  6 lie where matmul does and earn 72\n\n{CHAINED}\n",
    )


def test_of_a_result(run: Run, tmp_path: Path) -> None:
    """A result file is explained as it is, also one that is not optimal."""
    path = tmp_path / "greedy.json"
    assert run("solve", CALLS, "--solver", "greedy0", "--json", path).code == 0
    ran = run("explain", CALLS, path, "--pair", "x", "matmul")
    assert ran.code == 0
    assert "130 in all, 6 more than now" in ran.out
    assert "not optimal" in ran.out


def test_json(run: Run, parts: Path, tmp_path: Path) -> None:
    """To stdout instead of the text, or to a file beside it, which is not replaced unasked."""
    ran = run("explain", parts, "--pair", "a", "x", "--json", "-")
    assert json.loads(ran.out)["cost"] == 5
    path = tmp_path / "told.json"
    ran = run("explain", parts, "--sink", "x", "--alternatives", 0, "--json", path)
    assert "1 more pairs that lose" in ran.out
    assert json.loads(path.read_text())["left"] == 1
    assert "--overwrite" in refused(run("explain", parts, "--sink", "x", "--json", path))
    assert run("explain", parts, "--sink", "x", "--json", path, "--overwrite", "-q").out == ""
    assert json.loads(path.read_text())["left"] == 0


def test_on_tiles(run: Run, tmp_path: Path) -> None:
    """Machines and their limits are heeded."""
    path = tmp_path / "tight.json"
    write_instance(tight(), path)
    assert "24 in all, 8 less than now" in run("explain", path, "--pair", "y", "a").out
    machine = tmp_path / "machine.json"
    machine.write_text('{"tiles": 2, "bytes_per_tile": 16}')
    ran = run("explain", path, "--pair", "y", "a", "--tiles", machine)
    assert (ran.code, ran.out) == (3, "")
    assert "infeasible" in ran.err


def test_without_time(run: Run, parts: Path) -> None:
    """Without layouts there is nothing to explain; with some, little."""
    ran = run("explain", parts, "--pair", "x", "a", "--time-limit", 0, "-q")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == f"layoutopt: {parts}: no layouts to explain (time limit)\n"


BAD: list[tuple[list[str], list[str]]] = [
    ([], ["either --pair A B or --sink NAME"]),
    (["--pair", "x", "a", "--sink", "x"], ["either --pair A B or --sink NAME"]),
    (["--pair", "x"], ["--pair", "2 arguments"]),
    (["--pair", "b", "c"], ["no valued pair of 'b' and 'c'"]),
    (["--sink", "a"], ["'a' is not a sink"]),
    (["--sink", "q"], ["unknown tensor 'q'"]),
    (["--sink", "x", "--alternatives", "-1"], ["--alternatives -1", "0 or more"]),
    (["--pair", "x", "a", "--alternatives", "2"], ["--alternatives 2", "--sink"]),
    (["--sink", "x", "--time-limit", "-1"], ["--time-limit"]),
    (["none.json", "--sink", "x"], ["none.json", "no such file"]),
]


@pytest.mark.parametrize(("words", "why"), BAD, ids=lambda x: " ".join(x))
def test_bad_input(run: Run, parts: Path, words: list[str], why: list[str]) -> None:
    """One line that names what is wrong."""
    line = refused(run("explain", parts, *words))
    assert all(part in line for part in why)


def test_another_graphs_result(run: Run, parts: Path, tmp_path: Path) -> None:
    """The line names the file."""
    other, result = tmp_path / "rivals.json", tmp_path / "result.json"
    write_instance(rivals(), other)
    assert run("solve", other, "--json", result).code == 0
    line = refused(run("explain", parts, result, "--sink", "x", "-q"))
    assert str(result) in line
    assert "another instance" in line
