"""A cluster of a real scheduler and two workers on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from layoutopt.bench.executors import cluster
from layoutopt.bench.run import RunProgress, batch
from tests.support import refused

pytest.importorskip("distributed", reason="Dask is not installed")

SUITE = """
[suite]
solvers = ["greedy0", "auto"]
time_limit = 60
[[family]]
name = "random"
parameters = { elements = 12, ops = 12 }
seeds = "0..59"
"""


MODULE = "distributed.cli.dask_"


@pytest.fixture
def dask(tmp_path: Path) -> Iterator[tuple[Path, list[subprocess.Popen[bytes]]]]:
    """Return the scheduler file of a cluster, and its processes: a scheduler and two workers."""
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

    def tell(standing: RunProgress) -> None:
        heard.append(standing)
        if standing.done == 40:
            worker.kill()

    with cluster(str(file)) as team:
        first = batch([suite], store, team, tell=tell)
        assert worker.poll() is not None
    assert (first.standing.done, first.standing.failed, first.standing.left) == (120, 0, 0)
    assert len(first.rows) == 120
    assert {row.status for row in first.rows} == {"optimal", "feasible"}
    with cluster(str(file)) as team:
        second = batch([suite], store, team)
    assert second.standing.known == 120
    assert second.rows == first.rows
    assert psutil.Process(other.pid).children() == []


def test_where_no_scheduler_is_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address is one line that names it."""
    monkeypatch.setattr("layoutopt.bench.executors.PATIENCE", 1)
    with refused("--dask tcp://127.0.0.1:1", "no scheduler"), cluster("tcp://127.0.0.1:1"):
        pass
