"""Large tensors in pictures: whose locations their elements take."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.pictures.grids import OTHERS, OWN
from layoutopt.pictures.svg import Picture

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


def test_mapped_locations_are_told_together() -> None:
    """Values of mappings belong to nobody."""
    graph = Graph()
    graph.source((300,), list(range(300)), name="m")
    assert stripes(graph.draw({}))["m"][0][::2] == (OTHERS, "300 at locations that mappings name")
