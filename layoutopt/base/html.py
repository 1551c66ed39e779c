"""Tables and pictures as parts of pages, as notebooks show them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 does not allow, not even escaped."""

MUTED = "color:#6b7280"


def escaped(text: object) -> str:
    """Return text that may stand in XML and HTML, in attributes too."""
    return html.escape(ILLEGAL.sub("\ufffd", str(text)))


def heading(words: str) -> str:
    """Return the name of what is shown."""
    return f'<div style="font-weight:600;font-size:1.15em">{escaped(words)}</div>'


def line(words: str, style: str = "") -> str:
    """Return a paragraph without space around it."""
    return f'<div style="{style}">{escaped(words)}</div>' if words else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a table; the first ``left`` columns are flush left, others flush right."""
    lines = [_row("th", head, left), *(_row("td", row, left) for row in rows)]
    style = "border-collapse:collapse;margin:.5em 0"
    return f'<table style="{style}">{"".join(lines)}</table>'


def _row(tag: str, cells: Sequence[str], left: int) -> str:
    sides = ["left" if i < left else "right" for i in range(len(cells))]
    inside = (
        f'<{tag} style="text-align:{side}">{escaped(cell)}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(inside)}</tr>"


def block(parts: Iterable[str]) -> str:
    """Return parts one below the other."""
    return f'<div style="margin:.4em 0">{"".join(parts)}</div>'


def fitted(picture: str) -> str:
    """Return an SVG picture that shrinks where the page is narrow."""
    shrinking = picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)
    return f'<div style="margin:.5em 0">{shrinking}</div>'


def beside(figures: Iterable[tuple[str, str]]) -> str:
    """Return captions and pictures side by side where there is room."""
    inside = (
        f'<figure style="margin:0;flex:1 1 460px;max-width:100%">'
        f'<figcaption style="font-weight:600">{escaped(caption)}</figcaption>{picture}</figure>'
        for caption, picture in figures
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.2em">{"".join(inside)}</div>'
