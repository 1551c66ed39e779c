"""CP-SAT on the integer programme.

The model is written straight into the protocol buffer; the expression layer takes a hundred
times as long.  Two complementary subsolvers beat the default portfolio on few cores, which
ignores the linear relaxation there.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from layoutopt.base.deadline import run_stoppable
from layoutopt.base.errors import SizeError, SolverError
from layoutopt.base.limits import Limits
from layoutopt.base.result import Result, Stopped
from layoutopt.network.problem import IntArray, Labelling
from layoutopt.network.solvers.formulation import Programme, check_size, programme

LARGEST = 2**55
"""Objectives must stay below this, with room for what CP-SAT adds up."""

COLUMN_BYTES = 2000
"""What CP-SAT takes for each variable and its rows."""


def solve(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
    """Solve a labelling problem, order rules included, as it is written.

    Parameters
    ----------
    start
        A labelling to begin with.

    Returns
    -------
    Result
        Without objective if the numbers are too large for CP-SAT, or its model for the memory.
    """
    if problem.total() >= LARGEST:
        return Result(bound=problem.ceiling(), stopped=Stopped.SIZE_LIMIT)
    if limits.over:
        return Result(bound=problem.ceiling(), stopped=limits.stopped or Stopped.TIME_LIMIT)
    try:
        check_size(problem, limits, COLUMN_BYTES)
    except TimeoutError:
        return Result(bound=problem.ceiling(), stopped=Stopped.TIME_LIMIT)
    except SizeError:
        return Result(bound=problem.ceiling(), stopped=Stopped.SIZE_LIMIT)
    given = programme(problem)
    model = _model(given)
    if start is not None:
        _hint(model, given, start)
    solver = cp_model.CpSolver()
    _configure(solver, limits)
    status = run_stoppable(
        lambda: solver.solve(model, _Watch(problem, limits)), solver.stop_search, limits
    )
    response = solver.response_proto
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"CP-SAT refused the model: {model.validate()}")
    bound = -int(response.inner_objective_lower_bound)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        # CP-SAT says 0 as long as it knows nothing.
        bound = min(bound, problem.ceiling()) if bound > 0 else problem.ceiling()
        return Result(bound=bound, stopped=limits.stopped or Stopped.TIME_LIMIT)
    values = np.array(response.solution, np.int64)[: len(given.node)]
    labels = given.labelling(np.flatnonzero(values))
    value = problem.value(labels)
    stopped = Stopped.FINISHED
    if status != cp_model.OPTIMAL:
        stopped = limits.stopped or Stopped.TIME_LIMIT
    elif bound > value:
        stopped = Stopped.GAP_LIMIT
    return Result(objective=value, bound=bound, labelling=labels, stopped=stopped)


def _configure(solver: cp_model.CpSolver, limits: Limits) -> None:
    parameters = solver.parameters
    parameters.num_workers = 2
    parameters.subsolvers.extend(["max_lp", "no_lp"])
    # Both take turns in one thread, which makes runs repeatable.
    parameters.interleave_search = limits.workers < 2
    parameters.random_seed = limits.seed % 2**31
    parameters.catch_sigint_signal = False
    if limits.left < float("inf"):
        parameters.max_time_in_seconds = limits.left
    if limits.counted < float("inf"):
        parameters.max_deterministic_time = max(limits.counted, 0.0)
    parameters.relative_gap_limit = 0.0 if limits.debt else limits.gap


def _model(given: Programme) -> cp_model.CpModel:
    """Write the programme down; ``x`` first, then ``y``, ``z`` and ``t``."""
    model = cp_model.CpModel()
    proto = model.proto
    x, y = len(given.node), len(given.match)
    for _ in range(x + y + len(given.arcs)):
        proto.variables.add().domain.extend([0, 1])
    for _ in range(given.barriers):
        proto.variables.add().domain.extend([0, max(given.barriers - 1, 0)])
    bounds = np.searchsorted(given.node, np.arange(given.nodes + 1)).tolist()
    for a, b in pairwise(bounds):
        proto.constraints.add().exactly_one.literals.extend(list(range(a, b)))
    positive = (given.weights > 0).tolist()
    for k, (i, j) in enumerate(given.match.tolist()):
        if positive[k]:
            proto.constraints.add().bool_or.literals.extend([_not(x + k), i])
            proto.constraints.add().bool_or.literals.extend([_not(x + k), j])
        else:
            proto.constraints.add().bool_or.literals.extend([x + k, _not(i), _not(j)])
    for i, arc in given.gates.tolist():
        proto.constraints.add().bool_or.literals.extend([_not(i), x + y + arc])
    time = x + y + len(given.arcs)
    for k, (b, c) in enumerate(given.arcs.tolist()):
        _before(proto, time + b, time + c).enforcement_literal.extend([x + y + k])
    for b, c in given.static.tolist():
        _before(proto, time + b, time + c)
    earned = np.concatenate([given.rewards, given.weights])
    used = np.flatnonzero(earned)
    proto.objective.vars.extend(used.tolist())
    proto.objective.coeffs.extend((-earned[used]).tolist())
    return model


def _not(literal: int) -> int:
    return -literal - 1


def _before(proto: cp_model.CpModelProto, first: int, second: int) -> Any:
    constraint = proto.constraints.add()
    constraint.linear.vars.extend([first, second])
    constraint.linear.coeffs.extend([-1, 1])
    constraint.linear.domain.extend([1, 2**31])
    return constraint


def _hint(model: cp_model.CpModel, given: Programme, start: IntArray) -> None:
    values = np.zeros(len(given.node), np.int64)
    values[given.indicators(start)] = 1
    match = values[given.match].all(axis=1).astype(np.int64)
    hints = np.concatenate([values, match])
    model.proto.solution_hint.vars.extend(range(len(hints)))
    model.proto.solution_hint.values.extend(hints.tolist())


class _Watch(cp_model.CpSolverSolutionCallback):
    """Passes progress on."""

    def __init__(self, problem: Labelling, limits: Limits) -> None:
        super().__init__()
        self.limits, self.total = limits, problem.total()

    def on_solution_callback(self) -> None:
        """Report a new solution."""
        value = int(-self.objective_value)
        bound = int(min(-self.best_objective_bound, float(self.total)))
        self.limits.report("CP-SAT", value, max(value, bound))
