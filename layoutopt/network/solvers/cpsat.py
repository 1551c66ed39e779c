"""CP-SAT: the only place that calls it.  Where it is not installed, HiGHS does its work.

The model is written straight into the protocol buffer; the expression layer takes a hundred
times as long.  Its default subsolver has a short turn alone, which proves many small programmes.
Two complementary subsolvers follow: on few cores they beat the default portfolio, which ignores
the linear relaxation there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

from layoutopt.base.deadline import run_stoppable
from layoutopt.base.errors import OptionError, SolverError
from layoutopt.base.limits import Limits
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers.programme import OPEN, Found, Programme, ProgrammeResult

ALONE = 0.05  # effort of the first turn, of the default subsolver alone

LATEST = 5.0
"""Seconds after the deadline when a search ends that did not stop when it was asked to."""


def solve_programme(
    given: Programme,
    limits: Limits,
    start: IntArray | None = None,
    most: int | None = None,
    *,
    found: Found | None = None,
) -> ProgrammeResult:
    """Solve an integer programme that fits: exactly, or by HiGHS where OR-Tools is missing.

    ``start``, shape ``(n,)``, is a point to begin with, entries below 0 being open; no point is
    worth more than ``most``.  CP-SAT calls ``found`` whenever it finds something better.
    """
    if find_spec("ortools") is None:
        from layoutopt.network.solvers import highs

        return highs.solve(given, limits)
    return solve(given, limits, start, most, found=found)


def solve(
    given: Programme,
    limits: Limits,
    start: IntArray | None = None,
    most: int | None = None,
    *,
    gap: float = 0.0,
    found: Found | None = None,
) -> ProgrammeResult:
    """Solve an integer programme that fits as :func:`solve_programme` does, or up to a gap.

    Raises ``OptionError`` if OR-Tools is not installed, and ``SolverError`` if CP-SAT refuses the
    model.
    """
    cp_model = _cp_model()
    tell, failed = _teller(found, limits)

    class Watch(cp_model.CpSolverSolutionCallback):  # type: ignore[misc,name-defined]
        def on_solution_callback(self) -> None:
            tell(int(-self.objective_value), self.best_objective_bound)

    model = cp_model.CpModel()
    _write(model.proto, given)
    if most is not None:
        model.proto.objective.domain.extend([-most, OPEN])
    if start is not None:
        told = np.flatnonzero(start >= 0)
        model.proto.solution_hint.vars.extend(told.tolist())
        model.proto.solution_hint.values.extend(start[told].tolist())
    points, bounds = list[IntArray](), list[int]()
    for turn, alone in (limits.turn(ALONE), True), (limits, False):
        solver = cp_model.CpSolver()
        _configure(solver.parameters, turn, gap, alone=alone)
        if found is not None:
            solver.best_bound_callback = lambda bound: tell(None, bound)
        search = partial(solver.solve, model, Watch())
        status = run_stoppable(search, solver.stop_search, turn)
        if failed:
            raise failed[0]
        if status == cp_model.MODEL_INVALID:
            raise SolverError(f"CP-SAT refused the model: {model.validate()}")
        if status == cp_model.INFEASIBLE:
            return ProgrammeResult(infeasible=True)
        response = solver.response_proto
        limits.spend(response.deterministic_time)
        bound = -int(response.inner_objective_lower_bound)
        solved = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        if solved:
            points.append(np.array(response.solution, np.int64))
        if solved or bound:  # 0 is what it says at first
            bounds.append(bound)
        if status == cp_model.OPTIMAL or limits.over:
            break
    return ProgrammeResult(max(points, key=given.value, default=None), min(bounds, default=None))


def _teller(
    found: Found | None, limits: Limits
) -> tuple[Callable[[int | None, float], None], list[BaseException]]:
    """Return a function that tells what is found, and its errors; the first ends the search."""
    failed: list[BaseException] = []

    def tell(value: int | None, bound: float) -> None:
        try:
            if found is not None and not failed:
                found(value, int(-bound))
        except BaseException as error:  # CP-SAT would abort the process
            failed.append(error)
            limits.interrupt.set()

    return tell, failed


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise OptionError(
            "solver cpsat needs OR-Tools: install ortools, or choose another"
        ) from error
    return cp_model


def _configure(parameters: Any, limits: Limits, gap: float, *, alone: bool) -> None:
    parameters.num_workers = 1
    if not alone:
        parameters.num_workers = 2
        parameters.subsolvers.extend(["max_lp", "no_lp"])
        # Both take turns in one thread, which makes runs repeatable.
        parameters.interleave_search = limits.workers < 2
    parameters.random_seed = limits.seed % 2**31
    parameters.catch_sigint_signal = False
    parameters.relative_gap_limit = gap
    if limits.left < float("inf"):
        # OR-Tools 9.15 may abort the process where its own limit ends it early in presolve, so
        # ``run_stoppable`` asks it to stop, and this limit is later.
        parameters.max_time_in_seconds = limits.left + LATEST
    if limits.counted < float("inf"):
        parameters.max_deterministic_time = max(limits.counted, 0.0)


def _write(proto: Any, given: Programme) -> None:
    """Write a programme down; that rows are clauses, presolve finds out itself."""
    for upper in given.upper.tolist():
        proto.variables.add().domain.extend([0, upper])
    columns, factors = given.columns.tolist(), given.factors.tolist()
    rows = zip(
        pairwise(given.starts.tolist()), given.low.tolist(), given.high.tolist(), strict=True
    )
    for (a, b), low, high in rows:
        row = proto.constraints.add().linear
        row.vars.extend(columns[a:b])
        row.coeffs.extend(factors[a:b])
        row.domain.extend([low, high])
    earns = np.flatnonzero(given.objective)
    proto.objective.vars.extend(earns.tolist())
    proto.objective.coeffs.extend((-given.objective[earns]).tolist())
