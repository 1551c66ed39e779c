"""What every solver answers with."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

from layoutopt.pieces import Piece, Step


class Status(StrEnum):
    """What is known about an answer."""

    OPTIMAL = "optimal"
    """A solution with a proof that none is better."""
    FEASIBLE = "feasible"
    """A solution, perhaps with a bound."""
    INFEASIBLE = "infeasible"
    """A proof that there is no solution."""
    UNKNOWN = "unknown"
    """Neither a solution nor a proof that there is none."""


class Stopped(StrEnum):
    """Why a computation ended, apart from what it proved."""

    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    GAP_LIMIT = "gap limit"
    INTERRUPTED = "interrupted"
    SIZE_LIMIT = "size limit"


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """A solution, a bound, or both.

    Parameters
    ----------
    objective
        The solution's exact score, ``None`` without a solution.
    bound
        A proved upper bound on every score, ``None`` where none is known.
    labelling
        The solution: an array of labels for a labelling problem, layouts by sink for an
        unwinding graph; ``None`` without a solution.
    stopped
        Why the computation ended.
    seconds
        Wall-clock seconds by phase.
    """

    objective: int | Decimal | None = None
    bound: int | Decimal | None = None
    labelling: Any = None
    stopped: Stopped = Stopped.FINISHED
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """What is proved; ``optimal`` only where objective and bound are exactly equal."""
        if self.objective is None:
            return Status.UNKNOWN
        return Status.OPTIMAL if self.objective == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """``(bound - objective) / max(|objective|, 1e-9)``; ``None`` if either is unknown."""
        if self.objective is None or self.bound is None:
            return None
        objective, bound = Fraction(self.objective), Fraction(self.bound)
        gap = (bound - objective) / max(abs(objective), Fraction(1, 10**9))
        return float(gap) if gap < sys.float_info.max else float("inf")


@dataclass(frozen=True)
class PairScore:
    """What one ValuedPair earns: ``value * matched`` of at most ``value * elements``."""

    a: str
    b: str
    value: Decimal
    elements: int
    matched: int


@dataclass(frozen=True, eq=False, kw_only=True)
class UnwindingResult(Result):
    """The answer to an unwinding problem.

    Parameters
    ----------
    instance, solver, version, seed
        What was solved, and by what.
    max_score
        The score if every pair matched at every position.
    size
        Counts by name: ``tensors``, ``elements``, ``free_elements``, ``unconstrained``
        (free elements that no pair reaches), ``edges``, ``classes``.
    pairs
        What each ValuedPair earns, in the graph's order.
    order
        In which order the sinks can be set so that every barrier is known when it is needed.
    """

    instance: str
    solver: str
    version: str
    seed: int
    max_score: Decimal
    size: dict[str, int] = field(default_factory=dict)
    pairs: tuple[PairScore, ...] = ()
    order: tuple[Step, ...] = ()

    @property
    def score(self) -> Decimal | None:
        """The exact score of the layouts."""
        return None if self.objective is None else Decimal(self.objective)

    @property
    def layouts(self) -> dict[str, tuple[Piece, ...]] | None:
        """The pieces that cover each sink, by sink name."""
        layouts: dict[str, tuple[Piece, ...]] | None = self.labelling
        return layouts
