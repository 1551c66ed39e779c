"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from layoutopt.pictures.text import number, ratio, seconds

__all__ = ["exact", "number", "ratio", "seconds", "table"]


def exact(value: Fraction) -> str:
    """Return a number that is a decimal, in full."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return str(Decimal(value.numerator) / Decimal(value.denominator))


def table(rows: Sequence[Sequence[str]], left: int = 1, indent: str = "  ") -> str:
    """Return rows in columns; the first ``left`` columns are flush left, others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(cells).rstrip())
    return "\n".join(lines)
