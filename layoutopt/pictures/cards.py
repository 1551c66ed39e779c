"""Parts of a figure: cards for tensors, steps for ops, ties, and lines with their labels.

Lines are level across columns and curved between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from layoutopt.pictures import grids, svg
from layoutopt.pictures.frames import FRAMES
from layoutopt.pictures.svg import width

HEAD, PAD = 30.0, 7.0
"""Height of a card's name and note; space between its frame and its cells."""

PLAIN = 84.0, 38.0
"""Least width, and height, of what stands for cells that are not drawn."""

STEM = 20.0
"""Length of the arrow from an op's label to its outputs."""

NAME, NOTE, TYPE, COUNT = 11.5, 9.0, 10.0, 9.5
"""Sizes of fonts: names and notes of cards, labels of steps, what stands for cells."""


@dataclass(frozen=True)
class Card:
    """One tensor.

    Parameters
    ----------
    name, note
        Above its frame, the note smaller.
    tip
        All that there is to say.
    kind
        A key of :data:`layoutopt.pictures.frames.FRAMES`.
    shape
        Of the tensor.
    cells
        What its cells show; ``None`` for a plain box.
    stripes
        What a plain box shows of its elements.
    """

    name: str
    note: str
    tip: str
    kind: str
    shape: tuple[int, ...]
    cells: grids.CellGrid | None
    stripes: tuple[grids.Stripe, ...] = ()

    @property
    def frame(self) -> tuple[float, float]:
        """Width and height of the frame."""
        plan = grids.plan(self.shape) if self.cells else None
        if plan is None:
            wide, high = max(PLAIN[0], width(grids.counted(self.shape), COUNT)), PLAIN[1]
        else:
            wide, high = plan.width, plan.height
        return max(wide, 30.0) + 2 * PAD, high + 2 * PAD

    @property
    def width(self) -> float:
        """Total width."""
        return max(self.frame[0], width(self.name, NAME), width(self.note, NOTE))


@dataclass(frozen=True)
class OpCard:
    """One op.

    Parameters
    ----------
    label
        Its type; empty for an op that reads nothing.
    tip
        All that there is to say.
    inputs
        Numbers of cards, and whether the op passes their locations on.
    outputs
        Numbers of cards, at least one.
    """

    label: str
    tip: str
    inputs: tuple[tuple[int, bool], ...]
    outputs: tuple[int, ...]

    @property
    def pill(self) -> float:
        """Width of the label; 0 without one."""
        return width(self.label, TYPE) + 14 if self.label else 0.0


@dataclass(frozen=True)
class Tie:
    """A ValuedPair of two tensors.

    Parameters
    ----------
    a, b
        Numbers of cards.
    label, tip
        In short, and all that there is to say.
    earns
        Whether any of it is earned.
    """

    a: int
    b: int
    label: str
    tip: str
    earns: bool = True


def draw(card: Card, x: float, y: float) -> str:
    """Return a card whose frame has its left upper corner at a point."""
    wide, high = card.frame
    plan = grids.plan(card.shape) if card.cells else None
    inside = ""
    if plan is not None and card.cells is not None:
        left = x + (wide - plan.width) / 2
        inside = grids.draw(plan, card.cells, left, y + PAD)
    else:
        told, middle = grids.counted(card.shape), {"text_anchor": "middle", "fill": svg.SOFT}
        base = y + high / 2 + (12.5 if card.stripes else 3.5)
        inside = svg.text(told, x + wide / 2, base, COUNT, **middle)
        inside += grids.draw_stripes(card.stripes, x + PAD, y + PAD + 4, wide - 2 * PAD)
    return svg.group(
        [
            svg.tip(card.tip),
            svg.group([FRAMES[card.kind](x, y, wide, high)], class_="frame"),
            svg.text(card.name, x, y - 17, NAME, font_weight=600),
            svg.text(card.note, x, y - 6, NOTE, fill=svg.SOFT),
            inside,
        ],
        class_=f"tensor {card.kind.replace(' ', '-')}",
    )


Stretch: TypeAlias = tuple[float, float, float]
"""A level part of a line: where it begins, where it ends, and its height."""

Rectangle: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom."""

LABEL, LABEL_HEIGHT = 9.5, 14.0

TRIES = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)
"""Where along a curve a draw_label may stand, best first."""


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
    """Yield points of the curve from one stretch to the next where a draw_label may stand."""
    (first, second), (x0, y0), (x3, y3) = _control(a, b), (a[1], a[2]), (b[0], b[2])
    for t in TRIES:
        s = 1 - t
        w = s**3, 3 * s * s * t, 3 * s * t * t, t**3
        x = w[0] * x0 + w[1] * first + w[2] * second + w[3] * x3
        yield x, (w[0] + w[1]) * y0 + (w[2] + w[3]) * y3


def label_width(words: str) -> float:
    """Return how wide a draw_label is."""
    return width(words, LABEL) + 8


def place_label(words: str, stretches: Sequence[Stretch], taken: Sequence[Rectangle]) -> Rectangle:
    """Return where a line's draw_label stands: where it hides least of what is there."""
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


def draw_label(words: str, box: Rectangle, colour: str) -> str:
    """Return a line's draw_label."""
    x, y, right, bottom = box
    ground = svg.element(
        "rect", x=x, y=y, width=right - x, height=bottom - y, rx=7, fill=svg.PAPER, opacity=0.92
    )
    middle, base = (x + right) / 2, bottom - 3.8
    return ground + svg.text(words, middle, base, LABEL, fill=colour, text_anchor="middle")


def arrowhead(x: float, y: float) -> str:
    """Return the head of an arrow that points right, its tip at a point."""
    return f"M{svg.plain(x)} {svg.plain(y)}l-7 -3.6v7.2z"
