"""Value of capacity: optima at several, and the least that costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.capacity.answer import CapacityAnswer, State
from layoutopt.network.capacity.pool import Pool
from layoutopt.network.capacity.problem import CapacityProblem
from layoutopt.network.capacity.solve import solve_state
from layoutopt.network.problem import IntArray


def sweep(
    problem: CapacityProblem, capacities: Iterable[IntArray | int], limits: Limits
) -> list[CapacityAnswer]:
    """Solve a problem at several capacities, each begun where the one before ended.

    A capacity stands in place of the problem's own: bytes of each tile, shape ``(labels,)``, or of
    all. Time is shared out evenly.
    """
    pool = Pool(problem)
    found: list[CapacityAnswer] = []
    before: State | None = None
    wanted = list(capacities)
    for turn, capacity in enumerate(wanted):
        share = limits.within(limits.left / (len(wanted) - turn))
        state = State(pool, _capacity(problem, capacity), share, before)
        found.append(solve_state(state))
        before = state
    return found


def smallest_capacity(problem: CapacityProblem, limits: Limits) -> tuple[int, int | None]:
    """Return the smallest uniform capacity that costs nothing, by halving, as ``low, high``.

    No uniform capacity below ``low`` lets all copies have what they have without limits; ``high``
    does. They are equal unless time is up; ``high`` is ``None`` if it is not known.
    """
    pool = Pool(problem)
    if not problem.total_bytes:
        return 0, 0
    grain = pool.grain
    low = -(-problem.total_bytes // (grain * pool.tiles))
    high = problem.total_bytes // grain
    before = State(pool, _capacity(problem, high * grain), limits)
    answer = solve_state(before)
    if answer.objective != answer.bound or answer.bound is None:
        return low * grain, None
    free = answer.bound
    while low < high:
        middle = (low + high) // 2
        state = State(pool, _capacity(problem, middle * grain), limits, before, target=free)
        answer = solve_state(state)
        if answer.objective == free:
            high, before = middle, state
        elif answer.bound is None or answer.bound < free:
            low = middle + 1
        else:
            break
    return low * grain, high * grain


def _capacity(problem: CapacityProblem, capacity: IntArray | int) -> IntArray:
    """Return bytes of each tile, checked."""
    if isinstance(capacity, int):
        capacity = np.full(problem.problem.labels, capacity)
    return replace(problem, capacity=capacity).capacity
