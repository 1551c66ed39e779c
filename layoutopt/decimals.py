"""Arithmetic of decimals that rounds nothing, however many digits they have.

Python's own operators round to 28 digits, which two scores of mixed magnitudes may differ
beyond.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = Decimal | Fraction | int

LEAST = Fraction(1, 10**9)
"""Relative differences are relative to this at least, so that those of 0 are finite."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])


def total(values: Iterable[Decimal]) -> Decimal:
    """Return the sum of decimals."""
    found = Decimal(0)
    for value in values:
        found = _EXACT.add(found, value)
    return found


def times(value: Decimal, count: int) -> Decimal:
    """Return a decimal times a whole number."""
    return _EXACT.multiply(value, count)


def difference(value: Decimal, other: Decimal) -> Decimal:
    """Return a decimal less another one."""
    return _EXACT.subtract(value, other)


def share(part: Number, whole: Number) -> float:
    """Return the float nearest to ``part / whole``, infinite beyond all floats."""
    exact = Fraction(part) / Fraction(whole)
    if abs(exact) < sys.float_info.max:
        return float(exact)
    return float("inf") if exact > 0 else float("-inf")


def relative(part: Number, whole: Number) -> float:
    """Return the float nearest to ``part / max(|whole|, 1e-9)``."""
    return share(part, max(abs(Fraction(whole)), LEAST))
