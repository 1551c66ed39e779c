"""Figures of cards and lines: where they stand, what they show, and cells of tensors."""

from __future__ import annotations

import math
import random
import re
from itertools import chain, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.optimize import minimize

from layoutopt.pictures.cards import (
    FRAMES,
    HEAD,
    Card,
    OpCard,
    Rectangle,
    Tie,
    commands,
    label_width,
    place_label,
)
from layoutopt.pictures.figure import (
    CROWD,
    arrange,
    columns,
    figure,
    lanes,
    levels,
    routes,
    settle,
    summary,
)
from layoutopt.pictures.grids import BLANK, OWN, TALL, WIDE, CellGrid, draw, plan
from tests.report.told import SVG, texts

GAP = 5.0


def card(name: str, shape: tuple[int, ...] = (2, 2), kind: str = "view", fill: str = BLANK) -> Card:
    """Return a card of which all cells have one colour."""
    many = math.prod(shape)
    cells = CellGrid((fill,) * many, ("",) * many, ("",) * many)
    return Card(name, "note", f"{name}: told", kind, shape, cells if many else None)


def random_figure(seed: int) -> tuple[list[Card], list[OpCard], list[Tie]]:
    """Return cards of many shapes with random steps of up to three outputs, and random ties."""
    draw = random.Random(seed)
    cards: list[Card] = []
    steps: list[OpCard] = []
    for _ in range(draw.randint(1, 12)):
        outputs = range(len(cards), len(cards) + draw.choice([1, 1, 1, 2, 3]))
        read = draw.sample(range(len(cards)), min(len(cards), draw.choice([0, 0, 1, 1, 2])))
        label = "type" * draw.randint(1, 4) if read else ""
        steps.append(OpCard(label, "", tuple((c, draw.random() < 0.5) for c in read), (*outputs,)))
        for c in outputs:
            shape = draw.choice([(), (0,), (5,), (3, 2), (2, 2, 2), (12, 2)])
            cards.append(card(f"c{c}" * draw.randint(1, 4), shape, draw.choice([*FRAMES])))
    ties = []
    for _ in range(draw.randint(0, 12)):
        a, b = draw.choices(range(len(cards)), k=2)
        ties.append(Tie(a, b, "12 · 3 of 4", "told"))
    return cards, steps, ties


@pytest.mark.parametrize("seed", range(60))
def test_figures_are_legible(seed: int) -> None:
    """No two cards and no labels of ops overlap; lines end at what they connect, and pass no card.

    Cards count with their names.  Ties end at the sides of their cards, arrows go from a card to
    its reader's label; no two lines begin or end at one point.
    """
    cards, steps, ties = random_figure(seed)
    where = arrange(cards, steps, ties)
    found = routes(where, steps, ties)
    boxes = [
        (x, y - HEAD, x + max(right - x, one.width), bottom)
        for one, (x, y, right, bottom) in zip(cards, where.frames, strict=True)
    ]
    boxes += found.pills.values()
    for i, a in enumerate(boxes):
        assert min(a[0], a[1], where.width - a[2], where.height - a[3]) >= 0
        assert not any(overlap(a, b) for b in boxes[:i])
    arrows = [(c, s) for s, step in enumerate(steps) for c, _ in step.inputs]
    for (c, s), line in zip(arrows, found.arrows, strict=True):
        _, top, right, bottom = where.frames[c]
        assert line[0][0] == right
        assert top < line[0][2] < bottom
        assert line[-1][1] == found.pills[s][0]
    for tie, line in zip(ties, found.ties, strict=True):
        both = {(line[0][0], line[0][2]), (line[-1][1], line[-1][2])}
        for one in (tie.a, tie.b):
            left, top, right, bottom = where.frames[one]
            assert any(x in (left, right) and top < y < bottom for x, y in both)
    lines = (*found.arrows, *found.ties)
    ends = [(line[0][0], line[0][2]) for line in lines]
    ends += [(line[-1][1], line[-1][2]) for line in found.ties]
    assert len(set(ends)) == len(ends)
    for begin, end, y in chain(*(line[1:-1] for line in lines)):
        assert 10 < y < where.height - 10
        for x, top, right, bottom in where.frames:
            assert right <= begin or x >= end or not top - HEAD < y < bottom


def test_a_figure_shows_what_it_is_given() -> None:
    """Names, notes, labels, what the pointer tells, and a key for what occurs; idle ones are faint.

    Many ties have no labels, which would hide everything.
    """
    cards = [card("a", kind="sink"), card("b", kind="source"), card("c"), card("d")]
    steps = [OpCard("", "", (), (0,)), OpCard("", "", (), (1,))]
    steps.append(OpCard("join", "join told", ((0, True), (1, False)), (2,)))
    steps.append(OpCard("last", "last told", ((2, True),), (3,)))
    ties = [Tie(0, 3, "7", "tie told"), Tie(1, 2, "5", "other", earns=False)]
    drawn = figure("title", cards, steps, ties, "key of ties")
    root, found = ElementTree.fromstring(drawn), texts(drawn)
    assert found.count("note") == 4
    assert {"a", "b", "c", "d", "join", "last", "7", "5", "key of ties"} <= set(found)
    assert {"sink", "source", "view", "pair without a match"} <= set(found)
    assert {"only values are read", "locations are kept"} <= set(found)
    assert not {"barrier", "fixed point"} & set(found)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert {"title", "a: told", "join told", "tie told"} <= set(titles)
    for name, many in (("arrows", 3), ("ties", 2)):
        (group,) = root.findall(f"{SVG}g[@class='{name}']")
        strokes = [path.get("stroke") for path in group if path.get("stroke")]
        assert len(set(strokes[:many])) == 2
    for many, labels in ((3, 3), (CROWD + 1, 0)):
        crowd = [Tie(0, 3, "77", "")] * many
        crowded = texts(figure("", cards, steps, crowd, "value"))
        assert (crowded.count("77"), "value" in crowded) == (labels, bool(labels))
    assert len({frame(0, 0, 40, 40) for frame in FRAMES.values()}) == len(FRAMES) == 5
    assert ElementTree.fromstring(figure("nothing", [], [], [], "")).tag == f"{SVG}svg"
    rows = texts(summary("<much>", [("1,000", "tensors"), ("7", "pairs")], "the note"))
    assert rows == ["<much>", "1,000", "tensors", "7", "pairs", "the note"]


KEYS = {BLANK: "to be chosen", OWN: "at a location of its own", "#123456": "equal colour"}


@pytest.mark.parametrize("fill", KEYS)
def test_the_key_explains_the_colours_that_occur(fill: str) -> None:
    """White, pale and coloured cells are explained where there are some, and only there."""
    svg = figure("", [card("a", fill=fill)], [OpCard("", "", (), (0,))], [], "")
    assert [told for told in KEYS.values() if told in svg] == [KEYS[fill]]


@pytest.mark.parametrize("seed", range(20))
def test_boxes_stand_in_columns(seed: int) -> None:
    """Arrows go right, no column is empty, sorting keeps columns, and boxes keep their distance."""
    draw = random.Random(seed)
    count = draw.randint(1, 15)
    arrows = [(u, v) for v in range(count) for u in range(v) if draw.random() < 0.2]
    ties = [(draw.randrange(count), draw.randrange(count)) for _ in range(draw.randint(0, 12))]
    found = columns(count, arrows, ties)
    assert all(found[u] < found[v] for u, v in arrows)
    assert set(found) == set(range(max(found) + 1))
    layers, ways = lanes(found, [*arrows, *ties])
    sorted_layers = settle(layers, ways)
    assert list(map(sorted, sorted_layers)) == list(map(sorted, layers))
    heights = {u: (draw.uniform(1, 40), draw.uniform(1, 40)) for u in chain(*layers)}
    links = [link for way in ways for link in pairwise(way)]
    at = levels(sorted_layers, heights, links, GAP, 12)
    assert set(at) == set(heights)
    for layer in sorted_layers:
        for u, v in pairwise(layer):
            assert at[v] - heights[v][0] - (at[u] + heights[u][1]) >= GAP - 1e-6


def test_boxes_by_hand() -> None:
    """Crossings go, ties stand together, chains are level, partners in the middle."""
    first, second = settle([[0, 1], [2, 3]], [(0, 3), (1, 2)])
    assert (first == [0, 1]) == (second == [3, 2])
    (layer,) = settle([[0, 1, 2]], [(0, 2)])
    assert abs(layer.index(0) - layer.index(2)) == 1
    spread = columns(40, [], [])
    assert max(spread.count(c) for c in spread) <= 5
    heights = {u: (10.0 + 7 * u, 30.0 - 5 * u) for u in range(4)}
    found = levels([[u] for u in range(4)], heights, [(0, 1), (1, 2), (2, 3)], GAP, 4)
    assert max(found.values()) - min(found.values()) < 1e-6
    found = levels([[0], [1, 2]], dict.fromkeys(range(3), (10.0, 10.0)), [(0, 1), (0, 2)], GAP, 3)
    assert found[0] == pytest.approx((found[1] + found[2]) / 2)
    assert found[2] - found[1] == pytest.approx(20 + GAP)
    heights = {0: (10.0, 5.0), 1: (20.0, 5.0), 2: (3.0, 5.0)}
    found = levels([[0, 1], [], [2]], heights, [], GAP, 3)
    assert found[0] - 10 == found[2] - 3 == 0


def test_places_are_the_nearest_ones_by_least_squares() -> None:
    """Three boxes that all want to be level with one stand where a general solver puts them."""
    heights = {0: (9.0, 4.0), 1: (6.0, 6.0), 2: (3.0, 8.0), 3: (1.0, 1.0)}
    found = levels([[0, 1, 2], [3]], heights, [(3, 0), (3, 1), (3, 2)], GAP, 4)
    apart = [heights[0][1] + GAP + heights[1][0], heights[1][1] + GAP + heights[2][0]]
    wanted = found[3]
    solved = minimize(
        lambda y: float(((y - wanted) ** 2).sum()),
        np.array([wanted - 40, wanted, wanted + 40]),
        constraints=[
            {"type": "ineq", "fun": lambda y, i=i: y[i + 1] - y[i] - apart[i]} for i in (0, 1)
        ],
    )
    assert np.allclose([found[u] for u in (0, 1, 2)], solved.x, atol=1e-3)


def overlap(a: Rectangle, b: Rectangle) -> bool:
    """Return whether two boxes have a point inside both."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_lines_and_their_labels() -> None:
    """A line is level in its stretches, bulges where it returns; labels keep out of their way."""
    path = commands([(0, 10, 5), (50, 80, 25), (120, 130, 5)])
    assert path.startswith("M0 5H10C")
    assert re.findall(r"H(\d+)", path) == ["10", "80", "130"]
    assert re.findall(r"C\S+ \S+ \S+ \S+ (\S+ \d+)", path) == ["50 25", "120 5"]
    (first, second) = re.findall(r"C(\S+) \S+ (\S+) ", commands([(0, 10, 0), (10, 0, 100)]))[0]
    assert float(first) == float(second) > 20
    taken: list[Rectangle] = []
    for _ in range(3):
        box = place_label("1", [(0.0, 10.0, 0.0), (210.0, 220.0, 0.0)], taken)
        assert not any(overlap(box, other) for other in taken)
        taken.append(box)
    assert (taken[0][0] + taken[0][2]) / 2 == 110
    line = [(0.0, 0.0, 0.0), (100.0, 100.0, 0.0)]  # everything is taken, least at its end
    box = place_label("10", line, [(-10, -50, 75, 50), (75, -4, 200, 4)])
    assert box[0] + label_width("10") / 2 > 65


SHAPES = [(), (1,), (5,), (32,), (33,), (256,), (1, 1), (3, 2), (2, 3), (16, 16), (40, 1), (1, 40)]
SHAPES += [(2, 3, 4), (1, 1, 1), (2, 2, 3, 4), (64, 2, 2), (4, 4, 4, 4), (10, 10, 2)]


def corners(shape: tuple[int, ...], *fills: str) -> list[tuple[float, float]]:
    """Return where the cells of a tensor stand, drawn at (100, 50)."""
    found, many = plan(shape), math.prod(shape)
    assert found is not None
    words = tuple(map(str, range(many)))
    svg = draw(found, CellGrid(fills or ("#112233",) * many, words, words), 100, 50)
    groups = ElementTree.fromstring(f"<svg>{svg}</svg>").findall("g[@class='cells']")
    assert svg.count("l26 -26") == fills.count(OWN)  # struck through, so that they differ in print
    return [(float(str(r.get("x"))), float(str(r.get("y")))) for group in groups for r in group]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_one_cell_for_each_element(shape: tuple[int, ...]) -> None:
    """There are as many cells as elements, none on another, all within the grid."""
    found = plan(shape)
    assert found is not None
    assert found.width <= WIDE
    assert found.height <= TALL
    every, side = set(corners(shape)), found.cell
    assert len(every) == math.prod(shape)
    for x, y in every:
        assert 100 <= x <= 100 + found.width - side + 0.1
        assert 50 <= y <= 50 + found.height - side + 0.1
        for u, v in every - {(x, y)}:
            assert abs(x - u) >= side - 0.1 or abs(y - v) >= side - 0.1


def test_cells_by_hand() -> None:
    """Rows are rows, vectors one row; slices of higher ranks are labelled; too many are none."""
    assert corners((2, 3))[:4] == [(100, 50), (126, 50), (152, 50), (100, 76)]
    assert len({y for _, y in corners((7,))}) == len(corners(())) == 1
    assert len(corners((2,), OWN, "#112233")) == 2
    found = plan((2, 2, 3))
    assert found is not None
    assert [(s.label, s.first, s.count, s.y) for s in found.slices] == [
        *(("[0]", 0, 6, found.slices[1].y), ("[1]", 6, 6, found.slices[0].y))
    ]
    assert found.slices[1].x >= 3 * found.cell
    deeper = plan((2, 2, 1, 1))
    assert deeper is not None
    assert [s.label for s in deeper.slices] == ["[0, 0]", "[0, 1]", "[1, 0]", "[1, 1]"]
    none = [(0,), (3, 0, 2), (1, 200), (200, 1), (1000, 1000)]
    assert [plan(shape) for shape in none] == [None] * 5
