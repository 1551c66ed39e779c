"""What results show of themselves."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import FIGURES
from layoutopt import (
    Graph,
    InputError,
    PairScore,
    UnwindingResult,
    compare,
    convert,
    evaluate,
    explain_pair,
    explain_sink,
    read_result,
    steps,
    unwind,
    write_result,
)
from layoutopt.network import CostNetwork, solve
from tests.report.reading import cells


@pytest.fixture
def graph() -> Graph:
    return FIGURES["chained_calls_copies"]()


def test_results_of_all_three_kinds_show_themselves(graph: Graph) -> None:
    """One line as ``repr``; the same facts in the summary and in notebooks, names escaped."""
    net = CostNetwork("<two>")
    labels = net.domain(2)
    for name in ("<a>", "b"):
        net.node(name, labels, [1, 2])
    converted = convert("instances/conversion/concatenated.onnx")
    results: list[Any] = [unwind(graph), solve(net), converted]
    for found in results:
        assert f": {found.status}, " in repr(found)
        assert "\n" not in repr(found)
        summary, shown = found.summary(), cells(found._repr_html_())
        assert all(value in summary for value in shown[1][:4]), shown[1]
        assert ["status", "optimal"] in [line.split() for line in summary.splitlines()]
    assert [*map(str.split, results[1].summary(labels=1).splitlines()[-2:])] == [
        ["<a>", "0"],
        ["...", "and", "1", "more", "node"],
    ]
    assert repr(converted) == (
        "ConversionResult('concatenated': optimal, objective count 2, changed 1, bytes 1,008, "
        "bound count 2, changed 1, bytes 1,008, gap 0)"
    )


def test_a_result_shows_verdict_pairs_and_picture(graph: Graph) -> None:
    """The pair that loses most comes first: x gives up its target, 6 elements at 10."""
    result = unwind(graph)
    shown = result._repr_html_()
    table = cells(shown)
    assert table[0][:5] == ["status", "score", "bound", "gap", "if all matched"]
    assert table[1][:5] == ["optimal", "130", "130", "0", "190"]
    assert table[2] == ["pair", "", "value", "matched", "of", "loses"]
    assert table[3] == ["x", "target_x", "10", "0", "6", "60"]
    assert [row[-1] for row in table[4:]] == ["0"] * 8
    assert shown.count("<svg") == 1
    assert "finished" not in shown
    assert str(graph.draw(result)).removeprefix("<svg ") in shown


def test_a_result_holds_the_graph_that_was_solved(graph: Graph, tmp_path: Path) -> None:
    """One from a file has none, and shows its tables alone."""
    result = unwind(graph)
    assert result.graph is graph
    path = tmp_path / "result.json"
    write_result(result, path)
    assert "graph" not in path.read_text()
    again = read_result(path)
    assert again.graph is None
    assert "<svg" not in again._repr_html_()
    assert cells(again._repr_html_())[2:] == cells(result._repr_html_())[2:]


def test_a_result_without_layouts_shows_itself(graph: Graph) -> None:
    """Where time ran out there is a table, and why."""
    shown = unwind(graph, "greedy0", time_limit=0)._repr_html_()
    assert cells(shown)[1][:3] == ["unknown (time limit)", "-", "190"]
    assert len(cells(shown)) == 2
    assert "<svg" not in shown


def test_a_changed_graph_is_not_drawn(graph: Graph) -> None:
    """Layouts of a sink that is gone are told in a line, not in a traceback."""
    result = unwind(graph)
    graph.remove("c")
    assert "has changed since" in result._repr_html_()


def test_a_large_graph_is_not_drawn() -> None:
    """Above 40 tensors there are tables only."""
    assert "<svg" not in unwind(_many())._repr_html_()


def test_long_tables_end(graph: Graph) -> None:
    """Of many pairs thirty are shown, those that lose most, and the rest is counted."""
    pairs = tuple(PairScore(f"a{i}", "b", Decimal(i), 2, 1) for i in range(100))
    shown = replace(unwind(graph), graph=None, pairs=pairs)._repr_html_()
    assert [row[0] for row in cells(shown)[3:]] == [f"a{i}" for i in range(99, 69, -1)]
    assert "... and 70 more pairs" in shown


def test_names_are_escaped() -> None:
    """A name with tags in it makes none."""
    graph = Graph("<i>")
    graph.valued_pair(graph.sink((1,), name="<b>"), graph.source((1,), name="s&"), 1)
    shown = unwind(graph)._repr_html_() + compare(graph)._repr_html_()
    assert "<i>" not in shown
    assert "<b>" not in shown
    assert "s&amp;" in shown


def test_a_comparison_shows_losses_and_pictures(graph: Graph) -> None:
    """A row and a picture for each solver; greedy0 loses 6 of 130."""
    comparison = compare(graph)
    shown = comparison._repr_html_()
    table = cells(shown)
    head = ["solver", "status", "score", "bound", "gap", "to best bound", "seconds", "loss"]
    assert table[0] == head
    assert [(row[0], row[2], row[5], row[-1]) for row in table[1:3]] == [
        ("auto", "130", "0", "0"),
        ("greedy0", "124", "4.84%", "4.62%"),
    ]
    assert table[3][:3] == ["solver", "pair", ""]
    assert table[4] == ["greedy0", "x", "matmul", "9", "6", "0", "6", "54"]
    assert shown.count("<svg") == 2
    assert "auto: 130" in shown
    assert "greedy0: 124" in shown
    assert "<figure" not in compare(_many())._repr_html_()


def _many() -> Graph:
    graph = Graph()
    for _ in range(41):
        graph.sink((1,))
    return graph


def test_an_evaluation_shows_score_rules_and_pairs(graph: Graph) -> None:
    """What layouts earn, and which rules they break."""
    result = unwind(graph)
    assert isinstance(result, UnwindingResult)
    shown = evaluate(graph, result)._repr_html_()
    assert "score 130 of 190" in shown
    assert cells(shown)[1] == ["x", "target_x", "10", "0", "6", "60"]
    barrier = FIGURES["chained_calls_barrier"]()
    broken = evaluate(barrier, {"x": [("matmul", 0, 0, ((6, 1, 1),))]})
    assert "barrier order: &#39;matmul&#39; waits for itself" in broken._repr_html_()


def test_a_result_that_was_read_is_one_that_was_solved(tmp_path: Path) -> None:
    """It is explained, kept, scored and written as the one that was solved; a graph draws it."""
    graph, path = FIGURES["chained_calls_copies"](), tmp_path / "result.json"
    solved = unwind(graph)
    write_result(solved, path)
    found = read_result(path, graph)
    assert type(found) is type(solved)
    assert (str(found.draw()), found.summary()) == (str(solved.draw()), solved.summary())
    assert found.to_html() == solved.to_html()
    a, b = solved.pairs[0].a, solved.pairs[0].b
    for again in (found, read_result(path)):
        assert evaluate(graph, again).score == unwind(graph, fixed=again).score == solved.score
        assert str(explain_pair(graph, again, a, b)) == str(explain_pair(graph, solved, a, b))
        assert str(explain_sink(graph, again, "x")) == str(explain_sink(graph, solved, "x"))
        assert steps(graph, again) == steps(graph, solved)
        write_result(again, tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    with pytest.raises(InputError, match="has no graph"):
        read_result(path).draw()
    with pytest.raises(InputError, match="belongs to 'chained_calls_copies', not to"):
        read_result(path, FIGURES["matmul"]())
