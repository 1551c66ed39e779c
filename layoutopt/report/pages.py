"""Pages of reports: sections with links to them, tables, and key numbers, in one file.

They are self-contained, need no scripts (except one that sorts tables), follow the preference for a
light or dark scheme, and fit narrow screens, where wide parts scroll.  All HTML is in
``templates``, with autoescaping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from layoutopt.base.table import Part
from layoutopt.pictures import cards, grids, svg, tiles

AT_NIGHT = {
    "#e1e5ea": "#333a44",
    "#eff1f4": "#22272e",
    cards.FAINT: "#6d7683",
    cards.TIE: "#5fb8a0",
    grids.OWN: "#2a3038",
    tiles.EMPTY: "#22272e",
}
"""Neutral colours of pictures on dark ground; colours of locations are unchanged."""


@dataclass(frozen=True)
class Section:
    """A part of a page: its name in links, its heading, and its HTML."""

    key: str
    title: str
    body: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table that is more than a short text, with HTML in its place, or a sort key.

    The kind is ``"name"`` for names, which may be long, ``"label"`` for names that seldom are,
    ``"short"`` for words, ``"text"`` for sentences, ``"bars"`` for bars.
    """

    words: str
    html: str = ""
    order: str = ""
    kind: str = ""


def valued(words: str, value: Any) -> Cell:
    """Return a cell of words that are sorted by a value, if it is known."""
    return Cell(words, order="" if value is None else str(value))


def _legal(value: Any) -> Any:
    """Return a text without characters that XML forbids."""
    return svg.ILLEGAL.sub("\ufffd", value) if type(value) is str else value


def _fitted(picture: str) -> Markup:
    """Return an SVG picture that shrinks on narrow pages."""
    return Markup(re.sub("^<svg ", '<svg style="max-width:100%;height:auto" ', picture))  # noqa: S704


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("layoutopt.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_legal,
    )
    found.filters["fitted"] = _fitted
    return found


class Macros(Protocol):
    """Functions that return HTML, by name."""

    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


parts = cast(Macros, _environment().get_template("parts.html").module)
"""The macros of ``templates/parts.html``."""


def joined(texts: Iterable[str]) -> Markup:
    """Return texts as HTML, one after the other; those that are not HTML are escaped."""
    return Markup("").join(map(_legal, texts))


def page(title: str, kind: str, lead: str, sections: Sequence[Section]) -> str:
    """Return a page: its kind in small letters, title, first part, and sections with a body."""
    shown = [section for section in sections if section.body]
    scripted = any('class="sortable"' in section.body for section in shown)
    return whole(title, kind=kind, lead=lead, sections=shown, scripted=scripted)


def whole(title: str, body: str = "", **more: Any) -> str:
    """Return a page in the style of all pages: any HTML, or other values of the template."""
    night = svg.at_night(":not(.shades) > svg", AT_NIGHT, "[pointer-events] > *")
    given = {"title": title, "night": night, "body": Markup(body)} | more  # noqa: S704
    return _environment().get_template("page.html").render(given) + "\n"


def notebook(shown: Iterable[Part]) -> str:
    """Return the HTML of parts for notebooks."""
    return _environment().get_template("notebook.html").render(parts=list(shown))
