"""Where the cards, labels and lanes of a figure stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutopt.pictures.cards import HEAD, STEM, Card, Step, Tie
from layoutopt.pictures.layers import columns, groups, lanes, settle
from layoutopt.pictures.levels import levels
from layoutopt.pictures.lines import Box, bulge, label_width

ABOVE, ROOM, MARGIN = 20.0, 52.0, 18.0
"""The least distance of two boxes in a column, of two columns, and from the edge."""

BELOW = 30.0
"""Between two groups that nothing connects."""

BESIDE = 12.0
"""Between two outputs of one op."""

LANE = 6.0
"""Half of what a line takes that passes a column."""


@dataclass(frozen=True)
class Arrangement:
    """Where everything stands, in pixels from the left upper corner.

    Parameters
    ----------
    frames
        The frame of each card.
    column
        The column of each step.
    spans
        Left and right end of each column.
    ways
        For each arrow, then each tie, its first step, the lanes that it takes, its last step.
    lanes
        The height of each lane, by number.
    width, height
        Of all of it.
    """

    frames: tuple[Box, ...]
    column: tuple[int, ...]
    spans: tuple[tuple[float, float], ...]
    ways: tuple[tuple[int, ...], ...]
    lanes: dict[int, float]
    width: float
    height: float


def arrange(cards: Sequence[Card], steps: Sequence[Step], ties: Sequence[Tie]) -> Arrangement:
    """Return where everything stands; no two cards overlap."""
    maker = {c: s for s, step in enumerate(steps) for c in step.outputs}
    arrows = [(maker[c], s) for s, step in enumerate(steps) for c, _ in step.inputs]
    bonds = [(maker[tie.a], maker[tie.b]) for tie in ties]
    column = columns(len(steps), arrows, bonds)
    layers, ways = lanes(column, arrows + bonds)
    reach = {u: (LANE, LANE) for layer in layers for u in layer}
    reach |= {s: _reach(cards, step) for s, step in enumerate(steps)}
    level, bottom = _levels(layers, ways, reach, len(steps))
    spans, right = _spans(cards, steps, column, ties, ways[len(arrows) :], level)
    frames = _frames(cards, steps, column, spans, level)
    return Arrangement(
        tuple(frames),
        tuple(column),
        tuple(spans),
        tuple(map(tuple, ways)),
        {u: y for u, y in level.items() if u >= len(steps)},
        right + MARGIN,
        bottom + MARGIN,
    )


def _levels(
    layers: Sequence[Sequence[int]],
    ways: Sequence[Sequence[int]],
    reach: dict[int, tuple[float, float]],
    boxes: int,
) -> tuple[dict[int, float], float]:
    """Return the height of each box and lane, and where they end: groups one below the other."""
    level: dict[int, float] = {}
    bottom = MARGIN - BELOW
    for group in groups(sorted(reach), ways):
        own = [way for way in ways if way[0] in group]
        part = settle([[u for u in layer if u in group] for layer in layers], own)
        links = [link for way in own for link in pairwise(way)]
        point = levels(part, reach, links, ABOVE, boxes)
        top = bottom + BELOW - min(y - reach[u][0] for u, y in point.items())
        level |= {u: y + top for u, y in point.items()}
        bottom = max(level[u] + reach[u][1] for u in group)
    return level, bottom


def _reach(cards: Sequence[Card], step: Step) -> tuple[float, float]:
    """Return how far a step's outputs reach above and below the middle of their frames."""
    high = sum(cards[c].frame[1] for c in step.outputs)
    half = (high + (len(step.outputs) - 1) * (HEAD + BESIDE)) / 2
    return half + HEAD, half


def _spans(
    cards: Sequence[Card],
    steps: Sequence[Step],
    column: Sequence[int],
    ties: Sequence[Tie],
    ways: Sequence[Sequence[int]],
    level: dict[int, float],
) -> tuple[list[tuple[float, float]], float]:
    """Return the ends of each column, and how far right lines go.

    Between two columns there is room for the labels of the ties that have their middle there.
    """
    count = max(column, default=-1) + 1
    room = [ROOM] * max(0, count - 1) + [0.0]
    for tie, way in zip(ties, ways, strict=True):
        first, last = column[way[0]], column[way[-1]]
        wide = label_width(tie.label)
        if first == last:
            room[first] = max(room[first], bulge(level[way[-1]] - level[way[0]]) + wide / 2 + 8)
        else:
            middle = (first + last - 1) // 2
            room[middle] = max(room[middle], wide + 30)
    x, spans = MARGIN, []
    for c in range(count):
        inside = [step for s, step in enumerate(steps) if column[s] == c]
        wide = max(cards[k].width for step in inside for k in step.outputs)
        lead = max(step.pill for step in inside)
        spans.append((x, x + (lead + STEM if lead else 0.0) + wide))
        x = spans[-1][1] + room[c]
    return spans, x


def _frames(
    cards: Sequence[Card],
    steps: Sequence[Step],
    column: Sequence[int],
    spans: Sequence[tuple[float, float]],
    level: dict[int, float],
) -> list[Box]:
    lead = [0.0] * len(spans)
    for c, step in zip(column, steps, strict=True):
        lead[c] = max(lead[c], step.pill + STEM if step.pill else 0.0)
    found: dict[int, Box] = {}
    for s, step in enumerate(steps):
        x = spans[column[s]][0] + lead[column[s]]
        y = level[s] - _reach(cards, step)[1]
        for c in step.outputs:
            wide, high = cards[c].frame
            found[c] = x, y, x + wide, y + high
            y += high + HEAD + BESIDE
    return [found[c] for c in range(len(cards))]
