"""``--barriers`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layoutopt import Graph, write_instance
from layoutopt.tiles.memory import TileMemory
from tests.cli.conftest import Run, unbind
from tests.cli.test_bad_input import refused


@pytest.fixture
def reduced(tmp_path: Path) -> Path:
    """Return an instance whose reduction wants the other tiles than what is reduced.

    ``x`` wants tile 0 everywhere for 1.  The reduction wants tiles 1, 1, for 3: two elements of
    ``x`` can move.  By the linear rule it lies on 0, 1.
    """
    graph = Graph("reduced")
    x = graph.sink((2, 2), name="x")
    graph.valued_pair(x, graph.source((2, 2), [0] * 4, name="s"), 1)
    out = graph.barrier([x], (2,), hook="reduce", name="r")
    graph.valued_pair(out, graph.source((2,), [1, 1], name="t"), 3)
    graph.tile_memory = TileMemory(2, 64)
    path = tmp_path / "reduced.json"
    write_instance(graph, path)
    return path


@pytest.mark.parametrize(("flag", "score"), [(None, 8), ("simulated", 8), ("opaque", 7)])
def test_solving_and_checking(run: Run, reduced: Path, flag: str | None, score: int) -> None:
    """A result is that of hooks obeyed or ignored, and holds when it is checked alike."""
    words = [] if flag is None else ["--barriers", flag]
    path = reduced.with_name("result.json")
    assert run("solve", reduced, "--json", path, "--quiet", *words).code == 0
    document = json.loads(path.read_text())
    assert (document["score"], document["bound"]) == (score, score)
    assert run("check", reduced, path, *words).code == 0
    table = run("compare", reduced, "--solver", "auto", *words).out
    assert f" {score} " in table
    other = "opaque" if flag != "opaque" else "simulated"
    words = ["--barriers", other]
    assert "$.instance_hash: belongs to another" in refused(run("check", reduced, path, *words))
    unbind(path)
    ran = run("check", reduced, path, *words)
    assert ran.code == 1
    assert "score: the layouts have" in ran.out


def test_wrong_words(run: Run, reduced: Path) -> None:
    """What cannot be is refused in one line."""
    for command in ("solve", "compare"):
        line = refused(run(command, reduced, "--barriers", "open"))
        assert "unknown barriers 'open'; known: opaque, simulated" in line
    text = reduced.read_text().replace('"reduce"', '"softmax"')
    reduced.write_text(text)
    assert "barrier 'r': unknown hook 'softmax'; known: " in refused(run("solve", reduced))
    assert run("solve", reduced, "--barriers", "opaque", "--quiet").code == 0


def test_showing(run: Run, reduced: Path) -> None:
    """An instance with hooks is shown with what its reductions leave."""
    ran = run("show", reduced)
    assert ran.code == 0
    assert "4 free" in ran.out
