"""Executors of jobs: processes of this machine, this process itself, or a cluster."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from layoutopt import __version__
from layoutopt.base.errors import InputError, needed
from layoutopt.bench.job import (
    Instance,
    Job,
    Outcome,
    Spent,
    Worker,
    machine_name,
    outcomes,
    reason,
    unreadable,
)
from layoutopt.bench.process import WorkerPool

OnOutcome = Callable[[Outcome], object]


class JobExecutor(ABC):
    """An executor of jobs; a context manager that closes it.

    Attributes
    ----------
    machine
        Name of the machines.
    slots
        Number of jobs that run in parallel.
    ahead
        Number of jobs to submit ahead, so that no worker idles.
    isolated
        Whether solves run in separate processes, which memory limits require.
    """

    machine = ""
    slots = 1
    ahead = 1
    isolated = True

    @abstractmethod
    def solvers(self) -> tuple[str, ...]:
        """Return the names of available solvers."""

    @abstractmethod
    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Submit a job.

        Parameters
        ----------
        on_outcome
            Called from any thread with outcomes available before the end of the job.

        Returns
        -------
        Future
            The outcomes that were not reported.
        """

    @abstractmethod
    def close(self) -> None:
        """Abort unfinished jobs without outcomes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(JobExecutor):
    """Executor in the process of the run: easy to debug, but limits are not enforced."""

    isolated = False

    def __init__(self) -> None:
        self.machine = machine_name()
        self.worker = Worker()

    def solvers(self) -> tuple[str, ...]:
        """Return the names of available solvers."""
        return self.worker.solvers()

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Run a job at once."""
        future: Future[list[Outcome]] = Future()
        for outcome in outcomes(job, self.worker):
            on_outcome(outcome)
        future.set_result([])
        return future

    def close(self) -> None:
        """Release the last graph."""
        self.worker = Worker()


class Processes(JobExecutor):
    """Executor of local worker processes, started on demand, each driven by a thread."""

    def __init__(self, count: int) -> None:
        self.machine = machine_name()
        self.slots, self.ahead = count, 2 * count
        self.pool, self.threads = WorkerPool(), ThreadPoolExecutor(count)

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that workers have."""
        with self.pool.worker() as worker:
            return worker.solvers()

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Run a job in a thread and its worker process."""
        return self.threads.submit(self._run, job, on_outcome)

    def _run(self, job: Job, on_outcome: OnOutcome) -> list[Outcome]:
        with self.pool.worker() as worker:
            for outcome in outcomes(job, worker):
                on_outcome(outcome)
        return []

    def close(self) -> None:
        """Kill all workers."""
        self.pool.close()
        self.threads.shutdown(cancel_futures=True)


PATIENCE = 30
"""Seconds in which a scheduler must answer, and have its first worker."""

GREETING = 5
"""Seconds in which a scheduler must take a connection."""

AHEAD = 1000
"""Jobs submitted ahead to a scheduler, as workers may join."""


class DaskCluster(JobExecutor):
    """Executor on a Dask cluster, whose workers solve in monitored processes.

    Dask's own executor queries a job's status after fetching its result, and reports an error if
    the worker has died in between.

    Parameters
    ----------
    address
        The scheduler's address, or its scheduler file.

    Raises
    ------
    InputError
        If Dask is not installed, no scheduler answers, or a worker's layoutopt is another version.
    """

    ahead = AHEAD

    def __init__(self, address: str) -> None:
        self.client = _client(address)
        self.pending: set[Any] = set()
        try:
            self.machine, self.names = _describe_workers(self.client, address)
            self.slots = sum(self.client.nthreads().values())
        except BaseException:
            self.client.close()
            raise

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that all workers have."""
        return self.names

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Run a job on a worker; all outcomes are returned at its end."""
        future: Future[list[Outcome]] = Future()
        remote = self.client.submit(_run_on_worker, job, pure=False)
        self.pending.add(remote)

        def finish(remote: Any) -> None:
            try:
                future.set_result(remote.result())
            except CancelledError:
                future.set_exception(InputError("the cluster has gone; run again to continue"))
            except Exception as error:  # of Dask, or of a job: handed on below
                if type(error).__module__.startswith("distributed"):  # workers died repeatedly
                    lost = Instance.unreadable(job, Spent(), reason(error), repr(error))
                    future.set_result(list(unreadable(job, lost)))
                else:
                    future.set_exception(error)
            self.pending.discard(remote)

        remote.add_done_callback(finish)
        return future

    def close(self) -> None:
        """Cancel remaining jobs, end the processes of all workers, and disconnect."""
        self.client.cancel(list(self.pending))
        with suppress(OSError):  # the cluster may have gone
            if self.client.status == "running":
                self.client.run(_end_worker_pool, on_error="ignore")
        self.client.close()


def _client(address: str) -> Any:
    """Return a client of a scheduler with a worker.

    Raises
    ------
    InputError
        If Dask is not installed, or no scheduler answers in time.
    """
    distributed = needed("distributed", "--dask")
    where = _address(address)
    try:
        asyncio.run(_greet(distributed, where))  # a client would try for minutes
        client = distributed.Client(where, timeout=PATIENCE, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:  # a TimeoutError is an OSError
        why = " ".join(str(error).split()) or f"not within {GREETING} s"
        raise InputError(f"--dask {address}: no scheduler answers: {why}") from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except OSError:
        client.close()
        why = f"the scheduler has no worker, nor got one in {PATIENCE} s"
        raise InputError(f"--dask {address}: {why}") from None
    return client


def _address(given: str) -> str:
    """Return a scheduler's address, read from its file if one is given."""
    if not Path(given).is_file():
        return given
    try:
        found = json.loads(Path(given).read_bytes())["address"]
    except (OSError, ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, str):
        raise InputError(f"--dask {given}: is no file of a Dask scheduler, which has its address")
    return found


async def _greet(distributed: Any, address: str) -> None:
    """Check that a scheduler accepts a connection."""
    how = distributed.Security().get_connection_args("client")
    greeting = distributed.comm.connect(address, timeout=GREETING, **how)
    comm = await asyncio.wait_for(greeting, GREETING)
    await comm.close()


def _describe_workers(client: Any, address: str) -> tuple[str, tuple[str, ...]]:
    """Return the distinct names of a cluster's machines, and the solvers common to all."""
    try:
        found = client.run(_describe)
    except Exception as error:  # a worker without layoutopt, or with an old one
        raise InputError(f"--dask {address}: a worker has no layoutopt: {error}") from None
    for worker, (version, _, _) in found.items():
        if version != __version__:
            why = f"worker {worker} has layoutopt {version}, this is {__version__}"
            raise InputError(f"--dask {address}: {why}")
    machines = sorted({machine for _, machine, _ in found.values()})
    first, *others = (solvers for _, _, solvers in found.values())
    common = tuple(name for name in first if all(name in solvers for solvers in others))
    return " + ".join(machines), common


def _describe() -> tuple[str, str, tuple[str, ...]]:
    """Return version, machine and solvers of a Dask worker."""
    with _worker_pool().worker() as worker:
        return __version__, machine_name(), worker.solvers()


@cache
def _worker_pool() -> WorkerPool:
    """Return the processes of this Dask worker."""
    return WorkerPool()


def _run_on_worker(job: Job) -> list[Outcome]:
    with _worker_pool().worker() as worker:
        return list(outcomes(job, worker))


def _end_worker_pool() -> None:
    """End the processes of this Dask worker; the next job starts new ones."""
    _worker_pool().close()
    _worker_pool.cache_clear()
