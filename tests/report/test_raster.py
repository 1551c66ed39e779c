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


def rect(x: float, y: float, width: float, height: float, **more: object) -> str:
    """Return a rectangle."""
    return svg.element("rect", x=x, y=y, width=width, height=height, **more)


def test_shapes_stand_where_they_should() -> None:
    """Rectangles, circles, paths, dashes and groups are seen inside, and not outside.

    There are two pixels for each unit by default; an element without a fill has its group's.
    """
    found = pixels(
        picture(
            rect(10, 10, 20, 10, fill="#ff0000"),
            svg.element("circle", cx=50, cy=25, r=5, fill="#0000ff"),
            svg.path(["M70 10H90V30h-20z"], fill="#ff0000"),
            svg.path(["M10 30l20 0v10L10 40Z"], fill="#0000ff"),
            svg.path(["M70 40C75 40 85 40 90 40v5h-20z"], fill="#0000ff"),
        )
    )
    assert found.shape == (100, 200, 3)
    assert pixels(picture(), 1.0).shape == (50, 100, 3)
    inside = [(11, 11, RED), (29, 19, RED), (50, 25, BLUE), (54, 25, BLUE), (89, 29, RED)]
    inside += [(11, 39, BLUE), (80, 43, BLUE), (31, 15, WHITE), (54.5, 29.5, WHITE)]
    for x, y, expected in [*inside, (91, 20, WHITE), (60, 45, WHITE)]:
        assert colour(found, x, y) == expected, (x, y)
    found = pixels(picture(rect(10, 10, 20, 20, rx=10, fill="#ff0000")))
    at = [colour(found, x, y) for x, y in ((10.5, 10.5), (20, 10.5), (13.5, 13.5))]
    assert at == [WHITE, RED, RED]
    dashed = {"stroke": "#0000ff", "stroke_width": 4, "stroke_dasharray": "10 10"}
    found = pixels(picture(svg.path(["M10 25h60"], **dashed)))
    at = [colour(found, x, y) for x, y in ((15, 25), (25, 25), (35, 25), (15, 26.5), (15, 28))]
    assert at == [BLUE, WHITE, BLUE, BLUE, WHITE]
    both = [rect(10, 10, 10, 10), rect(30, 10, 10, 10, fill="#0000ff")]
    hollow = rect(60, 10, 20, 20, fill="none", stroke="#ff0000")
    found = pixels(picture(svg.group(both, fill="#ff0000"), hollow))
    assert [colour(found, x, 15) for x in (15, 35, 70)] == [RED, BLUE, WHITE]


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
