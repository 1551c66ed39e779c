"""The integer programme of ``README.md``, row by row, solved by HiGHS through SciPy.

Every location is offered to every element, so only small instances are for it.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd, lcm

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_array

from models.statement import Statement, added, cyclic, score

Row = tuple[dict[int, int], float, float]
"""Coefficients by variable, lower and upper bound of their sum."""


def maximum(given: Statement) -> Fraction:
    """Return the largest score; exact, from the choice that HiGHS proves to be best.

    Raises
    ------
    RuntimeError
        If HiGHS does not prove a choice to be best, or its choice breaks the barrier order.
    """
    elements = range(len(given.elements))
    values = [*given.agree.values(), *given.earn.values()]
    scale = lcm(1, *(v.denominator for v in values))
    profit: list[int] = []  # of each variable
    upper: list[float] = []
    rows: list[Row] = []

    def variable(value: Fraction, most: float = 1) -> int:
        profit.append(int(value * scale))
        upper.append(most)
        return len(profit) - 1

    x = {
        (e, place): variable(given.earn.get((e, place), Fraction(0)))
        for e in elements
        for place in [*range(len(given.locations)), *(-1 - f for f in elements if f <= e)]
    }
    for e in elements:  # one location each
        rows.append(({x[key]: 1 for key in x if key[0] == e}, 1, 1))
    for (e, f), value in given.agree.items():
        for place in [p for g, p in x if g == e]:  # f may take it, too, as e < f
            y = variable(value)
            rows.append(({y: 1, x[e, place]: -1}, -np.inf, 0))
            rows.append(({y: 1, x[f, place]: -1}, -np.inf, 0))
            rows.append(({y: 1, x[e, place]: -1, x[f, place]: -1}, -1, np.inf))
    n = len(given.reads)
    t = {b: variable(Fraction(0), n - 1) for b in given.reads}
    for b, c in given.arcs:
        rows.append(({t[c]: 1, t[b]: -1}, 1, np.inf))
    for (e, place), taken in x.items():
        for b, c in added(given, e, place):
            row = {taken: n} if b == c else {t[b]: 1, t[c]: -1, taken: n}
            rows.append((row, -np.inf, n - 1))
    chosen = _solve(profit, upper, rows)
    where = {e: place for (e, place), taken in x.items() if chosen[taken]}
    arcs = given.arcs.union(*(added(given, e, place) for e, place in where.items()))
    if len(where) < len(elements) or cyclic(arcs):
        raise RuntimeError("the rounded solution breaks a rule")
    return score(given, where)


def _solve(profit: list[int], upper: list[float], rows: list[Row]) -> list[bool]:
    """Return which variables are 1 where the profit is largest."""
    if not rows:
        return []
    matrix = lil_array((len(rows), len(profit)))
    for k, (coefficients, _, _) in enumerate(rows):
        for column, coefficient in coefficients.items():
            matrix[k, column] = coefficient
    low, high = [row[1] for row in rows], [row[2] for row in rows]
    unit = gcd(*profit) or 1  # HiGHS takes 1e20 for infinity
    found = milp(
        -np.array([p // unit for p in profit], float),
        integrality=np.ones(len(profit), int),
        bounds=Bounds(0, upper),
        constraints=LinearConstraint(matrix.tocsr(), low, high),
        options={"mip_rel_gap": 0},
    )
    if found.status != 0:
        raise RuntimeError(f"HiGHS: {found.message}")
    return [bool(value > 0.5) for value in found.x]
