"""Results of conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from layoutopt.base.result import Status, Stopped
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.layout.factors import Form, Shape
from layoutopt.layout.permutations import Permutation


@dataclass(frozen=True)
class TransformedConstant:
    """A constant that takes the place of another.

    Parameters
    ----------
    source
        The name of the old one.
    form
        What each dimension holds of the axes of the old one; padding is zero.
    shape
        The old one's shape.
    """

    source: str
    form: Form
    shape: Shape


@dataclass(frozen=True)
class Tally:
    """Cost of a graph's transforms.

    Parameters
    ----------
    transforms
        How many there are: transposes that move elements when the graph runs.
    bytes
        Bytes that they move in all rounds of loops.  A size that is not known counts as 1, a number
        of rounds as 2.
    free
        How many transposes move no element, as their axes have size 1 or they are of constants.
    by_op
        The bytes of each, by the name of the transpose.
    runs
        How often they run.
    """

    transforms: int
    bytes: int
    free: int
    by_op: Mapping[str, int] = field(default_factory=dict, repr=False)
    runs: int = field(default=0, repr=False)

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


@dataclass(frozen=True)
class Remaining:
    """A transform that remains, and why.

    Parameters
    ----------
    op
        The name of the transpose in the new graph.
    tensor
        The name of what it transposes, in the graph as it was given.
    before, after
        Layouts: letters where these are known, ``NCHW``, else numbers of axes, ``0231``.
    bytes
        Bytes that it moves.
    giver, takers
        Who gives the tensor in the one layout, and who needs it in the other.
    why
        All of this in one line.
    """

    op: str
    tensor: str
    before: str
    after: str
    bytes: int
    giver: str
    takers: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class StatedProblem:
    """A choice of layouts as plain data.

    Parameters
    ----------
    document
        What is to be chosen; see :mod:`layoutopt.certificate.conversion`.
    useful
        For each op of the document the numbers of the modes that the solver chooses from.
    chosen
        For each op the number of the mode that is chosen.
    """

    document: dict[str, Any]
    useful: list[list[int]]
    chosen: list[int]


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A graph with layouts of least cost, and the proof's figures.

    Parameters
    ----------
    graph
        The new graph.  Inputs and outputs have their names, and their layouts unless freed.
    relaid
        Its new constants, by name.
    freed
        Inputs and outputs that come in another layout: how each is permuted, as for
        ``numpy.transpose``.
    objectives
        What was minimised, in order: ``count``, ``changed``, ``bytes``.
    objective
        The value of each for the new graph.
    bound
        What no choice of layouts can fall below, compared from the first number on; proved.
    stopped
        Why the computation ended.
    seconds
        Wall-clock seconds by phase.
    before, after
        What the transforms of the graph cost, as it was and as it is.
    explain
        Tells why each transform of the new graph is there; see :attr:`remaining`.
    state
        Tells the problem as plain data, and what was chosen; for certificates.
    changed
        Names of ops that run in another way than they are written.
    """

    graph: ConversionGraph
    relaid: Mapping[str, TransformedConstant]
    freed: Mapping[str, Permutation]
    objectives: tuple[str, ...]
    objective: tuple[int, ...]
    bound: tuple[int, ...]
    stopped: Stopped
    seconds: Mapping[str, float]
    before: Tally
    after: Tally
    explain: Callable[[], tuple[Remaining, ...]] = field(repr=False)
    state: Callable[[], StatedProblem] = field(repr=False)
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
