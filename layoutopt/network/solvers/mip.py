"""HiGHS on the integer programme, through MathOpt."""

from __future__ import annotations

import datetime
import math

import numpy as np
from ortools.math_opt import (
    callback_pb2,
    model_parameters_pb2,
    model_pb2,
    parameters_pb2,
    result_pb2,
)
from ortools.math_opt.core.python import solver as core
from ortools.math_opt.python import mathopt
from ortools.util.python.solve_interrupter import SolveInterrupter
from pybind11_abseil.status import StatusNotOk

from layoutopt.base.deadline import HIGHS_ENDS, run_stoppable
from layoutopt.base.errors import SizeError, SolverError
from layoutopt.base.limits import Limits
from layoutopt.base.numbers import unique
from layoutopt.base.result import Result, Stopped
from layoutopt.network.problem import IntArray, Labelling
from layoutopt.network.solvers.formulation import Programme, check_size, programme

NODES = 50
"""Nodes of its search that count as a second of effort: HiGHS counts nothing finer."""

COLUMN_BYTES = 6000
"""What HiGHS takes for each variable and its rows."""

LARGEST = 2**50
"""Objectives must stay below this, so that doubles hold them."""


def solve(problem: Labelling, limits: Limits, start: IntArray | None = None) -> Result:
    """Solve a labelling problem, order rules included, as it is written.

    HiGHS computes in doubles.  Its bound is raised by ``1e-6 + 1e-9 * sum of all values``
    before it is rounded down to a whole number, so that only sums below about 1e9 of the
    values' common divisor can be proved optimal here.

    Parameters
    ----------
    start
        A labelling to begin with.

    Returns
    -------
    Result
        Without objective if the numbers are too large for doubles, or the model for the memory.
    """
    values = [*problem.weights.tolist(), *problem.rewards.tolist()]
    unit = math.gcd(*values) or 1
    total, most = problem.total() // unit, problem.ceiling()
    if total >= LARGEST:
        return Result(bound=most, stopped=Stopped.SIZE_LIMIT)
    if not problem.nodes:
        return Result(objective=0, bound=0, labelling=np.zeros(0, np.int64))
    if limits.over:
        return Result(bound=most, stopped=limits.stopped or Stopped.TIME_LIMIT)
    try:
        check_size(problem, limits, COLUMN_BYTES)
        given = programme(problem)
        answer = _run(_model(given, unit), given, limits, start)
    except TimeoutError:
        return Result(bound=most, stopped=limits.stopped or Stopped.TIME_LIMIT)
    except SizeError:
        return Result(bound=most, stopped=Stopped.SIZE_LIMIT)
    bound = min(most, math.floor(_dual(answer, total) + 1e-6 + 1e-9 * total) * unit)
    stopped = limits.stopped or Stopped.FINISHED
    if not answer.solutions or not answer.solutions[0].HasField("primal_solution"):
        return Result(bound=bound, stopped=limits.stopped or Stopped.TIME_LIMIT)
    chosen = answer.solutions[0].primal_solution.variable_values
    ids = np.array(chosen.ids, np.int64)[np.array(chosen.values) > 0.5]
    labels = given.labelling(ids[ids < len(given.node)])
    value = problem.value(labels)
    if bound > value and stopped is Stopped.FINISHED:
        stopped = Stopped.GAP_LIMIT if limits.gap > 0 else Stopped.TIME_LIMIT
    return Result(objective=value, bound=max(bound, value), labelling=labels, stopped=stopped)


def _dual(answer: result_pb2.SolveResultProto, total: int) -> float:
    bound = answer.termination.objective_bounds.dual_bound
    return bound if math.isfinite(bound) else float(total)


def _run(
    model: model_pb2.ModelProto, given: Programme, limits: Limits, start: IntArray | None
) -> result_pb2.SolveResultProto:
    """Run HiGHS on a model as it is: MathOpt's own class for models copies it, at length."""
    parameters = mathopt.SolveParameters(
        relative_gap_tolerance=0.0 if limits.debt else limits.gap,
        absolute_gap_tolerance=0.0,
        random_seed=limits.seed % 2**31,
        # It finds nothing in this formulation, and does not keep to the time limit.
        presolve=mathopt.Emphasis.OFF,
    )
    if limits.left < float("inf"):
        parameters.time_limit = datetime.timedelta(seconds=max(limits.left, 0.01))
    if limits.counted < float("inf"):
        parameters.node_limit = max(int(NODES * limits.counted), 1)
    extra = model_parameters_pb2.ModelSolveParametersProto()
    if start is not None:
        _add_hint(extra, given, start)
    interrupter = SolveInterrupter()
    try:
        return run_stoppable(
            lambda: core.solve(
                model,
                mathopt.SolverType.HIGHS.value,
                parameters_pb2.SolverInitializerProto(),
                parameters.to_proto(),
                extra,
                None,
                callback_pb2.CallbackRegistrationProto(),
                None,
                interrupter.pybind_interrupter,
            ),
            interrupter.interrupt,
            limits,
            HIGHS_ENDS,
        )
    except StatusNotOk as error:
        raise SolverError(f"HiGHS failed on the model ({error.message})") from error


def _add_hint(
    extra: model_parameters_pb2.ModelSolveParametersProto, given: Programme, start: IntArray
) -> None:
    values = np.zeros(len(given.node))
    values[given.indicators(start)] = 1.0
    match = values[given.match].min(axis=1)
    hints = np.concatenate([values, match]).tolist()
    hint = extra.solution_hints.add().variable_values
    hint.ids.extend(range(len(hints)))
    hint.values.extend(hints)


def _model(given: Programme, unit: int) -> model_pb2.ModelProto:
    """Write the programme down; ``x`` first, then ``y``, ``z`` and ``t``."""
    x, y, z, n = len(given.node), len(given.match), len(given.arcs), given.barriers
    proto = model_pb2.ModelProto()
    variables = proto.variables
    variables.ids.extend(range(x + y + z + n))
    variables.lower_bounds.extend([0.0] * (x + y + z + n))
    variables.upper_bounds.extend([1.0] * (x + y + z) + [float(max(n - 1, 0))] * n)
    variables.integers.extend([True] * x + [False] * y + [True] * z + [False] * n)
    proto.objective.maximize = True
    earned = np.concatenate([given.rewards, given.weights]) // unit
    used = np.flatnonzero(earned)
    proto.objective.linear_coefficients.ids.extend(used.tolist())
    proto.objective.linear_coefficients.values.extend(earned[used].astype(float).tolist())
    _write_rows(proto, _rows(given))
    return proto


def _rows(given: Programme) -> list[tuple[IntArray, list[float], float, float]]:
    """Return families of rows: columns (one row each), coefficients, and both bounds."""
    x, y, z, n = len(given.node), len(given.match), len(given.arcs), given.barriers
    infinity = float("inf")
    positive = np.flatnonzero(given.weights > 0)
    negative = np.flatnonzero(given.weights < 0)
    families: list[tuple[IntArray, list[float], float, float]] = []
    bounds = np.searchsorted(given.node, np.arange(given.nodes + 1))
    width = np.diff(bounds)
    for size in unique(width):  # exactly one label
        first = bounds[:-1][width == size]
        families.append((first[:, None] + np.arange(size), [1.0] * int(size), 1.0, 1.0))
    for end in (0, 1):  # y <= x
        pairs = np.stack([x + positive, given.match[positive, end]], axis=1)
        families.append((pairs, [1.0, -1.0], -infinity, 0.0))
    triples = np.column_stack([x + negative, given.match[negative]])
    families.append((triples, [1.0, -1.0, -1.0], -1.0, infinity))
    gates = np.stack([given.gates[:, 0], x + y + given.gates[:, 1]], axis=1)
    families.append((gates, [1.0, -1.0], -infinity, 0.0))
    time = x + y + z
    arcs = np.column_stack([time + given.arcs, x + y + np.arange(z)])
    families.append((arcs, [-1.0, 1.0, -float(n)], 1.0 - n, infinity))
    families.append((time + given.static, [-1.0, 1.0], 1.0, infinity))
    return families


def _write_rows(
    proto: model_pb2.ModelProto, families: list[tuple[IntArray, list[float], float, float]]
) -> None:
    rows, matrix = proto.linear_constraints, proto.linear_constraint_matrix
    count = 0
    for columns, coefficients, low, high in families:
        many = len(columns)
        rows.ids.extend(range(count, count + many))
        rows.lower_bounds.extend([low] * many)
        rows.upper_bounds.extend([high] * many)
        order = np.argsort(columns, axis=1, kind="stable")  # columns ascend in each row
        values = np.broadcast_to(np.array(coefficients), columns.shape)
        numbers = np.repeat(np.arange(count, count + many), columns.shape[1])
        matrix.row_ids.extend(numbers.tolist())
        matrix.column_ids.extend(np.take_along_axis(columns, order, 1).reshape(-1).tolist())
        matrix.coefficients.extend(np.take_along_axis(values, order, 1).reshape(-1).tolist())
        count += many
