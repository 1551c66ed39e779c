"""Executors of jobs: processes of this machine, this process itself, or a cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from multiprocessing import Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

from layoutopt import __version__
from layoutopt.base.errors import InputError, needed
from layoutopt.bench.job import Job, Outcome, machine_name
from layoutopt.bench.messages import Full, Made, Message, NotMade, Ready, SolveDone
from layoutopt.bench.work import (
    Instance,
    RunState,
    Spent,
    failure,
    now,
    perform,
    unreadable,
    warm_up,
)

START_LIMIT = 600.0
"""Seconds that a worker may take to start."""

LOG_BYTES = 100_000
"""Most bytes of a worker's output in a log, the last ones."""

Deliver = Callable[[Outcome], object]


class WorkerError(InputError):
    """No worker can be started."""


class Lost(Exception):
    """A worker that is no more; the text says how it ended."""


class Worker:
    """A worker process, as seen from outside."""

    def __init__(self) -> None:
        self.solvers: tuple[str, ...] = ()
        self.jobs = 0
        self.line, other = Pipe()
        self.output = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115 (it lives as long)
        end = other.fileno()
        words = [sys.executable, "-P", "-m", "layoutopt.bench.worker", str(end), str(os.getpid())]
        self.process = subprocess.Popen(
            words,
            pass_fds=[end],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=self.output,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C on the terminal is not for workers
        )
        other.close()

    def start(self) -> tuple[str, ...]:
        """Wait until it hears jobs; return the names of the solvers that it has.

        Raises
        ------
        WorkerError
            If it does not start.
        """
        if not self.solvers:
            try:
                message = self.hear(START_LIMIT)
            except Lost as error:
                last = self.said().strip().rpartition("\n")[2]
                raise WorkerError(f"a worker {error} at its start{last and ': '}{last}") from None
            assert isinstance(message, Ready)
            self.solvers = message.solvers
        return self.solvers

    def begin(self, job: Job) -> None:
        """Hand a job over, to a worker that has nothing to do."""
        self.jobs += 1
        self.output.truncate(0)
        with suppress(OSError):  # if it has died, who listens will hear
            self.line.send(job)

    def hear(self, patience: float) -> Message:
        """Return the next message.

        Raises
        ------
        Lost
            If the worker ends, or has to be killed because nothing comes.
        """
        try:
            if not self.line.poll(patience):
                self.process.send_signal(signal.SIGUSR1)  # it writes down where it hangs
                time.sleep(0.1)
                self.process.kill()
                raise Lost(f"was killed after {patience:g} s without an answer")
            message: Message = self.line.recv()
        except (EOFError, OSError):
            raise Lost(f"was ended by {_ending(self.process.wait())}") from None
        return message

    def said(self) -> str:
        """Return what the process wrote to stdout and stderr since its job began."""
        size = os.fstat(self.output.fileno()).st_size
        tail = os.pread(self.output.fileno(), LOG_BYTES, max(0, size - LOG_BYTES))
        return tail.decode(errors="replace")

    def close(self) -> None:
        """End the process, and forget it."""
        self.process.kill()
        self.process.wait()
        self.line.close()
        self.output.close()


def _ending(code: int) -> str:
    """Return how a process ended."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


class WorkerWatch:
    """The watch over one worker while it carries a job out."""

    def __init__(self, worker: Worker, job: Job, deliver: Deliver) -> None:
        self.worker, self.job, self.deliver = worker, job, deliver
        self.instance: Instance | None = None
        self.began = now(), time.perf_counter()

    def attend(self) -> bool:
        """Hand on outcomes until all are there, or the worker is lost.

        Returns
        -------
        bool
            Whether the worker can take another job.

        Raises
        ------
        WorkerError
            If it did not start, or has too little memory for any job.
        """
        try:
            self.worker.start()
            self.worker.begin(self.job)
            while self.job.solves:
                self.began = now(), time.perf_counter()
                message = self.worker.hear(self.job.solves[0].time_limit + self.job.grace)
                if isinstance(message, Full):
                    if self.worker.jobs == 1:
                        raise WorkerError(message.reason)
                    return False  # a new one takes less
                if isinstance(message, Made):
                    self.instance = message.instance
                elif isinstance(message, NotMade):
                    self._not_made(message.reason, message.log)
                elif isinstance(message, SolveDone):
                    self._solved(message.outcome)
                    if message.worn:
                        return False
        except Lost as error:
            self._lost(f"the worker {error}")
            return False
        return True

    def _solved(self, outcome: Outcome) -> None:
        if outcome.row.error:
            outcome = replace(outcome, log=outcome.log + self.worker.said())
        self.deliver(outcome)
        self.job = replace(self.job, solves=self.job.solves[1:])

    def _not_made(self, why: str, log: str) -> None:
        for outcome in unreadable(self.job, self._spent(), why, log + self.worker.said()):
            self.deliver(outcome)
        self.job = replace(self.job, solves=())

    def _lost(self, why: str) -> None:
        """Blame what was being done."""
        if self.instance is None:
            self._not_made(why, "")
        else:
            solve = self.job.solves[0]
            self._solved(failure(self.job, solve, self.instance, self._spent(), why, ""))

    def _spent(self) -> Spent:
        started, begun = self.began
        return Spent(started, time.perf_counter() - begun)


class Crew:
    """Workers that carry out jobs, as many at once as there are threads that ask."""

    def __init__(self) -> None:
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()
        self.lock = threading.Lock()
        self.over = False

    def hire(self, count: int) -> None:
        """Begin to start workers that will be needed."""
        self.idle += [Worker() for _ in range(count)]

    def solvers(self) -> tuple[str, ...]:
        """Return the names of the solvers that workers have.

        Raises
        ------
        WorkerError
            If none can be started.
        """
        worker = self._take()
        try:
            return worker.start()
        finally:
            self._give_back(worker, bool(worker.solvers))

    def carry(self, job: Job, deliver: Deliver) -> None:
        """Carry a job out, and hand on each outcome as it comes.

        Raises
        ------
        WorkerError
            If no worker can be started.
        """
        while job.solves and not self.over:
            worker = self._take()
            watch, fit = (
                WorkerWatch(worker, job, lambda outcome: self.over or deliver(outcome)),
                False,
            )
            try:
                fit = watch.attend()
            finally:
                self._give_back(worker, fit)
            job = watch.job

    def end(self) -> None:
        """Kill all workers; what they were doing has no outcomes."""
        with self.lock:
            self.over = True
            for worker in self.busy:
                worker.process.kill()  # it is closed by the thread that listens to it
            while self.idle:
                self.idle.pop().close()

    def _take(self) -> Worker:
        with self.lock:
            if self.over:
                raise WorkerError("the run has ended")
            while self.idle:
                worker = self.idle.pop()
                if worker.process.poll() is None:
                    break
                worker.close()
            else:
                worker = Worker()
            self.busy.add(worker)
            return worker

    def _give_back(self, worker: Worker, fit: bool) -> None:
        with self.lock:
            self.busy.discard(worker)
            if fit and not self.over:
                self.idle.append(worker)
            else:
                worker.close()


PATIENCE = 30
"""Seconds in which a scheduler must answer, and have its first worker."""

GREETING = 5
"""Seconds in which a scheduler must take a connection."""

AHEAD = 1000
"""Jobs that a scheduler is given at a time; more workers may join while it has them."""

Carried: TypeAlias = Future[list[Outcome]]
"""A job: what it returns when it is over, beside the outcomes that came earlier."""


@dataclass(frozen=True, eq=False)
class JobExecutor:
    """An executor with what a run must know of it.

    Parameters
    ----------
    executor
        Takes jobs, by ``executor.submit(carry, job)``.
    carry
        Carries a job out; returns outcomes that have not been put into ``inbox``.
    slots
        How many jobs can be carried out at once.
    ahead
        How many jobs are to be submitted at a time, so that nobody waits.
    machine
        What the machines are called.
    solvers
        Returns the names of the solvers that are there.
    isolated
        Whether solves run in processes of their own, so that limits of memory can be held.
    inbox
        Where outcomes come in.
    """

    executor: Executor
    carry: Callable[[Job], list[Outcome]]
    slots: int
    ahead: int
    machine: str
    solvers: Callable[[], tuple[str, ...]]
    isolated: bool = True
    inbox: SimpleQueue[Any] = field(default_factory=SimpleQueue)

    def submit(self, job: Job) -> Carried:
        """Have a job carried out; its future comes into the inbox when it is over."""
        future = self.executor.submit(self.carry, job)
        future.add_done_callback(self.inbox.put)
        return future


@contextmanager
def processes(count: int) -> Iterator[JobExecutor]:
    """Yield a team of so many worker processes, which start at once."""
    crew, inbox = Crew(), SimpleQueue[Any]()
    crew.hire(count)
    executor = ThreadPoolExecutor(count)  # a thread for each process, to listen to it
    carry = partial(_carry, crew, inbox)
    try:
        yield JobExecutor(
            executor, carry, count, 2 * count, machine_name(), crew.solvers, inbox=inbox
        )
    finally:
        crew.end()
        executor.shutdown(cancel_futures=True)


def _carry(crew: Crew, inbox: SimpleQueue[Any], job: Job) -> list[Outcome]:
    crew.carry(job, inbox.put)
    return []


class _Here(Executor):
    """Runs what is submitted at once, where it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # whoever asks for the result gets it, as from any executor
            future.set_exception(error)
        return future


@contextmanager
def here() -> Iterator[JobExecutor]:
    """Yield this process as a team of one: easy to debug, but with no limits that hold."""
    inbox = SimpleQueue[Any]()
    carry = partial(_carry_here, RunState(), inbox)
    yield JobExecutor(_Here(), carry, 1, 1, machine_name(), warm_up, isolated=False, inbox=inbox)


def _carry_here(desk: RunState, inbox: SimpleQueue[Any], job: Job) -> list[Outcome]:
    for outcome in perform(job, desk):
        inbox.put(outcome)
    return []


@contextmanager
def cluster(address: str) -> Iterator[JobExecutor]:
    """Yield the workers of a Dask cluster; each solves in a process of its own, under watch.

    Parameters
    ----------
    address
        The scheduler's address, or its scheduler file.

    Raises
    ------
    InputError
        If Dask is not installed, nobody answers, or a worker has another version of layoutopt.
    """
    client = _client(address)
    try:
        machines, solvers = _about_all(client, address)
        slots = sum(client.nthreads().values())
        executor = _OnCluster(client)
        try:
            yield JobExecutor(executor, _carry_there, slots, AHEAD, machines, lambda: solvers)
        finally:
            executor.shutdown(wait=False)  # which cancels what is left
            with suppress(OSError):  # the cluster may have gone
                if client.status == "running":
                    client.run(_disband, on_error="ignore")
    finally:
        client.close()


class _OnCluster(Executor):
    """Runs what is submitted on a Dask cluster.

    Dask's own executor asks how a job ended after it has fetched the result.  Where the worker has
    died in between, it takes the result for an error.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.given: set[Any] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        given = self.client.submit(fn, *args, pure=False, **kwargs)
        self.given.add(given)
        given.add_done_callback(partial(self._pass_on, future))
        return future

    def _pass_on(self, future: Future[Any], given: Any) -> None:
        try:
            future.set_result(given.result())
        except CancelledError:
            future.cancel()
            future.set_running_or_notify_cancel()  # wakes who waits
        except Exception as error:  # of the job, or of Dask: for who asks for the result
            future.set_exception(error)
        self.given.discard(given)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        self.client.cancel(list(self.given))


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
        told = " ".join(str(error).split()) or f"not within {GREETING} s"
        raise InputError(f"--dask {address}: no scheduler answers: {told}") from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except OSError:
        client.close()
        told = f"the scheduler has no worker, nor got one in {PATIENCE} s"
        raise InputError(f"--dask {address}: {told}") from None
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


def _about_all(client: Any, address: str) -> tuple[str, tuple[str, ...]]:
    """Return the names of a cluster's machines, each once, and the solvers that all have."""
    try:
        found = client.run(_about)
    except Exception as error:  # whatever a worker raises that has no layoutopt, or an old one
        raise InputError(f"--dask {address}: a worker has no layoutopt: {error}") from None
    for worker, (version, _, _) in found.items():
        if version != __version__:
            told = f"worker {worker} has layoutopt {version}, this is {__version__}"
            raise InputError(f"--dask {address}: {told}")
    machines = sorted({machine for _, machine, _ in found.values()})
    first, *others = (solvers for _, _, solvers in found.values())
    common = tuple(name for name in first if all(name in solvers for solvers in others))
    return " + ".join(machines), common


def _about() -> tuple[str, str, tuple[str, ...]]:
    """Return version, machine and solvers of a worker."""
    return __version__, machine_name(), _crew().solvers()


@cache
def _crew() -> Crew:
    """Return the crew of this process, a worker of a cluster."""
    return Crew()


def _carry_there(job: Job) -> list[Outcome]:
    outcomes: list[Outcome] = []
    _crew().carry(job, outcomes.append)
    return outcomes


def _disband() -> None:
    """End the crew of this process; the next job gets a new one."""
    _crew().end()
    _crew.cache_clear()
