"""The value of capacity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Stopped
from layoutopt.network.capacity.solve import smallest_capacity, sweep
from tests.network.capacity.cases import assert_sound, case, optimum, random_case


@pytest.mark.parametrize("seed", range(40))
def test_curves(seed: int) -> None:
    """What is carried over from one capacity to the next changes no optimum.

    One byte less than the smallest capacity on every tile costs something, or does not fit.
    """
    problem = random_case(seed)
    capacities = [problem.total_bytes, problem.capacity, 0, problem.capacity + 1, 2]
    answers = sweep(problem, capacities, Limits())
    for capacity, answer in zip(capacities, answers, strict=True):
        room = np.broadcast_to(np.asarray(capacity), problem.capacity.shape).copy()
        there = replace(problem, capacity=room)
        assert answer.objective == optimum(there)
        assert answer.objective == answer.bound
        if answer.placement is not None:
            assert_sound(there, answer)
    low, high = smallest_capacity(problem, Limits())
    assert high is not None
    assert low == high

    def best(capacity: int) -> int | None:
        return optimum(replace(problem, capacity=np.full_like(problem.capacity, capacity)))

    assert best(high) == best(problem.total_bytes)
    assert high == 0 or best(high - 1) != best(high)


def test_by_hand() -> None:
    """Four copies of 3 bytes want tile 0, two nodes of 1 byte go anywhere: 12 bytes."""
    problem = case([0, 1], [4, 2], [3, 1], [0, 0], None, {(0, 0): 1})
    assert smallest_capacity(problem, Limits()) == (12, 12)


def test_without_time_the_range_is_told() -> None:
    """The mean load is a lower end; nothing else is claimed."""
    problem = case([0, 0, 0], [4], [3, 1, 2], [0, 0], {(0, 1): -1, (1, 2): 2}, {(0, 0): 1})
    low, high = smallest_capacity(problem, Limits(deadline=0.0))
    assert low >= 12
    assert high is None or high >= 12
    [answer] = sweep(problem, [13], Limits(deadline=0.0))
    assert answer.stopped in (Stopped.TIME_LIMIT, Stopped.FINISHED)
