"""What is minimised, as one whole number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from layoutopt.conversion.result import Tally
from layoutopt.errors import InputError

Pair: TypeAlias = tuple[int, ...]
"""A number for each objective, the first one first."""

OBJECTIVES = ("bytes", "count")


def parse_objective(text: str) -> tuple[str, ...]:
    """Return the objectives that a text names, in order.

    Raises
    ------
    InputError
        If it names others, or one twice.
    """
    names = tuple(part.strip() for part in text.split(",")) if isinstance(text, str) else ()
    if not names or len(set(names)) < len(names) or not set(names) <= set(OBJECTIVES):
        allowed = "bytes, count, bytes,count or count,bytes"
        raise InputError(f"objective must be {allowed}; got {text!r}")
    return names


def measured(tally: Tally, objectives: tuple[str, ...]) -> Pair:
    """Return the value of each objective for the transforms of a graph."""
    both = {"bytes": tally.bytes, "count": tally.transforms}
    return tuple(both[name] for name in objectives)


@dataclass(frozen=True)
class Costs:
    """The weight of transforms; exact in order of the objectives.

    Two objectives make one number: ``first * scale + second``, where ``scale`` is larger than the
    second can become.  Bytes are counted in units that divide those of all tensors.

    Parameters
    ----------
    objectives
        Their names.
    unit
        Bytes of a unit.
    scale
        What the first objective is multiplied by; 1 where there is one only.
    """

    objectives: tuple[str, ...]
    unit: int
    scale: int

    def weight(self, size: int) -> int:
        """Return the cost of moving a tensor of so many bytes."""
        both = {"bytes": size // self.unit, "count": 1}
        numbers = [both[name] for name in self.objectives]
        return numbers[0] if len(numbers) == 1 else numbers[0] * self.scale + numbers[1]

    def split(self, cost: int) -> Pair:
        """Return the value of each objective; of a bound, what they are at least, in order."""
        numbers = (cost,) if len(self.objectives) == 1 else divmod(cost, self.scale)
        units = {"bytes": self.unit, "count": 1}
        return tuple(units[o] * n for o, n in zip(self.objectives, numbers, strict=True))


def costs(objectives: tuple[str, ...], sizes: Iterable[int]) -> Costs:
    """Return the weights for objectives.

    Parameters
    ----------
    objectives
        What is minimised, in order.
    sizes
        Bytes of each transform that there may be.
    """
    every = list(sizes)
    unit = gcd(*every) or 1
    most = {"bytes": sum(every) // unit, "count": len(every)}
    return Costs(objectives, unit, most[objectives[-1]] + 1)
