"""Display of objects in notebooks, as parts that a template in ``report`` turns into HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from layoutopt.base.entries import imported
from layoutopt.base.table import Table


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
