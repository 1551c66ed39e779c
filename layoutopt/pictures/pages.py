"""Pages of reports: sections with links to them, tables, and key numbers, in one file.

They need no network and no scripts (one sorts tables, where there are any), follow the reader's
wish for light or dark, and fit narrow screens: what is wide scrolls in a box of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeAlias

from layoutopt.base.html import escaped
from layoutopt.pictures import frames, grids, svg, tiles

AT_NIGHT = {
    "#e1e5ea": "#333a44",
    "#eff1f4": "#22272e",
    frames.FAINT: "#6d7683",
    frames.TIE: "#ef86b4",
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


def page(title: str, kind: str, lead: str, sections: Sequence[Section], foot: str = "") -> str:
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
    foot
        What comes last, as HTML.
    """
    shown = [section for section in sections if section.body]
    links = "".join(f'<a href="#{s.key}">{escaped(s.title)}</a>' for s in shown)
    parts = [
        f'<header><p class="kind">{escaped(kind)}</p><h1>{escaped(title)}</h1>{lead}</header>',
        f'<nav aria-label="Sections">{links}</nav>' if len(shown) > 1 else "",
        "<main>",
        *(f'<section id="{s.key}"><h2>{escaped(s.title)}</h2>{s.body}</section>' for s in shown),
        "</main>",
        f"<footer>{foot}</footer>" if foot else "",
    ]
    return whole(title, "\n".join(part for part in parts if part))


def whole(title: str, body: str) -> str:
    """Return a page of any content, in the style of all pages."""
    room = files("layoutopt.pictures")
    style = (room / "page.css").read_text("utf-8") + svg.at_night(
        ":not(.shades) > svg", AT_NIGHT, "[pointer-events] > *"
    )
    script = (room / "sort.js").read_text("utf-8") if 'class="sortable"' in body else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escaped(title)}</title>\n<style>\n{style}\n</style></head>\n"
        f"<body>\n{body}\n{f'<script>{script}</script>' if script else ''}</body></html>\n"
    )


def paragraph(words: str, kind: str = "") -> str:
    """Return a paragraph; nothing without words."""
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{escaped(words)}</p>" if words else ""


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return key numbers, each with its name above it; nothing without any."""
    inside = "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in rows)
    return f'<dl class="facts">{inside}</dl>' if inside else ""


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    left: int = 1,
    *,
    caption: str = "",
    sortable: bool = False,
) -> str:
    """Return a table in a box that scrolls; nothing without rows.

    Parameters
    ----------
    left
        So many columns hold names, flush left; the others hold numbers, flush right, but for
        cells of a kind of their own.
    sortable
        Whether a click on a column's head sorts it.
    """
    if not rows:
        return ""
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    lines = ("".join(_cell(c, i < left) for i, c in enumerate(row)) for row in rows)
    heads = "".join(
        f'<th scope="col"{"" if i < left or _texts(rows, i) else NUMBER}>{escaped(words)}</th>'
        for i, words in enumerate(head)
    )
    kind = ' class="sortable"' if sortable and len(rows) > 2 else ""
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    label = escaped(caption or "table")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
        f"<table{kind}>{title}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


NUMBER = ' class="number"'


def _texts(rows: Sequence[Sequence[str | Cell]], column: int) -> bool:
    cell = rows[0][column]
    return isinstance(cell, Cell) and bool(cell.kind)


def _cell(cell: str | Cell, name: bool) -> str:
    if isinstance(cell, str):
        cell = Cell(cell)
    kind = cell.kind or ("name" if name else "number")
    order = f' data-sort="{escaped(cell.order)}"' if cell.order else ""
    return f'<td class="{kind}"{order}>{cell.html or escaped(cell.words)}</td>'


def listing(rows: Iterable[tuple[str, str]]) -> str:
    """Return what there is to say, each with its name to the left; nothing without rows."""
    lines = [
        f'<tr><th scope="row">{escaped(k)}</th><td class="text">{escaped(v)}</td></tr>'
        for k, v in rows
    ]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>' if lines else ""


def bar(share: float) -> str:
    """Return a bar that is filled to a share from 0 to 1."""
    filled = 100 * min(max(share, 0.0), 1.0)
    return f'<span class="bar"><i style="width:{filled:.4g}%"></i></span>'


def details(summary: str, body: str) -> str:
    """Return what shows when its summary is clicked; nothing without a body."""
    if not body:
        return ""
    return f"<details><summary>{escaped(summary)}</summary>{body}</details>"


def pair(a: str, b: str) -> str:
    """Return two names, one beneath the other where there is no room for both."""
    return f'<div class="pair"><span>{escaped(a)}</span><span>{escaped(b)}</span></div>'


def alike(names: Sequence[str]) -> str:
    """Return how many others are like what is named, with their names beneath."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return details(f"and {len(names):,} like it", escaped("; ".join(names[:NAMED]) + more))


def picture(drawn: str, shades: bool = False) -> str:
    """Return an SVG picture in a frame, in its own size, which scrolls.

    Parameters
    ----------
    shades
        Whether its colours are shades of dark and light, which change places on dark ground.
    """
    kind = "picture shades" if shades else "picture"
    return f'<div class="{kind}" tabindex="0" role="region" aria-label="picture">{drawn}</div>'


def charts(drawn: Iterable[str]) -> str:
    """Return charts side by side where there is room; nothing without any."""
    inside = "".join(f"<div>{one}</div>" for one in drawn if one)
    return f'<div class="charts">{inside}</div>' if inside else ""


def command_line(command: str) -> str:
    """Return a command as it was typed; nothing if it is unknown."""
    return f"<pre><code>{escaped(command)}</code></pre>" if command else ""
