"""Explanations as text, HTML and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from layoutopt import Change, Graph, explain_pair, explain_sink, unwind
from layoutopt.explain.explanation import explanation_bytes
from tests.explain.test_pair import split

FIGURES = Path(__file__).parents[2] / "instances" / "figures"


def test_what_is_not_proved_says_so() -> None:
    """Each statement by itself; what is better or as good is told so, too."""
    graph = split()
    found = explain_pair(graph, unwind(graph), "x", "a")
    _, _, won, value, without = str(found).splitlines()
    assert value.endswith(
        "matching more of it is optimal from 2 on, winning it is optimal from 5 on"
    )
    parts = "alternative_proved", "threshold_proved", "smallest_proved"
    _, _, *doubted = str(replace(found, **dict.fromkeys(parts, False))).splitlines()
    assert doubted == [
        f"{won} (not proved)",
        f"{value} (not proved)",
        f"{without} (perhaps fewer suffice)",
    ]
    assert "2 more than now" in str(replace(found, alternative_score=Decimal(9)))
    assert "as much as now" in str(replace(found, alternative_score=Decimal(7)))


def test_a_tie_as_text() -> None:
    """Where another choice is as good, the pair's value could fall to where it is, not rise."""
    graph = Graph("tie")
    x = graph.sink((2,), name="x")
    for name in "ab":
        graph.valued_pair(x, graph.source((2,), name=name), 3)
    result = unwind(graph)
    [loser] = [pair for pair in result.pairs if not pair.matched]
    _, why, won, value = str(explain_pair(graph, result, "x", loser.b)).splitlines()
    assert why.endswith("; that would be as good")
    assert won == "  if won    6 in all, as much as now"
    assert value == "  value     winning it is optimal down to 3"


def test_html() -> None:
    """Names are escaped; every change has a row, of which a long table shows the first."""
    graph = Graph("odd names")
    x = graph.sink((2,), name="<x>")
    graph.valued_pair(x, graph.source((2,), name="a&b"), 1)
    graph.valued_pair(x, graph.source((2,), name="c"), 2)
    result = unwind(graph)
    found = explain_pair(graph, result, "<x>", "a&b")
    text = found._repr_html_()
    assert "&lt;x&gt;, a&amp;b" in text
    assert "<x>" not in text
    assert "a&b" not in text
    assert text.count("<tr>") == 2
    many = replace(found, changes=tuple(Change("p", "q", Decimal(1), 9, n) for n in range(33)))
    assert many._repr_html_().count("<tr>") == 31
    assert "... and 3 more pairs" in many._repr_html_()
    sink = explain_sink(graph, result, "<x>")._repr_html_()
    assert "matches 0 of 2, loses 2" in text
    assert "matches 0 of 2, loses 2" in sink
    assert "2 lie where c does and earn 4" in sink


def test_json() -> None:
    """Numbers are exact, unknown ones null, and fractions without end text."""
    graph = split()
    found = explain_pair(graph, unwind(graph), "x", "a")
    told = json.loads(explanation_bytes("split", found))
    assert told["format"] == "layoutopt/explanation/1"
    assert (told["instance"], told["pair"], told["status"]) == ("split", ["x", "a"], "optimal")
    numbers = "value", "elements", "matched", "most", "score", "alternative_score", "cost", "loses"
    assert [told[name] for name in numbers] == [1, 2, 0, 2, 7, 2, 5, 2]
    assert (told["threshold"], told["threshold_more"]) == (5, 2)
    assert told["changes"][0] == {"a": "r", "b": "c", "value": 5, "before": 1, "after": 0}
    assert {(pair["a"], pair["b"]) for pair in told["smallest"]} == {("l", "b"), ("r", "c")}
    assert told["layouts"] == {"x": [["a", 0, 0, [[2, 1, 1]]]]}
    assert told["most_proved"] is told["smallest_proved"] is True
    unknown = replace(found, threshold=Fraction(10, 3), smallest=None, most=None)
    told = json.loads(explanation_bytes("split", unknown))
    assert (told["threshold"], told["smallest"], told["most"]) == ("10/3", None, None)
    sink = json.loads(explanation_bytes("split", explain_sink(graph, unwind(graph), "x")))
    assert {(x["origin"], x["elements"], x["earns"]) for x in sink["shares"]} == {
        *[("b", 1, 2), ("c", 1, 5)]
    }
    assert (sink["sink"], sink["left"], len(sink["pairs"])) == ("x", 0, 3)
    [other] = sink["alternatives"]
    assert other["cost"] == 5
