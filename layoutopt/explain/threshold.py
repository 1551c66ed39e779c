"""The least value of one pair at which it matches at so many positions.

Layouts that match the pair at ``k`` positions and earn ``R`` elsewhere earn ``R + k * v`` at the
value ``v``, so the optimum is a convex, piecewise linear function of ``v``, whose slope is ``k``.
The point from which on it is at least so steep is found as breakpoints of such functions are
(Eisner and Severance, *Mathematical techniques for efficient record segmentation in large shared
databases*, J. ACM 23, 1976): where the highest of the steep lines known so far meets the highest of
the others, the graph is solved.  What is better there is a new line; if nothing is, that is the
point.  There are finitely many lines, and all numbers are exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from layoutopt.explain.trials import Trial, Trials


class Threshold(NamedTuple):
    """A value, and whether it is proved to be the least."""

    value: Fraction
    proved: bool


def least_value(trials: Trials, count: int, floor: int) -> Threshold:
    """Return the least value of the pair at which some optimum matches it often enough.

    Parameters
    ----------
    count
        At how many positions; layouts that do so must be known.
    floor
        No value below this one is looked at.
    """
    while True:
        value = _meeting(trials, count, Fraction(floor))
        values = trials.with_value(value)
        known = max(trial.worth(values) for trial in trials.found)
        answer = trials.best(values, "where choices change")
        if answer.trial is None or answer.trial.worth(values) <= known:
            return Threshold(value, answer.proved)


def _meeting(trials: Trials, count: int, floor: Fraction) -> Fraction:
    """Return the least value at which a steep line is as high as all others, of those known."""
    lines = [(trial.matched[trials.own], _rest(trials, trial)) for trial in trials.found]
    steep = [line for line in lines if line[0] >= count]
    flat = [line for line in lines if line[0] < count]
    ahead = [[Fraction(r - rest, k - n) for n, r in flat] for k, rest in steep]
    return min(max([floor, *values]) for values in ahead)


def _rest(trials: Trials, trial: Trial) -> int:
    """Return what all other pairs earn."""
    return trial.worth(trials.with_value(0))
