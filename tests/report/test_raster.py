from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

from benchmarks.figures import FIGURES
from layoutopt import Graph, unwind
from layoutopt.pictures import svg
from layoutopt.pictures.chart import ChartAxis, ChartLine, chart
from layoutopt.report.raster import png
from tests.report.samples import LONG, MARKUP
from tests.support import refused

matplotlib = pytest.importorskip("matplotlib")

RED, BLUE, WHITE = (255, 0, 0), (0, 0, 255), (255, 255, 255)


def pixels(drawn: str, scale: float = 2.0) -> np.ndarray:
    """Return red, green and blue of each pixel of a picture."""
    from matplotlib.image import imread

    image = imread(io.BytesIO(png(drawn, scale)), format="png")
    return np.rint(255 * image[:, :, :3]).astype(int)


def picture(*inside: str) -> str:
    """Return a picture of 100 by 50."""
    return svg.document(inside, 100, 50, "t")


def colour(found: np.ndarray, x: float, y: float) -> tuple[int, ...]:
    """Return what is seen at a point of a picture in double size."""
    return tuple(found[int(2 * y), int(2 * x)].tolist())


def colours(found: np.ndarray) -> set[tuple[int, ...]]:
    """Return every colour of a picture once."""
    red, green, blue = found.reshape(-1, 3).T
    every = np.unique((red << 16) + (green << 8) + blue)
    return {(n >> 16, n >> 8 & 255, n & 255) for n in every.tolist()}


def test_size_and_ground() -> None:
    """Two pixels for each unit by default; the ground is white."""
    found = pixels(picture())
    assert found.shape == (100, 200, 3)
    assert colour(found, 50, 25) == WHITE
    assert pixels(picture(), 1.0).shape == (50, 100, 3)


def test_shapes_stand_where_they_should() -> None:
    """Rectangles, circles, and paths of all commands are seen inside, and not outside."""
    found = pixels(
        picture(
            svg.element("rect", x=10, y=10, width=20, height=10, fill="#ff0000"),
            svg.element("circle", cx=50, cy=25, r=5, fill="#0000ff"),
            svg.path(["M70 10H90V30h-20z"], fill="#ff0000"),
            svg.path(["M10 30l20 0v10L10 40Z"], fill="#0000ff"),
            svg.path(["M70 40C75 40 85 40 90 40v5h-20z"], fill="#0000ff"),
        )
    )
    for x, y, expected in [
        (11, 11, RED),
        (29, 19, RED),
        (31, 15, WHITE),
        (50, 25, BLUE),
        (54, 25, BLUE),
        (54.5, 29.5, WHITE),
        (89, 29, RED),
        (91, 20, WHITE),
        (11, 39, BLUE),
        (80, 43, BLUE),
    ]:
        assert colour(found, x, y) == expected, (x, y)


def test_rounded_corners_are_round() -> None:
    """A corner is empty, the edges are not."""
    found = pixels(
        picture(svg.element("rect", x=10, y=10, width=20, height=20, rx=10, fill="#ff0000"))
    )
    assert colour(found, 10.5, 10.5) == WHITE
    assert colour(found, 20, 10.5) == RED
    assert colour(found, 13.5, 13.5) == RED


def test_strokes_have_width_and_dashes() -> None:
    """A line of width 4 and dashes of 10 is there, is not there, and is there again."""
    line = svg.path(["M10 25h60"], stroke="#0000ff", stroke_width=4, stroke_dasharray="10 10")
    found = pixels(picture(line))
    assert [colour(found, x, 25) for x in (15, 25, 35)] == [BLUE, WHITE, BLUE]
    assert colour(found, 15, 26.5) == BLUE
    assert colour(found, 15, 28) == WHITE


def test_groups_hand_attributes_on() -> None:
    """An element has its own, or those of the group around it; nothing means no fill."""
    inside = [
        svg.element("rect", x=10, y=10, width=10, height=10),
        svg.element("rect", x=30, y=10, width=10, height=10, fill="#0000ff"),
    ]
    found = pixels(picture(svg.group(inside, fill="#ff0000")))
    assert colour(found, 15, 15) == RED
    assert colour(found, 35, 15) == BLUE
    hollow = svg.element("rect", x=10, y=10, width=20, height=20, fill="none", stroke="#ff0000")
    assert colour(pixels(picture(hollow)), 20, 20) == WHITE


def test_text_stands_at_its_anchor() -> None:
    """The ink of a word begins, ends, or has its middle at the point."""
    for anchor, low, high in [("start", 50, 75), ("end", 25, 50), ("middle", 37, 63)]:
        word = svg.text("HHH", 50, 30, 10, text_anchor=anchor, fill="#000000")
        ink = np.argwhere(pixels(picture(word)).sum(axis=2) < 300)
        assert low - 1 <= ink[:, 1].min() / 2 <= ink[:, 1].max() / 2 <= high + 1
        assert ink[:, 0].max() / 2 == pytest.approx(30, abs=1)


@pytest.mark.parametrize("name", ["chained_calls_barrier", "unwindable_ops"])
def test_layouts_keep_their_colours(name: str) -> None:
    """Every colour of a cell is found among the pixels."""
    graph = FIGURES[name]()
    drawn = graph.draw(unwind(graph))
    seen = colours(pixels(str(drawn)))
    fills = set(re.findall(r'fill="(#\w{6})"', str(drawn)))
    assert len(fills) > 5
    for fill in fills:
        assert tuple(int(fill[i : i + 2], 16) for i in (1, 3, 5)) in seen


def test_odd_names_are_drawn() -> None:
    """Signs of mathematics are no mathematics, and letters that no font has are no error."""
    graph = Graph("$x_1$")
    x = graph.sink((2,), name="$\\frac$ 漢字" + MARKUP)
    graph.valued_pair(x, graph.source((2,), name=LONG), 1)
    assert pixels(str(graph.draw(unwind(graph)))).min() < 100


def test_charts_are_drawn() -> None:
    """With their lines."""
    drawn = chart("t", ChartAxis("x"), ChartAxis("y"), [ChartLine("a", ((0, 0), (1, 1)))])
    seen = colours(pixels(drawn))
    assert (0x0B, 0x66, 0xC3) in seen


def test_without_matplotlib_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And which extra to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with refused("matplotlib", ".[plot]"):
        png(picture())
