"""Integer programmes in arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from layoutopt.limits import Limits
from layoutopt.solvers.integer import OPEN, Integer, cpsat, fits, highs


def random_programme(seed: int) -> Integer:
    """Return a programme of three variables and rows."""
    draw = np.random.default_rng(seed)
    matrix = draw.integers(-2, 4, (3, 3))
    low = np.where(draw.random(3) < 0.5, -OPEN, draw.integers(0, 4, 3))
    high = np.where(draw.random(3) < 0.3, OPEN, draw.integers(2, 9, 3))
    upper = draw.integers(0, 5, 3)
    return Integer(draw.integers(-9, 10, 3), upper, csr_array(matrix), low, high)


def best(given: Integer) -> int | None:
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
    exact, rounded = cpsat(given, Limits()), highs(given, Limits())
    assert exact.infeasible == (optimum is None)
    if optimum is None:
        assert rounded.values is None
        return
    assert exact.bound == optimum
    for found in (exact, rounded):
        assert found.values is not None
        assert given.objective @ found.values == optimum
    assert rounded.bound is None


def test_no_time_finds_nothing_false() -> None:
    """Without time nothing is claimed that is not so."""
    given = random_programme(1)
    found = cpsat(given, Limits(deadline=0.0))
    optimum = best(given)
    assert not found.infeasible or optimum is None
    assert found.bound is None or optimum is None or found.bound >= optimum


def test_sums_beyond_64_bits_do_not_fit() -> None:
    """An objective of 2**54 times 3 is too large."""
    row = csr_array(np.ones((1, 1), np.int64))
    one = np.ones(1, np.int64)
    assert fits(Integer(one, 3 * one, row, one, one))
    assert not fits(Integer(2**54 * one, 3 * one, row, one, one))
