"""A figure: tensors as cards in columns, ops as arrows, ties between tensors as dashed lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutopt.pictures import cards as drawing
from layoutopt.pictures import frames, lines, svg
from layoutopt.pictures.arrange import MARGIN, Arrangement, arrange
from layoutopt.pictures.cards import HEAD, STEM, TYPE, Card, OpCard, Tie
from layoutopt.pictures.lines import Rectangle, Stretch
from layoutopt.pictures.svg import shortened, width

LINE, EDGE = 19.0, 18.0


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
    wide = max(*longest, width(shortened(title, 60), 13), width(note, 9.5), 200.0) + 2 * EDGE
    y = EDGE + 13
    parts = [svg.text(shortened(title, 60), EDGE, y, 13, font_weight=600)]
    for number, words in rows:
        y += LINE
        parts.append(svg.text(number, EDGE + numbers, y, 11, text_anchor="end"))
        parts.append(svg.text(words, EDGE + numbers + 10, y, 11))
    y += LINE
    parts.append(svg.text(note, EDGE, y, 9.5, fill=svg.SOFT))
    high = y + EDGE
    frame = {"width": wide - 2, "height": high - 2, "stroke": svg.LINE, "fill": "none"}
    parts.append(svg.element("rect", x=1, y=1, rx=6, **frame))
    return svg.document(parts, wide, high, title)


PILL = 18.0
"""Height of an op's label."""

Line = tuple[Stretch, ...]


@dataclass(frozen=True)
class LineRoutes:
    """Routes of all lines.

    Parameters
    ----------
    arrows
        From cards to the labels of the steps that read them, in the order of the steps.
    ties
        In their order.
    pills
        The labels of steps that have one, by number.
    stems
        From the label of each step to its outputs.
    """

    arrows: tuple[Line, ...]
    ties: tuple[Line, ...]
    pills: dict[int, Rectangle]
    stems: tuple[Line, ...]


def routes(where: Arrangement, steps: Sequence[OpCard], ties: Sequence[Tie]) -> LineRoutes:
    """Return where all lines run."""
    ports = _Ports(where, steps, ties)
    pills = {s: _pill(where, step, ports) for s, step in enumerate(steps) if step.pill}
    stems = [_stem(where, pills[s], c, ports) for s in pills for c in steps[s].outputs]
    arrows = []
    for n, (c, s) in enumerate(_route_arrows(steps)):
        way, (left, top, _, bottom) = where.ways[n], pills[s]
        begin = where.frames[c][2], where.spans[where.column[way[0]]][1], ports.of[n, 0]
        end = where.spans[where.column[s]][0], left, (top + bottom) / 2
        arrows.append((begin, *_passed(where, way), end))
    bonds = [
        _tie(where, tie, where.ways[n], (ports.of[n, 0], ports.of[n, 1]))
        for n, tie in enumerate(ties, len(arrows))
    ]
    return LineRoutes(tuple(arrows), tuple(bonds), pills, tuple(stems))


def _route_arrows(steps: Sequence[OpCard]) -> list[tuple[int, int]]:
    return [(c, s) for s, step in enumerate(steps) for c, _ in step.inputs]


class _Ports:
    """The heights at which lines end at cards, spread along each side.

    ``of`` holds them by line and end; arrows have the first numbers, ties follow.  ``stems``
    holds those of the arrows from labels to outputs, by card.
    """

    def __init__(self, where: Arrangement, steps: Sequence[OpCard], ties: Sequence[Tie]) -> None:
        self.where = where
        self.middle = [(top + bottom) / 2 for _, top, _, bottom in where.frames]
        self.sides: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}
        arrows = _route_arrows(steps)
        for n, (c, s) in enumerate(arrows):
            outputs = steps[s].outputs
            self._end(n, 0, c, True, sum(self.middle[o] for o in outputs) / len(outputs))
        for n, tie in enumerate(ties, len(arrows)):
            first, last = (where.column[where.ways[n][i]] for i in (0, -1))
            self._end(n, 0, tie.a, first <= last, self.middle[tie.b])
            self._end(n, 1, tie.b, last <= first, self.middle[tie.a])
        for step in steps:
            for c in step.outputs if step.pill else ():
                self.sides.setdefault((c, False), []).append((self.middle[c], -1, c))
        self.of: dict[tuple[int, int], float] = {}
        self.stems: dict[int, float] = {}
        for (card, _), ends in self.sides.items():
            self._spread(card, sorted(ends))

    def _end(self, line: int, end: int, card: int, right: bool, other: float) -> None:
        way = self.where.ways[line]
        if len(way) > 2:
            other = self.where.lanes[way[-2] if end else way[1]]
        self.sides.setdefault((card, right), []).append((other, line, end))

    def _spread(self, card: int, ends: Sequence[tuple[float, int, int]]) -> None:
        _, top, _, bottom = self.where.frames[card]
        for i, (_, line, end) in enumerate(ends, 1):
            y = top + (bottom - top) * i / (len(ends) + 1)
            if line < 0:
                self.stems[end] = y
            else:
                self.of[line, end] = y


def _pill(where: Arrangement, step: OpCard, ports: _Ports) -> Rectangle:
    y = sum(ports.stems[c] for c in step.outputs) / len(step.outputs)
    right = where.frames[step.outputs[0]][0] - STEM
    return right - step.pill, y - PILL / 2, right, y + PILL / 2


def _stem(where: Arrangement, pill: Rectangle, card: int, ports: _Ports) -> Line:
    left, y = where.frames[card][0], ports.stems[card]
    return (pill[2], pill[2], (pill[1] + pill[3]) / 2), (left - 7, left, y)


def _passed(where: Arrangement, way: Sequence[int]) -> Line:
    """Return how a line passes columns in its lanes."""
    first, last = where.column[way[0]], where.column[way[-1]]
    step = 1 if last > first else -1
    spans = [where.spans[c] for c in range(first + step, last, step)] if first != last else []
    return tuple((*span, where.lanes[u]) for span, u in zip(spans, way[1:-1], strict=True))


def _tie(where: Arrangement, tie: Tie, way: Sequence[int], heights: tuple[float, float]) -> Line:
    """Return a line from left to right, or one that leaves and enters its column on the right."""
    a, b = where.frames[tie.a], where.frames[tie.b]
    first, last = where.column[way[0]], where.column[way[-1]]
    if first == last:
        edge = where.spans[first][1]
        return (a[2], edge, heights[0]), (edge, b[2], heights[1])
    inner = _passed(where, way)
    if first > last:
        a, b, first, last, heights, inner = b, a, last, first, heights[::-1], inner[::-1]
    begin = a[2], where.spans[first][1], heights[0]
    return begin, *inner, (where.spans[last][0], b[0], heights[1])


NARROWEST = 460.0
"""Width of a figure, in pixels, that leaves room for its key."""

CROWD = 80
"""More ties than that are pale, and have no labels."""


def figure(
    title: str, cards: Sequence[Card], steps: Sequence[OpCard], ties: Sequence[Tie], key: str
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


def _arrows(steps: Sequence[OpCard], found: LineRoutes) -> Iterator[str]:
    kept = [kept for step in steps for _, kept in step.inputs]
    for line, carries in zip(found.arrows, kept, strict=True):
        colour = svg.INK if carries else frames.FAINT
        yield svg.path([lines.commands(line)], stroke=colour, stroke_width=1.2)
    for line in found.stems:
        yield svg.path([lines.commands(line)], stroke=svg.INK, stroke_width=1.2)
        yield svg.path([lines.arrowhead(line[-1][1], line[-1][2])], fill=svg.INK)


def _ties(ties: Sequence[Tie], found: LineRoutes) -> Iterator[str]:
    for tie, line in zip(ties, found.ties, strict=True):
        colour = frames.TIE if tie.earns else frames.FAINT
        told = svg.tip(tie.tip)
        yield svg.element("path", told, d=lines.commands(line), stroke=colour, stroke_width=1.6)


def _pills(steps: Sequence[OpCard], found: LineRoutes) -> Iterator[str]:
    for s, (x, y, right, bottom) in found.pills.items():
        pill = {"width": right - x, "height": bottom - y, "rx": 9, "fill": svg.PAPER}
        shape = svg.element("rect", x=x, y=y, stroke=svg.SOFT, stroke_width=0.9, **pill)
        word = svg.text(steps[s].label, (x + right) / 2, bottom - 5.5, TYPE)
        yield svg.group([svg.tip(steps[s].tip), shape, word])


def _labels(
    ties: Sequence[Tie], where: Arrangement, found: LineRoutes, cards: Sequence[Card]
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
