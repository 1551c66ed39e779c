"""Values of ValuedPairs: exact decimals in, exact integers with one unit out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral, Real

from layoutopt.errors import InputError

MAX_EXPONENT = 400
"""Values keep at most so many digits on either side of the point.  Every double fits."""

SUM_DIGITS = MAX_EXPONENT + 50
"""Sums of values over all positions of all pairs have fewer digits before the point."""


def exact_decimal(value: object, digits: int = MAX_EXPONENT) -> Decimal:
    """Return a number as the decimal that the user wrote.

    Parameters
    ----------
    value
        An integer, a float (taken as its shortest decimal), a ``Decimal``, a ``Fraction``
        with a finite decimal expansion, or a string that holds a decimal number.
    digits
        How many it may have before the point.

    Raises
    ------
    InputError
        If it is no finite number, or has more digits before the point, or more than 400 after it.
    """
    try:
        number = _parse(value)
    except (InvalidOperation, ValueError, TypeError):
        raise InputError(f"value {value!r} is not a decimal number") from None
    if not number.is_finite():
        raise InputError(f"value {value!s} is not finite")
    if not number:
        return Decimal("0.0") if "." in str(value) else Decimal(0)  # -0 and 0e999 are 0
    last, first = int(number.as_tuple().exponent), number.adjusted()
    if first >= digits or last < -MAX_EXPONENT:
        raise InputError(f"value has more than {MAX_EXPONENT} digits before or after the point")
    return number


def _parse(value: object) -> Decimal:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, Decimal):
        return value
    if isinstance(value, Integral):
        return Decimal(int(value))
    if isinstance(value, Fraction):
        return _from_fraction(value)
    if isinstance(value, str | Real):  # str() of a float is its shortest decimal
        return Decimal(str(value))
    raise TypeError


def _from_fraction(value: Fraction) -> Decimal:
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
        if places > MAX_EXPONENT:
            raise ValueError
    return _written((value * 10**places).numerator, places)


def to_integers(values: Sequence[Decimal]) -> tuple[list[int], Fraction]:
    """Write decimals as whole multiples of one unit.

    Returns
    -------
    multiples, unit
        ``values[i] == multiples[i] * unit``, with the largest possible unit.
    """
    distinct = set(values)  # of hundreds of thousands of pairs, there are few
    places = max((-int(v.as_tuple().exponent) for v in distinct), default=0)
    places = max(places, 0)
    whole = {v: int(Fraction(v) * 10**places) for v in distinct}
    common = math.gcd(*whole.values()) or 1
    multiples = {v: w // common for v, w in whole.items()}
    return [multiples[v] for v in values], Fraction(common, 10**places)


def to_decimal(multiple: int, unit: Fraction) -> Decimal:
    """Return ``multiple * unit`` as a decimal with at least one digit after the point.

    The unit must come from :func:`to_integers`, so that the result is finite.
    """
    exact = multiple * unit
    places = 1
    while (exact * 10**places).denominator != 1:
        places += 1
    return _written((exact * 10**places).numerator, places)


def _written(number: int, places: int) -> Decimal:
    """Return ``number / 10**places``, which ``Decimal.scaleb`` would round to 28 digits."""
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -places))


def nearest(score: Fraction) -> float:
    """Return the float nearest to a score, infinity beyond all of them."""
    try:
        return float(score)
    except OverflowError:
        return math.inf if score > 0 else -math.inf
