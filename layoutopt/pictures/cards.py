"""Parts of a figure: cards for tensors, steps for ops, ties."""

from __future__ import annotations

from dataclasses import dataclass

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
