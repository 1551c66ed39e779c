"""Integer programmes against all points: how they are written, and both doors to solvers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layoutopt.base.deadline import run_stoppable
from layoutopt.base.errors import OptionError
from layoutopt.base.limits import Limits
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.programme import (
    OPEN,
    Programme,
    ProgrammeResult,
    ProgrammeWriter,
    coarse,
)

Door = Callable[[Programme, Limits], ProgrammeResult]

DOORS: dict[str, Door] = {"cpsat": cpsat.solve, "highs": highs.solve}

doors = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)

SEEDS = 60


def random_programme(seed: int) -> Programme:
    """Return a programme of three variables and rows; every other one is Boolean, of signs."""
    draw = np.random.default_rng(seed)
    boolean = seed % 2
    matrix = draw.integers(-1, 2, (3, 3)) if boolean else draw.integers(-2, 4, (3, 3))
    low = np.where(draw.random(3) < 0.5, -OPEN, draw.integers(-1, 3, 3))
    high = np.where(draw.random(3) < 0.3, OPEN, draw.integers(0, 3 if boolean else 9, 3))
    high = np.maximum(low, high)
    to = ProgrammeWriter()
    x = to.block(draw.integers(-9, 10, 3), 1 if boolean else draw.integers(0, 5, 3))
    if seed % 3:
        to.family(x[None].repeat(3, 0), matrix, low, high)
    else:  # the same by entries, and row by row
        row, column = np.nonzero(matrix[:2])
        to.sparse(row, x[column], matrix[row, column], low[:2], high[:2])
        to.row(x.tolist(), matrix[2].tolist(), int(low[2]), int(high[2]))
    given = to.finished()
    assert (given.matrix.toarray() == matrix).all()
    return given


def best(given: Programme) -> int | None:
    """Return the optimum by trying all points."""
    found, matrix = [], given.matrix.toarray()
    for point in itertools.product(*(range(u + 1) for u in given.upper.tolist())):
        rows = matrix @ np.array(point)
        legal = bool(((rows >= given.low) & (rows <= given.high)).all())
        assert given.holds(np.array(point)) == legal
        if legal:
            found.append(int(given.objective @ np.array(point)))
    return max(found, default=None)


@doors
def test_optimum_or_none(door: Door) -> None:
    """Both doors prove the optimum, or that there is no point; clauses and rows mean the same."""
    none = 0
    for seed in range(SEEDS):
        given = random_programme(seed)
        optimum, found = best(given), door(given, Limits())
        assert found.infeasible == (optimum is None)
        none += found.infeasible
        if optimum is not None:
            assert found.values is not None
            assert given.holds(found.values)
            assert (found.bound, given.objective @ found.values) == (optimum, optimum)
    assert 0 < none < SEEDS


@doors
def test_signed_rows(door: Door) -> None:
    """Rows of Boolean variables with factors 1 and -1, every one of every limit, by one each."""
    for factors in ((1, -1, 1), (1, 1, 0), (-1, -1, -1)):
        for low, high in itertools.product((-OPEN, -2, -1, 0, 1, 2), (-1, 0, 1, 2, OPEN)):
            if low > high:
                continue
            to = ProgrammeWriter()
            used = [to.variable(worth) for worth in (1, -2, 4)]
            pairs = [(x, f) for x, f in zip(used, factors, strict=True) if f]
            to.row([x for x, _ in pairs], [f for _, f in pairs], low, high)
            given = to.finished()
            found = door(given, Limits())
            assert (None if found.infeasible else found.bound) == best(given)


@doors
def test_no_time(door: Door) -> None:
    """Without time nothing is claimed that is not so."""
    for seed in range(8):
        given = random_programme(seed)
        found, optimum = door(given, Limits(deadline=0.0)), best(given)
        assert not found.infeasible or optimum is None
        assert found.bound is None or optimum is None or found.bound >= optimum


def test_sums_beyond_64_bits_do_not_fit() -> None:
    """An objective of 2**54 times 3 is too large, and so are rows."""
    for worth, factor, fits in ((1, 1, True), (2**54, 1, False), (1, 2**54, False)):
        to = ProgrammeWriter()
        to.row([to.variable(worth, 3)], [factor], 1, 1)
        assert to.finished().fits() == fits


@doors
def test_wide_objectives_are_rounded_up(door: Door) -> None:
    """Numbers beyond 64 bits become small ones whose bound holds; common factors are exact."""
    for seed in range(SEEDS // 2):
        given = random_programme(seed)
        for factor, more in ((2**70, 0), (2**70, seed + 1)):
            wide = given.objective.astype(object) * factor + more
            small, unit = coarse(replace(given, objective=wide))
            assert small.fits()
            optimum, found = best(replace(given, objective=wide)), door(small, Limits())
            assert found.infeasible == (optimum is None)
            if optimum is not None and found.bound is not None:
                assert found.bound * unit >= optimum
                assert more or found.bound * unit == optimum


@pytest.mark.cpsat
def test_a_start_and_a_known_limit_change_nothing() -> None:
    """With part of a point to begin with, and the optimum as a limit, it is found all the same."""
    for seed in range(20):
        given = random_programme(seed)
        optimum = best(given)
        found = cpsat.solve(given, Limits(), np.array([-1, 0, -1]), optimum)
        assert found.bound == optimum
        below = cpsat.solve(given, Limits(), most=-(10**6))
        assert below.infeasible  # the limit is believed


@pytest.mark.cpsat
def test_its_own_limit_of_time_is_the_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked to stop in time; where its own limit ends its first steps, OR-Tools aborts."""
    seen: list[float] = []

    def watch(solve: Any, stop: Any, limits: Limits) -> Any:
        seen.append(stop.__self__.parameters.max_time_in_seconds - limits.left)
        return run_stoppable(solve, stop, limits)

    monkeypatch.setattr(cpsat, "run_stoppable", watch)
    assert cpsat.solve(random_programme(1), Limits().within(60)).bound is not None
    assert seen[0] > 4


@pytest.mark.cpsat
def test_small_programmes_take_little_effort() -> None:
    """A knapsack of 200 items: the first subsolver alone proves it in a small part of a turn."""
    draw = np.random.default_rng(7)
    sizes = draw.integers(1, 10**6, 200)
    to = ProgrammeWriter()
    x = to.block(sizes + draw.integers(-(10**5), 10**5, 200))
    to.row(x.tolist(), sizes.tolist(), high=int(sizes.sum()) // 2)
    given, limits = to.finished(), Limits().turn(1.0)
    found = cpsat.solve(given, limits)
    assert found.values is not None
    assert found.bound == given.value(found.values)
    assert limits.counted > 0.9


def test_relaxation() -> None:
    """Prices of rows prove the relaxation's optimum: no point is worth more; more rows bind."""
    for seed in range(SEEDS):
        draw = np.random.default_rng(seed)
        to = ProgrammeWriter()
        x = to.block(draw.integers(0, 9, 4))
        to.family(x[None, :2], [1, 1], 1, 1)
        to.family(x[None], draw.integers(1, 4, 4), high=4)
        given = to.finished().with_rows([({1: 1.0, 3: 0.5}, 0.5)])
        found = highs.relax(given, Limits())
        assert found is not None
        worth = given.objective @ found.values
        assert found.values[1] + 0.5 * found.values[3] <= 0.5 + 1e-9
        assert found.prices @ given.high == pytest.approx(worth)
        assert (given.matrix.T @ found.prices >= given.objective - 1e-9).all()


def test_without_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS solves what CP-SAT would; asked for by name, that is refused in one line."""
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    given = random_programme(1)
    assert cpsat.solve_programme(given, Limits()).bound == best(given)
    with pytest.raises(OptionError, match="solver cpsat needs OR-Tools"):
        cpsat.solve(given, Limits())
