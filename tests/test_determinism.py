"""Equal calls write equal bytes, in whatever process and however Python orders its sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import FIGURES
from layoutopt import Graph, write_instance
from layoutopt.generate.random_graphs import random_graph
from layoutopt.tiles.memory import TileMemory
from tests.onnx.exports import random_export

COMMANDS = (Path(__file__).parent / "cases/commands.txt").read_text().splitlines()
"""Commands on instances with tiles that are too small, traps, hooks and negative values."""

DRIVER = """
import json, sys
from layoutopt.cli.main import app
for text in json.loads(sys.argv[1]):
    sys.argv = ["layoutopt", *text.split()]
    print(text, app(sys.argv[1:], standalone_mode=False), flush=True)
"""


def rivals() -> Graph:
    """Return a graph on tiles with a barrier whose hook is obeyed."""
    graph = Graph("rivals")
    x = graph.sink((4, 2), name="x")
    graph.valued_pair(graph.barrier([x], (4,), hook="reduce"), graph.source((4,), name="s"), 3)
    graph.valued_pair(x, graph.source((4, 2), [1] * 8, name="t"), 2)
    graph.tile_memory = TileMemory(3, 64)
    return graph


def crowd() -> Graph:
    """Return a graph whose sinks want more of two tiles than these hold."""
    graph = Graph("crowd")
    for i in range(9):
        x = graph.sink((3,), name=f"x{i}")
        for tile in range(3):
            graph.valued_pair(x, graph.source((3,), [tile] * 3), 1 + (i * (tile + 2)) % 5)
    graph.tile_memory = TileMemory(4, 32)
    return graph


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what all runs read."""
    folder = tmp_path_factory.mktemp("given")
    graphs = {
        "crowd": crowd(),
        "figure": FIGURES["chained_calls_copies"](),
        "rivals": rivals(),
        "tree": random_graph(5, elements=80, ops=40, negative=True),
    }
    for name, graph in graphs.items():
        write_instance(graph, folder / f"{name}.json")
    (folder / "net.onnx").write_bytes(random_export(3, 31).SerializeToString())
    return folder


def written(given: Path, folder: Path, seed: str, commands: list[str]) -> dict[str, bytes]:
    """Return all files that commands write in a process of their own, and what they print."""
    folder.mkdir()
    for path in given.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(commands)],
        cwd=folder,
        env=os.environ | {"PYTHONHASHSEED": seed, "COLUMNS": "80"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    files = (path for path in folder.iterdir() if not path.name.startswith("s.sqlite"))
    return {path.name: path.read_bytes() for path in files} | {"stdout": done.stdout}


def test_equal_calls_write_equal_bytes(given: Path, tmp_path: Path) -> None:
    """Every command writes and prints the same for other hash seeds, which order sets.

    Nor does an answer depend on what a process was asked before: the first is as after all others.
    """
    early, late = (f"solve tree.json --json {n}.json --no-seconds" for n in ("early", "late"))
    commands = [early, *COMMANDS, late]
    first, second = (written(given, tmp_path / seed, seed, commands) for seed in ("0", "1"))
    assert len(first) > 40
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert first["early.json"] == first["late.json"]


def test_only_seconds_differ_where_they_are_told(given: Path, tmp_path: Path) -> None:
    """Result files of two calls are equal but for the values under ``seconds``."""
    commands = [f"solve tree.json --json {n}.out.json --quiet" for n in "ab"]
    files = written(given, tmp_path / "told", "0", commands)
    runs = [json.loads(files[f"{n}.out.json"]) for n in "ab"]
    for run in runs:
        assert all(seconds > 0 for seconds in run.pop("seconds").values())
    assert runs[0] == runs[1]
