"""Explanations of sinks, worked out by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from layoutopt import Graph, explain_sink, unwind
from layoutopt.generate.families import generate
from tests.examples.graphs import graph_of
from tests.explain.test_pair import split
from tests.support import hard_graph

FIGURES = Path(__file__).parents[2] / "instances" / "figures"


CASES = tomllib.loads((Path(__file__).parents[1] / "cases/explained_sinks.toml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_sinks_by_hand(name: str) -> None:
    """Shares by origin, pairs that the sink influences, and what would cost least instead."""
    case = CASES[name]
    graph = graph_of(case["graph"].replace("; ", "\n"))
    most = {key: case[key] for key in ("alternatives",) if key in case}
    found = explain_sink(graph, unwind(graph), graph.tensor(case["sink"]), **most)
    told = {
        "shares": [f"{x.origin} {x.elements} {x.pieces} {x.earns}" for x in found.shares],
        "pairs": [f"{x.a} {x.b}" for x in found.pairs],
        "alternatives": [
            f"{x.b} {x.cost}" + " no layouts" * (x.layouts is None) for x in found.alternatives
        ],
        "closest": found.closest.b if found.closest else "",
        "left": found.left,
    }
    assert told | case["told"] == told
    assert case.get("says", "") in str(found)


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
