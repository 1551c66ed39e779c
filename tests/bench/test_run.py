"""Runs in this process: what is planned, kept, skipped, told and stopped."""

from __future__ import annotations

import signal
import sys
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from layoutopt.base.errors import InputError
from layoutopt.base.limits import Stopped
from layoutopt.bench.executors import InProcess, Processes
from layoutopt.bench.job import Job
from layoutopt.bench.row import Row
from layoutopt.bench.run import Report, batch
from layoutopt.bench.store import reading
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import write_instance
from layoutopt.unwinding import unwind
from tests.bench.support import pair_graph
from tests.support import refused

SOLVERS = {"solvers": ("greedy0", "auto"), "time_limit": 9.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two instances."""
    folder = tmp_path / "in"
    folder.mkdir()
    for value, name in enumerate(("a", "b"), start=3):
        write_instance(pair_graph(name, value), folder / f"{name}.json")
    return folder


def ran(folder: Path, **options: Any) -> Report:
    overrides = SOLVERS | options.pop("overrides", {})
    with InProcess() as executor:
        return batch(folder, folder.parent / "b.sqlite", executor, overrides=overrides, **options)


def stored(folder: Path) -> list[Row]:
    with reading(folder.parent / "b.sqlite") as store:
        return store.rows()


def test_where_all_is_known_no_worker_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is imported for solvers, in no process; a name that is not default is checked."""
    store, overrides = folder.parent / "b.sqlite", {"solvers": ("greedy0", "auto")}
    with Processes(2) as executor:
        assert batch([folder], store, executor, overrides=overrides).progress.done == 4
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Processes(2) as executor:
        assert batch([folder], store, executor, overrides=overrides).progress.known == 4
        with refused("a worker was ended by exit code 1 at its start"):
            batch([folder], store, executor, overrides={"solvers": ("best",)})
    with refused("count must be an integer of 1 or more, got 0"):
        Processes(0)


def test_a_run_does_what_is_new_only(folder: Path) -> None:
    """A new instance, solver, seed, repetition, limit or label adds rows; a copy does not."""
    ran(folder)
    (folder / "copy.json").write_bytes((folder / "a.json").read_bytes())
    assert ran(folder).progress.done == 0
    write_instance(pair_graph("c"), folder / "c.json")
    assert ran(folder).progress.done == 2
    assert ran(folder, overrides={"solvers": ("greedy0", "mip")}).progress.done == 3
    assert ran(folder, overrides={"seeds": (0, 1)}).progress.done == 6
    assert ran(folder, overrides={"repeats": 2}).progress.done == 6
    assert ran(folder, overrides={"time_limit": 8.0}).progress.done == 6
    assert ran(folder, label="mine").progress.done == 6
    assert ran(folder, machine="other").progress.done == 6
    assert len(stored(folder)) == 6 + 3 + 6 * 5
    assert {r.version.partition("+")[2] for r in stored(folder)} == {"", "mine"}


def test_failures_are_kept_and_done_again_when_asked(folder: Path) -> None:
    """A file that is no instance fails once, with a log, until it is asked for again."""
    (folder / "a.json").write_text("{}")
    first = ran(folder)
    assert first.progress.failed == 2
    [bad, _] = [r for r in stored(folder) if r.status == "failed"]
    log = folder.parent / bad.log
    assert bad.log.startswith("b.sqlite.logs/a-")
    assert bad.error in log.read_text()
    assert "Traceback" in log.read_text()
    assert ran(folder).progress.done == 0
    assert ran(folder, retry=True).progress.failed == 2
    write_instance(pair_graph(), folder / "a.json")
    assert ran(folder).progress.done == 2


def test_a_file_edited_during_a_run_fails(folder: Path) -> None:
    """Nothing is stored of the new content as if it were the old one, which is solved again."""
    file = folder / "b.json"
    before = file.read_bytes()
    edited = pair_graph("b", 1000)
    told = ran(folder, on_progress=lambda _: write_instance(edited, file))
    assert [row.instance for row in told.rows if "changed after" in row.error] == ["b", "b"]
    file.write_bytes(before)
    assert max(row.score or 0 for row in ran(folder, retry=True).rows) == 8


def test_a_failure_that_is_mended_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a solver works again, ``retry`` puts its row in place of the failure, log and all."""

    def broken(*_: object, **__: object) -> None:
        raise ValueError("not today")

    with monkeypatch.context() as patch:
        patch.setattr("layoutopt.unwinding.unwind", broken)
        patch.setattr("layoutopt.bench.job.Worker.solvers", lambda _: ("auto", "greedy0"))
        assert ran(folder).progress.failed == 4
    logs = folder.parent / "b.sqlite.logs"
    assert len(list(logs.iterdir())) == 4
    assert ran(folder, retry=True).progress.failed == 0
    assert {r.status for r in stored(folder)} == {"optimal", "feasible"}
    assert list(logs.iterdir()) == []


class Stopping(InProcess):
    """Carries jobs out; with one of them comes a signal."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs
        self.handler: Any = None

    def submit(self, job: Job, on_outcome: Any) -> Future[None]:
        """Carry a job out, the signal first if its time has come."""
        self.jobs -= 1
        if self.jobs == 0:
            signal.raise_signal(signal.SIGINT)
            self.handler = signal.getsignal(signal.SIGINT)
        return super().submit(job, on_outcome)


def test_a_signal_stops_the_run(folder: Path) -> None:
    """What has come in is kept, and a second Ctrl-C acts as usual."""
    before = signal.getsignal(signal.SIGINT)
    with Stopping(3) as stopping:
        report = batch([folder], folder.parent / "b.sqlite", stopping, overrides=SOLVERS)
    assert (report.interrupted, report.progress.done, report.progress.left) == (True, 3, 1)
    assert len(stored(folder)) == 3
    assert stopping.handler == before
    again = ran(folder)
    assert (again.interrupted, again.progress.done) == (False, 1)
    assert signal.getsignal(signal.SIGINT) == before


def test_ctrl_c_in_a_solve_stops_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver in this process that was interrupted ends the run, without a row."""

    def interrupted(graph: Graph, solver: str, **_: object) -> object:
        found = unwind(graph, solver)
        return replace(found, stopped=Stopped.INTERRUPTED) if graph.name == "b" else found

    monkeypatch.setattr("layoutopt.unwinding.unwind", interrupted)
    report = ran(folder)
    assert (report.interrupted, report.progress.done) == (True, 2)


def test_memory_limits_need_workers(folder: Path) -> None:
    """A run in this process is not limited, and does not pretend to be."""
    with refused("memory limit"):
        ran(folder, overrides={"memory": "1G"})


def test_wrong_suites_leave_no_store(folder: Path) -> None:
    """Nothing is made before all suites are read."""
    with pytest.raises(InputError), InProcess() as executor:
        batch([folder, folder / "none"], folder.parent / "b.sqlite", executor)
    assert not (folder.parent / "b.sqlite").exists()
