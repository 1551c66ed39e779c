from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from layoutopt.pictures.chart import DARK, DASHES, LIGHT, ChartAxis, ChartLine, chart
from layoutopt.pictures.colours import oklab
from layoutopt.pictures.svg import NIGHT, PAPER

SVG = "{http://www.w3.org/2000/svg}"
X, Y = ChartAxis("seconds", low=0.0, high=10.0), ChartAxis("share", percent=True, low=0.0, high=1.0)


def read(text: str) -> ElementTree.Element:
    """Return the root of a chart, which must be well-formed."""
    return ElementTree.fromstring(text.encode())


def paths(root: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the lines of a chart."""
    return root.findall(f"{SVG}g[@fill='none']/{SVG}g/{SVG}path")


def texts(root: ElementTree.Element) -> list[str]:
    """Return all words of a chart, but for what the pointer shows."""
    return [str(text.text) for text in root.iter(f"{SVG}text")]


def number(element: ElementTree.Element, name: str) -> float:
    """Return an attribute's number."""
    return float(element.attrib[name])


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    x = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(("colours", "ground"), [(LIGHT, PAPER), (DARK, NIGHT[PAPER])])
def test_colours_stand_out_and_are_apart(colours: tuple[str, ...], ground: str) -> None:
    """The contrast to the ground is 3 or more, as WCAG asks of lines, for most eyes."""
    for colour in colours:
        high, low = sorted([luminance(colour), luminance(ground)], reverse=True)
        assert (high + 0.05) / (low + 0.05) > 3.5
    for blind in (False, True):
        lab = oklab(colours, blind)
        assert min(np.linalg.norm(a - b) for a, b in combinations(lab, 2)) > 0.1


def test_a_stepped_line_goes_through_its_points() -> None:
    """It holds each value until the next point; the scales are those of the ticks."""
    root = read(chart("t", X, Y, [ChartLine("a", ((0, 0), (5, 0.5), (10, 1)))]))
    [path] = paths(root)
    numbers = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)V(\S+)", str(path.get("d")))
    assert numbers is not None
    x0, y0, x1, y1, x2, y2 = map(float, numbers.groups())
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    ticks = {
        t.text: (float(str(t.get("x"))), float(str(t.get("y")))) for t in root.iter(f"{SVG}text")
    }
    assert ticks["0"][0] == pytest.approx(x0, abs=0.11)
    assert ticks["10"][0] == pytest.approx(x2, abs=0.11)
    assert ticks["0%"][1] - ticks["100%"][1] == pytest.approx(y0 - y2, abs=0.11)


def test_an_unstepped_line_is_straight_between_points() -> None:
    """It is drawn by straight strokes."""
    [path] = paths(read(chart("t", X, Y, [ChartLine("a", ((0, 0), (5, 1)), stepped=False)])))
    assert re.fullmatch(r"M\S+ \S+L\S+ \S+", str(path.get("d")))


def test_axes_title_key_and_note_are_told() -> None:
    """All words are there; a line without a name is not in the key."""
    lines = [ChartLine("auto", ((0, 0),)), ChartLine("", ((0, 1),)), ChartLine("mip", ((1, 1),))]
    found = texts(read(chart("Title", X, Y, lines, "A note of some words")))
    assert {"Title", "seconds", "share", "auto", "mip", "A note of some words"} <= set(found)
    assert "" not in found


def test_lines_differ_in_more_than_colour() -> None:
    """No two of 42 lines have both colour and dashes in common; key and line look the same."""
    lines = [ChartLine(str(i), ((0, 0), (1, 1))) for i in range(42)]
    root = read(chart("t", X, Y, lines))
    looks = [(p.get("stroke"), p.get("stroke-dasharray", "")) for p in paths(root)]
    assert len(set(looks)) == 42
    key = root.findall(f"{SVG}g[@class='key']/{SVG}path")
    assert [(p.get("stroke"), p.get("stroke-dasharray", "")) for p in key] == looks
    assert len(DASHES) == 7


def test_a_chart_knows_dark_ground() -> None:
    """By itself, as an SVG file, it has rules for those who like it dark."""
    root = read(chart("t", X, Y, [ChartLine("a", ((0, 0),))]))
    [style] = root.findall(f"{SVG}style")
    assert "prefers-color-scheme:dark" in str(style.text)
    for day, night in zip(LIGHT, DARK, strict=True):
        assert f'[stroke="{day}"]{{stroke:{night}}}' in str(style.text)


def test_words_stay_inside() -> None:
    """Long titles and names are shortened, names escaped, and long notes broken into lines."""
    name = "<b>&" + "x" * 200
    text = chart(name, X, Y, [ChartLine(name, ((0, 0),)), ChartLine("b", ((0, 0),))], "word " * 60)
    root = read(text)
    assert max(map(len, texts(root))) < 100
    assert "&lt;b&gt;&amp;" in text
    assert (
        float(str(root.get("height"))) > float(str(read(chart("t", X, Y, [])).get("height"))) + 30
    )


def test_no_lines_are_no_error() -> None:
    """Axes are drawn, and nothing else."""
    root = read(chart("t", ChartAxis("x"), ChartAxis("y", log=True), [ChartLine("a", ())]))
    assert paths(root) == []
