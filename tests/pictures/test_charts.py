"""Charts, words and colours; ticks and scales are calls of ``tests/examples``."""

from __future__ import annotations

import re
from itertools import chain, combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from layoutopt.pictures.chart import DARK, LIGHT, ChartAxis, ChartLine, chart, scale
from layoutopt.pictures.colours import dark, oklab, palette
from layoutopt.pictures.svg import INK, NIGHT, PAPER, abbreviations, escaped, width
from tests.report.told import SVG, paths, texts

X, Y = ChartAxis("seconds", low=0.0, high=10.0), ChartAxis("share", percent=True, low=0.0, high=1.0)


def test_lines_go_through_their_points() -> None:
    """A line holds each value until the next point; ticks agree."""
    drawn = chart("t", X, Y, [ChartLine("a", ((0, 0), (5, 0.5), (10, 1)))])
    numbers = re.fullmatch(r"M(\S+) (\S+)H(\S+)V(\S+)H(\S+)V(\S+)", paths(drawn)[0])
    assert numbers is not None
    x0, y0, x1, y1, x2, y2 = map(float, numbers.groups())
    at = {
        text.text: (float(str(text.get("x"))), float(str(text.get("y"))))
        for text in ElementTree.fromstring(drawn).iter(f"{SVG}text")
    }
    found = [x1 - x0, y0 - y1, at["0"][0], at["10"][0], at["0%"][1] - at["100%"][1]]
    assert found == pytest.approx([x2 - x1, y1 - y2, x0, x2, y0 - y2], abs=0.11)
    assert paths(chart("t", ChartAxis("x"), ChartAxis("y", log=True), [ChartLine("a", ())])) == []


def test_words_of_charts() -> None:
    """All are told, the key has named lines only; long ones are shortened or broken, and escaped.

    No two of 42 lines look alike, the key shows each as it is, and a dark page turns colours.
    """
    lines = [ChartLine("auto", ((0, 0),)), ChartLine("", ((0, 1),)), ChartLine("mip", ((1, 1),))]
    found = texts(chart("Title", X, Y, lines, "A note of some words"))
    assert {"Title", "seconds", "share", "auto", "mip", "A note of some words"} <= set(found)
    assert "" not in found
    name = "<b>&" + "x" * 200
    drawn = chart(name, X, Y, [ChartLine(name, ((0, 0),)), ChartLine("b", ((0, 0),))], "word " * 60)
    assert max(map(len, texts(drawn))) < 100
    assert "&lt;b&gt;&amp;" in drawn
    tall, low = (
        float(str(ElementTree.fromstring(d).get("height"))) for d in (drawn, chart("t", X, Y, []))
    )
    assert tall > low + 30
    root = ElementTree.fromstring(
        chart("t", X, Y, [ChartLine(str(i), ((0, 0), (1, 1))) for i in range(42)])
    )
    looks = [
        [(p.get("stroke"), p.get("stroke-dasharray", "")) for p in root.findall(where)]
        for where in (f"{SVG}g[@fill='none']/{SVG}g/{SVG}path", f"{SVG}g[@class='key']/{SVG}path")
    ]
    assert looks[0] == looks[1]
    assert len(set(looks[0])) == 42
    style = str(root.findall(f"{SVG}style")[0].text)
    for day, night in zip(LIGHT, DARK, strict=True):
        assert f'[stroke="{day}"]{{stroke:{night}}}' in style


def test_axes_have_ticks() -> None:
    """However narrow or wide the values, each axis has one to twelve ticks."""
    for log in (False, True):
        for low in np.geomspace(1e-9, 1e9, 200):
            for ratio in (1.0, 1.001, 1.5, 1.99, 2.0, 2.4, 7.0, 99.0, 101.0, 1e5, 1e12):
                found = scale(ChartAxis("", log=log), [low, low * ratio])
                assert 1 <= len(found.ticks) <= 12, (log, low, ratio)
                assert all(-1e-6 <= found.at(tick) <= 1 + 1e-6 for tick, _ in found.ticks)


@pytest.mark.parametrize("values", [[0.0], [0.0, 1.0], [0.0, 0.01, 1.0], [0.3]])
def test_axes_end_where_they_must(values: list[float]) -> None:
    """A share of 100 % is the end of its axis, though nothing else is on it."""
    found = scale(ChartAxis("", log=True, percent=True, low=0.0, high=1.0), values)
    assert found.high == 1
    assert found.ticks[-1] == (1, "100%")


@pytest.mark.parametrize(
    "text", ["<b>&\"'", "a\x00b\x0b", "\ud800", "\ufffe", "é 名前 \U0001f600", "]]>", "<!--"]
)
def test_escaped_text_is_legal_xml(text: str) -> None:
    """Any text survives in content and attributes but for what XML does not allow at all."""
    document = f'<a b="{escaped(text)}">{escaped(text)}</a>'
    found = ElementTree.fromstring(document.encode())
    legal = "".join("\ufffd" if c in "\x00\x0b\ud800\ufffe" else c for c in text)
    assert (found.text, found.get("b")) == (legal, legal)


def test_words_have_widths_and_short_forms() -> None:
    """Wide letters count more than narrow ones; whatever the names, short forms differ."""
    assert width("ill", 10) < width("abc", 10) < width("WWW", 10) == width("名前名", 10)
    assert width("abc", 20) == pytest.approx(2 * width("abc", 10))
    ends = [f"{b}{c}" for b in ("_x", "x", "-") for c in range(40)]
    names = [a + end for a in ("a", "A", "ab", "") for end in ends]
    assert len(set(abbreviations(names).values())) == len(set(names))


def nearest(colours: list[str], deuteranopia: bool = False) -> float:
    """Return the least distance of two colours in OKLab."""
    return min(
        float(np.linalg.norm(a - b)) for a, b in combinations(oklab(colours, deuteranopia), 2)
    )


SPLITS = [[64], [32, 32], [8] * 8, [4] * 16, [2] * 32, [1] * 64, [4, 6, 6], [1, 40, 3, 20]]


@pytest.mark.parametrize("sizes", SPLITS, ids=str)
def test_up_to_64_colours_are_far_apart(sizes: list[int]) -> None:
    """For most eyes and without green receptors; families go from light to dark, one by one."""
    families = palette(sizes)
    assert list(map(len, families)) == sizes
    assert nearest(list(chain(*families))) > 0.035
    assert nearest(list(chain(*families)), deuteranopia=True) > 0.022
    assert all((np.diff(oklab(family)[:, 0]) <= 0).all() for family in families)
    assert palette(sizes[:2]) == families[:2]


def test_other_numbers_of_colours() -> None:
    """Many are still different, too many are refused, none are none; first hues are far apart."""
    assert len(set(chain(*palette([600, 300, 300])))) == 1200
    with pytest.raises(ValueError, match="colours"):
        palette([10**6])
    assert palette([0, 0]) == [[], []]
    means = [oklab(family)[:, 1:].mean(axis=0) for family in palette([6] * 4)]
    hues = [float(np.rad2deg(np.arctan2(b, a))) for a, b in means]
    assert min(abs((a - b + 180) % 360 - 180) for a, b in combinations(hues, 2)) > 50


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    x = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("colours", "ground"), [(LIGHT, PAPER), (DARK, NIGHT[PAPER])])
def test_lines_stand_out(colours: tuple[str, ...], ground: str) -> None:
    """The contrast to the ground is what WCAG asks of lines, and no two are alike."""
    for colour in colours:
        assert contrast(colour, ground) > 3.5
    assert min(nearest(list(colours), blind) for blind in (False, True)) > 0.1


def test_colours_by_the_paper() -> None:
    """Primaries have the coordinates of Ottosson's page; text is white on dark colours only."""
    known = {"#ffffff": (1.0, 0, 0), "#000000": (0, 0, 0), "#ff0000": (0.628, 0.225, 0.126)}
    known |= {"#00ff00": (0.866, -0.234, 0.179), "#0000ff": (0.452, -0.032, -0.312)}
    assert np.allclose(oklab(list(known)), list(known.values()), atol=1e-3)
    pair = ["#c06050", "#70902f"]
    assert nearest(pair, deuteranopia=True) < nearest(pair) / 3
    assert (dark("#ffffff"), dark("#203080")) == (False, True)
    for colour in chain(*palette([40] * 8)):
        white, ink = (contrast(colour, text) for text in ("#ffffff", INK))
        assert dark(colour) == (white > ink)
