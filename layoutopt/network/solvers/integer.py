"""Integer programmes as arrays: by CP-SAT exactly, by HiGHS in doubles.

::

    maximise  objective x   subject to  low <= matrix x <= high,  0 <= x <= upper,  x whole
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutopt.base.deadline import HIGHS_ENDS, run_stoppable
from layoutopt.base.errors import SolverError
from layoutopt.base.limits import Limits
from layoutopt.network.problem import IntArray, exact_integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LARGEST = 2**55
"""Sums stay below this, with room for what CP-SAT adds up."""

NODES = 50
"""Nodes of HiGHS's search that count as a second of effort."""

OPEN = 2**60
"""Stands for no limit of a row."""


@dataclass(frozen=True, eq=False)
class Integer:
    """An integer programme; see the module's text.

    Parameters
    ----------
    objective, upper
        Shape ``(n,)``, whole.
    matrix
        Shape ``(m, n)``, whole.
    low, high
        Shape ``(m,)``, whole; ``-OPEN`` and ``OPEN`` for none.
    """

    objective: IntArray
    upper: IntArray
    matrix: csr_array
    low: IntArray
    high: IntArray


@dataclass(frozen=True, eq=False)
class ProgrammeResult:
    """A point, a bound, or the proof that there is no point.

    Parameters
    ----------
    values
        Shape ``(n,)``; ``None`` if no point was found.
    bound
        An upper bound on the objective; ``None`` where none is proved.
    infeasible
        Whether it is proved that there is no point.
    """

    values: IntArray | None = None
    bound: int | None = None
    infeasible: bool = False


def fits(given: Integer) -> bool:
    """Return whether CP-SAT can add up a programme's objective and rows."""
    upper = given.upper.tolist()
    rows = abs(given.matrix.astype(float)) @ given.upper.astype(float)
    total = sum(abs(v) * most for v, most in zip(given.objective.tolist(), upper, strict=True))
    return total < LARGEST and bool(rows.max(initial=0.0) < LARGEST)


def coarse(given: Integer) -> tuple[Integer, int]:
    """Return a programme of small objective that is worth no less, per so many units.

    The greatest common divisor is taken out; what is still too large for CP-SAT is
    divided and rounded up, so that bounds hold for the programme as it was given.

    Returns
    -------
    programme, unit
        Every point is worth at most ``unit`` times what it is worth there.
    """
    values = given.objective.tolist()
    unit = math.gcd(*values) or 1
    total = sum(abs(v) * most for v, most in zip(values, given.upper.tolist(), strict=True))
    rounding = sum(given.upper.tolist())  # rounding up adds at most one for each
    while total // unit + rounding >= LARGEST > rounding:
        unit *= 2
    return replace(given, objective=exact_integers([-(-v // unit) for v in values])), unit


def side_by_side(first: Integer, second: Integer, shared: int) -> Integer:
    """Return two programmes as one; they share their last rows, whose limits are the first's."""
    from scipy.sparse import block_diag, csr_array, hstack, vstack

    tops = [each.matrix[: len(each.low) - shared] for each in (first, second)]
    ends = [each.matrix[len(each.low) - shared :] for each in (first, second)]
    matrix = vstack([block_diag(tops), hstack(ends)], format="csr")
    top, own = len(first.low) - shared, len(second.low) - shared
    low = [first.low[:top], second.low[:own], first.low[top:]]
    high = [first.high[:top], second.high[:own], first.high[top:]]
    return Integer(
        np.concatenate([first.objective, second.objective]),
        np.concatenate([first.upper, second.upper]),
        csr_array(matrix),
        np.concatenate(low),
        np.concatenate(high),
    )


def cpsat(
    given: Integer,
    limits: Limits,
    start: IntArray | None = None,
    most: int | None = None,
) -> ProgrammeResult:
    """Solve an integer programme that :func:`fits`, exactly.

    Parameters
    ----------
    start
        Shape ``(n,)``: a point to begin with; entries below 0 are left open.
    most
        What no point is worth more than, if that is known.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    proto = model.proto
    for upper in given.upper.tolist():
        proto.variables.add().domain.extend([0, upper])
    ends, columns = given.matrix.indptr.tolist(), given.matrix.indices.tolist()
    values = given.matrix.data.tolist()
    for (a, b), low, high in zip(
        pairwise(ends), given.low.tolist(), given.high.tolist(), strict=True
    ):
        linear = proto.constraints.add().linear
        linear.vars.extend(columns[a:b])
        linear.coeffs.extend(values[a:b])
        linear.domain.extend([low, high])
    proto.objective.vars.extend(range(len(given.upper)))
    proto.objective.coeffs.extend((-given.objective).tolist())
    if most is not None:
        proto.objective.domain.extend([-most, OPEN])
    if start is not None:
        told = np.flatnonzero(start >= 0)
        proto.solution_hint.vars.extend(told.tolist())
        proto.solution_hint.values.extend(start[told].tolist())
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 2
    parameters.subsolvers.extend(["max_lp", "no_lp"])
    parameters.interleave_search = limits.workers < 2  # repeatable
    parameters.random_seed = limits.seed % 2**31
    parameters.catch_sigint_signal = False
    if limits.left < float("inf"):
        parameters.max_time_in_seconds = limits.left
    if limits.counted < float("inf"):
        parameters.max_deterministic_time = max(limits.counted, 0.0)
    status = run_stoppable(lambda: solver.solve(model), solver.stop_search, limits)
    if status == cp_model.MODEL_INVALID:
        raise SolverError(f"CP-SAT refused the model: {model.validate()}")
    if status == cp_model.INFEASIBLE:
        return ProgrammeResult(infeasible=True)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return ProgrammeResult()
    response = solver.response_proto
    bound = -int(response.inner_objective_lower_bound)
    return ProgrammeResult(np.array(response.solution, np.int64), bound)


def highs(given: Integer, limits: Limits, gap: float = 0.0) -> ProgrammeResult:
    """Look for a good point by HiGHS; it computes in doubles, so its bound is not told.

    Parameters
    ----------
    gap
        Relative gap at which to stop.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    options: Any = {"mip_rel_gap": gap}
    if limits.left < float("inf"):
        options["time_limit"] = max(limits.left, 0.01)
    if limits.counted < float("inf"):
        options["node_limit"] = max(int(NODES * limits.counted), 1)
    scale = float(np.abs(given.objective.astype(float)).max(initial=0)) or 1.0
    low = np.where(given.low <= -OPEN, -np.inf, given.low.astype(float))
    high = np.where(given.high >= OPEN, np.inf, given.high.astype(float))

    def solve() -> object:
        return milp(
            -given.objective.astype(float) / scale,
            integrality=np.ones(len(given.upper), np.int64),
            bounds=Bounds(0.0, given.upper.astype(float)),
            constraints=LinearConstraint(given.matrix.astype(float), low, high),
            options=options,
        )

    try:
        answer = run_stoppable(solve, lambda: None, limits, HIGHS_ENDS)
    except TimeoutError:
        return ProgrammeResult()
    values = getattr(answer, "x", None)
    if values is None:
        return ProgrammeResult()
    whole = np.rint(values).astype(np.int64)
    rows = given.matrix @ whole
    good = ((rows >= given.low) & (rows <= given.high)).all()
    return ProgrammeResult(whole if good else None)
