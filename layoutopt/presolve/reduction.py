"""A smaller problem with the same optimum, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layoutopt.problem import IntArray, Labelling


@dataclass(frozen=True, eq=False)
class Reduction:
    """What a reduction makes of a problem.

    Every labelling ``y`` of the small problem gives ``x = restore(y)`` of the large one with
    ``large.value(x) == constant + small.value(y)`` at least, and the optima satisfy this
    with equality.  So ``constant`` plus a bound of the small problem is one of the large.

    Parameters
    ----------
    problem
        The small problem.
    constant
        What is earned outside it.
    restore
        Labels of the large problem from labels of the small one.
    """

    problem: Labelling
    constant: int
    restore: Callable[[IntArray], IntArray]


def identity(problem: Labelling) -> Reduction:
    """Return the reduction that changes nothing."""
    return Reduction(problem, 0, lambda labels: labels)


def chain(first: Reduction, second: Reduction) -> Reduction:
    """Return the two reductions, ``second`` of the outcome of ``first``, as one."""
    return Reduction(
        second.problem,
        first.constant + second.constant,
        lambda labels: first.restore(second.restore(labels)),
    )
