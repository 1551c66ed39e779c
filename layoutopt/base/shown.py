"""Objects that notebooks show: their parts are data here, and HTML by a template in ``report``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from layoutopt.base.entries import LazyTable
from layoutopt.base.table import Table


@dataclass(frozen=True)
class Words:
    """A line of text: ``title`` for names, ``soft`` for what matters less, ``bad`` for faults."""

    words: str
    tone: str = ""


@dataclass(frozen=True)
class Figures:
    """Pictures as SVG with captions; one alone has none."""

    figures: Sequence[tuple[str, str]]


Part: TypeAlias = Words | Table | Figures

WRITERS: LazyTable[Callable[[Iterable[Part]], str]] = LazyTable(
    {"notebook": "layoutopt.report.pages:notebook"}
)
"""What makes HTML of parts; it is loaded when something is shown."""


class Shown:
    """An object with parts that a notebook shows one below the other."""

    def shown_parts(self) -> Iterable[Part]:
        """Yield what there is to show."""
        raise NotImplementedError

    def to_html(self) -> str:
        """Return this as a part of a page, as notebooks show it."""
        return WRITERS["notebook"](self.shown_parts())

    def _repr_html_(self) -> str:
        return self.to_html()
