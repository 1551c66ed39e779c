"""The specification on layouts made by hand: what they score, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import pytest

from layoutopt.base import result
from layoutopt.base.result import Piece
from layoutopt.check import elements
from layoutopt.check.elements import Evaluation
from layoutopt.graphs.unwinding import Graph
from tests.check.large import whole


def evaluate(graph: Graph, layouts: Mapping[str, Sequence[Piece]]) -> Evaluation:
    """Return what both ways to look at layouts say."""
    found = elements.evaluate(graph, layouts)
    assert elements.by_elements(graph, layouts) == found
    assert elements.by_pieces(graph, layouts) == found
    return found


def transposed() -> Graph:
    """Return a sink (2, 3) whose transposed is tied to a source, each match worth 7.5."""
    graph = Graph("transposed")
    x = graph.sink((2, 3), name="x")
    target = graph.source((3, 2), name="t")
    graph.valued_pair(graph.dim_shuffle(x, (1, 0)), target, 7.5)
    return graph


@pytest.mark.parametrize("far", [2**31, 2**32])
def test_numbers_of_any_size(far: int) -> None:
    """Locations behind billions of others are told apart, of which no array is made."""
    graph = Graph()
    graph.source((far + 1,), name="s")
    x, y = graph.sink((1,), name="x"), graph.sink((1,), name="y")
    graph.valued_pair(x, y, 1)
    graph.valued_pair(y, graph.source((1,), name="t"), 1)
    layouts = {"x": whole("s", 1), "y": (("s", far, 0, ()),)}
    assert [pair.matched for pair in evaluate(graph, layouts).pairs] == [0, 0]
    layouts["y"] = whole("t", 1)
    assert [pair.matched for pair in evaluate(graph, layouts).pairs] == [0, 1]


def broken(layouts: Mapping[str, Sequence[Piece]]) -> tuple[str, ...]:
    """Return what is wrong with layouts of the transposed sink, which have no score then."""
    found = evaluate(transposed(), layouts)
    assert (found.score, found.max_score) == (None, 45)
    return found.violations


def test_pieces_by_hand() -> None:
    """Two nested loops, read and written in one order."""
    piece = ("t", 1, 5, ((2, 10, -1), (3, 0, -2)))
    assert result.read(piece).tolist() == [1, 1, 1, 11, 11, 11]
    assert result.written(piece).tolist() == [5, 3, 1, 4, 2, 0]
    assert result.elements(piece) == 6
    assert result.fault(piece, 6, 12) is None
    assert result.fault(piece, 5, 12) is not None
    assert result.fault(piece, 6, 11) is not None
    assert result.cover([piece], 6) is None
    assert result.cover([], 0) is None


def dynamic() -> Graph:
    """Return two sinks and two barriers, each of which reads the other barrier's sink.

    ``x`` (4) holds ``y`` (2): barrier ``up`` makes an x from y, barrier ``down`` a y from x.
    """
    graph = Graph("dynamic")
    x, y = graph.sink((4,), name="x"), graph.sink((2,), name="y")
    graph.valued_pair(graph.barrier([y], (4,), name="up"), x, 100)
    graph.valued_pair(graph.barrier([x], (2,), name="down"), y, 100)
    return graph


def test_html() -> None:
    """Notebooks show the score, each broken rule, and what pairs earn."""
    found = evaluate(dynamic(), {"x": whole("up", 4), "y": whole("down", 2)})
    page = ElementTree.fromstring(found._repr_html_())
    score, broken, *_ = page.findall("div")
    assert "".join(score.itertext()) == "score 600 of 600"
    assert "".join(broken.itertext()) == found.violations[0]
    rows = [[cell.text for cell in row.findall("td")] for row in page.iter("tr")]
    assert ["down", "y", "100", "2", "2", "0"] in rows
    uncovered = elements.evaluate(dynamic(), {})._repr_html_()
    assert "score - of 600" in uncovered
    assert uncovered.count("has no layout") == 2


def test_a_wrong_layout_never_passes() -> None:
    """Of all layouts of one element of three, made of one piece each, only right ones pass.

    Element e of x may take element o of t, for e and o in -1..3: the layout is legal where
    both exist and the two other elements are set by the other piece.
    """
    graph = Graph()
    graph.valued_pair(graph.sink((3,), name="x"), graph.source((3,), name="t"), 1)
    legal: list[Evaluation] = []
    for e in range(-1, 4):
        for o in range(-1, 4):
            rest = ("x", 1, 1, ((2, 1, 1),))
            found = evaluate(graph, {"x": (("t", o, e, ((1, 1, 1),)), rest)})
            assert (found.violations == ()) == (e == 0 and 0 <= o < 3)
            legal += [] if found.violations else [found]
    assert sorted(int(found.score or 0) for found in legal) == [0, 0, 1]
