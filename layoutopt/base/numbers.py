"""Integers as arguments, arrays of numbers, exact decimals as integers, and numbers as text.

Python's decimal operators round to 28 digits, which may be too few to compare scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutopt.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number: TypeAlias = Decimal | Fraction | int

LEAST = Fraction(1, 10**9)  # smallest denominator of relative differences

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])


def least(
    name: str,
    given: Any,
    low: int = 1,
    most: int | None = None,
    *,
    error: type[InputError] = InputError,
) -> int:
    """Return a user's argument as an integer from ``low`` to ``most``, or raise ``error``."""
    try:
        number = index(given)
    except TypeError:
        number = low - 1
    if isinstance(given, bool) or number < low or (most is not None and number > most):
        allowed = (
            f"of {low} or more" if most is None else f"from {low} to 2^{most.bit_length() - 1}"
        )
        raise error(f"{name} must be an integer {allowed}, got {given!r}")
    return number


def integers(
    name: str,
    given: Any,
    low: int = 1,
    count: int | None = None,
    *,
    error: type[InputError] = InputError,
) -> tuple[int, ...]:
    """Return a user's argument as a tuple of ``count`` integers of at least ``low``."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list of integers, got {given!r}")
    entries = enumerate(given)
    numbers = tuple(least(f"{name}[{i}]", entry, low, error=error) for i, entry in entries)
    if count is not None and len(numbers) != count:
        raise error(f"{name} must have {count} entries, got {len(numbers)}")
    return numbers


def pairs(
    name: str, given: Any, *, error: type[InputError] = InputError
) -> tuple[tuple[int, int], ...]:
    """Return a user's argument as a tuple of pairs of integers of at least 0."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list of pairs, got {given!r}")
    entries = enumerate(given)
    found = (integers(f"{name}[{i}]", entry, 0, 2, error=error) for i, entry in entries)
    return tuple((a, b) for a, b in found)


def sliced(size: int, start: int, end: int, step: int) -> range:
    """Return the indices that an ONNX Slice selects from a dimension of ``size``.

    Negative bounds count from the end, and bounds outside are clamped.  Unlike Python, a
    slice with negative step that starts before the first index selects that index.
    """
    if start < -size and step < 0:
        start = -size
    return range(size)[slice(start, end, step)]


def window_count(size: int, pads: tuple[int, int], reach: int, stride: int, *, up: bool) -> int:
    """Return the number of windows of an ONNX pool or convolution along an axis.

    It is ``(size + pads - reach) / stride + 1``, rounded towards 0, or up, where
    ``reach = dilation * (kernel - 1) + 1``; no window starts in the padding at the end.
    """
    free = size + sum(pads) - reach
    if not up:
        return free // stride + 1 if free >= 0 else 1 - -free // stride
    steps = -(-free // stride)
    return steps + (steps * stride < size + pads[0])


def total(values: Iterable[Decimal]) -> Decimal:
    """Return the sum of decimals."""
    found = Decimal(0)
    for value in values:
        found = _EXACT.add(found, value)
    return found


def times(value: Decimal, count: int) -> Decimal:
    """Return the product of a decimal and an integer; 0 has no sign."""
    return _EXACT.plus(_EXACT.multiply(value, count))


def difference(value: Decimal, other: Decimal) -> Decimal:
    """Return ``value - other``."""
    return _EXACT.subtract(value, other)


def share(part: Number, whole: Number) -> float:
    """Return the float nearest to ``part / whole``, infinity on overflow."""
    return nearest(Fraction(part) / Fraction(whole))


def relative(part: Number, whole: Number) -> float:
    """Return the float nearest to ``part / max(|whole|, 1e-9)``."""
    return share(part, max(abs(Fraction(whole)), LEAST))


def unique(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array of any shape, ascending."""
    import numpy as np

    found = np.sort(values, axis=None)
    kept: NDArray[Any] = found[np.r_[True, found[1:] != found[:-1]][: len(found)]]
    return kept


def without(values: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array that are not in ``known``, both ascending."""
    found = unique(values)
    new: NDArray[Any] = found[~lookup(known, found)[1]]
    return new


def lookup(known: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the places of numbers among known ones, which ascend, and which are there at all."""
    import numpy as np

    at = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    return at, known[at] == wanted if len(known) else np.zeros(len(wanted), bool)


def distinct(columns: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the distinct rows of a table, and which of them each row is.

    The table is given as columns, at least one; the rows are in lexicographic order, as stacked
    columns.
    """
    import numpy as np

    key, room = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        wide = high - low + 1
        if room * wide >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            column = np.unique(column, return_inverse=True)[1]
            room, low, wide = len(key), 0, len(key) + 1
        key, room = key * wide + (column - low).astype(np.int64), room * wide
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns]), index


def ranges(starts: NDArray[Any] | int, counts: NDArray[Any]) -> NDArray[Any]:
    """Return ``starts[i] .. starts[i] + counts[i] - 1`` for each ``i``, one after another."""
    import numpy as np

    ends = np.cumsum(counts)
    found: NDArray[Any] = np.repeat(starts - ends + counts, counts)
    found += np.arange(len(found))
    return found


def number(value: Decimal | float | None) -> str:
    """Format a number with separators and without trailing zeros; ``-`` if unknown."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 999_999.5 else f"{value:,.0f}"
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds(value: float | None, digits: int = 2) -> str:
    """Format seconds with so many digits after the point; ``-`` if unknown, ``None`` or NaN."""
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def ratio(value: float | None, whole: Number | None = None) -> str:
    """Format a ratio in percent; ``-`` if unknown, or if its denominator ``whole`` alone is 0."""
    if value is None or (value != 0 and whole == 0):
        return "-"
    if value == 0:
        return "0"
    return f"{value:,.2%}" if 5e-5 <= abs(value) < 100 else f"{value:.1e}"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun in singular or plural."""
    plural = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{plural}"


def more(count: int, noun: str) -> str:
    """Return how many more there are of something; an empty string if there are none."""
    return f"... and {counted(count, f'more {noun}')}" if count > 0 else ""


MAX_EXPONENT = 400
"""Largest number of digits of a value on either side of the point; sufficient for doubles."""

SUM_DIGITS = MAX_EXPONENT + 50
"""Upper bound on digits before the point of sums over all positions of all pairs."""


def exact_decimal(value: object, digits: int = MAX_EXPONENT) -> Decimal:
    """Convert a number to an exact decimal, or raise InputError.

    It is an integer, a float (taken as its shortest decimal), a ``Decimal``, a ``Fraction`` with a
    finite decimal expansion, or a text; with at most ``digits`` before and 400 after the point.
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
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError  # Python reads 1_0 as 10
    if isinstance(value, float):
        return Decimal(repr(float(value)))  # the shortest decimal
    if isinstance(value, str | Real):
        return Decimal(str(value))
    raise TypeError


def _from_fraction(value: Fraction, places: int = 0) -> Decimal:
    """Return a fraction as a decimal with at least so many digits after the point."""
    while (value * 10**places).denominator != 1:
        places += 1
        if places > MAX_EXPONENT:
            raise ValueError
    number = (value * 10**places).numerator
    digits = tuple(map(int, str(abs(number))))  # ``Decimal.scaleb`` would round to 28 of them
    return Decimal((int(number < 0), digits, -places))


def to_integers(values: Sequence[Decimal]) -> tuple[list[int], Fraction]:
    """Return ``multiples`` and the largest ``unit``: ``values[i] == multiples[i] * unit``."""
    distinct = set(values)  # few, even for hundreds of thousands of pairs
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
    return _from_fraction(multiple * unit, 1)


def nearest(score: Fraction | float) -> float:
    """Return the float nearest to a score, infinity on overflow."""
    try:
        return float(score)
    except OverflowError:
        return math.inf if score > 0 else -math.inf


def exact(value: Fraction | int | None) -> str:
    """Format a number as a finite decimal, or else as a fraction; ``-`` for ``None``."""
    if value is None:
        return "-"
    try:
        return number(exact_decimal(value))
    except InputError:
        about = number(nearest(Fraction(value)))
        return f"{value.numerator:,}/{value.denominator:,} (about {about})"
