"""Fragments of HTML, as notebooks show them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

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
