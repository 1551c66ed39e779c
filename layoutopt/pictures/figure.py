"""A figure: tensors as cards in columns, ops as arrows, ties between tensors as dashed lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutopt.pictures import cards as drawing
from layoutopt.pictures import frames, lines, svg
from layoutopt.pictures.arrange import MARGIN, Arrangement, arrange
from layoutopt.pictures.cards import HEAD, TYPE, Card, Step, Tie
from layoutopt.pictures.routes import Routes, routes

NARROWEST = 460.0
"""Width of a figure, in pixels, that leaves room for its key."""

CROWD = 80
"""More ties than that are pale, and have no labels."""


def figure(
    title: str, cards: Sequence[Card], steps: Sequence[Step], ties: Sequence[Tie], key: str
) -> str:
    """Return a figure as SVG.

    Parameters
    ----------
    steps
        In an order in which each stands after those that make its inputs; every card is
        the output of one.
    key
        What the labels of ties say.
    """
    where = arrange(cards, steps, ties)
    found = routes(where, steps, ties)
    width = max(where.width, NARROWEST)
    fills = [fill for card in cards if card.cells for fill in card.cells.fills]
    kinds, told = [card.kind for card in cards], key if ties else ""
    right, striped = width - MARGIN, any(card.stripes for card in cards)
    explained, bottom = frames.key(kinds, told, fills, MARGIN, where.height, right, striped)
    inside = [
        svg.group(_arrows(steps, found), class_="arrows", fill="none"),
        svg.group(
            _ties(ties, found),
            class_="ties",
            fill="none",
            stroke_dasharray=frames.DASH,
            stroke_opacity=0.4 if len(ties) > CROWD else 1,
        ),
        *(drawing.draw(c, f[0], f[1]) for c, f in zip(cards, where.frames, strict=True)),
        svg.group(_pills(steps, found), class_="types", text_anchor="middle"),
        svg.group(_labels(ties, where, found, cards), class_="values"),
        explained,
    ]
    return svg.document(inside, width, bottom + MARGIN, title)


def _arrows(steps: Sequence[Step], found: Routes) -> Iterator[str]:
    kept = [kept for step in steps for _, kept in step.inputs]
    for line, carries in zip(found.arrows, kept, strict=True):
        colour = svg.INK if carries else frames.FAINT
        yield svg.path([lines.commands(line)], stroke=colour, stroke_width=1.2)
    for line in found.stems:
        yield svg.path([lines.commands(line)], stroke=svg.INK, stroke_width=1.2)
        yield svg.path([lines.arrowhead(line[-1][1], line[-1][2])], fill=svg.INK)


def _ties(ties: Sequence[Tie], found: Routes) -> Iterator[str]:
    for tie, line in zip(ties, found.ties, strict=True):
        colour = frames.TIE if tie.earns else frames.FAINT
        told = svg.tip(tie.tip)
        yield svg.element("path", told, d=lines.commands(line), stroke=colour, stroke_width=1.6)


def _pills(steps: Sequence[Step], found: Routes) -> Iterator[str]:
    for s, (x, y, right, bottom) in found.pills.items():
        pill = {"width": right - x, "height": bottom - y, "rx": 9, "fill": svg.PAPER}
        shape = svg.element("rect", x=x, y=y, stroke=svg.SOFT, stroke_width=0.9, **pill)
        word = svg.text(steps[s].label, (x + right) / 2, bottom - 5.5, TYPE)
        yield svg.group([svg.tip(steps[s].tip), shape, word])


def _labels(
    ties: Sequence[Tie], where: Arrangement, found: Routes, cards: Sequence[Card]
) -> Iterator[str]:
    taken = list(found.pills.values())
    for card, (x, y, _, bottom) in zip(cards, where.frames, strict=True):
        taken.append((x, y - HEAD, x + card.width, bottom))
    if len(ties) > CROWD:
        return
    for tie, line in zip(ties, found.ties, strict=True):
        box = lines.place(tie.label, line, taken)
        taken.append(box)
        yield lines.label(tie.label, box, frames.TIE if tie.earns else svg.SOFT)
