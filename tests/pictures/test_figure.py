from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from layoutopt.pictures.cards import HEAD, Card, OpCard, Tie
from layoutopt.pictures.figure import CROWD, arrange, figure, routes, summary
from layoutopt.pictures.frames import FRAMES
from layoutopt.pictures.grids import BLANK, OWN, CellGrid

SVG = "{http://www.w3.org/2000/svg}"


def card(name: str, shape: tuple[int, ...] = (2, 2), kind: str = "view", fill: str = BLANK) -> Card:
    """Return a card of which all cells have one colour."""
    many = 1
    for n in shape:
        many *= n
    cells = CellGrid((fill,) * many, ("",) * many, ("",) * many)
    return Card(name, "note", f"{name}: told", kind, shape, cells if many else None)


def chain() -> tuple[list[Card], list[OpCard]]:
    """Return two inputs, one op that reads both, and one that reads its output."""
    cards = [card("a", kind="sink"), card("b", kind="source"), card("c"), card("d")]
    steps = [OpCard("", "", (), (0,)), OpCard("", "", (), (1,))]
    steps.append(OpCard("join", "join told", ((0, True), (1, False)), (2,)))
    return cards, [*steps, OpCard("last", "last told", ((2, True),), (3,))]


def read(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.encode())


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
def test_nothing_overlaps(seed: int) -> None:
    """No two cards, with their names, and no card and an op's label have a point in common."""
    cards, steps, ties = random_figure(seed)
    where = arrange(cards, steps, ties)
    boxes = [
        (x, y - HEAD, x + max(right - x, one.width), bottom)
        for one, (x, y, right, bottom) in zip(cards, where.frames, strict=True)
    ]
    boxes += routes(where, steps, ties).pills.values()
    for i, a in enumerate(boxes):
        assert a[0] >= 0 <= a[1]
        assert a[2] <= where.width
        assert a[3] <= where.height
        for b in boxes[:i]:
            assert a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]


@pytest.mark.parametrize("seed", range(60))
def test_lines_end_at_what_they_connect(seed: int) -> None:
    """Ties end at the sides of their cards, arrows go from a card to its reader's label."""
    cards, steps, ties = random_figure(seed)
    where = arrange(cards, steps, ties)
    found = routes(where, steps, ties)
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
    starts = [(line[0][0], line[0][2]) for line in (*found.arrows, *found.ties)]
    ends = [(line[-1][1], line[-1][2]) for line in found.ties]
    assert len({*starts, *ends}) == len(starts) + len(ends)


@pytest.mark.parametrize("seed", range(60))
def test_lines_pass_no_card(seed: int) -> None:
    """Where a line crosses a column that it does not end in, no card there is in its way."""
    cards, steps, ties = random_figure(seed)
    where = arrange(cards, steps, ties)
    found = routes(where, steps, ties)
    for line in (*found.arrows, *found.ties):
        for begin, end, y in line[1:-1]:
            assert 10 < y < where.height - 10
            for x, top, right, bottom in where.frames:
                assert right <= begin or x >= end or not top - HEAD < y < bottom


def test_a_figure_shows_what_it_is_given() -> None:
    """Names, notes, labels of ops and ties, and a key for the kinds that occur."""
    cards, steps = chain()
    ties = [Tie(0, 3, "7", "tie told"), Tie(1, 2, "5", "other", earns=False)]
    root = read(figure("title", cards, steps, ties, "key of ties"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts.count("note") == 4
    assert {"a", "b", "c", "d", "join", "last", "7", "5", "key of ties"} <= set(texts)
    assert {"sink", "source", "view"} <= set(texts)
    assert not {"barrier", "fixed point"} & set(texts)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert {"title", "a: told", "join told", "tie told"} <= set(titles)


def test_arrows_that_carry_nothing_and_ties_that_earn_nothing_are_faint() -> None:
    """Of two arrows into an op, and of two ties, the idle one has another colour."""
    cards, steps = chain()
    ties = [Tie(0, 3, "7", ""), Tie(1, 2, "5", "", earns=False)]
    root = read(figure("", cards, steps, ties, ""))
    for name, many in (("arrows", 3), ("ties", 2)):
        (group,) = root.findall(f"{SVG}g[@class='{name}']")
        strokes = [path.get("stroke") for path in group if path.get("stroke")]
        assert len(set(strokes[:many])) == 2


def test_kinds_have_different_frames() -> None:
    """The frames of two kinds are never drawn alike."""
    assert len({frame(0, 0, 40, 40) for frame in FRAMES.values()}) == len(FRAMES) == 5


@pytest.mark.parametrize(
    ("fill", "told"),
    [(BLANK, "to be chosen"), (OWN, "at a location of its own"), ("#123456", "equal colour")],
)
def test_the_key_explains_the_colours_that_occur(fill: str, told: str) -> None:
    """White, pale and coloured cells are explained where there are some, and only there."""
    svg = figure("", [card("a", fill=fill)], [OpCard("", "", (), (0,))], [], "")
    others = {"to be chosen", "at a location of its own", "equal colour"} - {told}
    assert told in svg
    assert not any(other in svg for other in others)


def test_a_crowd_of_ties_is_pale_and_has_no_labels() -> None:
    """Labels of many ties would hide everything."""
    cards, steps = chain()
    some = [Tie(0, 3, "77", "")] * 3
    many = [Tie(0, 3, "77", "")] * (CROWD + 1)
    assert figure("", cards, steps, some, "").count(">77<") == 3
    assert ">77<" not in figure("", cards, steps, many, "")


def test_an_empty_figure_is_a_picture() -> None:
    """Nothing to draw is no error."""
    assert read(figure("nothing", [], [], [], "")).tag == f"{SVG}svg"


def test_a_summary_tells_its_rows() -> None:
    """The title, each number with its word, and the note."""
    root = read(summary("<much>", [("1,000", "tensors"), ("7", "pairs")], "the note"))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["<much>", "1,000", "tensors", "7", "pairs", "the note"]
