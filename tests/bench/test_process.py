"""Whole runs in processes of their own: killed, interrupted, two at a time."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from layoutopt.base.errors import InputError
from layoutopt.bench.row import Row
from layoutopt.bench.store import reading
from tests.cli.conftest import Run, run
from tests.faults.support import begun, ended, files

__all__ = ["run"]

SUITE = """
[suite]
solvers = ["greedy0", "auto", "mip"]
time_limit = 60
[[family]]
name = "random"
parameters = { elements = 10 }
seeds = "0..15"
[[family]]
name = "aliases"
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return a suite of 51 solves, each of which takes a moment."""
    path = tmp_path / "suite.toml"
    path.write_text(SUITE)
    return path


def batch(suite: Path, store: Path, jobs: int = 1) -> subprocess.Popen[str]:
    """Begin a batch run."""
    return begun("bench", suite, "--store", store, "--jobs", jobs)


def stored(store: Path) -> list[Row]:
    try:
        with reading(store) as opened:
            return opened.rows()
    except InputError:  # there is none yet
        return []


def wait_for(store: Path, rows: int, process: subprocess.Popen[str]) -> None:
    """Wait until a store has so many rows."""
    patience = time.monotonic() + 60
    while len(stored(store)) < rows and process.poll() is None:
        assert time.monotonic() < patience
        time.sleep(0.02)


def table(store: Path) -> list[Row]:
    """Return the rows without what no two runs have in common."""
    idle = {"seconds": 0.0, "cpu_seconds": None, "phases": {}, "peak_bytes": None}
    return [replace(row, started="", trace=(), **idle) for row in stored(store)]


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_table(
    suite: Path, tmp_path: Path, run: Run
) -> None:
    """SIGKILL at any moment loses no row that was there, and the last run completes the table."""
    whole, broken = tmp_path / "whole.sqlite", tmp_path / "broken.sqlite"
    assert run("bench", suite, "--store", whole, "--in-process", "--quiet").code == 0
    draw, before = random.Random(0), 0
    for wanted in (1, 20):
        with batch(suite, broken, jobs=2) as process:
            wait_for(broken, wanted, process)
            time.sleep(draw.random() / 20)
            assert process.poll() is None
            process.kill()
        now = len(stored(broken))
        assert now >= max(before, wanted)
        before = now
    assert before < 51
    last = ended(batch(suite, broken))
    assert last.code == 0, last.err
    assert f"{before:,} known before" in last.err
    assert "auto" in last.out
    assert len(table(whole)) == 51
    assert table(broken) == table(whole)
    assert not (tmp_path / "broken.sqlite.lock").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_says_how_to_go_on(
    suite: Path, tmp_path: Path, number: int
) -> None:
    """A signal ends the run cleanly: rows are kept, and the exit code tells the signal."""
    store = tmp_path / "b.sqlite"
    process = batch(suite, store)
    wait_for(store, 10, process)
    process.send_signal(number)
    found = ended(process)
    assert found.code == 128 + number
    assert found.err.splitlines()[-2:] == [
        f"layoutopt: results are in {store}, the same command continues",
        "interrupted",
    ]
    assert "auto" in found.out
    assert 10 <= len(stored(store)) < 51
    assert files(tmp_path) == ["b.sqlite", "suite.toml"]


def test_two_runs_at_once(suite: Path, tmp_path: Path, run: Run) -> None:
    """While a run has a store, a second one is refused in one line, and harms nothing."""
    store = tmp_path / "b.sqlite"
    with batch(suite, store) as process:
        wait_for(store, 1, process)
        second = run("bench", suite, "--store", store, "--in-process")
        assert second.code == 2
        assert second.err == f"layoutopt: {store}: is used by another run, which must end first\n"
        shown = run("bench", "show", store)
        assert shown.code == 0
        process.communicate(timeout=120)
    assert process.returncode == 0
    assert len(stored(store)) == 51


def test_bad_input_ends_the_workers_too(tmp_path: Path) -> None:
    """A wrong suite is one line and exit code 2, although workers have begun to start."""
    found = ended(batch(tmp_path / "none.toml", tmp_path / "b.sqlite"))
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"layoutopt: {tmp_path}/none.toml: no such file")
    assert len(found.err.splitlines()) == 1
