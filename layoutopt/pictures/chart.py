"""Charts of lines: axes with ticks, a key, colours for most eyes on light and dark ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutopt.pictures import svg
from layoutopt.pictures.scales import Axis, Scale, scale
from layoutopt.pictures.text import shortened, width

LIGHT = ("#0b66c3", "#e0481a", "#215605", "#c158ba", "#762a72", "#5f8366")
DARK = ("#6cb2ff", "#f0662f", "#c9dc4a", "#f4b8cf", "#9c63ec", "#2f957e")
"""Colours of lines on light and on dark ground.  All have a contrast of 3.5 and more to it, and
are well apart, also without green receptors; lines differ in their dashes, too."""

DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "13 4", "5 2 1.5 2", "3 5")
"""Of lines, too, so that colour is not all that tells them apart.  No pair of both comes twice
within 42 lines."""

GRID, GRID_AT_NIGHT = "#e3e7ec", "#2b323b"
"""Colours of the lines at ticks."""

WIDE, HIGH, MARGIN = 440.0, 210.0, 14.0
"""Width of a chart, height of its field, and distance from the edge, in pixels."""

TITLE, SMALL = 12.5, 10.0
"""Sizes of fonts."""

LETTERS = 50
"""Longest title."""

ROW, SAMPLE = 17.0, 26.0
"""Height of a line of the key, and width of its samples."""


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Parameters
    ----------
    name
        In the key.
    points
        Both coordinates of each point, from left to right.
    stepped
        Whether a value holds until the next point, and is not on its way there.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    stepped: bool = True


def chart(title: str, x: Axis, y: Axis, lines: Sequence[Line], note: str = "") -> str:
    """Return lines as SVG; where the reader likes it dark, it is.

    Parameters
    ----------
    title
        Above it.
    note
        Beneath it, in small letters.
    """
    across = scale(x, [a for line in lines for a, _ in line.points])
    up = scale(y, [b for line in lines for _, b in line.points])
    left = MARGIN + max(width(told, SMALL) for _, told in up.ticks) + 7
    top = MARGIN + TITLE + 28
    field = _Field(across, up, left, top, WIDE - MARGIN - 8, top + HIGH)
    named = [line for line in lines if line.name]
    key, bottom = _key(named, lines, field.bottom + 48)
    told, bottom = _notes(note, bottom)
    inside = [
        svg.element("style", svg.at_night(".chart", _recoloured())),
        svg.text(shortened(title, LETTERS), MARGIN, MARGIN + TITLE - 2, TITLE, font_weight=600),
        svg.text(y.label, MARGIN, top - 12, SMALL, fill=svg.SOFT),
        svg.text(x.label, field.right, field.bottom + 31, SMALL, fill=svg.SOFT, text_anchor="end"),
        *field.grid(),
        svg.group([field.line(i, line) for i, line in enumerate(lines)], fill="none"),
        key,
        told,
    ]
    return svg.document(inside, WIDE, bottom + MARGIN, title, class_="chart")


@dataclass(frozen=True)
class _Field:
    """Where lines are drawn."""

    across: Scale
    up: Scale
    left: float
    top: float
    right: float
    bottom: float

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * self.across.at(value)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * self.up.at(value)

    def grid(self) -> Iterator[str]:
        """Yield lines at ticks, and what these say; none so near that words would touch."""
        end = float("-inf")
        for value, told in self.across.ticks:
            at, half = self.x(value), width(told, SMALL) / 2
            yield _stroke(at, self.bottom, at, self.bottom + 4, svg.SOFT)
            if at - half > end + 4:
                end = at + half
                yield _word(told, at, self.bottom + 16, "middle")
        for value, told in self.up.ticks:
            at = self.y(value)
            yield _stroke(self.left, at, self.right, at, GRID)
            yield _word(told, self.left - 6, at + 3.5, "end")
        yield _stroke(self.left, self.bottom, self.right, self.bottom, svg.SOFT)

    def line(self, i: int, line: Line) -> str:
        """Return one line, and a dot at its end."""
        points = [(self.x(a), self.y(b)) for a, b in line.points]
        if not points:
            return ""
        (x, y), *rest = points
        steps = [f"M{svg.plain(x)} {svg.plain(y)}"]
        for a, b in rest:
            steps.append(f"H{svg.plain(a)}V{svg.plain(b)}" if line.stepped else _to(a, b))
        style = {"stroke": LIGHT[i % len(LIGHT)], "stroke_width": 2}
        dash = {"stroke_dasharray": _dash(i)} if _dash(i) else {}
        end = svg.element(
            "circle", cx=points[-1][0], cy=points[-1][1], r=2.6, fill=style["stroke"], stroke="none"
        )
        drawn = svg.path(steps, **style, **dash, stroke_linejoin="round")
        return svg.group([svg.tip(line.name), drawn, end])


def _to(x: float, y: float) -> str:
    return f"L{svg.plain(x)} {svg.plain(y)}"


def _dash(i: int) -> str:
    return DASHES[i % len(DASHES)]


def _stroke(x: float, y: float, right: float, bottom: float, colour: str) -> str:
    return svg.path([f"M{svg.plain(x)} {svg.plain(y)}{_to(right, bottom)}"], stroke=colour)


def _word(words: str, x: float, y: float, anchor: str) -> str:
    return svg.text(words, x, y, SMALL, fill=svg.SOFT, text_anchor=anchor)


def _recoloured() -> dict[str, str]:
    return dict(zip(LIGHT, DARK, strict=True)) | {GRID: GRID_AT_NIGHT}


def _key(named: Sequence[Line], lines: Sequence[Line], top: float) -> tuple[str, float]:
    """Return a sample and the name of each line, and the height at which they end."""
    if not named:
        return "", top - 8
    x, y, parts = MARGIN, top, []
    for i, line in enumerate(lines):
        if not line.name:
            continue
        words = shortened(line.name, 40)
        long = SAMPLE + 6 + width(words, SMALL) + 12
        if x > MARGIN and x + long > WIDE - MARGIN:
            x, y = MARGIN, y + ROW
        dash = {"stroke_dasharray": _dash(i)} if _dash(i) else {}
        stroke = {"stroke": LIGHT[i % len(LIGHT)], "stroke_width": 2}
        parts.append(svg.path([f"M{svg.plain(x)} {svg.plain(y)}h{SAMPLE:g}"], **stroke, **dash))
        parts.append(svg.text(words, x + SAMPLE + 6, y + 3.5, SMALL))
        x += long
    return svg.group(parts, class_="key"), y + 8


def _notes(note: str, top: float) -> tuple[str, float]:
    """Return a note in lines of the chart's width, and the height at which they end."""
    lines: list[str] = []
    for word in note.split():
        if lines and width(f"{lines[-1]} {word}", SMALL - 1) <= WIDE - 2 * MARGIN:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    drawn = [
        svg.text(line, MARGIN, top + 10 + 13 * i, SMALL - 1, fill=svg.SOFT)
        for i, line in enumerate(lines)
    ]
    return svg.group(drawn, class_="note"), top + 13 * len(lines)
