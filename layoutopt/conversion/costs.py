"""What is minimised, as one whole number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from layoutopt.conversion.result import Tally
from layoutopt.errors import InputError
from layoutopt.requirements.costs import OpCosts

Pair: TypeAlias = tuple[int, ...]
"""A number for each objective, the first one first."""

OBJECTIVES = ("bytes", "count", "time")
"""Bytes that transforms move, how many there are, and femtoseconds of transforms and ops."""

NO_TIMES = OpCosts((), 0, 0)


def parse_objective(text: str, timed: bool = False) -> tuple[str, ...]:
    """Return the objectives that a text names, in order.

    Parameters
    ----------
    text
        One or two of ``bytes``, ``count`` and ``time``, with a comma.
    timed
        Whether there is a table of costs, without which there is no ``time``.

    Raises
    ------
    InputError
        If it names others, or one twice.
    """
    names = tuple(part.strip() for part in text.split(",")) if isinstance(text, str) else ()
    known = OBJECTIVES if timed else OBJECTIVES[:2]
    if not 1 <= len(names) <= 2 or len(set(names)) < len(names) or not set(names) <= set(known):
        allowed = "bytes, count, bytes,count or count,bytes"
        more = ", with time too" if timed else ""
        less = "; time needs a table of costs" if "time" in names and not timed else ""
        raise InputError(f"objective must be {allowed}{more}; got {text!r}{less}")
    return names


def measured(tally: Tally, objectives: tuple[str, ...], times: OpCosts, ops: int = 0) -> Pair:
    """Return the value of each objective.

    Parameters
    ----------
    tally
        The transforms of a graph.
    objectives
        Their names.
    times
        What transforms cost.
    ops
        Femtoseconds that the graph's ops take.
    """
    time = ops + tally.transforms * times.fixed + tally.bytes * times.per_byte
    every = {"bytes": tally.bytes, "count": tally.transforms, "time": time}
    return tuple(every[name] for name in objectives)


@dataclass(frozen=True)
class Costs:
    """The weight of transforms and ops; exact in order of the objectives.

    Two objectives make one number: ``first * scale + second``, where ``scale`` is larger than the
    second can become.  Each is counted in units that divide all that it adds up.

    Parameters
    ----------
    objectives
        Their names.
    times
        What transforms cost in time.
    units
        Of each objective.
    scale
        What the first objective is multiplied by; 1 where there is one only.
    """

    objectives: tuple[str, ...]
    times: OpCosts
    units: tuple[int, ...]
    scale: int

    def weight(self, size: int) -> int:
        """Return the cost of moving a tensor of so many bytes."""
        return self._number(measured(Tally(1, size, 0), self.objectives, self.times))

    def op(self, time: int) -> int:
        """Return the cost of an op that takes so many femtoseconds."""
        return self._number(measured(Tally(0, 0, 0), self.objectives, self.times, time))

    def _number(self, values: Pair) -> int:
        numbers = [value // unit for value, unit in zip(values, self.units, strict=True)]
        return numbers[0] if len(numbers) == 1 else numbers[0] * self.scale + numbers[1]

    def split(self, cost: int) -> Pair:
        """Return the value of each objective; of a bound, what they are at least, in order."""
        numbers = (cost,) if len(self.objectives) == 1 else divmod(cost, self.scale)
        return tuple(unit * n for unit, n in zip(self.units, numbers, strict=True))


def costs(
    objectives: tuple[str, ...],
    sizes: Iterable[int],
    times: OpCosts = NO_TIMES,
    ops: Iterable[Sequence[int]] = (),
) -> Costs:
    """Return the weights for objectives.

    Parameters
    ----------
    objectives
        What is minimised, in order.
    sizes
        Bytes of each transform that there may be.
    times
        What transforms cost in time.
    ops
        For each op what its modes take, in femtoseconds.
    """
    moves = [measured(Tally(1, size, 0), objectives, times) for size in sizes]
    none = Tally(0, 0, 0)
    runs = [[measured(none, objectives, times, time) for time in own] for own in ops]
    every = [*moves, *(pair for own in runs for pair in own)]
    units = tuple(gcd(*(pair[i] for pair in every)) or 1 for i in range(len(objectives)))
    most = sum(pair[-1] for pair in moves) + sum(max(p[-1] for p in own) for own in runs if own)
    return Costs(objectives, times, units, most // units[-1] + 1)
