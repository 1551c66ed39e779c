"""One tensor as a grid: a cell for each element."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from layoutopt.pictures import svg
from layoutopt.pictures.colours import dark
from layoutopt.pictures.svg import width

SIDES = 26.0, 22.0, 18.0, 15.0, 12.0, 9.0
"""Sides of cells, in pixels; the largest with which a tensor fits is used."""

WIDE, TALL = 400.0, 560.0  # largest width and height of a tensor, in pixels
ROW = 32  # elements per line of a tensor of rank 1
LABEL = 11.0  # height of the line that tells the index of a slice
APART = 10.0  # between two slices

BLANK, OWN, OTHERS = "#ffffff", "#eceef1", "#9aa3ae"
"""Fills of elements at unknown locations, at unshared ones, and of many different elements."""

STRIPE = 12.0  # height of stripes, in pixels


@dataclass(frozen=True)
class GridSlice:
    """A block of cells: all of a tensor of rank up to 2, or its last two dimensions.

    Its left upper corner within the grid is in pixels; the last row may be shorter.  It has
    ``count`` elements from the flat index ``first`` on.
    """

    label: str
    x: float
    y: float
    rows: int
    columns: int
    first: int
    count: int


@dataclass(frozen=True)
class GridPlan:
    """Positions of the cells of a tensor, in pixels; ``cell`` is the side of one."""

    width: float
    height: float
    cell: float
    slices: tuple[GridSlice, ...]


@dataclass(frozen=True)
class CellGrid:
    """Colours, short texts and long texts (tips) of the cells of one tensor, in row-major order."""

    fills: tuple[str, ...]
    words: tuple[str, ...]
    tips: tuple[str, ...]


@dataclass(frozen=True)
class Stripe:
    """One cell for many elements of a tensor at once: colour, their number, and a tip."""

    fill: str
    count: int
    tip: str


def plan(shape: tuple[int, ...]) -> GridPlan | None:
    """Return the positions of a tensor's cells; ``None`` if they do not fit into a picture."""
    if not math.prod(shape):
        return None
    plans = (_plan(shape, cell) for cell in SIDES)
    return next((p for p in plans if p.width <= WIDE and p.height <= TALL), None)


def _plan(shape: tuple[int, ...], cell: float) -> GridPlan:
    size = math.prod(shape)
    if len(shape) < 2:
        rows, columns = math.ceil(size / ROW), min(size, ROW)
        each, labels, head = size, [""], 0.0
    else:
        rows, columns = shape[-2:]
        each = rows * columns
        labels = [str(list(index)) if index else "" for index in product(*map(range, shape[:-2]))]
        head = LABEL if labels[0] else 0.0
    across = max(columns * cell, *(width(label, 8) for label in labels))
    down = head + rows * cell
    lines = math.ceil(len(labels) / max(1, (WIDE + APART) // (across + APART)))
    per_line = math.ceil(len(labels) / lines)
    slices = tuple(
        GridSlice(
            label,
            i % per_line * (across + APART),
            i // per_line * (down + APART) + head,
            rows,
            columns,
            i * each,
            each,
        )
        for i, label in enumerate(labels)
    )
    return GridPlan(
        per_line * (across + APART) - APART, lines * (down + APART) - APART, cell, slices
    )


def draw(plan: GridPlan, cells: CellGrid, x: float, y: float) -> str:
    """Return the grid of a tensor with its left upper corner at a point."""
    rects, words, strokes = [], [], []
    for i, left, top in _places(plan, x, y):
        side = plan.cell
        tip = svg.tip(cells.tips[i])
        rects.append(svg.rect(left, top, side, side, tip, fill=cells.fills[i]))
        if cells.fills[i] == OWN:
            strokes.append(f"M{svg.plain(left)} {svg.plain(top + side)}l{side:g} -{side:g}")
        words.append(_word(cells.words[i], cells.fills[i], left, top, side))
    labels = [svg.text(s.label, x + s.x, y + s.y - 3, 8, fill=svg.SOFT) for s in plan.slices]
    return "".join(
        [
            svg.group(
                rects, class_="cells", stroke=svg.LINE if BLANK in cells.fills else "#ffffff"
            ),
            svg.path(strokes, stroke=svg.LINE, stroke_width=0.8) if strokes else "",
            svg.group(words, text_anchor="middle", pointer_events="none"),
            "".join(label for label, s in zip(labels, plan.slices, strict=True) if s.label),
        ]
    )


def _places(plan: GridPlan, x: float, y: float) -> Iterator[tuple[int, float, float]]:
    for part in plan.slices:
        for k in range(part.count):
            row, column = divmod(k, part.columns)
            yield part.first + k, x + part.x + column * plan.cell, y + part.y + row * plan.cell


def _word(word: str, fill: str, left: float, top: float, side: float) -> str:
    size = min(9.5, (side - 3) / width("x" * len(word), 1)) if word else 0
    if size < 5.5 or side < 14:
        return ""
    ink = "#ffffff" if dark(fill) else svg.INK
    middle = top + side / 2 + size * 0.36
    return svg.text(word, left + side / 2, middle, round(size, 1), fill=ink)


def draw_stripes(stripes: Sequence[Stripe], x: float, y: float, width: float) -> str:
    """Return stripes side by side, as wide as their shares but never too small to be seen."""
    total, parts = sum(stripe.count for stripe in stripes), []
    room = width - len(stripes)
    for stripe in stripes:
        wide = 1 + max(0.0, room) * stripe.count / total
        parts.append(svg.rect(x, y, wide, STRIPE, svg.tip(stripe.tip), fill=stripe.fill))
        x += wide
    return svg.group(parts, class_="stripes")


def counted(shape: tuple[int, ...]) -> str:
    """Return how many elements a tensor has whose cells are not drawn."""
    size = math.prod(shape)
    return f"{size:,} elements" if size else "no elements"
