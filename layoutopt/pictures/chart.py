"""Charts of lines: axes with ticks, a key, colours for most eyes on light and dark ground."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from layoutopt.pictures import svg
from layoutopt.pictures.svg import KeyEntry, distinct, fitted, width

TICKS = 5  # about so many ticks on an axis

ZERO = 0.09
"""Share of a logarithmic axis that leads from 0, which has no logarithm, to the least value."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class ChartAxis:
    """One axis of a chart, with the unit in its label.

    If it is logarithmic, 0 has a place of its own at the low end.  Values may be ratios, told in
    percent.  Ends are by default the values' own.
    """

    label: str
    log: bool = False
    percent: bool = False
    low: float | None = None
    high: float | None = None

    @property
    def words(self) -> str:
        """The label, and whether the axis is logarithmic."""
        return f"{self.label} (logarithmic)" if self.log else self.label


@dataclass(frozen=True)
class Scale:
    """An axis with its ends and ticks: values and what they are called.

    A logarithmic one may begin with ``zero`` all the same, which is then not its low end.
    """

    low: float
    high: float
    log: bool
    zero: bool
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: float) -> float:
        """Return where a value stands, 0 at the low end and 1 at the high one."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return 0.0
        first = ZERO if self.zero else 0.0
        span = math.log(self.high / self.low)
        return first + (1 - first) * math.log(max(value, self.low) / self.low) / span


def scale(axis: ChartAxis, values: Iterable[float]) -> Scale:
    """Return the scale on which an axis shows values, of which there may be none."""
    known = [*values, *(end for end in (axis.low, axis.high) if end is not None)]
    return _logarithmic(axis, known) if axis.log else _linear(axis, known)


def _linear(axis: ChartAxis, values: Sequence[float]) -> Scale:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    step = _nice((high - low) / TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = 12 - math.floor(math.log10(step))
    ticks = [round(i * step, digits) for i in range(first, last + 1)]
    low = ticks[0] if axis.low is None else low
    high = ticks[-1] if axis.high is None else high
    inside = [tick for tick in ticks if low - step / 1e6 <= tick <= high + step / 1e6]
    top = max(abs(low), abs(high))
    words = tuple((tick, _told(tick, step, top, axis.percent)) for tick in inside)
    return Scale(low, high, False, False, words)


def _nice(step: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not below a step."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= step * (1 - 1e-9))


def _told(value: float, step: float, top: float, percent: bool) -> str:
    """Return a tick's words, with as many digits as its axis needs."""
    if percent:
        value, step, top = 100 * value, 100 * step, 100 * top
    exponent = math.floor(math.log10(top)) if top >= 1e7 else 0
    digits = max(0, exponent - math.floor(math.log10(step) + 1e-9))
    words = f"{value / 10.0**exponent:,.{digits}f}"
    if exponent and value:
        words += f"·10{str(exponent).translate(SUPERSCRIPTS)}"
    return words + ("%" if percent else "")


def _logarithmic(axis: ChartAxis, values: Sequence[float]) -> Scale:
    positive = [value for value in values if value > 0]
    low, high = min(positive, default=1.0), max(positive, default=1.0)
    if high < 2 * low:
        ends = (low, 2 * low) if axis.low == low else (low / 1.5, high * 1.5)
        low, high = (high / 2, high) if axis.high == high else ends
    zero = any(value <= 0 for value in values)
    ticks = [(tick, power(tick, axis.percent)) for tick in _decades(low, high)]
    return Scale(low, high, True, zero, tuple([(0.0, "0")] * zero + ticks))


def _decades(low: float, high: float) -> list[float]:
    """Return powers of ten between two values, or finer steps if there are few of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    fine = math.log10(high / low) < 2
    stride = 1 if fine else math.ceil((last - first) / (TICKS + 1))
    powers = [10.0**k for k in range(first, last + 1) if k % stride == 0]
    ticks = list[float]()
    for factors in ((1, 2, 5), (1, 1.5, 2, 2.5, *range(3, 10))) if fine else ((1,),):
        every = [factor * unit for unit in powers for factor in factors]
        ticks = [tick for tick in every if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(ticks) > 1:
            break
    return ticks


def power(value: float, percent: bool = False) -> str:
    """Return a small number of digits times a power of ten, as short as it can be read."""
    if percent and 1e-5 <= value < 1e3:
        return f"{100 * value:,.10g}%"
    if 1e-3 <= value < 1e6:
        return f"{value:,.10g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    head = round(value / 10.0**exponent)
    return f"{'' if head == 1 else f'{head}·'}10{str(exponent).translate(SUPERSCRIPTS)}"


LIGHT = ("#0b66c3", "#e0481a", "#215605", "#c158ba", "#762a72", "#5f8366")
DARK = ("#6cb2ff", "#f0662f", "#c9dc4a", "#f4b8cf", "#9c63ec", "#2f957e")
"""Colours of lines on light and on dark ground.  All have a contrast of 3.5 and more to it, and
are well apart, also without green receptors; lines differ in their dashes, too."""

DASHES = ("", "7 3", "2 2.5", "9 3 2 3", "13 4", "5 2 1.5 2", "3 5")
"""Of lines, too, so that colour is not all that tells them apart.  No pair of both comes twice
within 42 lines."""

GRID = "#e3e7ec"
"""Colour of the lines at ticks."""

AT_NIGHT = {GRID: "#2b323b", **dict(zip(LIGHT, DARK, strict=True))}
"""What colours become on dark ground."""

WIDE, HIGH, MARGIN = 440.0, 210.0, 14.0
"""Width of a chart, height of its field, and distance from the edge, in pixels."""

TITLE, SMALL = 12.5, 10.0  # sizes of fonts
SAMPLE = 26.0  # width of a sample of the key


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart; a value holds until the next point, from left to right."""

    name: str
    points: tuple[tuple[float, float], ...]


def chart(
    title: str, x: ChartAxis, y: ChartAxis, lines: Sequence[ChartLine], note: str = ""
) -> str:
    """Return lines as SVG below a title and above a note; where the reader likes it dark, it is."""
    across = scale(x, [a for line in lines for a, _ in line.points])
    up = scale(y, [b for line in lines for _, b in line.points])
    left = MARGIN + max(width(told, SMALL) for _, told in up.ticks) + 7
    top = MARGIN + TITLE + 28
    field = _Field(across, up, left, top, WIDE - MARGIN - 8, top + HIGH)
    names = distinct((line.name for line in lines), 40)
    entries = [
        KeyEntry(names[line.name], partial(_sample, i), SAMPLE)
        for i, line in enumerate(lines)
        if line.name
    ]
    key, bottom = svg.key(entries, MARGIN, field.bottom + 42, WIDE - MARGIN)
    told, bottom = _notes(note, bottom)
    head = fitted(title, TITLE, WIDE - 2 * MARGIN)
    inside = [
        svg.element("style", svg.at_night(".chart", AT_NIGHT)),
        svg.text(head, MARGIN, MARGIN + TITLE - 2, TITLE, font_weight=600),
        svg.text(y.words, MARGIN, top - 12, SMALL, fill=svg.SOFT),
        svg.text(x.words, field.right, field.bottom + 31, SMALL, fill=svg.SOFT, text_anchor="end"),
        *field.grid(),
        svg.group([field.line(i, line) for i, line in enumerate(lines)], fill="none"),
        key,
        told,
    ]
    return svg.document(inside, WIDE, bottom + MARGIN, title, class_="chart")


@dataclass(frozen=True)
class _Field:
    """Area in which lines are drawn."""

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

    def line(self, i: int, line: ChartLine) -> str:
        """Return one line, and a dot at its end."""
        points = [(self.x(a), self.y(b)) for a, b in line.points]
        if not points:
            return ""
        (x, y), *rest = points
        steps = [f"M{svg.plain(x)} {svg.plain(y)}"]
        for a, b in rest:
            steps.append(f"H{svg.plain(a)}V{svg.plain(b)}")
        (x, y), style = points[-1], _style(i)
        end = svg.element("circle", cx=x, cy=y, r=2.6, fill=style["stroke"], stroke="none")
        drawn = svg.path(steps, **style, stroke_linejoin="round")
        return svg.group([svg.tip(line.name), drawn, end])


def _style(i: int) -> dict[str, object]:
    dash = DASHES[i % len(DASHES)]
    style: dict[str, object] = {"stroke": LIGHT[i % len(LIGHT)], "stroke_width": 2}
    return style | {"stroke_dasharray": dash} if dash else style


def _sample(i: int, x: float, y: float, w: float, h: float) -> str:
    return svg.path([f"M{svg.plain(x)} {svg.plain(y + h / 2)}h{w:g}"], **_style(i))


def _stroke(x: float, y: float, right: float, bottom: float, colour: str) -> str:
    ends = f"M{svg.plain(x)} {svg.plain(y)}L{svg.plain(right)} {svg.plain(bottom)}"
    return svg.path([ends], stroke=colour)


def _word(words: str, x: float, y: float, anchor: str) -> str:
    return svg.text(words, x, y, SMALL, fill=svg.SOFT, text_anchor=anchor)


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
