"""Optima of problems that are too large for trying everything."""

from __future__ import annotations

from layoutopt.base.entries import Takes, load
from layoutopt.base.limits import Limits
from layoutopt.network.problem import Labelling


def exact(problem: Labelling) -> int:
    """Return the optimum that ``auto`` proves."""
    result = load("auto", Takes.LABELLING)(problem, Limits(), None)
    assert result.objective == result.bound
    return int(result.objective or 0)
