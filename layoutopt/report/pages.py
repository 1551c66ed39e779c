"""Pages of reports: sections with links to them, tables, and key numbers, in one file.

They need no network and no scripts (one sorts tables, where there are any), follow the reader's
wish for light or dark, and fit narrow screens: what is wide scrolls in a box of its own.  All
HTML is in ``templates``, which escape whatever is no HTML of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from layoutopt.base.shown import Part
from layoutopt.pictures import frames, grids, svg, tiles

AT_NIGHT = {
    "#e1e5ea": "#333a44",
    "#eff1f4": "#22272e",
    frames.FAINT: "#6d7683",
    frames.TIE: "#5fb8a0",
    grids.OWN: "#2a3038",
    tiles.EMPTY: "#22272e",
}
"""Neutral colours of pictures on dark ground; those of locations stay, with the words on them."""

NAMED = 60
"""How many things that are alike are named."""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Parameters
    ----------
    key
        Its name in links.
    title
        Its heading, and the text of the link to it.
    body
        Its HTML.
    """

    key: str
    title: str
    body: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table that is more than a short text.

    Parameters
    ----------
    words
        Its text.
    html
        What stands in its place, as HTML.
    order
        By what it is sorted; by its words if empty.
    kind
        ``"name"`` for names, which may be long, ``"label"`` for names that seldom are,
        ``"short"`` for words, ``"text"`` for sentences, ``"bars"`` for bars.
    """

    words: str
    html: str = ""
    order: str = ""
    kind: str = ""


Cells: TypeAlias = "list[str | Cell]"
"""A row of a table."""


def _legal(value: Any) -> Any:
    """Return what may stand in XML and HTML, once it is escaped."""
    return svg.ILLEGAL.sub("\ufffd", value) if type(value) is str else value


def _fitted(picture: str) -> Markup:
    """Return an SVG picture that shrinks where the page is narrow."""
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


_parts: dict[str, Callable[..., Markup]] = vars(_environment().get_template("parts.html").module)
"""The macros of the template by name, functions that return HTML."""

joined = Markup("").join
paragraph = _parts["paragraph"]
toned = _parts["toned"]
verdict = _parts["verdict"]
facts = _parts["facts"]
table = _parts["table"]
listing = _parts["listing"]
bar = _parts["bar"]
bars = _parts["bars"]
lines = _parts["lines"]
details = _parts["details"]
pair = _parts["pair"]
names = _parts["names"]
steps = _parts["steps"]
why = _parts["why"]
picture = _parts["picture"]
beside = _parts["beside"]
charts = _parts["charts"]
link = _parts["link"]
command_line = _parts["command_line"]
alike = partial(_parts["alike"], named=NAMED)


def page(title: str, kind: str, lead: str, sections: Sequence[Section]) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        Its name.
    kind
        What it is, in small letters above the name.
    lead
        What comes first, as HTML.
    sections
        Those without a body are left out.
    """
    shown = [section for section in sections if section.body]
    return _whole(title, kind=kind, lead=lead, sections=shown)


def whole(title: str, body: str) -> str:
    """Return a page of any HTML, in the style of all pages."""
    return _whole(title, sections=None, body=Markup(body))  # noqa: S704


def _whole(title: str, **more: Any) -> str:
    night = svg.at_night(":not(.shades) > svg", AT_NIGHT, "[pointer-events] > *")
    bodies = [section.body for section in more["sections"] or ()]
    scripted = any('class="sortable"' in body for body in bodies)
    template = _environment().get_template("page.html")
    return template.render(title=title, night=night, scripted=scripted, **more) + "\n"


def notebook(parts: Iterable[Part]) -> str:
    """Return what a notebook shows of parts."""
    return _environment().get_template("notebook.html").render(parts=list(parts))
