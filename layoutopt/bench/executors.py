"""Executors of jobs: processes of this machine, this process itself, or a cluster."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Self

from layoutopt import __version__
from layoutopt.base.errors import InputError, needed
from layoutopt.base.numbers import least
from layoutopt.base.processes import Process, ending, start_python
from layoutopt.bench.job import (
    Instance,
    Job,
    Outcome,
    Solve,
    Spent,
    Worker,
    failure,
    machine_name,
    now,
    outcomes,
    reason,
    unreadable,
)

START_LIMIT = 600.0  # seconds that a worker may take to start
LOG_BYTES = 100_000  # largest number of bytes of a worker's output in a log; the last ones are kept


class WorkerError(InputError):
    """No worker can be started."""


class WorkerLost(Exception):
    """Unexpected end of a worker process: how it ended, and its output."""

    def __init__(self, how: str, log: str) -> None:
        super().__init__(how)
        self.log = log


class WorkerProcess:
    """A worker in a separate process, killed after its time limit and restarted on demand."""

    def __init__(self) -> None:
        self.process: Process | None = None
        self.loaded: tuple[Job, Instance] | None = None
        self.jobs = 0
        self.over = False

    def solvers(self) -> tuple[str, ...]:
        """Return the names of all solvers."""
        self._start()
        names: tuple[str, ...] = self._at_start("solvers")
        return names

    def load(self, job: Job) -> Instance:
        """Build the instance of a job, unless the process has done so."""
        if self.loaded is not None and self.loaded[0] is job and self._alive():
            return self.loaded[1]
        self._prepare(job.solves[0].memory)
        self.jobs += 1
        spent = Spent()
        begun = time.perf_counter()
        instance: Instance
        try:
            instance, log = self._call(job.solves[0].time_limit + job.grace, "load", job)
        except WorkerLost as lost:
            spent = replace(spent, seconds=time.perf_counter() - begun)
            return Instance(job.identity, spent, f"the worker {lost}", lost.log)
        if instance.error:
            return replace(instance, log=instance.log + log)
        self.loaded = job, instance
        return instance

    def solve(self, job: Job, solve: Solve, instance: Instance) -> Outcome:
        """Solve the instance that was built last."""
        started, begun = now(), time.perf_counter()
        outcome: Outcome
        try:
            outcome, log = self._call(solve.time_limit + job.grace, "solve", job, solve, instance)
        except WorkerLost as lost:
            spent = Spent(started, time.perf_counter() - begun)
            return failure(job, solve, instance, spent, f"the worker {lost}", lost.log)
        return replace(outcome, log=outcome.log + log) if outcome.row.error else outcome

    def kill(self) -> None:
        """Kill the process from any thread, and prevent a restart."""
        self.over = True
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """End the process."""
        self.loaded = None
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.line.close()
            self.output.close()
            self.process = None

    def _alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _prepare(self, memory: int | None) -> None:
        """Ensure a running process that has imported solvers, within a memory limit."""
        while True:
            if not self._alive():
                self._start()
                self._at_start("warm_up")
            refusal = self._at_start("limit_memory", memory)
            if not refusal:
                return
            if not self.jobs:
                raise WorkerError(refusal)
            self.stop()  # a new one takes less

    def _start(self) -> None:
        if self._alive():
            return
        self.stop()
        self.jobs = 0
        self.line, other = Pipe()
        self.output = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115 (it lives as long)
        end = other.fileno()
        words = ["-m", "layoutopt.bench.process", str(end), str(os.getpid())]
        self.process = start_python(words, self.output, [end])
        other.close()
        if self.over:  # it was killed before it was there
            self.stop()
            raise WorkerError("the run has ended")

    def _at_start(self, method: str, *arguments: object) -> Any:
        """Call a method whose failure is not due to a solve."""
        try:
            return self._call(START_LIMIT, method, *arguments)[0]
        except WorkerLost as lost:
            last = lost.log.strip().rpartition("\n")[2]
            raise WorkerError(f"a worker {lost} at its start{last and ': '}{last}") from None

    def _call(self, limit: float, method: str, *arguments: object) -> tuple[Any, str]:
        """Return the result of a worker's method and the process's output; or raise WorkerLost."""
        assert self.process is not None
        self.output.truncate(0)
        try:
            self.line.send((limit, method, arguments))
            if not self.line.poll(limit):
                self.process.send_signal(signal.SIGUSR1)  # prints a traceback
                time.sleep(0.1)
                self.process.kill()
                raise self._lost(f"was killed after {limit:g} s without an answer")
            answer, reusable = self.line.recv()
        except (EOFError, OSError):
            raise self._lost(f"was ended by {ending(self.process.wait())}") from None
        log = self._written()
        if not reusable:
            self.stop()
        return answer, log

    def _lost(self, how: str) -> WorkerLost:
        if self.over:
            raise WorkerError("the run has ended")
        lost = WorkerLost(how, self._written())
        self.stop()
        return lost

    def _written(self) -> str:
        """Return the output of the process since the last request."""
        size = os.fstat(self.output.fileno()).st_size
        tail = os.pread(self.output.fileno(), LOG_BYTES, max(0, size - LOG_BYTES))
        return tail.decode(errors="replace")


class WorkerPool:
    """Worker processes shared by threads; new ones are started if none is idle."""

    def __init__(self) -> None:
        self.idle: list[WorkerProcess] = []
        self.busy: set[WorkerProcess] = set()
        self.lock = threading.Lock()
        self.closed = False

    @contextmanager
    def worker(self) -> Iterator[WorkerProcess]:
        """Yield a worker for exclusive use, unless the pool is closed."""
        with self.lock:
            if self.closed:
                raise WorkerError("the run has ended")
            worker = self.idle.pop() if self.idle else WorkerProcess()
            self.busy.add(worker)
        try:
            yield worker
        finally:
            self._give_back(worker)

    def _give_back(self, worker: WorkerProcess) -> None:
        with self.lock:
            self.busy.discard(worker)
            if self.closed:
                worker.stop()
            else:
                self.idle.append(worker)

    def close(self) -> None:
        """Kill all workers; their jobs have no outcomes."""
        with self.lock:
            self.closed = True
            for worker in self.busy:
                worker.kill()  # the thread that has it stops it
            while self.idle:
                self.idle.pop().stop()


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
    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[None]:
        """Submit a job, whose outcomes are reported from any thread before its end."""

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

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[None]:
        """Run a job at once."""
        future: Future[None] = Future()
        for outcome in outcomes(job, self.worker):
            on_outcome(outcome)
        future.set_result(None)
        return future

    def close(self) -> None:
        """Release the last graph."""
        self.worker = Worker()


class Processes(JobExecutor):
    """Executor of local worker processes, started on demand, each driven by a thread."""

    def __init__(self, count: int) -> None:
        count = least("count", count)
        self.machine = machine_name()
        self.slots, self.ahead = count, 2 * count
        self.pool, self.threads = WorkerPool(), ThreadPoolExecutor(count)

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that workers have."""
        with self.pool.worker() as worker:
            return worker.solvers()

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[None]:
        """Run a job in a thread and its worker process."""
        return self.threads.submit(self._run, job, on_outcome)

    def _run(self, job: Job, on_outcome: OnOutcome) -> None:
        with self.pool.worker() as worker:
            for outcome in outcomes(job, worker):
                on_outcome(outcome)

    def close(self) -> None:
        """Kill all workers."""
        self.pool.close()
        self.threads.shutdown(cancel_futures=True)


PATIENCE = 30  # seconds in which a scheduler must answer, and have its first worker
GREETING = 5  # seconds in which a scheduler must take a connection
AHEAD = 1000  # jobs submitted ahead to a scheduler, as workers may join


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

    def submit(self, job: Job, on_outcome: OnOutcome) -> Future[None]:
        """Run a job on a worker; all outcomes are reported at its end."""
        future: Future[None] = Future()
        remote = self.client.submit(_run_on_worker, job, pure=False)
        self.pending.add(remote)

        def finish(remote: Any) -> None:
            fault: Exception | None = None
            found: list[Outcome] = []
            try:
                found = remote.result()
            except CancelledError:
                fault = InputError("the cluster has gone; run again to continue")
            except Exception as error:  # of Dask, or of a job
                if type(error).__module__.startswith("distributed"):  # workers died repeatedly
                    lost = Instance(job.identity, Spent(), reason(error), repr(error))
                    found = list(unreadable(job, lost))
                else:
                    fault = error
            for outcome in found:
                on_outcome(outcome)
            self.pending.discard(remote)
            future.set_exception(fault) if fault else future.set_result(None)

        remote.add_done_callback(finish)
        return future

    def close(self) -> None:
        """Cancel remaining jobs, end the processes of all workers, and disconnect."""
        log = logging.getLogger("distributed.client")
        level = log.level
        log.setLevel(logging.CRITICAL)  # if the cluster has gone, it would print tracebacks
        self.client.cancel(list(self.pending))
        with suppress(OSError):
            if self.client.status == "running":
                self.client.run(_end_worker_pool, on_error="ignore")
        self.client.close()
        log.setLevel(level)


def _client(address: str) -> Any:
    """Return a client of a scheduler that answers in time and has a worker."""
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
