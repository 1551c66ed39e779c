"""The work of one job: make its graph, solve it, and report the outcome."""

from __future__ import annotations

import resource
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from layoutopt.base.errors import InputError, LayoutoptError, SizeError
from layoutopt.base.limits import Trace
from layoutopt.base.result import Stopped
from layoutopt.bench.job import Job, Outcome, Solve
from layoutopt.bench.row import FAILED, Row
from layoutopt.bench.source import Source, document_hash, load

if TYPE_CHECKING:
    from layoutopt.base.result import UnwindingResult
    from layoutopt.graphs.unwinding import Graph

PAIRS = 30
"""Most pairs in a row."""


@dataclass(frozen=True)
class Instance:
    """A graph that is ready to be solved.

    Parameters
    ----------
    hash
        Its document's.
    seconds
        What making it took.
    """

    name: str
    family: str
    hash: str
    seconds: float


@dataclass(frozen=True)
class Spent:
    """Start and cost of work: wall-clock and processor seconds, peak memory."""

    started: str
    seconds: float
    cpu_seconds: float | None = None
    peak_bytes: int | None = None


class Unreadable(Exception):
    """An instance that cannot be made; the text says why, in one line, and ``log`` in many."""

    def __init__(self, error: Exception) -> None:
        super().__init__(reason(error))
        self.log = "".join(traceback.format_exception(error))


def warm_up() -> tuple[str, ...]:
    """Import what solvers import, by solving something tiny; return the names of all solvers."""
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.registry import load_all, names
    from layoutopt.unwinding import SOLVERS, unwind

    graph = Graph()
    x = graph.sink((4,))
    for value in (2, 3):
        graph.valued_pair(x, graph.source((4,)), value)
        graph.valued_pair(x, graph.reverse(x, (0,)), -value)
    load_all()
    for solver in SOLVERS:
        unwind(graph, solver)
    return names()


class RunState:
    """Solves jobs one by one; keeps the last graph, as the next job may be about it, too.

    Attributes
    ----------
    worn
        Whether the process had better be replaced: memory ran out, or something unforeseen
        happened.
    """

    def __init__(self) -> None:
        self.made: tuple[Source, Instance, Graph] | None = None
        self.worn = False

    def instance(self, job: Job) -> Instance:
        """Make the graph of a job, if it is not there yet.

        Raises
        ------
        Unreadable
            If that fails.
        """
        if self.made is None or self.made[0] != job.source:
            self.made = None
            begun = time.perf_counter()
            try:
                graph = load(job.source)
                digest = document_hash(graph)
            except Exception as error:  # whatever is wrong with it, others go on
                raise Unreadable(error) from error
            source = job.source
            name = source.name or graph.name or "unnamed"
            spent = time.perf_counter() - begun
            found = Instance(name, source.family, digest, spent)
            self.made = source, found, graph
        return self.made[1]

    def outcome(self, job: Job, solve: Solve) -> Outcome:
        """Solve the instance of a job in one way.

        Raises
        ------
        KeyboardInterrupt
            If the solver was interrupted: what it has then is no result of a batch.
        """
        from layoutopt.unwinding import unwind

        instance = self.instance(job)
        assert self.made is not None
        graph, trace = self.made[2], Trace()
        watch = Watch()
        try:
            result = unwind(
                graph,
                solve.solver,
                time_limit=solve.time_limit,
                gap=solve.gap,
                seed=solve.seed,
                workers=solve.workers,
                progress=trace,
            )
        except Exception as error:  # a failure is a row
            spent = watch.spent()
            self.worn = isinstance(error, SizeError) or not isinstance(error, LayoutoptError)
            return failure(job, solve, instance, spent, reason(error), traceback.format_exc())
        spent = watch.spent()
        if result.stopped is Stopped.INTERRUPTED:
            raise KeyboardInterrupt
        self.worn = self.worn or result.stopped is Stopped.MEMORY_LIMIT
        blank = failure(job, solve, instance, spent, "", "")
        return replace(blank, row=_answered(blank.row, result, trace))


def perform(job: Job, desk: RunState) -> Iterator[Outcome]:
    """Yield an outcome for each solve of a job, in order.

    Raises
    ------
    KeyboardInterrupt
        If a solver was interrupted.
    """
    try:
        desk.instance(job)
    except Unreadable as error:
        yield from unreadable(job, Spent(now(), 0.0), str(error), error.log)
        return
    for solve in job.solves:
        yield desk.outcome(job, solve)


def unreadable(job: Job, spent: Spent, error: str, log: str) -> Iterator[Outcome]:
    """Yield a failure for each solve of an instance that cannot be made.

    For want of a document, its source's identity stands for the document's hash.
    """
    instance = Instance(job.source.name, job.source.family, job.identity, 0.0)
    for solve in job.solves:
        yield failure(job, solve, instance, spent, error, log)


def failure(
    job: Job, solve: Solve, instance: Instance, spent: Spent, error: str, log: str
) -> Outcome:
    """Return what becomes of a solve without a result."""
    row = Row(
        instance=instance.name,
        instance_hash=instance.hash,
        family=instance.family,
        solver=solve.solver,
        parameters=solve.parameters,
        seed=solve.seed,
        repeat=solve.repeat,
        version=job.version,
        machine=job.machine,
        status=FAILED,
        seconds=spent.seconds,
        cpu_seconds=spent.cpu_seconds,
        phases={"read": instance.seconds},
        peak_bytes=spent.peak_bytes,
        started=spent.started,
        error=error,
    )
    return Outcome(row, job.identity, log)


def _answered(row: Row, result: UnwindingResult, trace: Trace) -> Row:
    """Return a row with what a result says."""
    graph = result.graph
    losing = sorted(result.pairs, key=lambda pair: pair.loss.copy_negate())[:PAIRS]
    phases = {name: seconds for name, seconds in result.seconds.items() if name != "total"}
    return replace(
        row,
        status=str(result.status),
        score=result.score,
        bound=None if result.bound is None else Decimal(result.bound),
        max_score=result.max_score,
        phases=dict(row.phases) | phases,
        size={"ops": len(graph.ops), "pairs": len(graph.pairs)} | result.size,
        stopped=str(result.stopped),
        error="",
        trace=trace.points(row.seconds, result),
        pairs=tuple((p.a, p.b, str(p.value), p.elements, p.matched) for p in losing),
    )


def reason(error: Exception) -> str:
    """Return in one line what went wrong."""
    if isinstance(error, InputError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "out of memory"
    name = type(error).__name__
    known = isinstance(error, LayoutoptError)
    return " ".join(f"{'' if known else f'{name}: '}{error}".split()) or name


class Watch:
    """Measures a solve in this process, from now on."""

    def __init__(self) -> None:
        self.resets = _forget_peak()
        self.started = now()
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def spent(self) -> Spent:
        """Return what was spent since."""
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return Spent(self.started, wall, cpu, _peak(self.resets))


def now() -> str:
    """Return the time as ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _forget_peak() -> bool:
    """Make Linux count peak memory from now on; return whether it does."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _peak(resets: bool) -> int:
    """Return the largest resident memory in bytes, of the process where it cannot be reset."""
    if resets:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
