"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.pictures.text import number, ratio, seconds

__all__ = ["number", "ratio", "seconds", "table"]


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
