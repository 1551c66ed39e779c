"""Programme programmes in arrays."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.programme import OPEN, Programme, ProgrammeWriter, coarse


def random_programme(seed: int) -> Programme:
    """Return a programme of three variables and rows."""
    draw = np.random.default_rng(seed)
    matrix = draw.integers(-2, 4, (3, 3))
    low = np.where(draw.random(3) < 0.5, -OPEN, draw.integers(0, 4, 3))
    high = np.where(draw.random(3) < 0.3, OPEN, draw.integers(2, 9, 3))
    upper = draw.integers(0, 5, 3)
    to = ProgrammeWriter()
    to.family(to.block(draw.integers(-9, 10, 3), upper)[None].repeat(3, 0), matrix, low, high)
    return to.finished()


def best(given: Programme) -> int | None:
    """Return the optimum by trying all points."""
    found = []
    for point in itertools.product(*(range(u + 1) for u in given.upper.tolist())):
        rows = given.matrix @ np.array(point)
        if ((rows >= given.low) & (rows <= given.high)).all():
            found.append(int(given.objective @ np.array(point)))
    return max(found, default=None)


@pytest.mark.parametrize("seed", range(40))
def test_both_solvers_find_the_optimum(seed: int) -> None:
    """CP-SAT proves the optimum, or that there is none; HiGHS finds the same value."""
    given = random_programme(seed)
    optimum = best(given)
    exact, rounded = cpsat.solve(given, Limits()), highs.solve(given, Limits())
    assert exact.infeasible == (optimum is None)
    if optimum is None:
        assert rounded.values is None
        return
    assert exact.bound == optimum
    for found in (exact, rounded):
        assert found.values is not None
        assert given.objective @ found.values == optimum
        assert found.bound == optimum


def test_no_time_finds_nothing_false() -> None:
    """Without time nothing is claimed that is not so."""
    given = random_programme(1)
    found = cpsat.solve(given, Limits(deadline=0.0))
    optimum = best(given)
    assert not found.infeasible or optimum is None
    assert found.bound is None or optimum is None or found.bound >= optimum


def test_sums_beyond_64_bits_do_not_fit() -> None:
    """An objective of 2**54 times 3 is too large."""
    for worth, fits in ((1, True), (2**54, False)):
        to = ProgrammeWriter()
        to.row([to.variable(worth, 3)], [1], 1, 1)
        assert to.finished().fits() == fits


@pytest.mark.parametrize("seed", range(40))
def test_wide_objectives_are_rounded_up(seed: int) -> None:
    """Numbers beyond 64 bits become small ones whose bound holds; common factors are exact."""
    given = random_programme(seed)
    optimum = best(given)
    for factor, more in ((2**70, 0), (2**70, seed + 1)):
        wide = given.objective.astype(object) * factor + more
        small, unit = coarse(replace(given, objective=wide))
        assert small.fits()
        found = cpsat.solve(small, Limits())
        assert found.infeasible == (optimum is None)
        if optimum is not None:
            assert found.values is not None
            assert found.bound is not None
            exact = best(replace(given, objective=wide))
            assert exact is not None
            assert found.bound * unit >= exact
            assert more or found.bound * unit == exact


@pytest.mark.parametrize("seed", range(20))
def test_a_start_and_a_known_limit_change_nothing(seed: int) -> None:
    """With part of a point to begin with, and the optimum as a limit, it is found all the same."""
    given = random_programme(seed)
    optimum = best(given)
    found = cpsat.solve(given, Limits(), np.array([-1, 0, -1]), optimum)
    assert found.bound == optimum
    below = cpsat.solve(given, Limits(), most=-(10**6))
    assert below.infeasible  # the limit is believed
