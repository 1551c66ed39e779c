"""Numbers and tables as text."""

from __future__ import annotations

from fractions import Fraction

from layoutopt.errors import InputError
from layoutopt.pictures.tables import text_table as table
from layoutopt.pictures.text import number, ratio, seconds

__all__ = ["exact", "number", "ratio", "seconds", "table"]


def exact(value: Fraction) -> str:
    """Return a number in full, as the text of a ratio where its decimals do not end."""
    from layoutopt.graphs.values import exact_decimal

    try:
        return number(exact_decimal(value))
    except InputError:
        return str(value)
