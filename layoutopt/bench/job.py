"""Jobs of batch runs: an instance, the solves of it, and their outcomes."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import resource
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from layoutopt.base.deadline import left_running
from layoutopt.base.errors import InputError, LayoutoptError, SizeError
from layoutopt.base.files import encode, read_bytes
from layoutopt.base.limits import Stopped, Trace
from layoutopt.base.numbers import SUM_DIGITS, exact_decimal
from layoutopt.base.result import UnwindingResult
from layoutopt.bench.row import FAILED, Row

if TYPE_CHECKING:
    from layoutopt.graphs.unwinding import Graph
    from layoutopt.network import Network, Solution

PAIRS = 30  # largest number of pairs in a row


@dataclass(frozen=True)
class InstanceSource:
    """Source of an instance, named in tables: a file, or a family with its settings as text.

    ``attractions``, ``dims`` and ``training`` are for networks, as for
    :func:`layoutopt.reading.read`; ``tiles`` replaces the tile memory.
    """

    name: str
    path: str = ""
    family: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    attractions: str = ""
    dims: tuple[tuple[str, int], ...] = ()
    training: str = ""
    tiles: str = ""


def load(source: InstanceSource) -> Graph | Network:
    """Return the graph, or the cost network, of a source."""
    from layoutopt.generate.families import generate
    from layoutopt.io.instance import tile_memory
    from layoutopt.network.files import is_network
    from layoutopt.reading import read

    if not source.family and is_network(Path(source.path)):
        from layoutopt.network import read as read_network

        return read_network(source.path)
    if source.family:
        graph = generate(source.family, dict(source.settings))
    else:
        graph = read(
            source.path,
            attractions=source.attractions or None,
            dims=dict(source.dims),
            training=source.training or None,
        )
    if source.tiles:
        graph.tile_memory = tile_memory(source.tiles)
    return graph


def of_costs(given: object) -> bool:
    """Return whether an instance is a cost network, whose room only then is loaded."""
    return type(given).__name__ == "Network"


def document_hash(graph: Any) -> str:
    """Return the SHA-256 of a graph's instance file without its description."""
    if of_costs(graph):
        from layoutopt.network.certify import network_hash

        return network_hash(graph).removeprefix("sha256:")
    from layoutopt.io.instance import instance_bytes

    description, graph.description = graph.description, ""
    try:
        return hashlib.sha256(instance_bytes(graph)).hexdigest()
    finally:
        graph.description = description


def identity(source: InstanceSource, version: str) -> str:
    """Return a hash of everything that a source's graph depends on, without building the graph.

    By it, a later run of the same version recognises finished instances without building them.
    Files enter by their content.
    """
    files = [source.tiles]
    if source.family:
        given: object = [source.family, source.settings]
    else:
        files += [source.path, source.attractions, *_weights(Path(source.path))]
        given = [Path(source.path).suffixes[-2:], source.dims, source.training]
    contents = [_content(file) for file in files]
    return hashlib.sha256(encode([version, given, contents])).hexdigest()


PLACE = re.compile(rb"\n\x08location\x12([\x80-\xff]?)([\x01-\x7f])(?=([^\0]{1,4095}))")
"""The name of a file of weights in a model's file: its length in digits of seven bits, the last one
alone below 128, and the bytes that begin with it."""


def _weights(path: Path) -> list[str]:
    """Return the files of weights to which an ONNX model refers, without parsing it."""
    with suppress(InputError):
        raw = read_bytes(path) if ".onnx" in path.suffixes else b""
        found = [place.groups() for place in PLACE.finditer(raw)]
        names = {text[: b[0] * 128 + a[0] - 128 if a else b[0]] for a, b, text in found}
        return [str(path.parent / os.fsdecode(name)) for name in sorted(names)]
    return []


def _content(file: str) -> str:
    """Return the hash of a file's bytes; the name if it cannot be read."""
    try:
        with Path(file).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return file


@dataclass(frozen=True)
class Solve:
    """Options with which an instance is solved, for the ``repeat``-th time from 0.

    The time limit is finite, so that a batch run ends.  ``memory`` limits the bytes of a worker,
    loaded modules included.
    """

    solver: str
    time_limit: float
    gap: float = 0.0
    workers: int = 1
    memory: int | None = None
    seed: int = 0
    repeat: int = 0

    @property
    def parameters(self) -> dict[str, object]:
        """Options in a result's key, apart from solver, seed and repeat."""
        given: dict[str, object] = {
            "gap": float(self.gap),
            "time_limit": float(self.time_limit),
            "workers": self.workers,
        }
        return given if self.memory is None else given | {"memory": self.memory}


@dataclass(frozen=True)
class Job:
    """Solves of one instance, which is built once; ``identity`` is its source's.

    Limits of the first solve also apply to building the instance.  A solve is killed ``grace``
    seconds after its time limit.  Version and machine are those in rows.
    """

    source: InstanceSource
    identity: str
    solves: tuple[Solve, ...]
    grace: float
    version: str
    machine: str


@dataclass(frozen=True)
class Outcome:
    """A row, and the log of a failure."""

    row: Row
    identity: str
    log: str = ""


def now() -> str:
    """Return the time as ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Spent:
    """Start and cost of work: wall-clock and processor seconds, peak memory."""

    started: str = field(default_factory=now)
    seconds: float = 0.0
    cpu_seconds: float | None = None
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Instance:
    """The instance of a job, or the reason in one line, and log, why it could not be built.

    The hash is that of its document, or else the identity of its source.
    """

    hash: str
    spent: Spent
    error: str = ""
    log: str = ""


class JobWorker(Protocol):
    """A worker of this process or another one."""

    def load(self, job: Job) -> Instance:
        """Build the instance of a job, unless already done for this job."""

    def solve(self, job: Job, solve: Solve, instance: Instance) -> Outcome:
        """Solve the instance that was built last."""


def outcomes(job: Job, worker: JobWorker) -> Iterator[Outcome]:
    """Run a job: yield an outcome for each of its solves, in order."""
    for i, solve in enumerate(job.solves):
        instance = worker.load(job)
        if instance.error:
            yield from unreadable(replace(job, solves=job.solves[i:]), instance)
            return
        yield worker.solve(job, solve, instance)


def unreadable(job: Job, instance: Instance) -> Iterator[Outcome]:
    """Yield a failure for each solve of a job whose instance could not be built."""
    for solve in job.solves:
        yield failure(job, solve, instance, instance.spent, instance.error, instance.log)


def failure(
    job: Job, solve: Solve, instance: Instance, spent: Spent, error: str, log: str
) -> Outcome:
    """Return the outcome of a solve without a result."""
    row = Row(
        instance=job.source.name,
        instance_hash=instance.hash,
        family=job.source.family,
        solver=solve.solver,
        parameters=solve.parameters,
        seed=solve.seed,
        repeat=solve.repeat,
        version=job.version,
        machine=job.machine,
        status=FAILED,
        phases={"read": instance.spent.seconds},
        error=error,
        **vars(spent),
    )
    return Outcome(row, job.identity, log)


class Worker:
    """Worker in this process, which caches the last graph for the next job.

    It is not ``reusable`` after lack of memory or an unexpected error, or if a solver is still
    running.
    """

    def __init__(self) -> None:
        self.made: tuple[str, Instance, Graph | Network] | None = None  # the identity first
        self.reusable = True

    def solvers(self) -> tuple[str, ...]:
        """Return the names of all solvers."""
        from layoutopt.registry import names

        return names()

    def load(self, job: Job) -> Instance:
        """Build the instance of a job, unless it is the last one."""
        if self.made is None or self.made[0] != job.identity:
            self.made = None
            watch = Stopwatch()
            try:
                graph = load(job.source)
                digest = document_hash(graph)
                if identity(job.source, job.version) != job.identity:
                    raise InputError("its files changed after the run began; run again to solve it")
            except Exception as error:  # other jobs continue
                spent = watch.spent()
                return Instance(job.identity, spent, reason(error), traceback.format_exc())
            self.made = job.identity, Instance(digest, watch.spent()), graph
        return self.made[1]

    def solve(self, job: Job, solve: Solve, instance: Instance) -> Outcome:
        """Solve the instance that was built last; KeyboardInterrupt discards the result."""
        assert self.made is not None
        graph, trace, watch = self.made[2], Trace(), Stopwatch()
        try:
            result = _result(graph, solve, trace)
        except Exception as error:  # a failure is a row
            spent = watch.spent()
            foreseen = isinstance(error, LayoutoptError) and not isinstance(error, SizeError)
            self.reusable = foreseen and not left_running()
            return failure(job, solve, instance, spent, reason(error), traceback.format_exc())
        spent = watch.spent()
        if result.stopped is Stopped.INTERRUPTED:
            raise KeyboardInterrupt
        self.reusable = result.stopped is not Stopped.MEMORY_LIMIT and not left_running()
        blank = failure(job, solve, instance, spent, "", "")
        return replace(blank, row=_answered(blank.row, result, trace))


def _result(graph: Any, solve: Solve, trace: Trace) -> UnwindingResult | Solution:
    how: dict[str, Any] = {"time_limit": solve.time_limit, "gap": solve.gap}
    how |= {"seed": solve.seed, "workers": solve.workers}
    if of_costs(graph):
        from layoutopt.network import solve as solve_network

        solver = "greedy" if solve.solver == "greedy0" else solve.solver
        return solve_network(graph, solver=solver, **how)
    from layoutopt.unwinding import unwind

    return unwind(graph, solve.solver, progress=trace, **how)


FINE = Context(prec=20)  # digits of numbers without finite decimals


def _answered(row: Row, result: UnwindingResult | Solution, trace: Trace) -> Row:
    """Return the row of a result; costs of a network are negated when minimising."""
    row = replace(row, status=str(result.status), stopped=str(result.stopped))
    if not isinstance(result, UnwindingResult):
        sign = -1 if result.network.sense == "min" else 1
        return replace(
            row,
            score=_decimal(result.objective, sign),
            bound=_decimal(result.bound, sign),
            size=result.network.counts,
        )
    graph = result.graph
    losing = sorted(result.pairs, key=lambda pair: pair.loss, reverse=True)[:PAIRS]
    phases = {name: seconds for name, seconds in result.seconds.items() if name != "total"}
    return replace(
        row,
        score=result.score,
        bound=None if result.bound is None else Decimal(result.bound),
        max_score=result.max_score,
        phases=dict(row.phases) | phases,
        size={"ops": len(graph.ops), "pairs": len(graph.pairs)} | result.size,
        trace=trace.points(row.seconds, result),
        pairs=tuple((p.a, p.b, str(p.value), p.elements, p.matched) for p in losing),
    )


def _decimal(value: Fraction | int | None, sign: int) -> Decimal | None:
    if value is None:
        return None
    exact = sign * Fraction(value)
    if exact.denominator == 1:
        return Decimal(exact.numerator)
    try:
        return exact_decimal(exact, SUM_DIGITS)
    except InputError:
        return FINE.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def reason(error: Exception) -> str:
    """Return an error in one line."""
    if isinstance(error, MemoryError):
        return "out of memory"
    name = type(error).__name__
    text = str(error) if isinstance(error, LayoutoptError) else f"{name}: {error}"
    return " ".join(text.split()) or name


class Stopwatch:
    """Measurement of work in this process since its creation."""

    def __init__(self) -> None:
        self.resets = _forget_peak()
        self.started = now()
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def spent(self) -> Spent:
        """Return time and memory spent since creation."""
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        return Spent(self.started, wall, cpu, _peak(self.resets))


def _forget_peak() -> bool:
    """Reset the peak memory of this process, on Linux; return whether this succeeded."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _peak(resets: bool) -> int:
    """Return the largest resident memory in bytes, of the process where it cannot be reset."""
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()) if resets else None
    if found:
        return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def machine_name() -> str:
    """Describe this machine: processor, number of cores, system.

    Machines of one kind, such as the nodes of a cluster, have the same name.
    """
    cpu = platform.processor() or platform.machine()
    with suppress(OSError):
        found = re.search(r"^model name\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        cpu = found[1].strip() if found else cpu
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}"
