"""Batch runs: jobs go out, rows come in, and each is kept at once."""

from __future__ import annotations

import hashlib
import re
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty
from types import FrameType

from layoutopt.bench.columns import canonical
from layoutopt.bench.executors import Team
from layoutopt.bench.job import Job, Outcome
from layoutopt.bench.plan import Plan
from layoutopt.bench.row import FAILED, Row
from layoutopt.bench.store import Store, key, told
from layoutopt.bench.work import Spent, now, reason, unreadable
from layoutopt.errors import InputError
from layoutopt.io.files import write_bytes

LOGGED = (
    *("instance", "family", "solver", "parameters", "seed", "repeat"),
    *("version", "machine", "started", "seconds", "error"),
)
"""Fields of a row with which a log begins."""


@dataclass(frozen=True)
class Standing:
    """How far a batch run has come.

    Parameters
    ----------
    done, failed
        Solves of this run that are over, and those among them without a result.
    left
        Solves that are still to come.
    known
        Solves that the store had already.
    seconds
        Since the run began.
    seconds_left
        Estimate of what is left; ``None`` before anything is done.
    """

    done: int
    failed: int
    left: int
    known: int
    seconds: float
    seconds_left: float | None


@dataclass(frozen=True)
class Stop:
    """A signal that asks the run to end."""

    signal: int


Tell = Callable[[Standing], None]


def run(
    plan: Plan, store: Store, team: Team, *, retry: bool = False, tell: Tell | None = None
) -> tuple[Standing, int]:
    """Carry out what is left of a plan.

    Parameters
    ----------
    retry
        Whether rows of failures are replaced.
    tell
        Called with every :class:`Standing`.

    Returns
    -------
    Standing, int
        How far it came, and the number of the signal that ended it early, or 0.

    Raises
    ------
    InputError
        If the store can no longer be written, or the cluster has gone.
    WorkerError
        If no worker can be started.
    """
    desk = _Desk(plan, store, retry, tell)
    waiting = deque(plan.jobs)
    under_way: dict[Future[list[Outcome]], Job] = {}
    with _stoppable(team):
        try:
            while waiting or under_way:
                while waiting and len(under_way) < team.ahead:
                    job = waiting.popleft()
                    under_way[team.submit(job)] = job
                item = team.inbox.get()
                if isinstance(item, Stop):
                    return desk.close(team), item.signal
                if isinstance(item, Future):
                    for outcome in _outcomes(item, under_way.pop(item)):
                        desk.keep(outcome)
                else:
                    desk.keep(item)
        except KeyboardInterrupt:  # of a solve in this process
            return desk.close(team), signal.SIGINT
    return desk.close(team), 0


def _outcomes(future: Future[list[Outcome]], job: Job) -> list[Outcome]:
    """Return what a job has returned; failures, if the executor has lost it."""
    try:
        return future.result()
    except CancelledError:
        raise InputError("the cluster has gone; run again to continue") from None
    except Exception as error:  # a worker of a cluster that died again and again
        if not type(error).__module__.startswith("distributed"):
            raise
        return list(unreadable(job, Spent(now(), 0.0), reason(error), repr(error)))


class _Desk:
    """Keeps what comes in, and knows how far the run has come."""

    def __init__(self, plan: Plan, store: Store, retry: bool, tell: Tell | None) -> None:
        self.store, self.retry, self.tell = store, retry, tell
        self.known = len(plan.wanted) - plan.left
        self.begun = time.monotonic()
        self.failed = 0
        self.left = Counter(solve.solver for job in plan.jobs for solve in job.solves)
        self.done: Counter[str] = Counter()
        self.spent: dict[str, float] = {}

    def keep(self, outcome: Outcome) -> None:
        """Write an outcome down, its log first."""
        outcome = self.store.known(outcome)
        row = outcome.row
        if row.status == FAILED:
            outcome = write_log(self.store, outcome)
        elif self.retry:
            _log_path(self.store, row).unlink(missing_ok=True)
        self.store.add(outcome, again=self.retry)
        self.failed += row.status == FAILED
        self.left[row.solver] -= 1
        self.done[row.solver] += 1
        self.spent[row.solver] = self.spent.get(row.solver, 0.0) + row.seconds
        if self.tell is not None:
            self.tell(self.standing())

    def close(self, team: Team) -> Standing:
        """Keep what has come in already, and return how far the run came."""
        while True:
            try:
                item = team.inbox.get_nowait()
            except Empty:
                return self.standing()
            if isinstance(item, Outcome):
                self.keep(item)

    def standing(self) -> Standing:
        """Return how far the run has come."""
        seconds, spent = time.monotonic() - self.begun, sum(self.spent.values())
        done = self.done.total()
        left = None
        if done:  # solvers differ in speed: each is expected to go on as it went
            means = {name: self.spent[name] / self.done[name] for name in self.done}
            ahead = sum(n * means.get(name, spent / done) for name, n in self.left.items())
            left = seconds * ahead / max(spent, 1e-9)
        return Standing(done, self.failed, self.left.total(), self.known, seconds, left)


def write_log(store: Store, outcome: Outcome) -> Outcome:
    """Write the log of a failure, and return the outcome with the log's path."""
    row, path = outcome.row, _log_path(store, outcome.row)
    lines = [f"{name:<12}{getattr(row, name)}" for name in LOGGED]
    with told(path):
        store.logs.mkdir(exist_ok=True)
    write_bytes(path, "\n".join([*lines, "", outcome.log]).encode(errors="backslashreplace"))
    return replace(outcome, row=replace(row, log=f"{store.logs.name}/{path.name}"))


def _log_path(store: Store, row: Row) -> Path:
    slug = re.sub(r"[^\w.-]+", "_", row.instance)[:80]
    digest = hashlib.sha256(canonical(key(row)).encode()).hexdigest()[:12]
    return store.logs / f"{slug}-{row.solver}-{digest}.log"


@contextmanager
def _stoppable(team: Team) -> Iterator[None]:
    """Turn a first Ctrl-C or SIGTERM into a request to stop; a second one acts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, _frame: FrameType | None) -> None:
        team.inbox.put(Stop(number))
        for other, handler in before.items():
            signal.signal(other, handler)

    try:
        for number in before:
            signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
