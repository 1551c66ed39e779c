"""The integer programme of ``README.md``, row by row, solved by HiGHS through SciPy.

Every location is offered to every element, so only small instances are for it.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_array

from models.statement import Statement, added, cyclic, score


def maximum(given: Statement) -> Fraction:
    """Return the largest score; exact, from the choice that HiGHS proves to be best.

    Raises
    ------
    RuntimeError
        If HiGHS does not prove a choice to be best, or its choice breaks the barrier order.
    """
    elements, places = range(len(given.elements)), range(len(given.locations))
    values = [*given.agree.values(), *given.earn.values()]
    scale = lcm(1, *(v.denominator for v in values))
    profit: list[int] = []  # of each variable
    upper: list[float] = []
    rows: list[tuple[dict[int, int], float, float]] = []  # coefficients, both bounds

    def variable(value: Fraction, most: float = 1) -> int:
        profit.append(int(value * scale))
        upper.append(most)
        return len(profit) - 1

    x = {
        (e, l): variable(given.earn.get((e, l), Fraction(0)))
        for e in elements
        for l in [*places, *(-1 - f for f in elements if f <= e)]
    }
    for e in elements:  # one location each
        rows.append(({x[e, l]: 1 for f, l in x if f == e}, 1, 1))
    for (e, f), value in given.agree.items():
        for l in [l for g, l in x if g == e]:
            y = variable(value)
            rows.append(({y: 1, x[e, l]: -1}, -np.inf, 0))
            rows.append(({y: 1, x[f, l]: -1}, -np.inf, 0))
            rows.append(({y: 1, x[e, l]: -1, x[f, l]: -1}, -1, np.inf))
    last = max(len(given.reads) - 1, 0)
    t = {b: variable(Fraction(0), last) for b in given.reads}
    for b, c in given.arcs:
        rows.append(({t[c]: 1, t[b]: -1}, 1, np.inf))
    for (e, l), x_el in x.items():
        for b, c in added(given, e, l):
            if b == c:
                rows.append(({x_el: 1}, 0, 0))
            else:
                rows.append(({t[c]: 1, t[b]: -1, x_el: -(last + 1)}, -last, np.inf))
    chosen = _solve(profit, upper, rows)
    where = {e: l for (e, l), x_el in x.items() if chosen[x_el]}
    arcs = given.arcs.union(*(added(given, e, l) for e, l in where.items()))
    if len(where) < len(elements) or cyclic(arcs):
        raise RuntimeError("the rounded solution breaks a rule")
    return score(given, where)


def _solve(
    profit: list[int], upper: list[float], rows: list[tuple[dict[int, int], float, float]]
) -> list[bool]:
    """Return which variables are 1 where the profit is largest."""
    if not profit:
        return []
    matrix = lil_array((max(len(rows), 1), len(profit)))
    for k, (coefficients, _, _) in enumerate(rows):
        for column, coefficient in coefficients.items():
            matrix[k, column] = coefficient
    low, high = ([row[i] for row in rows] or [0] for i in (1, 2))
    found = milp(
        -np.array(profit, float),
        integrality=np.ones(len(profit)),
        bounds=Bounds(0, upper),
        constraints=LinearConstraint(matrix.tocsr(), low, high),
        options={"mip_rel_gap": 0},
    )
    if found.status != 0:
        raise RuntimeError(f"HiGHS: {found.message}")
    return [value > 0.5 for value in found.x]
