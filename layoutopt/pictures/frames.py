"""Frames by which kinds of tensors are told apart, and the key that explains a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from layoutopt.pictures import svg
from layoutopt.pictures.grids import BLANK, OWN
from layoutopt.pictures.svg import width

Drawn: TypeAlias = Callable[[float, float, float, float], str]
"""From left, top, width and height to what stands there."""

TIE, FAINT = "#14755f", "#a3aab5"
"""Colours of ties, and of lines that matter less."""

DASH = "5 3.5"

SAMPLE, ENTRY, LINE = 18.0, 16.0, 20.0
"""Of the key, in pixels: width of a sample, space after an entry, height of a line."""


def _box(x: float, y: float, w: float, h: float, **style: object) -> str:
    return svg.element("rect", x=x, y=y, width=w, height=h, **style)


def _sink(x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, w, h, rx=min(9.0, h / 2), fill=svg.PAPER, stroke=svg.INK, stroke_width=1.1)


def _source(x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, w, h, rx=2, fill=svg.PAPER, stroke=svg.INK, stroke_width=2.4)


def _fixed_point(x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, w, h, rx=2, fill="#e1e5ea", stroke=svg.INK, stroke_width=2.4)


def _barrier(x: float, y: float, w: float, h: float) -> str:
    style = {"stroke": svg.INK, "stroke_width": 0.9}
    outer = _box(x, y, w, h, rx=2, fill=svg.PAPER, **style)
    return outer + _box(x + 3, y + 3, w - 6, h - 6, fill="none", **style)


def _view(x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, w, h, rx=4, fill="#eff1f4")


FRAMES: dict[str, Drawn] = {
    "sink": _sink,
    "source": _source,
    "fixed point": _fixed_point,
    "barrier": _barrier,
    "view": _view,
}
"""By kind of tensor."""


def _tie(x: float, y: float, w: float, h: float) -> str:
    start = f"M{svg.plain(x)} {svg.plain(y + h / 2)}h{svg.plain(w)}"
    return svg.path([start], stroke=TIE, stroke_width=1.6, stroke_dasharray=DASH)


def _own(x: float, y: float, w: float, h: float) -> str:
    stroke = svg.path([f"M{svg.plain(x)} {svg.plain(y + h)}l{h:g} -{h:g}"], stroke=svg.LINE)
    return _box(x, y, h, h, fill=OWN) + stroke


def _stripes(x: float, y: float, w: float, h: float) -> str:
    fills = "#8a99f0", "#f6a06a", OWN
    each = w / len(fills)
    return "".join(_box(x + i * each, y, each, h, fill=fill) for i, fill in enumerate(fills))


def _blank(x: float, y: float, w: float, h: float) -> str:
    return _box(x, y, h, h, fill=BLANK, stroke=svg.LINE)


def key(
    kinds: Iterable[str],
    tie: str,
    fills: Iterable[str],
    left: float,
    top: float,
    right: float,
    striped: bool = False,
) -> tuple[str, float]:
    """Return what explains a figure, and the height at which it ends.

    Parameters
    ----------
    kinds
        Those of the figure's frames.
    tie
        What a tie's label says; empty without ties.
    fills
        Colours of cells in the figure.
    striped
        Whether it shows elements in stripes.
    """
    present, shown = set(kinds), set(fills)
    entries: list[tuple[Drawn | None, str]] = [(f, k) for k, f in FRAMES.items() if k in present]
    if tie:
        entries.append((_tie, tie))
    if shown - {BLANK, OWN}:
        entries.append((None, "equal colour: equal location"))
    if striped:
        entries.append((_stripes, "elements by whose locations they take"))
    if OWN in shown:
        entries.append((_own, "at a location of its own"))
    if BLANK in shown:
        entries.append((_blank, "to be chosen"))
    return _lined_up(entries, left, top, right)


def _lined_up(
    entries: Sequence[tuple[Drawn | None, str]], left: float, top: float, right: float
) -> tuple[str, float]:
    x, y, parts = left, top, []
    for sample, words in entries:
        indent = SAMPLE + 6 if sample else 0.0
        long = indent + width(words, 9.5) + ENTRY
        if x > left and x + long > right:
            x, y = left, y + LINE
        parts.append(sample(x, y, SAMPLE, 12) if sample else "")
        parts.append(svg.text(words, x + indent, y + 9.5, 9.5, fill=svg.SOFT))
        x += long
    return svg.group(parts, class_="key"), y + 12 if entries else top
