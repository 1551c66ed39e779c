"""HiGHS, through SciPy: the only place that calls it.

It computes in doubles.  Points are rounded and looked at exactly; its bounds are raised by
``1e-6 + 1e-9 * sum of all values`` before they are rounded down to whole numbers, so that only
sums below about 1e9 can be proved optimal here.  Bounds of scaled objectives are raised further.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.deadline import HIGHS_ENDS, run_stoppable
from layoutopt.base.limits import Limits
from layoutopt.network.solvers.programme import OPEN, Programme, ProgrammeResult

NODES = 50
"""Nodes of its search that count as a second of effort: HiGHS counts nothing finer."""

LARGEST = 2**50  # objectives must stay below this, so that doubles hold them

SCALED = 1e9
"""Objectives with a larger number are scaled; otherwise its absolute gap is below one unit."""

GAP, COSTS = 1e-6, 1e-7
"""Its absolute gap, and what a reduced cost may be wrong by: scaled objectives are many units."""

NEAR = 1e-5  # what is as near to a whole number is meant to be it
CERTAIN = 1e9  # that there is no point is believed where no row can reach more

SLICE = 600.0
"""Seconds of a first search without a deadline; later ones take twice as long each.

Nothing stops HiGHS: so a search that nobody waits for any more does not go on for ever.
"""


def solve(
    given: Programme, limits: Limits, gap: float = 0.0, *, presolve: bool = False
) -> ProgrammeResult:
    """Solve an integer programme up to a relative gap.

    Presolve finds nothing without rows of limits.  There is no bound where sums are too large for
    doubles.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not len(given.upper):
        return ProgrammeResult(np.zeros(0, np.int64), 0)
    worth = given.objective.astype(float)
    largest = float(np.abs(worth).max(initial=0))
    scale = largest if largest > SCALED else 1.0
    options: Any = {"mip_rel_gap": gap, "presolve": presolve}
    if limits.counted < math.inf:
        options["node_limit"] = max(int(NODES * limits.counted), 1)
    low = np.where(given.low <= -OPEN, -np.inf, given.low.astype(float))
    high = np.where(given.high >= OPEN, np.inf, given.high.astype(float))
    rows = LinearConstraint(given.matrix.astype(float), low, high)
    constraints = rows if len(given.low) else ()
    seconds = SLICE
    while True:
        options["time_limit"] = max(min(limits.left, seconds), 0.01)

        def search() -> Any:
            return milp(
                -worth / scale,
                integrality=~given.free,
                bounds=Bounds(0.0, given.upper.astype(float)),
                constraints=constraints,
                options=options,
            )

        try:
            answer = run_stoppable(search, lambda: None, limits, HIGHS_ENDS)
        except TimeoutError:
            return ProgrammeResult()
        if answer.status != 1 or "node_limit" in options or limits.left < math.inf or limits.over:
            break
        seconds *= 2
    if answer.status == 2:
        return ProgrammeResult(infeasible=given.reach() < CERTAIN)
    bound = _raised(answer.mip_dual_bound, given, scale)
    if answer.x is None:
        return ProgrammeResult(bound=bound)
    # Rounding down keeps differences of variables that need not be whole.
    whole = np.where(given.free, np.floor(answer.x + NEAR), np.rint(answer.x))
    values = whole.astype(np.int64)
    return ProgrammeResult(values if given.holds(values) else None, bound)


def _raised(dual: float | None, given: Programme, scale: float) -> int | None:
    """Return a whole bound, with a margin for the rounding of doubles."""
    total = given.total()
    if total >= LARGEST or dual is None or not math.isfinite(dual):
        return None
    lost = scale * (GAP + COSTS * float(given.upper.sum())) if scale > 1 else 0.0
    return math.floor(-dual * scale + 1e-6 + 1e-9 * total + lost)


@dataclass(frozen=True)
class LinearResult:
    """An optimum of a linear relaxation, in doubles."""

    values: NDArray[np.float64]  # shape (n,)
    prices: NDArray[np.float64]  # shape (m,): what one more unit of each row's limit is worth


def relax(given: Programme, limits: Limits, method: str = "highs-ds") -> LinearResult | None:
    """Solve the linear relaxation, without upper limits of variables; ``None`` in want of time.

    Rows have equal limits, or an upper one only.  ``method`` is HiGHS's simplex, interior point
    method, or own choice, as SciPy names it.
    """
    from scipy.optimize import linprog

    equal = given.low == given.high
    worth = given.objective.astype(float)
    scale = float(np.abs(worth).max(initial=0)) or 1.0
    matrix, high = given.matrix.astype(float), given.high.astype(float)
    options: Any = {}
    if limits.left < math.inf:
        options["time_limit"] = max(limits.left, 0.01)

    def search() -> Any:
        return linprog(  # type: ignore[call-overload]  # its types know no sparse rows
            -worth / scale,
            A_ub=matrix[~equal],
            b_ub=high[~equal],
            A_eq=matrix[equal],
            b_eq=high[equal],
            bounds=(0, None),
            method=method,
            options=options,
        )

    try:
        answer = run_stoppable(search, lambda: None, limits, HIGHS_ENDS)
    except TimeoutError:
        return None
    if answer.status != 0:
        return None
    prices = np.zeros(len(equal))
    prices[equal], prices[~equal] = answer.eqlin.marginals, answer.ineqlin.marginals
    return LinearResult(answer.x, prices * -scale)
