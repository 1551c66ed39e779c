"""Tables written as aligned text, CSV or Markdown, and what notebooks show of objects.

Objects are shown as parts, which a template in ``report`` turns into HTML.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from layoutopt.base.entries import imported
from layoutopt.base.errors import printable
from layoutopt.base.numbers import more

SIGNS = re.compile(r"[\\`*\[\]<>|&~]|(?<!\w)_|_(?!\w)")
"""Characters to escape in Markdown; underscores inside words need no escape."""


@dataclass(frozen=True)
class Table:
    """Rows of cells below the names of their columns, if these have any.

    Cells are text, for CSV also numbers.  The first ``left`` columns are aligned on the left.
    So many further rows are ``hidden``; as text and in HTML they are counted as ``noun``.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left: int = 1
    hidden: int = 0
    noun: str = "row"

    @property
    def more(self) -> str:
        """Count of the rows that are hidden."""
        return more(self.hidden, self.noun)

    def text(self, indent: str = "  ") -> str:
        """Return aligned columns, a line for each row, with control characters escaped."""
        every = [self.head, *self.rows] if self.head else self.rows
        cells = [list(map(printable, row)) for row in every]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for row in cells:
            padded = [
                cell.ljust(width) if i < self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append(indent + "  ".join(padded).rstrip())
        if self.more:
            lines.append(indent + self.more)
        return "\n".join(lines)

    def csv(self) -> str:
        """Return CSV with line feeds; ``None`` is an empty cell."""
        lines = []
        for row in (self.head, *self.rows):
            line = io.StringIO()
            csv.writer(line).writerow(row)  # quotes both line feeds and carriage returns
            lines.append(line.getvalue().removesuffix("\r\n") + "\n")
        return "".join(lines)

    def markdown(self) -> str:
        """Return Markdown, with special characters of cells escaped."""
        sides = ["---" if i < self.left else "---:" for i in range(len(self.head))]
        lines = [" | ".join(map(_markdown_cell, cells)) for cells in (self.head, *self.rows)]
        lines.insert(1, " | ".join(sides))
        return "".join(f"| {line} |\n" for line in lines)


def _markdown_cell(words: str) -> str:
    return printable(" ".join(SIGNS.sub(r"\\\g<0>", words).split()))


@dataclass(frozen=True)
class Words:
    """A line of text: ``title`` for names, ``soft`` for remarks, ``bad`` for faults."""

    words: str
    tone: str = ""


@dataclass(frozen=True)
class Figures:
    """SVG pictures with captions; the caption of a single one is omitted."""

    figures: Sequence[tuple[str, str]]


Part: TypeAlias = Words | Table | Figures


class Shown:
    """An object that notebooks show as a sequence of parts."""

    def shown_parts(self) -> Iterable[Part]:
        """Yield the parts to show."""
        raise NotImplementedError  # each class has its own

    def to_html(self) -> str:
        """Return the object as an HTML fragment, as notebooks show it."""
        html: str = imported("layoutopt.report.pages:notebook")(self.shown_parts())
        return html

    def _repr_html_(self) -> str:
        return self.to_html()
