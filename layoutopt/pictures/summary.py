"""What stands for a figure that would be too large."""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.pictures import svg
from layoutopt.pictures.text import shortened, width

LINE, MARGIN = 19.0, 18.0


def summary(title: str, rows: Sequence[tuple[str, str]], note: str) -> str:
    """Return a box with a table of words and numbers.

    Parameters
    ----------
    rows
        A number and what it counts.
    note
        Beneath the table, smaller.
    """
    numbers = max((width(number, 11) for number, _ in rows), default=0.0)
    longest = [numbers + 10 + width(words, 11) for _, words in rows]
    wide = max(*longest, width(shortened(title, 60), 13), width(note, 9.5), 200.0) + 2 * MARGIN
    y = MARGIN + 13
    parts = [svg.text(shortened(title, 60), MARGIN, y, 13, font_weight=600)]
    for number, words in rows:
        y += LINE
        parts.append(svg.text(number, MARGIN + numbers, y, 11, text_anchor="end"))
        parts.append(svg.text(words, MARGIN + numbers + 10, y, 11))
    y += LINE
    parts.append(svg.text(note, MARGIN, y, 9.5, fill=svg.SOFT))
    high = y + MARGIN
    frame = {"width": wide - 2, "height": high - 2, "stroke": svg.LINE, "fill": "none"}
    parts.append(svg.element("rect", x=1, y=1, rx=6, **frame))
    return svg.document(parts, wide, high, title)
