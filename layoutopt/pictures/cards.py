"""Parts of a figure: cards for tensors, steps for ops, ties, lines with their labels, and a key.

Lines are level across columns and curved between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from layoutopt.pictures import grids, svg
from layoutopt.pictures.grids import BLANK, OWN
from layoutopt.pictures.svg import Drawn, KeyEntry, width

HEAD, PAD = 30.0, 7.0  # height of a card's name and note; space between its frame and its cells
PLAIN = 84.0, 38.0  # least width, and height, of what stands for cells that are not drawn
STEM = 20.0  # length of the arrow from an op's label to its outputs

NAME, NOTE, TYPE, COUNT = 11.5, 9.0, 10.0, 9.5
"""Sizes of fonts: names and notes of cards, labels of steps, what stands for cells."""


TIE, FAINT = "#14755f", "#a3aab5"
"""Colours of ties, and of lines that matter less."""

DASH = "5 3.5"


def _sink(x: float, y: float, w: float, h: float) -> str:
    return svg.rect(
        x, y, w, h, rx=min(9.0, h / 2), fill=svg.PAPER, stroke=svg.INK, stroke_width=1.1
    )


def _barrier(x: float, y: float, w: float, h: float) -> str:
    style = {"stroke": svg.INK, "stroke_width": 0.9}
    outer = svg.rect(x, y, w, h, rx=2, fill=svg.PAPER, **style)
    return outer + svg.rect(x + 3, y + 3, w - 6, h - 6, fill="none", **style)


FRAMES: dict[str, Drawn] = {
    "sink": _sink,
    "source": partial(svg.rect, rx=2, fill=svg.PAPER, stroke=svg.INK, stroke_width=2.4),
    "fixed point": partial(svg.rect, rx=2, fill="#e1e5ea", stroke=svg.INK, stroke_width=2.4),
    "barrier": _barrier,
    "view": partial(svg.rect, rx=4, fill="#eff1f4"),
}
"""By kind of tensor."""


def _line(colour: str, x: float, y: float, w: float, h: float, **style: object) -> str:
    start = f"M{svg.plain(x)} {svg.plain(y + h / 2)}h{svg.plain(w)}"
    return svg.path([start], stroke=colour, **style)


_tie = partial(_line, stroke_width=1.6, stroke_dasharray=DASH)


def _own(x: float, y: float, w: float, h: float) -> str:
    stroke = svg.path([f"M{svg.plain(x)} {svg.plain(y + h)}l{h:g} -{h:g}"], stroke=svg.LINE)
    return svg.rect(x, y, h, h, fill=OWN) + stroke


def _stripes(x: float, y: float, w: float, h: float) -> str:
    fills = "#8a99f0", "#f6a06a", OWN
    each = w / len(fills)
    return "".join(svg.rect(x + i * each, y, each, h, fill=fill) for i, fill in enumerate(fills))


def _blank(x: float, y: float, w: float, h: float) -> str:
    return svg.rect(x, y, h, h, fill=BLANK, stroke=svg.LINE)


@dataclass(frozen=True)
class Card:
    """One tensor: name and a smaller note above its frame, and a tip with all that there is to say.

    ``kind`` is a key of :data:`FRAMES`.  Inside are cells, or a plain box
    with stripes.
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
    """One op, labelled by its type unless it reads nothing.

    Inputs are numbers of cards, and whether the op passes their locations on; outputs numbers of
    cards.
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
    """A ValuedPair of two cards, by number, and whether any of it is earned, if known."""

    a: int
    b: int
    label: str
    tip: str
    earns: bool | None = True

    @property
    def colour(self) -> str:
        """Colour of its line."""
        return {True: TIE, False: FAINT, None: svg.SOFT}[self.earns]


def draw(card: Card, x: float, y: float) -> str:
    """Return a card whose frame has its left upper corner at a point."""
    wide, high = card.frame
    plan = grids.plan(card.shape) if card.cells else None
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

Rectangle: TypeAlias = tuple[float, float, float, float]  # left, top, right and bottom

LABEL, LABEL_HEIGHT = 9.5, 14.0

TRIES = (0.5, 0.38, 0.62, 0.28, 0.72, 0.2, 0.8)  # where along a curve a label may stand, best first


def commands(stretches: Sequence[Stretch]) -> str:
    """Return a line through level stretches as commands of a path."""
    parts = [f"M{svg.plain(stretches[0][0])} {svg.plain(stretches[0][2])}"]
    for i, (begin, end, y) in enumerate(stretches):
        if i:
            x, before = _handles(stretches[i - 1], (begin, end, y)), stretches[i - 1][2]
            parts.append("C" + " ".join(map(svg.plain, (x, before, x, y, begin, y))))
        if begin != end:
            parts.append(f"H{svg.plain(end)}")
    return "".join(parts)


def _handles(a: Stretch, b: Stretch) -> float:
    """Return where both handles of the curve from one stretch to the next stand.

    Between two columns they are in the middle; a line that returns to its column bulges.
    """
    gap = b[0] - a[1]
    return a[1] + (gap / 2 if gap > 1 else bulge(b[2] - a[2]) / 0.75)  # no curve reaches them


def bulge(rise: float) -> float:
    """Return how far a line leaves its column that comes back to it at another height."""
    return 16 + min(24.0, 0.08 * abs(rise))


def _points(a: Stretch, b: Stretch) -> Iterator[svg.Point]:
    """Yield points of the curve from one stretch to the next where a label may stand."""
    handles = _handles(a, b)
    for t in TRIES:
        s = 1 - t
        w = s**3, 3 * s * s * t, 3 * s * t * t, t**3
        x = w[0] * a[1] + w[1] * handles + w[2] * handles + w[3] * b[0]
        yield x, (w[0] + w[1]) * a[2] + (w[2] + w[3]) * b[2]


def label_width(words: str) -> float:
    """Return how wide a label is."""
    return width(words, LABEL) + 8


def place_label(words: str, stretches: Sequence[Stretch], taken: Sequence[Rectangle]) -> Rectangle:
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


def draw_label(words: str, box: Rectangle, colour: str) -> str:
    """Return a line's label."""
    x, y, right, bottom = box
    ground = svg.rect(x, y, right - x, bottom - y, rx=7, fill=svg.PAPER, opacity=0.92)
    middle, base = (x + right) / 2, bottom - 3.8
    return ground + svg.text(words, middle, base, LABEL, fill=colour, text_anchor="middle")


def arrowhead(x: float, y: float) -> str:
    """Return the head of an arrow that points right, its tip at a point."""
    return f"M{svg.plain(x)} {svg.plain(y)}l-7 -3.6v7.2z"


def key(
    cards: Sequence[Card], steps: Sequence[OpCard], ties: Sequence[Tie], told: str
) -> list[KeyEntry]:
    """Return what explains a figure; ``told`` is what a tie's label says."""
    kinds = {card.kind for card in cards}
    fills = {fill for card in cards if card.cells for fill in card.cells.fills}
    entries = [KeyEntry(kind, draw) for kind, draw in FRAMES.items() if kind in kinds]
    if ties:
        entries.append(KeyEntry(told, partial(_tie, TIE)))
    if any(tie.earns is False for tie in ties):
        entries.append(KeyEntry("pair without a match", partial(_tie, FAINT)))
    kept = {kept for step in steps for _, kept in step.inputs}
    if False in kept:
        entries.append(KeyEntry("only values are read", partial(_line, FAINT, stroke_width=1.2)))
    if True in kept:
        entries.append(KeyEntry("locations are kept", partial(_line, svg.INK, stroke_width=1.2)))
    if fills - {BLANK, OWN}:
        entries.append(KeyEntry("equal colour: equal location"))
    if any(card.stripes for card in cards):
        entries.append(KeyEntry("elements by whose locations they take", _stripes))
    if OWN in fills:
        entries.append(KeyEntry("at a location of its own", _own))
    if BLANK in fills:
        entries.append(KeyEntry("to be chosen", _blank))
    return entries
