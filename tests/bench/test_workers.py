"""Workers that crash, hang and eat memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from layoutopt.bench.executors import Processes, WorkerError, WorkerPool, WorkerProcess
from layoutopt.bench.job import InstanceSource, Job, Outcome, Solve, outcomes
from layoutopt.io.instance import write_instance
from tests.bench.support import install_bad_solvers, job_of, pair_graph
from tests.support import refused


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """Return a worker that has bad solvers."""
    folder = install_bad_solvers(tmp_path_factory.mktemp("installed"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        worker = WorkerProcess()
        yield worker
        worker.stop()


def carried(worker: WorkerProcess, job: Job) -> list[Outcome]:
    return list(outcomes(job, worker))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_instance(pair_graph(), tmp_path / "a.json")
    return tmp_path / "a.json"


def test_crashes_are_rows(worker: WorkerProcess, path: Path) -> None:
    """Solvers that end the process, in whatever way, cost a row; those beside them go on."""
    names = ("auto", "dies", "greedy0", "aborts", "raises", "auto")
    solves = [Solve(name, 10.0, repeat=i) for i, name in enumerate(names)]
    found = carried(worker, job_of(path, *solves))
    assert [(o.row.solver, o.row.status, o.row.error) for o in found] == [
        ("auto", "optimal", ""),
        ("dies", "failed", "the worker was ended by exit code 3"),
        ("greedy0", "feasible", ""),
        ("aborts", "failed", "the worker was ended by SIGABRT"),
        ("raises", "failed", "solver 'raises' failed: ValueError: no idea"),
        ("auto", "optimal", ""),
    ]
    assert len({o.row.instance_hash for o in found}) == 1
    logs = [o.log for o in found]
    assert "last words" in logs[1]
    assert "in aborts" in logs[3]  # where it was
    assert "ValueError" in logs[4]
    assert not any(logs[i] for i in (0, 2, 5))


def test_a_time_limit_holds(worker: WorkerProcess, path: Path) -> None:
    """A solver that neither stops nor lets go of the interpreter is killed in the end."""
    begun = time.monotonic()
    solves = Solve("hangs", 3.0), Solve("greedy0", 30.0)
    hung, fine = carried(worker, job_of(path, *solves, grace=1.0))
    assert hung.row.status == "failed"
    assert hung.row.error == "the worker was killed after 4 s without an answer"
    assert "in hangs" in hung.log
    assert 4 <= hung.row.seconds < time.monotonic() - begun < 50
    assert fine.row.status == "feasible"


def test_a_memory_limit_holds(worker: WorkerProcess, path: Path) -> None:
    """A solver that takes more than it may is stopped; the limit does not outlive its solve.

    After a failure that the package foresees a process goes on; out of memory it goes.
    """
    carried(worker, job_of(path, Solve("raises", 10.0)))
    before = worker.process
    carried(worker, job_of(path, Solve("raises", 60.0, memory=1 << 30)))
    assert worker.process is before
    solves = [Solve(name, 60.0, memory=1 << 30) for name in ("eats", "auto")]
    eaten, fine = carried(worker, job_of(path, *solves))
    assert worker.process is not before
    assert (eaten.row.score, fine.row.status) == (6, "optimal")  # greedy0 matches all
    assert eaten.row.stopped == "memory limit"
    assert eaten.row.parameters["memory"] == 1 << 30
    assert eaten.row.peak_bytes is not None
    assert eaten.row.peak_bytes < 1 << 30


def test_too_little_memory_for_any_job_is_refused(worker: WorkerProcess, path: Path) -> None:
    """A limit below what a worker takes from the start ends the run with one line."""
    with refused("50 MiB of memory are too few"):
        carried(worker, job_of(path, Solve("auto", 10.0, memory=50 << 20)))


def test_an_instance_that_cannot_be_made_in_time_is_a_row(worker: WorkerProcess) -> None:
    """The limit holds for making the instance, too, which here takes longer than it may."""
    source = InstanceSource("slow", family="llama-70b", settings=(("layers", "2000"),))
    late = Job(source, "identity", (Solve("auto", 0.0),), 0.2, "7", "box")
    [outcome] = carried(worker, late)
    assert outcome.row.error == "the worker was killed after 0.2 s without an answer"
    assert (outcome.row.instance, outcome.row.instance_hash) == ("slow", "identity")


def test_a_worker_that_died_at_rest_is_replaced(worker: WorkerProcess, path: Path) -> None:
    """What ends an idle process is nobody's failure."""
    carried(worker, job_of(path, Solve("auto", 10.0)))
    assert worker.process is not None
    worker.process.kill()
    worker.process.wait()
    assert [o.row.status for o in carried(worker, job_of(path, Solve("auto", 10.0)))] == ["optimal"]


def test_workers_that_do_not_start_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line that a worker could say is told; a closed pool starts none."""
    pool = WorkerPool()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with refused("a worker was ended by exit code 1 at its start"), pool.worker() as worker:
        worker.solvers()
    pool.close()
    with pytest.raises(WorkerError), pool.worker():
        pass


def test_a_closed_pool_has_no_outcomes(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is at work when the run ends is killed, blames no solve for it, and starts no other."""
    mark = tmp_path / "mark"
    monkeypatch.setenv("MARK", str(mark))
    monkeypatch.syspath_prepend(install_bad_solvers(tmp_path / "installed"))
    found: list[Outcome] = []
    executor = Processes(1)
    future = executor.submit(job_of(path, *SLEEPING), found.append)
    while not mark.exists():
        time.sleep(0.02)
    executor.close()
    assert isinstance(future.exception(), WorkerError)
    assert found == []
    assert not executor.pool.idle
    assert not executor.pool.busy


SLEEPING = (Solve("sleeps", 600.0), Solve("greedy0", 600.0))

ORPHAN = """
import sys
from layoutopt.bench.job import Job, Solve, InstanceSource, identity, outcomes
from layoutopt.bench.executors import WorkerProcess
path, solver, limit = sys.argv[1:]
worker = WorkerProcess()
worker.solvers()
print(worker.process.pid, flush=True)
source, solves = InstanceSource("given", path), (Solve(solver, float(limit)),)
list(outcomes(Job(source, identity(source, "7"), solves, 1.0, "7", "box"), worker))
"""


@pytest.mark.parametrize(("solver", "limit"), [("sleeps", 600.0), ("hangs", 3.0)])
def test_workers_end_with_who_began_them(
    path: Path, tmp_path: Path, solver: str, limit: float
) -> None:
    """A run that is killed leaves no workers behind.

    They end at once; those whose solver keeps the interpreter to itself, soon after its limit.
    """
    mark, installed = tmp_path / "mark", tmp_path / "installed"
    folders = [str(install_bad_solvers(installed)), *filter(None, sys.path)]
    environment = os.environ | {"MARK": str(mark), "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", ORPHAN, str(path), solver, str(limit)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        while not mark.exists():  # it solves
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    patience = time.monotonic() + 20
    while running(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not running(pid)


def running(pid: int) -> bool:
    """Return whether a process runs; one that has ended, and that nobody asked about, does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
