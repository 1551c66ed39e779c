"""Linear equations over boxes of whole numbers: what they are made of, and the easy ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import NamedTuple, TypeAlias

Vector: TypeAlias = tuple[int, ...]

ROUNDS = 3
"""How often the ranges of three or more variables are narrowed."""


class Term(NamedTuple):
    """A variable ``0 <= x < extent`` of the sum.

    Parameters
    ----------
    coefficient
        What it is multiplied with.
    extent
        How many values it has, at least 1.
    weight
        What one step of it adds to the quantities that the caller wants to know.
    """

    coefficient: int
    extent: int
    weight: Vector

    @property
    def span(self) -> int:
        """The coefficient times the largest value."""
        return self.coefficient * (self.extent - 1)


class SolutionBox(NamedTuple):
    """A box of solutions: the wanted quantities are ``start + sum_j i_j * step_j``.

    Parameters
    ----------
    start
        The quantities at its first solution.
    loops
        ``(extent, step)`` of each free index ``i_j``; different indices are different solutions.
    """

    start: Vector
    loops: tuple[tuple[int, Vector], ...]

    @property
    def solutions(self) -> int:
        """The number of solutions."""
        return prod([extent for extent, _ in self.loops])


class Tidy(NamedTuple):
    """An equation in normal form.

    Parameters
    ----------
    start
        The wanted quantities where all variables are 0.
    free
        ``(extent, step)`` of each variable that the sum does not hold.
    terms
        The others; their coefficients are positive and have no common divisor.
    total
        What they add up to, at most half of what they can.
    """

    start: Vector
    free: tuple[tuple[int, Vector], ...]
    terms: list[Term]
    total: int


def tidied(terms: Iterable[Term], total: int, width: int) -> Tidy | None:
    """Return an equation in normal form, its ranges narrowed; ``None`` if it has no solution.

    Parameters
    ----------
    terms
        The variables; their coefficients may have any sign, or be 0.
    total
        What they must add up to.
    width
        The length of all weights.
    """
    start: Vector = (0,) * width
    free: list[tuple[int, Vector]] = []
    active: list[Term] = []
    for term in terms:
        if term.extent == 1:
            continue
        if term.coefficient == 0:
            free.append((term.extent, term.weight))
        elif term.coefficient > 0:
            active.append(term)
        else:
            total -= term.span
            start = plus(start, term.weight, term.extent - 1)
            active.append(_turned(term))
    found = _divided(active, total)
    rounds, before = 0, None
    while found and found[0] != before and (rounds < ROUNDS or len(found[0]) < 3):
        active, total = found
        before, rounds = list(active), rounds + 1
        for narrowed in (_bounded, _congruent):
            for k, (c, _, weight) in enumerate(active):
                low, step, n = narrowed(active, k, total)
                if n < 1:
                    return None
                if (low, step, n) != (0, 1, active[k].extent):
                    total -= c * low
                    start = plus(start, weight, low)
                    active[k] = Term(c * step, n, times(weight, step))
        found = _divided([term for term in active if term.extent > 1], total)
    return found and _halved(start, tuple(free), *found)


def _halved(
    start: Vector, free: tuple[tuple[int, Vector], ...], terms: list[Term], total: int
) -> Tidy:
    """Return an equation, all its values counted from the other end if that makes it smaller."""
    span = sum(term.span for term in terms)
    if 2 * total <= span:
        return Tidy(start, free, terms, total)
    for term in terms:
        start = plus(start, term.weight, term.extent - 1)
    return Tidy(start, free, [_turned(term) for term in terms], span - total)


def _divided(active: list[Term], total: int) -> tuple[list[Term], int] | None:
    """Return an equation without its common divisor; ``None`` if it has no solution."""
    common = gcd(*[c for c, _, _ in active])
    if common == 0:
        return None if total else (active, total)
    if total % common:
        return None
    if common > 1:
        active = [Term(c // common, n, weight) for c, n, weight in active]
    return active, total // common


def _turned(term: Term) -> Term:
    """Return a variable that counts its values from the other end, with positive coefficient."""
    return Term(abs(term.coefficient), term.extent, times(term.weight, -1))


def _bounded(active: Sequence[Term], k: int, total: int) -> tuple[int, int, int]:
    """Return first value, step and number of values for which the others can make up."""
    c, n, _ = active[k]
    others = sum([d * (m - 1) for d, m, _ in active]) - c * (n - 1)
    low, high = max(0, -((others - total) // c)), min(n - 1, total // c)
    return low, 1, high - low + 1


def _congruent(active: Sequence[Term], k: int, total: int) -> tuple[int, int, int]:
    """Return first value, step and number of values that leave what the others can divide."""
    c, n, _ = active[k]
    common = gcd(*[d for j, (d, _, _) in enumerate(active) if j != k])
    if common <= 1:  # 0 without others: the bounds have left the one value there is
        return 0, 1, n
    shared = gcd(c, common)
    if total % shared:
        return 0, 1, 0
    step = common // shared
    low = total // shared * pow(c // shared, -1, step) % step
    return low, step, (n - 1 - low) // step + 1


def absorbed(active: Sequence[Term], total: int) -> list[SolutionBox]:
    """Return all solutions as one box, if one variable makes up for any values of the others.

    If none does, the list is empty.  The equation is in normal form: a variable that need not be
    negative then need not be too large either, as the total is at most half of the span.
    """
    span = sum(term.span for term in active)
    for k, (c, n, weight) in enumerate(active):
        if c == 1 and span - (n - 1) <= total:
            others = [*active[:k], *active[k + 1 :]]
            loops = tuple([(m, plus(w, weight, -d)) for d, m, w in others])
            return [SolutionBox(times(weight, total), loops)]
    return []


def plus(a: Vector, b: Vector, factor: int = 1) -> Vector:
    """Return ``a + factor * b``."""
    return tuple([x + factor * y for x, y in zip(a, b, strict=True)])


def times(a: Vector, factor: int) -> Vector:
    """Return ``factor * a``."""
    return tuple([factor * x for x in a])
