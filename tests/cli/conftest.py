from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from layoutopt import Graph, write_instance
from layoutopt.cli.main import main


class Ran(NamedTuple):
    """Exit code, stdout and stderr of one command."""

    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs the command line in this process."""
    # A solver that an earlier test left may still run, and the command would end the process.
    monkeypatch.setattr("layoutopt.cli.main._end", sys.exit)

    def call(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["layoutopt", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ran(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """Return an instance on which greedy0 loses: score 8 instead of 15.

    Five aliases of ``x`` at ``b`` are worth 3 each, one pair at ``a`` 8.
    """
    graph = Graph("aliases")
    x = graph.sink((1,), name="x")
    a, b = graph.source((1,), name="a"), graph.source((1,), name="b")
    for _ in range(5):
        graph.valued_pair(graph.identity(x), b, 3)
    graph.valued_pair(x, a, 8)
    path = tmp_path / "aliases.json"
    write_instance(graph, path)
    return path
