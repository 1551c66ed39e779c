"""Tables as text: CSV for programs, Markdown and columns for people."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

from layoutopt.base.errors import printable

SIGNS = re.compile(r"[\\`*\[\]<>|]|(?<!\w)_|_(?!\w)")
"""What Markdown would not show as it is; an underline within a word it does."""


def csv_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV, lines ended by a line feed; ``None`` is an empty cell."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(head)
    table.writerows(rows)
    return text.getvalue()


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table as Markdown; the first ``left`` columns are flush left, others flush right.

    Signs with a meaning are escaped, so that every cell shows what it holds.
    """
    sides = ["---" if i < left else "---:" for i in range(len(head))]
    lines = [" | ".join(map(_cell, cells)) for cells in (head, *rows)]
    lines.insert(1, " | ".join(sides))
    return "".join(f"| {line} |\n" for line in lines)


def text_table(rows: Iterable[Sequence[str]], left: int = 1, indent: str = "  ") -> str:
    """Return rows in columns; the first ``left`` columns are flush left, others flush right.

    Every row is a line: what names in cells hold besides printable characters is spelt out.
    """
    cells = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(padded).rstrip())
    return "\n".join(lines)


def _cell(words: str) -> str:
    return printable(" ".join(SIGNS.sub(r"\\\g<0>", words).split()))
