"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal


def number(value: Decimal | float | None) -> str:
    """Return a number with separators and no idle zeros; ``-`` if it is unknown."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ratio(value: float | None) -> str:
    """Return a ratio in percent; ``-`` if it is unknown."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return f"{value:.2%}" if 5e-5 <= abs(value) < 100 else f"{value:.1e}"


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
