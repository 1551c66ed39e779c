"""One computation in a process of its own: its seconds, its peak memory, what became of it."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

MEMORY_LIMIT = 14 * 2**30
"""Bytes of address space that a computation may take."""

GRACE = 60.0
"""Seconds past its limit after which a computation is ended from outside."""


@dataclass(frozen=True)
class Measured:
    """What a computation returned, and what it took.

    Parameters
    ----------
    answer
        What it returned; ``None`` if it was ended.
    seconds
        Wall-clock seconds of the call itself, imports and input excluded.
    peak_mb
        Largest resident memory of the process, in MiB.
    cpu
        Seconds of processor time of the call and of programs that it ran, if it was timed.
    failure
        ``"out of memory"``, ``"died"``, ``"ended"``, or what it raised, in one line; empty if it
        returned.
    """

    answer: Any
    seconds: float
    peak_mb: float
    failure: str = ""
    cpu: float = 0.0


def measure(target: Callable[..., Any], *args: Any, seconds: float | None = None) -> Measured:
    """Run ``target(*args)`` in a new process.

    Parameters
    ----------
    target
        A function of a module.  It returns its answer, or a :class:`Timed` one that leaves
        out its preparations.
    seconds
        The limit that the target itself heeds.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(there, target, args))
    process.start()
    there.close()
    ready = here.poll(None if seconds is None else seconds + GRACE)
    try:
        found: Measured = here.recv() if ready else Measured(None, 0, 0, "ended")
    except EOFError:
        found = Measured(None, 0, 0, "died")
    process.kill()
    process.join()
    return found


def _run(pipe: Connection, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    started = time.perf_counter()
    try:
        answer, failure = target(*args), ""
    except MemoryError:
        answer, failure = None, "out of memory"
    except Exception as error:  # of any package that is measured
        first = next(iter(str(error).strip().splitlines()), "")
        answer, failure = None, f"{type(error).__name__}: {first}"
    spent, cpu = time.perf_counter() - started, _cpu()
    if isinstance(answer, Timed):
        answer, spent, cpu = answer.answer, answer.seconds, answer.cpu
    pipe.send(Measured(answer, spent, _peak(), failure, cpu))


def _peak() -> float:
    """Return the largest resident memory of this process, in MiB.

    On Linux, ``ru_maxrss`` begins at that of the starting process, ``VmHWM`` does not.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return (found or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0] / 1024


@dataclass(frozen=True)
class Timed:
    """An answer with the seconds that count."""

    answer: Any
    seconds: float
    cpu: float = 0.0


def timed(call: Callable[[], Any]) -> Timed:
    """Run a call and time it alone."""
    started, before = time.perf_counter(), _cpu()
    answer = call()
    return Timed(answer, time.perf_counter() - started, _cpu() - before)


def _cpu() -> float:
    """Return the seconds of processor time of this process and of those that it waited for."""
    every = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, every))


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a table as Markdown, the first ``left`` columns flush left."""
    rule = ["---" if i < left else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
