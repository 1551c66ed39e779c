"""Batch runs: submission of jobs, and storage of their rows."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from layoutopt import __version__
from layoutopt.base.errors import InputError
from layoutopt.base.files import write_bytes
from layoutopt.base.limits import Interrupt, Limits, interruptible
from layoutopt.bench.executors import JobExecutor
from layoutopt.bench.job import Job, Outcome, Solve, identity
from layoutopt.bench.row import FAILED, Row, canonical
from layoutopt.bench.store import Store, key, located, solve_key, writing
from layoutopt.bench.suite import Suite, read_suite


@dataclass(frozen=True)
class RunProgress:
    """Numbers of solves of a batch run, done (of which some failed), left, and known before.

    The estimate of remaining seconds is ``None`` before the first outcome.
    """

    done: int
    failed: int
    left: int
    known: int
    seconds: float
    seconds_left: float | None


OnProgress: TypeAlias = Callable[[RunProgress], None]


@dataclass(frozen=True)
class Report:
    """Outcome of a batch run.

    Parameters
    ----------
    rows
        All rows of the suites in the store, known before or new.
    progress
        Progress at the end of the run.
    interrupted
        Whether Ctrl-C ended it early.
    """

    rows: list[Row]
    progress: RunProgress
    interrupted: bool


def batch(
    suites: Sequence[str | Path] | str | Path,
    store: str | Path,
    executor: JobExecutor,
    *,
    overrides: Mapping[str, Any] | None = None,
    label: str = "",
    machine: str = "",
    retry: bool = False,
    on_progress: OnProgress | None = None,
) -> Report:
    """Solve suites, except solves already in the store, and store each result at once.

    Parameters
    ----------
    suites, overrides
        Files and folders, or one, and entries that override theirs; see
        :func:`~layoutopt.bench.suite.read_suite`.
    store
        The file, created if it does not exist.
    executor
        Executor of jobs; see :mod:`layoutopt.bench.executors`.
    label
        Text added to the version, to distinguish states of a working copy.
    machine
        Name of the machine in the store, by default the executor's.
    retry
        Whether to repeat failed solves.
    on_progress
        Called after every solve.

    Raises
    ------
    InputError
        If a suite is invalid, the store cannot be used, or the cluster is lost.
    WorkerError
        If no worker can be started.
    """
    paths = [suites] if isinstance(suites, str | Path) else suites
    read = [read_suite(path, executor.solvers, **(overrides or {})) for path in paths]
    if not executor.isolated and any(solve.memory for suite in read for solve in suite.solves):
        raise InputError("a memory limit needs workers; this process cannot be limited")
    version = f"{__version__}+{label}" if label else __version__
    with writing(store) as opened:
        todo = plan(read, opened, version, machine or executor.machine, executor.slots, retry)
        progress, stopped = run(todo, opened, executor, retry=retry, on_progress=on_progress)
        return Report(todo.rows(opened), progress, stopped)


SHARE = 8  # least number of jobs per worker, if there are enough solves, to balance the load


@dataclass(frozen=True)
class BatchPlan:
    """The plan of a batch run: jobs in the order of the suites, version and machine in keys.

    ``wanted`` has identity of the source, and solve, for all solves of the suites.
    """

    jobs: tuple[Job, ...]
    wanted: tuple[tuple[str, Solve], ...]
    version: str
    machine: str

    @property
    def left(self) -> int:
        """Number of remaining solves."""
        return sum(len(job.solves) for job in self.jobs)

    def rows(self, store: Store) -> list[Row]:
        """Return the existing rows of all solves of the suites."""
        hashes = store.instances()
        keys = {
            solve_key(hashes.get(which, which), solve, self.version, self.machine)
            for which, solve in self.wanted
        }
        return [row for row in store.rows() if key(row) in keys]


def plan(
    suites: Sequence[Suite], store: Store, version: str, machine: str, slots: int, retry: bool
) -> BatchPlan:
    """Return the plan of the remaining solves of suites, for ``slots`` jobs in parallel."""
    known, hashes = store.keys(failed=not retry), store.instances()
    wanted: dict[tuple[str, Solve], None] = {}
    jobs = []
    for suite in suites:
        for source in suite.sources:
            which = identity(source, version)
            asked = [solve for solve in suite.solves_of(source) if (which, solve) not in wanted]
            wanted |= dict.fromkeys((which, solve) for solve in asked)
            graph = hashes.get(which)
            left = tuple(
                solve
                for solve in asked
                if graph is None or solve_key(graph, solve, version, machine) not in known
            )
            if left:
                jobs.append(Job(source, which, left, suite.grace, version, machine))
    size = max(1, sum(len(job.solves) for job in jobs) // (SHARE * slots))
    parts = [
        replace(job, solves=job.solves[i : i + size])
        for job in jobs
        for i in range(0, len(job.solves), size)
    ]
    return BatchPlan(tuple(parts), tuple(wanted), version, machine)


Event: TypeAlias = Outcome | Future[None] | None
"""An outcome, the end of a job, or a request to stop."""


class _Stop(Interrupt):
    """A request to stop that is an event of the run."""

    def __init__(self, events: SimpleQueue[Event]) -> None:
        super().__init__()
        self.events = events

    def set(self) -> None:
        super().set()
        self.events.put(None)


def run(
    plan: BatchPlan,
    store: Store,
    executor: JobExecutor,
    *,
    retry: bool = False,
    on_progress: OnProgress | None = None,
) -> tuple[RunProgress, bool]:
    """Run the remaining jobs of a plan, and replace failures if asked to retry.

    Return the progress at the end, and whether it was interrupted.
    """
    recorder = _Recorder(plan, store, retry, on_progress)
    events = SimpleQueue[Event]()
    waiting, submitted, stopped = deque(plan.jobs), 0, False
    with interruptible(Limits(interrupt=_Stop(events))):
        try:
            while (waiting or submitted) and not stopped:
                while waiting and submitted < executor.ahead:
                    future = executor.submit(waiting.popleft(), events.put)
                    future.add_done_callback(events.put)
                    submitted += 1
                event = events.get()
                if event is None:
                    stopped = True
                elif isinstance(event, Outcome):
                    recorder.keep(event)
                else:
                    submitted -= 1
                    event.result()  # raises its error
        except KeyboardInterrupt:  # of a solve in this process
            stopped = True
    while True:  # outcomes available when the run is stopped
        try:
            event = events.get_nowait()
        except Empty:
            return recorder.progress(), stopped
        if isinstance(event, Outcome):
            recorder.keep(event)


class _Recorder:
    """Storage of outcomes, and progress of the run."""

    def __init__(
        self, plan: BatchPlan, store: Store, retry: bool, on_progress: OnProgress | None
    ) -> None:
        self.store, self.retry, self.on_progress = store, retry, on_progress
        self.known = len(plan.wanted) - plan.left
        self.begun = time.monotonic()
        self.failed = 0
        self.left = Counter(solve.solver for job in plan.jobs for solve in job.solves)
        self.done: Counter[str] = Counter()
        self.spent: dict[str, float] = {}

    def keep(self, outcome: Outcome) -> None:
        """Store an outcome, its log first."""
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
        if self.on_progress is not None:
            self.on_progress(self.progress())

    def progress(self) -> RunProgress:
        seconds, spent = time.monotonic() - self.begun, sum(self.spent.values())
        done = self.done.total()
        left = None
        if done:  # estimated per solver, as these differ in speed
            means = {name: self.spent[name] / self.done[name] for name in self.done}
            ahead = sum(n * means.get(name, spent / done) for name, n in self.left.items())
            left = seconds * ahead / max(spent, 1e-9)
        return RunProgress(done, self.failed, self.left.total(), self.known, seconds, left)


LOGGED = (
    *("instance", "family", "solver", "parameters", "seed", "repeat"),
    *("version", "machine", "started", "seconds", "error"),
)
"""Fields of a row at the start of a log."""


def write_log(store: Store, outcome: Outcome) -> Outcome:
    """Write the log of a failure, and return the outcome with the log's path."""
    row, path = outcome.row, _log_path(store, outcome.row)
    lines = [f"{name:<12}{getattr(row, name)}" for name in LOGGED]
    with located(path):
        store.logs.mkdir(exist_ok=True)
    write_bytes(path, "\n".join([*lines, "", outcome.log]).encode(errors="backslashreplace"))
    return replace(outcome, row=replace(row, log=f"{store.logs.name}/{path.name}"))


def _log_path(store: Store, row: Row) -> Path:
    slug = re.sub(r"[^\w.-]+", "_", row.instance)[:80]
    digest = hashlib.sha256(canonical(key(row)).encode()).hexdigest()[:12]
    return store.logs / f"{slug}-{row.solver}-{digest}.log"
