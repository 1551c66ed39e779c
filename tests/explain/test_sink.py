"""Explanations of sinks, worked out by hand."""

from __future__ import annotations

from pathlib import Path

from layoutopt import Graph, explain_sink, read, unwind
from layoutopt.generate.families import generate
from tests.explain.test_pair import small, split, tight
from tests.support import hard_graph

FIGURES = Path(__file__).parents[2] / "instances" / "figures"


def test_the_chained_calls() -> None:
    """Moved away from the product alone, x would lose four pairs; its target is the alternative."""
    graph = read(FIGURES / "chained_calls_copies.json")
    found = explain_sink(graph, unwind(graph), "x")
    assert [(x.origin, x.elements, x.pieces, x.earns) for x in found.shares] == [
        ("matmul", 6, 1, 6 * (9 + 1 + 1 + 1))
    ]
    assert [(pair.a, pair.b) for pair in found.pairs] == [
        *[("x", "target_x"), ("x", "matmul"), ("input", "x"), ("a", "x"), ("b", "x")]
    ]
    assert (found.sink, found.elements, found.score, found.left) == ("x", 6, 130, 0)
    [other] = found.alternatives
    assert (other.b, other.cost, other.threshold) == ("target_x", 6, 11)
    assert found.closest is other
    assert found.proved


def test_shares() -> None:
    """Pieces are added up by origin; each share's worth is its own."""
    graph = split()
    found = explain_sink(graph, unwind(graph), graph.tensor("x"))
    assert {x.origin: (x.elements, x.pieces, x.earns) for x in found.shares} == {
        "b": (1, 1, 2),
        "c": (1, 1, 5),
    }
    graph = Graph("even and odd")
    x = graph.sink((4,), name="x")
    a, b = graph.source((4,), name="a"), graph.source((2,), name="b")
    graph.valued_pair(x, a, 1)
    graph.valued_pair(x[1::2], b, 3)
    found = explain_sink(graph, unwind(graph), "x")
    assert [(x.origin, x.elements, x.earns) for x in found.shares] == [("a", 2, 2), ("b", 2, 6)]
    graph = Graph("the end of a longer tensor")
    x = graph.sink((2,), name="x")
    graph.valued_pair(x, graph.source((9,), name="a")[7:], 4)
    found = explain_sink(graph, unwind(graph), "x")
    assert [(x.origin, x.elements, x.earns) for x in found.shares] == [("a", 2, 8)]


def test_locations_of_its_own() -> None:
    """What follows a sink counts for it, though the sink lies at locations of its own."""
    graph = Graph("followed")
    x, y = graph.sink((3,), name="x"), graph.sink((3,), name="y")
    graph.valued_pair(x, graph.reverse(y, (0,)), 2)
    result = unwind(graph)
    [owner] = {piece[0] for layout in (result.layouts or {}).values() for piece in layout}
    found = explain_sink(graph, result, owner)
    assert [(s.origin, s.elements, s.earns) for s in found.shares] == [(owner, 3, 6)]
    assert "3 lie at locations of their own and earn 6" in str(found)
    assert "no pair that it influences loses anything" in str(found)
    assert (found.alternatives, found.closest) == ((), None)


def test_alternatives_by_value() -> None:
    """Those of the largest values come first; further ones are counted, also by hand."""
    graph = Graph("many")
    x = graph.sink((2,), name="x")
    for value in (3, 9, 5, 7):
        graph.valued_pair(x, graph.source((2,), name=f"worth {value}"), value)
    result = unwind(graph)
    found = explain_sink(graph, result, "x", alternatives=2)
    assert [(each.b, each.cost) for each in found.alternatives] == [("worth 7", 4), ("worth 5", 8)]
    assert found.left == 1
    assert found.closest is found.alternatives[0]
    assert "... and 1 more losing pair" in str(found)
    assert explain_sink(graph, result, "x", alternatives=0).left == 3


def test_no_alternative() -> None:
    """A pair that loses, but is won as far as it can be, is explained, and is no alternative."""
    graph = small("the second half")
    found = explain_sink(graph, unwind(graph), "x")
    assert [(x.cost, x.layouts) for x in found.alternatives] == [(0, None)]
    assert "both locations are fixed and differ" in str(found)
    assert found.closest is None


def test_views_and_barriers() -> None:
    """Pairs are reached through views, not through barriers."""
    graph = Graph("reach")
    x = graph.sink((2, 3), name="x")
    turned = graph.dim_shuffle(x, (1, 0), name="turned")
    graph.valued_pair(graph.reshape(turned, (6,), name="flat"), graph.source((6,), name="a"), 1)
    y = graph.sink((6,), name="y")
    graph.valued_pair(y, graph.barrier([x], (6,), name="after"), 1)
    found = explain_sink(graph, unwind(graph), "x")
    assert [(pair.a, pair.b) for pair in found.pairs] == [("flat", "a")]


def test_a_tile_memory() -> None:
    """Shares are on tiles, which are worth nothing by themselves."""
    graph = tight()
    found = explain_sink(graph, unwind(graph), "y")
    assert [(x.origin, x.elements, x.earns) for x in found.shares] == [("tile", 8, None)]
    assert "8 lie on tiles by number" in str(found)
    assert [(x.b, x.cost) for x in found.alternatives] == [("a", 8), ("b", 0)]


def test_a_large_graph() -> None:
    """Three parts of one weight lie apart, and each has an alternative that is as good."""
    graph = generate("gpt2-small", {})
    found = explain_sink(graph, unwind(graph), "layer11.attention.qkv.w")
    assert [(x.elements, x.earns) for x in found.shares] == [(589_824, 58_982_400)] * 3
    assert [x.cost for x in found.alternatives] == [0, 0, 0]
    assert found.left == 3
    assert found.proved


def test_without_time() -> None:
    """Alternatives that no time is left for say so."""
    graph = split()
    found = explain_sink(graph, unwind(graph), "x", time_limit=0)
    assert [x.earns for x in found.shares] == [None, None]
    assert [x.most for x in found.alternatives] == [None]
    assert not found.proved


def test_not_proved() -> None:
    """Each alternative of a hard graph is told as far as time went."""
    graph = hard_graph(1, 14)
    found = explain_sink(graph, unwind(graph, time_limit=1), "x", time_limit=2)
    assert found.shares
    assert not found.proved
