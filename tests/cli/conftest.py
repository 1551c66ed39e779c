from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from layoutopt import write_instance
from layoutopt.cli.main import main
from tests.support import aliases


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
    """Return an instance on which greedy0 loses: a score of 8 where 15 can be had."""
    path = tmp_path / "aliases.json"
    write_instance(aliases(), path)
    return path
