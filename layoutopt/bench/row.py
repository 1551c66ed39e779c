"""What a batch run keeps of one solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from layoutopt.result import Result
from layoutopt.trace import Point

PairRow: TypeAlias = tuple[str, str, str, int, int]
"""Names of both tensors, value as text, number of elements, and how many of them match."""

FAILED = "failed"
"""The status of a solve that gave no answer: an error, a crash, or a hard limit."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One solve of one instance, as a store of results keeps it.

    Parameters
    ----------
    instance
        The instance's name.
    instance_hash
        SHA-256, in hexadecimal, of the graph's canonical document: its instance file without
        the description.
    family
        The family that the instance was generated from; "" for one from a file.
    solver
        Its name.
    parameters
        What the solver was given, by name, seed excluded: ``time_limit``, ``gap``, ...
    seed, repeat
        Seed of everything random; number of the repetition, from 0.
    version, machine
        Version of layoutopt; name and processor of the machine.
    status
        A value of :class:`~layoutopt.result.Status`, or ``"failed"``.
    score, bound, max_score
        Exact; ``None`` where unknown.
    seconds
        Wall-clock seconds of the whole call.
    cpu_seconds
        Processor seconds that the worker spent on it, all threads together.
    phases
        Wall-clock seconds by phase; ``read``, which made the graph, is no part of ``seconds``.
    size
        Counts by name: ``ops``, ``pairs``, and those of
        :attr:`~layoutopt.result.UnwindingResult.size`.
    peak_bytes
        Largest resident memory of the worker during the solve, with all that it has loaded;
        ``None`` where unknown.
    started
        When the solve began: ISO 8601, UTC.
    stopped
        A value of :class:`~layoutopt.result.Stopped`; "" for a failure.
    error
        Why it failed, in one line; "" if it did not.
    log
        Path of the log of a failure, relative to the store's folder; "" without one.
    trace
        Score and bound over time, at most 200 points, in order.
    pairs
        What the pairs earn that lose most, at most 30.
    """

    instance: str
    instance_hash: str
    solver: str
    version: str
    machine: str
    status: str
    seconds: float
    started: str
    family: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    repeat: int = 0
    score: Decimal | None = None
    bound: Decimal | None = None
    max_score: Decimal | None = None
    cpu_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    size: Mapping[str, int] = field(default_factory=dict)
    peak_bytes: int | None = None
    stopped: str = ""
    error: str = ""
    log: str = ""
    trace: tuple[Point, ...] = ()
    pairs: tuple[PairRow, ...] = ()

    @property
    def gap(self) -> float | None:
        """``(bound - score) / max(|score|, 1e-9)``; ``None`` if either is unknown."""
        return Result(objective=self.score, bound=self.bound).gap
