"""A cluster of a real scheduler and two workers on this machine, and one made up."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from layoutopt.bench.executors import DaskCluster
from layoutopt.bench.job import InstanceSource, Job, Solve
from layoutopt.bench.run import RunProgress, batch
from tests.support import refused

SUITE = """
[suite]
solvers = ["greedy0", "auto"]
time_limit = 60
[[family]]
name = "random"
parameters = { elements = 12, ops = 12 }
seeds = "0..23"
"""


MODULE = "distributed.cli.dask_"


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    """Return the scheduler file of a cluster, and its processes: a scheduler and two workers."""
    pytest.importorskip("distributed", reason="Dask is not installed")
    file = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(file), "--no-dashboard", "--host", "127.0.0.1"]
    worker = [f"{MODULE}worker", *common, "--nthreads", "1", "--no-nanny"]
    commands = [[f"{MODULE}scheduler", *common, "--port", "0"], worker, worker]
    processes: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        for command in commands:
            log = stack.enter_context((tmp_path / f"{len(processes)}.log").open("wb"))
            words = [sys.executable, "-m", *command]
            processes.append(subprocess.Popen(words, stdout=log, stderr=log, cwd=tmp_path))
            stack.callback(processes[-1].wait)
            stack.callback(processes[-1].kill)
            while not file.exists():
                assert processes[0].poll() is None
                time.sleep(0.05)
        wait_for_workers(file, 2)
        yield file, processes


def wait_for_workers(file: Path, count: int) -> None:
    """Wait until all workers of a cluster are there."""
    from distributed import Client

    with Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)


def test_a_cluster_whose_worker_is_killed_does_all(
    dask: tuple[Path, list[subprocess.Popen[bytes]]], tmp_path: Path
) -> None:
    """One of two workers dies in mid-run; the other does its work, and the table is complete.

    A second run finds everything known.  No process is left to either of them.
    """
    import psutil  # which Dask needs itself

    file, (_, worker, other) = dask
    suite, store = tmp_path / "suite.toml", tmp_path / "b.sqlite"
    suite.write_text(SUITE)
    heard: list[RunProgress] = []

    def note(progress: RunProgress) -> None:
        heard.append(progress)
        if progress.done == 16:
            worker.kill()

    with DaskCluster(str(file)) as executor:
        first = batch([suite], store, executor, on_progress=note)
        assert worker.poll() is not None
    assert (first.progress.done, first.progress.failed, first.progress.left) == (48, 0, 0)
    assert len(first.rows) == 48
    assert {row.status for row in first.rows} == {"optimal", "feasible"}
    with DaskCluster(str(file)) as executor:
        second = batch([suite], store, executor)
    assert second.progress.known == 48
    assert second.rows == first.rows
    assert psutil.Process(other.pid).children() == []


class Given:
    """A job that a made-up cluster has been given."""

    def __init__(self, answer: Any, status: str) -> None:
        self.answer, self.status = answer, status
        self.done: Callable[[Given], None] | None = None

    def add_done_callback(self, done: Callable[[Given], None]) -> None:
        """Note whom to tell."""
        self.done = done

    def result(self) -> Any:
        """Return the answer, or raise it."""
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def end(self) -> None:
        """Tell that it is over."""
        assert self.done is not None
        self.done(self)


class Client:
    """A made-up cluster that has one answer to all jobs."""

    def __init__(self, status: str, answer: Any) -> None:
        self.status, self.answer = status, answer
        self.jobs: list[Given] = []
        self.cancelled: list[Given] = []

    def submit(self, fn: Callable[..., Any], job: Job, pure: bool) -> Given:
        """Take a job."""
        assert not pure  # else equal jobs would be carried out once
        self.jobs.append(Given(self.answer, self.status))
        return self.jobs[-1]

    def cancel(self, jobs: list[Given]) -> None:
        """Note what is cancelled."""
        self.cancelled += jobs

    def close(self) -> None:
        """Leave the cluster, with an error if it has gone."""
        logging.getLogger("distributed.client").error("it has gone")


def cluster(client: Client) -> DaskCluster:
    """Return an executor on a made-up cluster."""
    executor = DaskCluster.__new__(DaskCluster)
    executor.client, executor.pending = client, set()
    return executor


JOB = Job(InstanceSource("a", "a.json"), "identity", (Solve("auto", 1.0),), 1.0, "7", "box")


def carried(answer: Any, status: str = "finished") -> list[Any]:
    """Return what comes of a job with such an answer, whatever its status is by then."""
    client, found = Client(status, answer), list[Any]()
    future = cluster(client).submit(JOB, found.append)
    assert not future.done()
    client.jobs[0].end()
    future.result()
    return found


@pytest.mark.parametrize("status", ["finished", "pending", "lost"])
def test_a_result_that_was_fetched_is_one(status: str) -> None:
    """Two outcomes are two outcomes, though their worker may have died since."""
    assert carried(["one", "two"], status) == ["one", "two"]


def test_errors_are_passed_on() -> None:
    """An error of a job is its error; a cluster that goes away is one line."""
    with pytest.raises(KeyError, match="x"):
        carried(KeyError("x"))
    with refused("the cluster has gone", "run again"):
        carried(CancelledError())


def test_a_job_that_a_cluster_lost_is_a_row() -> None:
    """Errors of the cluster become failures."""
    dask = type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})
    [outcome] = carried(dask("died three times"))
    assert (outcome.row.status, outcome.row.error) == ("failed", "KilledWorker: died three times")


def test_what_is_left_is_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    """At the end the cluster is told of jobs that are not over, and of no others.

    Dask's own errors about a cluster that has gone are not printed.
    """
    client = Client("pending", [])
    executor = cluster(client)
    for _ in range(3):
        executor.submit(JOB, print)
    client.jobs[1].end()
    executor.close()
    assert set(client.cancelled) == {client.jobs[0], client.jobs[2]}
    assert caplog.messages == []
