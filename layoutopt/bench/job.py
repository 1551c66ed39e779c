"""Jobs of workers and their outcomes, as plain data."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from layoutopt.bench.row import Row
from layoutopt.bench.source import Source


@dataclass(frozen=True)
class Solve:
    """Options with which an instance is solved.

    Parameters
    ----------
    solver
        A name from :data:`layoutopt.unwinding.SOLVERS`.
    time_limit
        Seconds; always finite, so that a batch run ends.
    gap, workers
        As for :func:`layoutopt.unwinding.unwind`.
    memory
        Bytes that a worker may take, with all that it has loaded; ``None``: any number.
    seed
        Seed of everything random.
    repeat
        Number of the repetition, from 0.
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
        """What belongs to a result's key beside solver, seed and repeat."""
        given: dict[str, object] = {
            "gap": float(self.gap),
            "time_limit": float(self.time_limit),
            "workers": self.workers,
        }
        return given if self.memory is None else given | {"memory": self.memory}


@dataclass(frozen=True)
class Job:
    """Some solves of one instance, which is made once for all of them.

    Parameters
    ----------
    identity
        The source's identity (:func:`layoutopt.bench.source.identity`).
    grace
        Seconds past a time limit after which a solve is killed.
    version, machine
        For the rows.
    """

    source: Source
    identity: str
    solves: tuple[Solve, ...]
    grace: float
    version: str
    machine: str


@dataclass(frozen=True)
class Outcome:
    """A row, and what a failure has to say beyond its one line."""

    row: Row
    identity: str
    log: str = ""


def machine_name() -> str:
    """Return what this machine is, for the rows: processor, number of cores, system.

    Machines of one kind, such as the nodes of a cluster, have the same name.
    """
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}"
