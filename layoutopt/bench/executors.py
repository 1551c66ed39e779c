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
    """An executor of jobs with what a run must know of it; a context, at whose end it is closed.

    Attributes
    ----------
    machine
        What the machines are called.
    slots
        How many jobs can be carried out at once.
    ahead
        How many jobs are to be submitted at a time, so that nobody waits.
    isolated
        Whether solves run in processes of their own, so that limits of memory can be held.
    """

    machine = ""
    slots = 1
    ahead = 1
    isolated = True

    @abstractmethod
    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that there are."""

    @abstractmethod
    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Have a job carried out.

        Parameters
        ----------
        on_outcome
            Called from whatever thread with outcomes that are there before the job is over.

        Returns
        -------
        Future
            Of the outcomes that were not reported.
        """

    @abstractmethod
    def close(self) -> None:
        """End what has not been carried out, without outcomes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class InProcess(JobExecutor):
    """Executor in the process of the run itself: easy to debug, but no limit holds."""

    isolated = False

    def __init__(self) -> None:
        self.machine = machine_name()
        self.worker = Worker()

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that there are."""
        return self.worker.solvers()

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Carry a job out at once."""
        future: Future[list[Outcome]] = Future()
        for outcome in outcomes(job, self.worker):
            on_outcome(outcome)
        future.set_result([])
        return future

    def close(self) -> None:
        """Forget the last graph."""
        self.worker = Worker()


class Processes(JobExecutor):
    """So many processes of this machine, which start when needed, each driven by a thread."""

    def __init__(self, count: int) -> None:
        self.machine = machine_name()
        self.slots, self.ahead = count, 2 * count
        self.pool, self.threads = WorkerPool(), ThreadPoolExecutor(count)

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that workers have."""
        with self.pool.worker() as worker:
            return worker.solvers()

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[list[Outcome]]:
        """Have a job carried out by a thread and its worker process."""
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
"""Jobs that a scheduler is given at a time; more workers may join while it has them."""


class DaskCluster(JobExecutor):
    """The workers of a Dask cluster; each solves in a process of its own, under watch.

    Dask's own executor asks how a job ended after it has fetched the result.  Where the worker has
    died in between, it takes the result for an error.

    Parameters
    ----------
    address
        The scheduler's address, or its scheduler file.

    Raises
    ------
    InputError
        If Dask is not installed, nobody answers, or a worker has another version of layoutopt.
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
        """Have a job carried out by some worker; all outcomes come when it is over."""
        future: Future[list[Outcome]] = Future()
        remote = self.client.submit(_run_on_worker, job, pure=False)
        self.pending.add(remote)

        def finish(remote: Any) -> None:
            try:
                future.set_result(remote.result())
            except CancelledError:
                future.set_exception(InputError("the cluster has gone; run again to continue"))
            except Exception as error:
                if type(error).__module__.startswith("distributed"):  # workers died again and again
                    lost = Instance.unreadable(job, Spent(), reason(error), repr(error))
                    future.set_result(list(unreadable(job, lost)))
                else:
                    future.set_exception(error)
            self.pending.discard(remote)

        remote.add_done_callback(finish)
        return future

    def close(self) -> None:
        """Cancel what is left, end the processes of all workers, and leave the cluster."""
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
        If Dask is not installed, or nobody answers in time.
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
    """Return a scheduler's address, perhaps from its file."""
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
    """Connect to a scheduler, and leave it alone again."""
    how = distributed.Security().get_connection_args("client")
    greeting = distributed.comm.connect(address, timeout=GREETING, **how)
    comm = await asyncio.wait_for(greeting, GREETING)
    await comm.close()


def _describe_workers(client: Any, address: str) -> tuple[str, tuple[str, ...]]:
    """Return the names of a cluster's machines, each once, and the solvers that all have."""
    try:
        found = client.run(_describe)
    except Exception as error:  # whatever a worker raises that has no layoutopt, or an old one
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
    """End the processes of this Dask worker; the next job gets new ones."""
    _worker_pool().close()
    _worker_pool.cache_clear()
