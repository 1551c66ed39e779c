"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from layoutopt.errors import InputError
from layoutopt.pictures.text import number, ratio, seconds

__all__ = ["exact", "number", "ratio", "seconds", "table"]


def exact(value: Fraction) -> str:
    """Return a number in full, as the text of a ratio where its decimals do not end."""
    from layoutopt.graphs.values import exact_decimal

    try:
        return number(exact_decimal(value))
    except InputError:
        return str(value)


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
