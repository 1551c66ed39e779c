"""Large tensors in pictures: whose locations their elements take."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.pictures.grids import OTHERS, OWN
from layoutopt.pictures.svg import Picture
from layoutopt.tiles.memory import TileMemory

SVG = "{http://www.w3.org/2000/svg}"

Stripes = list[tuple[str, float, str]]
"""Fill, width and tip of each."""


def stripes(picture: Picture) -> dict[str, Stripes]:
    """Return the stripes of each tensor of a picture."""
    found = {}
    for group in ElementTree.fromstring(str(picture).encode()).findall(f"{SVG}g[@class]"):
        if not str(group.get("class")).startswith("tensor"):
            continue
        name = str(group[0].text).partition(": ")[0]
        found[name] = [
            (str(rect.get("fill")), float(str(rect.get("width"))), str(rect[0].text))
            for rect in group.findall(f"{SVG}g[@class='stripes']/{SVG}rect")
        ]
    return found


def tips(picture: Picture, name: str) -> list[str]:
    return [tip for _, _, tip in stripes(picture)[name]]


def large(size: int) -> tuple[Graph, Tensor, dict[str, list[object]]]:
    """Return a graph of two sinks, and layouts: half of ``x`` at ``s``, a fifth at ``t``."""
    graph = Graph()
    x = graph.sink((size,), name="x")
    graph.sink((size,), name="y")
    graph.source((size,), name="s")
    graph.source((size,), name="t")
    half, fifth = size // 2, size // 5
    own = size - half - fifth
    pieces = [
        ("s", 0, 0, ((half, 1, 1),)),
        ("t", 0, half, ((fifth, 1, 1),)),
        ("x", half + fifth, half + fifth, ((own, 1, 1),)),
    ]
    return graph, x, {"x": pieces, "y": [("y", 0, 0, ((size, 1, 1),))]}


@pytest.mark.parametrize("size", [1000, 2**20 * 10])
def test_stripes_tell_whose_locations_are_taken(size: int) -> None:
    """Traced or too large for that: half, three tenths of their own, a fifth, in that order."""
    graph, _, layouts = large(size)
    picture = graph.draw(layouts)
    assert tips(picture, "x") == [
        f"{size // 2:,} at locations of s",
        f"{3 * size // 10:,} at locations of their own",
        f"{size // 5:,} at locations of t",
    ]
    found = stripes(picture)
    wide = [width for _, width, _ in found["x"]]
    assert wide[0] / sum(wide) == pytest.approx(0.5, abs=0.03)
    assert wide[2] / sum(wide) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("size", [1000, 2**20 * 10])
def test_equal_colours_are_one_owner(size: int) -> None:
    """A source has the colour of the stripes that lie there; own locations are pale."""
    graph, _, layouts = large(size)
    found = stripes(graph.draw(layouts))
    [(s, _, _)], [(t, _, _)] = found["s"], found["t"]
    assert [fill for fill, _, _ in found["x"]] == [s, OWN, t]
    assert [fill for fill, _, _ in found["y"]] == [OWN]
    assert len({s, t, OWN}) == 3


@pytest.mark.parametrize("size", [1000, 2**20 * 10])
def test_a_location_that_another_sink_takes_is_no_longer_pale(size: int) -> None:
    """What ``y`` takes of ``x`` has a colour in both."""
    graph, _, layouts = large(size)
    graph.valued_pair("x", "y", 1)
    layouts["y"] = [("x", 0, 0, ((size, 1, 1),))]
    layouts["x"] = [("x", 0, 0, ((size, 1, 1),))]
    found = stripes(graph.draw(layouts))
    [(x, _, told)], [(y, _, _)] = found["x"], found["y"]
    assert x == y != OWN
    assert told == f"{size:,} at locations of x"


def test_views_and_small_tensors() -> None:
    """A view has the stripes of what it shows; cells of a small one are of the same hue."""
    graph, x, layouts = large(1000)
    graph.slice(x, (0,), (500,), name="first")
    graph.slice(x, (0,), (4,), name="few")
    picture = graph.draw(layouts)
    assert tips(picture, "first") == ["500 at locations of s"]
    assert stripes(picture)["few"] == []
    assert stripes(picture)["first"][0][0] == stripes(picture)["s"][0][0]


def test_mapped_locations_are_told_together() -> None:
    """Values of mappings belong to nobody."""
    graph = Graph()
    graph.source((300,), list(range(300)), name="m")
    assert stripes(graph.draw({}))["m"][0][::2] == (OTHERS, "300 at locations that mappings name")


def test_without_layouts_or_on_tiles_there_are_none() -> None:
    """Nothing is known yet; and on a tile memory colours are tiles."""
    graph, _, layouts = large(1000)
    assert not any(stripes(graph.draw()).values())
    graph.tile_memory = TileMemory(4, 10**6)
    assert not any(stripes(graph.draw(layouts)).values())


def test_the_key_explains_stripes() -> None:
    """Only where there are some."""
    graph, _, layouts = large(1000)
    assert "elements by whose locations they take" in str(graph.draw(layouts))
    assert "elements by whose locations they take" not in str(graph.draw())
