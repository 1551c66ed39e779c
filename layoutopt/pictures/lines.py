"""Lines of a figure, level across columns and curved between them, and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from layoutopt.pictures import svg
from layoutopt.pictures.svg import width

Stretch: TypeAlias = tuple[float, float, float]
"""A level part of a line: where it begins, where it ends, and its height."""

Rectangle: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom."""

LABEL, LABEL_HEIGHT = 9.5, 14.0

TRIES = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)
"""Where along a curve a label may stand, best first."""


def commands(stretches: Sequence[Stretch]) -> str:
    """Return a line through level stretches as commands of a path."""
    parts = [f"M{svg.plain(stretches[0][0])} {svg.plain(stretches[0][2])}"]
    for i, (begin, end, y) in enumerate(stretches):
        if i:
            parts.append(_curve(stretches[i - 1], (begin, end, y)))
        if begin != end:
            parts.append(f"H{svg.plain(end)}")
    return "".join(parts)


def _control(a: Stretch, b: Stretch) -> tuple[float, float]:
    """Return where the two handles of the curve from one stretch to the next stand.

    Between two columns they are in the middle; a line that returns to its column bulges.
    """
    gap = b[0] - a[1]
    x = a[1] + (gap / 2 if gap > 1 else bulge(b[2] - a[2]) / 0.75)  # no curve reaches its handles
    return x, x


def bulge(rise: float) -> float:
    """Return how far a line leaves its column that comes back to it at another height."""
    return 16 + min(24.0, 0.08 * abs(rise))


def _curve(a: Stretch, b: Stretch) -> str:
    first, second = _control(a, b)
    return "C" + " ".join(map(svg.plain, (first, a[2], second, b[2], b[0], b[2])))


def _points(a: Stretch, b: Stretch) -> Iterator[svg.Point]:
    """Yield points of the curve from one stretch to the next where a label may stand."""
    (first, second), (x0, y0), (x3, y3) = _control(a, b), (a[1], a[2]), (b[0], b[2])
    for t in TRIES:
        s = 1 - t
        w = s**3, 3 * s * s * t, 3 * s * t * t, t**3
        x = w[0] * x0 + w[1] * first + w[2] * second + w[3] * x3
        yield x, (w[0] + w[1]) * y0 + (w[2] + w[3]) * y3


def label_width(words: str) -> float:
    """Return how wide a label is."""
    return width(words, LABEL) + 8


def place(words: str, stretches: Sequence[Stretch], taken: Sequence[Rectangle]) -> Rectangle:
    """Return where a line's label stands: where it hides least of what is there."""
    w, h = label_width(words), LABEL_HEIGHT
    bends = sorted(range(1, len(stretches)), key=lambda i: abs(2 * i - len(stretches)))
    best, least = (0.0, 0.0, 0.0, 0.0), float("inf")
    for i in bends:
        for x, y in _points(stretches[i - 1], stretches[i]):
            box = x - w / 2, y - h / 2, x + w / 2, y + h / 2
            hidden = sum(_overlap(box, other) for other in taken)
            if hidden < least:
                best, least = box, hidden
    return best


def _overlap(a: Rectangle, b: Rectangle) -> float:
    across = min(a[2], b[2]) - max(a[0], b[0])
    down = min(a[3], b[3]) - max(a[1], b[1])
    return max(0.0, across) * max(0.0, down)


def label(words: str, box: Rectangle, colour: str) -> str:
    """Return a line's label."""
    x, y, right, bottom = box
    ground = svg.element(
        "rect", x=x, y=y, width=right - x, height=bottom - y, rx=7, fill=svg.PAPER, opacity=0.92
    )
    middle, base = (x + right) / 2, bottom - 3.8
    return ground + svg.text(words, middle, base, LABEL, fill=colour, text_anchor="middle")


def arrowhead(x: float, y: float) -> str:
    """Return the head of an arrow that points right, its tip at a point."""
    return f"M{svg.plain(x)} {svg.plain(y)}l-7 -3.6v7.2z"
