"""Who carries jobs out: processes of this machine, this process itself, or a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

from layoutopt import __version__
from layoutopt.bench.crew import Crew
from layoutopt.bench.job import Job, Outcome, machine_name
from layoutopt.bench.work import Desk, perform, warm_up
from layoutopt.errors import InputError
from layoutopt.extras import needed

PATIENCE = 30
"""Seconds in which a scheduler must answer, and have its first worker."""

GREETING = 5
"""Seconds in which a scheduler must take a connection."""

AHEAD = 1000
"""Jobs that a scheduler is given at a time; more workers may join while it has them."""

Carried: TypeAlias = Future[list[Outcome]]
"""A job: what it returns when it is over, beside the outcomes that came earlier."""


@dataclass(frozen=True, eq=False)
class Team:
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
def processes(count: int) -> Iterator[Team]:
    """Yield a team of so many worker processes, which start at once."""
    crew, inbox = Crew(), SimpleQueue[Any]()
    crew.hire(count)
    executor = ThreadPoolExecutor(count)  # a thread for each process, to listen to it
    carry = partial(_carry, crew, inbox)
    try:
        yield Team(executor, carry, count, 2 * count, machine_name(), crew.solvers, inbox=inbox)
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
def here() -> Iterator[Team]:
    """Yield this process as a team of one: easy to debug, but with no limits that hold."""
    inbox = SimpleQueue[Any]()
    carry = partial(_carry_here, Desk(), inbox)
    yield Team(_Here(), carry, 1, 1, machine_name(), warm_up, isolated=False, inbox=inbox)


def _carry_here(desk: Desk, inbox: SimpleQueue[Any], job: Job) -> list[Outcome]:
    for outcome in perform(job, desk):
        inbox.put(outcome)
    return []


@contextmanager
def cluster(address: str) -> Iterator[Team]:
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
            yield Team(executor, _carry_there, slots, AHEAD, machines, lambda: solvers)
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
