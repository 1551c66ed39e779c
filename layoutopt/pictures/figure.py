"""Figures, arranged and drawn: cards in columns, ops as arrows, ties as dashed drawing."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from layoutopt.pictures import cards as drawing
from layoutopt.pictures import svg
from layoutopt.pictures.cards import Card, OpCard, Rectangle, Stretch, Tie
from layoutopt.pictures.svg import shortened, width

LINE, EDGE = 19.0, 18.0


def summary(title: str, rows: Sequence[tuple[str, str]], note: str) -> str:
    """Return a box with a title, rows of a number and what it counts, and a smaller note."""
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
    parts.append(svg.rect(1, 1, wide - 2, high - 2, rx=6, stroke=svg.LINE, fill="none"))
    return svg.document(parts, wide, high, title)


Link: TypeAlias = tuple[int, int]

SWEEPS = 12

SWAPPED = 200  # largest number of links for which neighbours are also exchanged individually


def columns(count: int, arrows: Sequence[Link], ties: Sequence[Link]) -> list[int]:
    """Return the column of each of ``count`` boxes.

    Arrows, which form no cycle, go from left to right.  Ties have no direction, but pull boxes into
    which no arrow goes beside their partners: right of one that has arrows into it, else in the
    order given.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(arrows)
    led = {v for _, v in arrows}
    for u, v in ties:
        if u == v or graph[u].keys() & graph[v] or (u in led and v in led):
            continue
        left, right = (v, u) if v in led else (u, v)
        if not nx.has_path(graph, right, left):
            graph.add_edge(left, right)
    column = [0] * count
    for c, layer in enumerate(nx.topological_generations(graph)):
        for u in layer:
            column[u] = c
    first = [u for u, degree in graph.in_degree if not degree]
    for u in first:
        column[u] = min((column[v] - 1 for v in graph[u]), default=0)
    alone = [u for u in first if not graph[u]]
    breadth = max(max(column, default=0) + 1, round(len(alone) ** 0.5 * 1.5))
    for i, u in enumerate(alone):
        column[u] = i % breadth
    return column


def lanes(column: Sequence[int], links: Iterable[Link]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the columns' boxes, and the way of each link through them.

    Each column has its boxes, in order, and after them lanes: numbers above all boxes.  A way is
    the link's first end, its lanes and its other end.
    """
    layers: list[list[int]] = [[] for _ in range(max(column, default=-1) + 1)]
    for u, c in enumerate(column):
        layers[c].append(u)
    lane, ways = len(column), []
    for u, v in links:
        step = 1 if column[v] > column[u] else -1
        passed = range(column[u] + step, column[v], step) if column[u] != column[v] else range(0)
        for number, c in enumerate(passed, lane):
            layers[c].append(number)
        ways.append([u, *range(lane, lane + len(passed)), v])
        lane += len(passed)
    return layers, ways


def groups(boxes: Iterable[int], ways: Iterable[Sequence[int]]) -> list[set[int]]:
    """Return boxes and lanes that lines connect; those without lines are the last group."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(boxes)
    for way in ways:
        nx.add_path(graph, way)
    found = list(nx.connected_components(graph))
    alone = set().union(*(group for group in found if len(group) == 1))
    return [group for group in found if len(group) > 1] + ([alone] if alone else [])


def settle(layers: list[list[int]], ways: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return the columns with boxes and lanes sorted so that few lines cross."""
    home = {u: c for c, layer in enumerate(layers) for u in layer}
    links = [link for way in ways for link in pairwise(way)]
    beside: dict[int, list[int]] = {u: [] for u in home}
    for u, v in links:
        beside[u].append(v)
        beside[v].append(u)
    best, least = [list(layer) for layer in layers], float("inf")
    order = [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        cost = _cost(order, home, links)
        if cost < least:
            best, least = [list(layer) for layer in order], cost
        forward = sweep % 2 == 0
        for c in range(len(order)) if forward else reversed(range(len(order))):
            _sort(order, c, beside, home, (c - 1 if forward else c + 1) if sweep < 8 else None)
    if len(links) <= SWAPPED:
        _swap(best, home, links)
    return best


def _sort(
    order: list[list[int]],
    c: int,
    beside: dict[int, list[int]],
    home: dict[int, int],
    side: int | None,
) -> None:
    """Sort a column by the mean place of partners: in it and on one side, or everywhere."""
    place = {u: (i + 0.5) / len(layer) for layer in order for i, u in enumerate(layer)}

    def wanted(u: int) -> float:
        near = [place[v] for v in beside[u] if side is None or home[v] in (side, c)]
        return sum(near) / len(near) if near else place[u]

    order[c].sort(key=wanted)


def _swap(order: list[list[int]], home: dict[int, int], links: Sequence[Link]) -> None:
    """Exchange neighbours in columns as long as that lowers the cost."""
    cost, before = _cost(order, home, links), -1
    while cost != before:
        before = cost
        for layer in order:
            for i in range(len(layer) - 1):
                layer[i], layer[i + 1] = layer[i + 1], layer[i]
                changed = _cost(order, home, links)
                if changed >= cost:
                    layer[i], layer[i + 1] = layer[i + 1], layer[i]
                cost = min(cost, changed)


def _cost(order: list[list[int]], home: dict[int, int], links: Sequence[Link]) -> int:
    """Return crossings between columns, and what links within a column pass."""
    place = {u: i for layer in order for i, u in enumerate(layer)}
    total = 0
    between: dict[int, list[Link]] = {}
    for u, v in links:
        if home[u] == home[v]:
            total += max(0, abs(place[u] - place[v]) - 1)
        else:
            left, right = (u, v) if home[u] < home[v] else (v, u)
            between.setdefault(home[left], []).append((place[left], place[right]))
    for ends in between.values():
        ends.sort()
        total += _inversions([right for _, right in ends])
    return total


def _inversions(numbers: Sequence[int]) -> int:
    seen: list[int] = []
    total = 0
    for x in numbers:
        total += len(seen) - bisect_right(seen, x)
        insort(seen, x)
    return total


LEVEL_SWEEPS = 30

STIFF = 8.0  # weight of bends of lanes relative to those of boxes


def levels(
    layers: Sequence[Sequence[int]],
    heights: Mapping[int, tuple[float, float]],
    links: Sequence[tuple[int, int]],
    gap: float,
    boxes: int,
) -> dict[int, float]:
    """Return the height of a point of every box and lane, so that nothing overlaps.

    ``layers`` has each column from top to bottom, numbers from ``boxes`` on being lanes;
    ``heights`` how far each reaches above and below its point, in pixels; ``links`` whose points
    should stand at one level; ``gap`` is the least distance of neighbours.
    """
    layers = [layer for layer in layers if layer]
    beside: dict[int, list[tuple[int, float]]] = {u: [] for layer in layers for u in layer}
    for u, v in links:
        weight = STIFF if min(u, v) >= boxes else 1.0
        beside[u].append((v, weight))
        beside[v].append((u, weight))
    middle: dict[int, float] = {}
    for layer in layers:
        offsets = _offsets(layer, heights, gap)
        first = -offsets[-1] / 2 if links else heights[layer[0]][0]
        middle |= {u: first + offset for u, offset in zip(layer, offsets, strict=True)}
    for sweep in range(LEVEL_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = []
            for u in layer:
                near = [(middle[v], w) for v, w in beside[u] if v not in layer]
                total = sum(w for _, w in near)
                wanted.append(sum(y * w for y, w in near) / total if near else middle[u])
            middle |= zip(layer, _packed(wanted, layer, heights, gap), strict=True)
    return middle


def _offsets(
    layer: Sequence[int], heights: Mapping[int, tuple[float, float]], gap: float
) -> list[float]:
    """Return how far each point is below the first one if all stand as close as they may."""
    between = (heights[u][1] + gap + heights[v][0] for u, v in pairwise(layer))
    return list(accumulate(between, initial=0.0))


def _packed(
    wanted: Sequence[float],
    layer: Sequence[int],
    heights: Mapping[int, tuple[float, float]],
    gap: float,
) -> list[float]:
    """Return the points nearest to wanted ones, by least squares, at which nothing overlaps.

    Without the distances that neighbours need, they must not fall: isotonic regression.
    """
    from scipy.optimize import isotonic_regression

    offsets = np.array(_offsets(layer, heights, gap))
    points: list[float] = (isotonic_regression(wanted - offsets).x + offsets).tolist()
    return points


ABOVE, ROOM, MARGIN = 20.0, 52.0, 18.0
"""The least distance of two boxes in a column, of two columns, and from the edge."""

BELOW = 30.0  # between two groups that nothing connects
BESIDE = 12.0  # between two outputs of one op
LANE = 6.0  # half of what a line takes that passes a column


@dataclass(frozen=True)
class Arrangement:
    """Positions of all parts, in pixels from the upper left corner.

    That is the frame of each card, the column of each step, left and right end of each column, and
    the height of each lane by number.  The way of each arrow, then each tie, is its first step, the
    lanes that it takes, and its last step.
    """

    frames: tuple[Rectangle, ...]
    column: tuple[int, ...]
    spans: tuple[tuple[float, float], ...]
    ways: tuple[tuple[int, ...], ...]
    lanes: dict[int, float]
    width: float
    height: float


def arrange(cards: Sequence[Card], steps: Sequence[OpCard], ties: Sequence[Tie]) -> Arrangement:
    """Return where everything stands; no two cards overlap."""
    maker = {c: s for s, step in enumerate(steps) for c in step.outputs}
    arrows = [(maker[c], s) for s, step in enumerate(steps) for c, _ in step.inputs]
    bonds = [(maker[tie.a], maker[tie.b]) for tie in ties]
    column = columns(len(steps), arrows, bonds)
    layers, ways = lanes(column, arrows + bonds)
    reach = {u: (LANE, LANE) for layer in layers for u in layer}
    reach |= {s: _reach(cards, step) for s, step in enumerate(steps)}
    level, bottom = _levels(layers, ways, reach, len(steps))
    spans, lefts, right = _spans(cards, steps, column, ties, ways[len(arrows) :], level)
    frames = _frames(cards, steps, [lefts[c] for c in column], level)
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


def _reach(cards: Sequence[Card], step: OpCard) -> tuple[float, float]:
    """Return how far a step's outputs reach above and below the middle of their frames."""
    high = sum(cards[c].frame[1] for c in step.outputs)
    half = (high + (len(step.outputs) - 1) * (drawing.HEAD + BESIDE)) / 2
    return half + drawing.HEAD, half


def _spans(
    cards: Sequence[Card],
    steps: Sequence[OpCard],
    column: Sequence[int],
    ties: Sequence[Tie],
    ways: Sequence[Sequence[int]],
    level: dict[int, float],
) -> tuple[list[tuple[float, float]], list[float], float]:
    """Return the ends of each column, where its frames begin, and how far right lines go.

    Between two columns there is room for the labels of the ties that have their middle there.
    """
    count = max(column, default=-1) + 1
    room = [ROOM] * max(0, count - 1) + [0.0]
    for tie, way in zip(ties, ways, strict=True):
        first, last = column[way[0]], column[way[-1]]
        wide = drawing.label_width(tie.label)
        if first == last:
            room[first] = max(
                room[first], drawing.bulge(level[way[-1]] - level[way[0]]) + wide / 2 + 8
            )
        else:
            middle = (first + last - 1) // 2
            room[middle] = max(room[middle], wide + 30)
    x, spans, lefts = MARGIN, [], []
    for c in range(count):
        inside = [step for s, step in enumerate(steps) if column[s] == c]
        wide = max(cards[k].width for step in inside for k in step.outputs)
        lead = max(step.pill for step in inside)
        lefts.append(x + (lead + drawing.STEM if lead else 0.0))
        spans.append((x, lefts[-1] + wide))
        x = spans[-1][1] + room[c]
    return spans, lefts, x


def _frames(
    cards: Sequence[Card], steps: Sequence[OpCard], lefts: Sequence[float], level: dict[int, float]
) -> list[Rectangle]:
    found: dict[int, Rectangle] = {}
    for s, (x, step) in enumerate(zip(lefts, steps, strict=True)):
        y = level[s] - _reach(cards, step)[1]
        for c in step.outputs:
            wide, high = cards[c].frame
            found[c] = x, y, x + wide, y + high
            y += high + drawing.HEAD + BESIDE
    return [found[c] for c in range(len(cards))]


PILL = 18.0  # height of an op's label

Line = tuple[Stretch, ...]


@dataclass(frozen=True)
class LineRoutes:
    """Routes of all lines.

    Arrows lead from cards to the labels (pills) of the steps that read them, in the order of the
    steps; stems from the labels to the outputs.
    """

    arrows: tuple[Line, ...]
    ties: tuple[Line, ...]
    pills: dict[int, Rectangle]
    stems: tuple[Line, ...]


def routes(where: Arrangement, steps: Sequence[OpCard], ties: Sequence[Tie]) -> LineRoutes:
    """Return where all lines run."""
    ports = _ports(where, steps, ties)
    pills = {s: _pill(where, step, ports) for s, step in enumerate(steps) if step.pill}
    stems = [
        _stem(where, pills[s], c, ports[FROM_LABEL, c]) for s in pills for c in steps[s].outputs
    ]
    arrows = []
    for n, (c, s) in enumerate(_route_arrows(steps)):
        way, (left, top, _, bottom) = where.ways[n], pills[s]
        begin = where.frames[c][2], where.spans[where.column[way[0]]][1], ports[n, 0]
        end = where.spans[where.column[s]][0], left, (top + bottom) / 2
        arrows.append((begin, *_passed(where, way), end))
    bonds = [
        _tie(where, tie, where.ways[n], (ports[n, 0], ports[n, 1]))
        for n, tie in enumerate(ties, len(arrows))
    ]
    return LineRoutes(tuple(arrows), tuple(bonds), pills, tuple(stems))


def _route_arrows(steps: Sequence[OpCard]) -> list[tuple[int, int]]:
    return [(c, s) for s, step in enumerate(steps) for c, _ in step.inputs]


FROM_LABEL = -1
"""Number, as a line, of the arrows from labels to outputs; their ends are the outputs' cards."""


def _ports(
    where: Arrangement, steps: Sequence[OpCard], ties: Sequence[Tie]
) -> dict[tuple[int, int], float]:
    """Return the heights at which lines end at cards, spread along each side, by line and end.

    Arrows have the first numbers, ties follow.
    """
    middle = [(top + bottom) / 2 for _, top, _, bottom in where.frames]
    sides: dict[tuple[int, bool], list[tuple[float, int, int]]] = defaultdict(list)

    def add(line: int, end: int, card: int, right: bool, other: float) -> None:
        way = where.ways[line]
        if len(way) > 2:
            other = where.lanes[way[-2] if end else way[1]]
        sides[card, right].append((other, line, end))

    arrows = _route_arrows(steps)
    for n, (c, s) in enumerate(arrows):
        outputs = steps[s].outputs
        add(n, 0, c, True, sum(middle[o] for o in outputs) / len(outputs))
    for n, tie in enumerate(ties, len(arrows)):
        first, last = (where.column[where.ways[n][i]] for i in (0, -1))
        add(n, 0, tie.a, first <= last, middle[tie.b])
        add(n, 1, tie.b, last <= first, middle[tie.a])
    for c in (c for step in steps if step.pill for c in step.outputs):
        sides[c, False].append((middle[c], FROM_LABEL, c))
    found: dict[tuple[int, int], float] = {}
    for (card, _), ends in sides.items():
        _, top, _, bottom = where.frames[card]
        for i, (_, line, end) in enumerate(sorted(ends), 1):
            found[line, end] = top + (bottom - top) * i / (len(ends) + 1)
    return found


def _pill(where: Arrangement, step: OpCard, ports: Mapping[tuple[int, int], float]) -> Rectangle:
    y = sum(ports[FROM_LABEL, c] for c in step.outputs) / len(step.outputs)
    right = where.frames[step.outputs[0]][0] - drawing.STEM
    return right - step.pill, y - PILL / 2, right, y + PILL / 2


def _stem(where: Arrangement, pill: Rectangle, card: int, y: float) -> Line:
    left = where.frames[card][0]
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


NARROWEST = 460.0  # width of a figure, in pixels, that leaves room for its key
CROWD = 80  # more ties than that are pale, and have no labels


def figure(
    title: str, cards: Sequence[Card], steps: Sequence[OpCard], ties: Sequence[Tie], key: str
) -> str:
    """Return a figure as SVG.

    Each step stands after those that make its inputs; every card is the output of one.  ``key``
    tells what the labels of ties say.
    """
    where = arrange(cards, steps, ties)
    found = routes(where, steps, ties)
    width = max(where.width, NARROWEST)
    entries = drawing.key(cards, steps, ties, key if len(ties) <= CROWD else "valued pair")
    explained, bottom = svg.key(entries, MARGIN, where.height, width - MARGIN)
    inside = [
        svg.group(_arrows(steps, found), class_="arrows", fill="none"),
        svg.group(
            _ties(ties, found),
            class_="ties",
            fill="none",
            stroke_dasharray=drawing.DASH,
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
        colour = svg.INK if carries else drawing.FAINT
        yield svg.path([drawing.commands(line)], stroke=colour, stroke_width=1.2)
    for line in found.stems:
        yield svg.path([drawing.commands(line)], stroke=svg.INK, stroke_width=1.2)
        yield svg.path([drawing.arrowhead(line[-1][1], line[-1][2])], fill=svg.INK)


def _ties(ties: Sequence[Tie], found: LineRoutes) -> Iterator[str]:
    for tie, line in zip(ties, found.ties, strict=True):
        style = {"stroke": tie.colour, "stroke_width": 1.6}
        yield svg.element("path", svg.tip(tie.tip), d=drawing.commands(line), **style)


def _pills(steps: Sequence[OpCard], found: LineRoutes) -> Iterator[str]:
    for s, (x, y, right, bottom) in found.pills.items():
        style = {"rx": 9, "fill": svg.PAPER, "stroke": svg.SOFT, "stroke_width": 0.9}
        shape = svg.rect(x, y, right - x, bottom - y, **style)
        word = svg.text(steps[s].label, (x + right) / 2, bottom - 5.5, drawing.TYPE)
        yield svg.group([svg.tip(steps[s].tip), shape, word])


def _labels(
    ties: Sequence[Tie], where: Arrangement, found: LineRoutes, cards: Sequence[Card]
) -> Iterator[str]:
    taken = list(found.pills.values())
    for card, (x, y, _, bottom) in zip(cards, where.frames, strict=True):
        taken.append((x, y - drawing.HEAD, x + card.width, bottom))
    if len(ties) > CROWD:
        return
    for tie, line in zip(ties, found.ties, strict=True):
        box = drawing.place_label(tie.label, line, taken)
        taken.append(box)
        yield drawing.draw_label(tie.label, box, drawing.TIE if tie.earns else svg.SOFT)
