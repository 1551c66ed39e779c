"""Labelling problems with capacity: one road after another until the answer is proved."""

from __future__ import annotations

import time

from layoutopt.capacity import roads
from layoutopt.capacity.answer import CapacityAnswer, Reason
from layoutopt.capacity.pool import Pool
from layoutopt.capacity.problem import CapacityProblem
from layoutopt.capacity.search import search, tabulated
from layoutopt.capacity.state import State
from layoutopt.limits import Limits
from layoutopt.result import Result

ROADS = {
    "free": roads.choose_freely,
    "flow": roads.keep_whole,
    "prices": roads.find_prices,
    "scatter": roads.scatter,
    "repair": roads.repair,
    "exhaust": roads.look_through,
    "polish": roads.polish,
    "table": tabulated,
    "search": search,
}
"""In this order; see ``roads`` and ``search``."""


def solve_capacity(
    problem: CapacityProblem, limits: Limits, free: Result | None = None
) -> CapacityAnswer:
    """Place all copies of all classes on tiles at the most worth.

    Parameters
    ----------
    limits
        Of the whole call.
    free
        What is known without capacities: as ``labelling`` the labels of one copy of each class,
        where labels from ``labels`` on are fresh ones; its ``bound`` on the worth of all copies,
        or ``None``.

    Returns
    -------
    CapacityAnswer
    """
    started = time.perf_counter()
    pool = Pool(problem)
    state = State(pool, problem.capacity, limits)
    state.seconds["reduce"] = time.perf_counter() - started
    if free is not None:
        state.begin(free)
    return solve_state(state)


def solve_state(state: State) -> CapacityAnswer:
    """Take one road after another until the answer is proved or good enough."""
    need = int((state.pool.node_bytes * state.pool.copies).sum())
    lacking = max(need - int(state.room.sum()), 0)
    if lacking:
        state.infeasible = Reason.BYTES
    for name, road in ROADS.items():
        if state.done:
            break
        started = time.perf_counter()
        road(state)
        state.seconds[name] = time.perf_counter() - started
        state.limits.report(f"capacity: {name}", state.value, state.bound)
    return state.answer(lacking * state.pool.grain)
