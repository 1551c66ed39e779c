"""Results of conversions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from layoutopt.base.limits import Stopped
from layoutopt.base.result import Status
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.layout.factors import Form, Shape
from layoutopt.layout.permutations import Permutation


@dataclass(frozen=True)
class TransformedConstant:
    """A constant that takes the place of another."""

    source: str  # the name of the old one
    form: Form  # what each dimension holds of the axes of the old one; padding is zero
    shape: Shape  # the old one's shape


@dataclass(frozen=True)
class Tally:
    """Cost of a graph's transforms."""

    transforms: int  # how many there are: transposes that move elements when the graph runs
    # Bytes that they move in all rounds of loops.  A size that is not known counts as 1, a number
    # of rounds as 2.
    bytes: int
    # how many transposes move no element, as their axes have size 1 or they are of constants
    free: int
    # the bytes of each, by the name of the transpose
    by_op: Mapping[str, int] = field(default_factory=dict, repr=False)
    runs: int = field(default=0, repr=False)  # how often they run

    def __add__(self, other: Tally) -> Tally:
        """Return what both cost together."""
        return Tally(
            self.transforms + other.transforms,
            self.bytes + other.bytes,
            self.free + other.free,
            {**self.by_op, **other.by_op},
            self.runs + other.runs,
        )


NO_TRANSFORMS = Tally(0, 0, 0)


class PhaseTimes:
    """Wall-clock seconds by phase, from ``begin`` on, a value of ``time.monotonic()``."""

    def __init__(self, begin: float, phases: Iterable[str] = ()) -> None:
        self.seconds = dict.fromkeys(phases, 0.0)
        self._last = begin

    def end(self, phase: str) -> None:
        """Add the time since the end of the last phase to a phase."""
        now = time.monotonic()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


@dataclass(frozen=True)
class Remaining:
    """A transform that remains, and why."""

    op: str  # the name of the transpose in the new graph
    tensor: str  # the name of what it transposes, in the graph as it was given
    # `before`, `after`: layouts: letters where these are known, `NCHW`, else numbers of axes,
    # `0231`
    before: str
    after: str
    bytes: int  # bytes that it moves
    # `giver`, `takers`: who gives the tensor in the one layout, and who needs it in the other
    giver: str
    takers: tuple[str, ...]
    why: str  # all of this in one line

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class StatedProblem:
    """A choice of layouts as plain data."""

    document: dict[str, Any]  # what is to be chosen; see :mod:`layoutopt.certificate.conversion`
    # for each op of the document the numbers of the modes that the solver chooses from
    useful: list[list[int]]
    chosen: list[int]  # for each op the number of the mode that is chosen


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A graph with layouts of least cost, and the proof's figures."""

    # The new graph.  Inputs and outputs have their names, and their layouts unless freed.
    graph: ConversionGraph
    relaid: Mapping[str, TransformedConstant]  # its new constants, by name
    # inputs and outputs that come in another layout: how each is permuted, as for
    # `numpy.transpose`
    freed: Mapping[str, Permutation]
    objectives: tuple[str, ...]  # what was minimised, in order: `count`, `changed`, `bytes`
    objective: tuple[int, ...]  # the value of each for the new graph
    # what no choice of layouts can fall below, compared from the first number on; proved
    bound: tuple[int, ...]
    stopped: Stopped  # why the computation ended
    seconds: Mapping[str, float]  # wall-clock seconds by phase
    # `before`, `after`: what the transforms of the graph cost, as it was and as it is
    before: Tally
    after: Tally
    # tells why each transform of the new graph is there; see :attr:`remaining`
    explain: Callable[[], tuple[Remaining, ...]] = field(repr=False)
    # tells the problem as plain data, and what was chosen; for certificates
    state: Callable[[], StatedProblem] = field(repr=False)
    # names of ops that run in another way than they are written
    changed: frozenset[str] = field(default=frozenset(), repr=False)

    @cached_property
    def remaining(self) -> tuple[Remaining, ...]:
        """Why each transform of the new graph is there."""
        return self.explain()

    @property
    def status(self) -> Status:
        """What is proved; ``optimal`` only where objective and bound are equal."""
        return Status.OPTIMAL if self.objective == self.bound else Status.FEASIBLE

    @property
    def gap(self) -> float:
        """``(objective - bound) / max(objective, 1)`` of the first number that differs."""
        return first_gap(self.objective, self.bound)


def first_gap(objective: tuple[int, ...], bound: tuple[int, ...]) -> float:
    """Return ``(objective - bound) / max(objective, 1)`` of the first number that differs."""
    pairs = zip(objective, bound, strict=True)
    return next(((a - b) / max(a, 1) for a, b in pairs if a != b), 0.0)
