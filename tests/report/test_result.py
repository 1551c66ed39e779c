"""Pages of results and runs, beside what ``tests/examples`` has: pictures, limits, large ones."""

from __future__ import annotations

from decimal import Decimal

import pytest

from benchmarks.figures import FIGURES
from layoutopt import Graph, unwind
from layoutopt.machine.simulation import simulate
from layoutopt.report import result as module
from layoutopt.report.batch import LOSSES, SOLVES, bench_html
from layoutopt.report.layouts import PART, around, drawn
from layoutopt.report.result import MOST, STEPS, in_order, reasons, report_html
from tests.report.reading import cells, missing, sections
from tests.report.samples import TRACE, row, tiled

CALLS = FIGURES["chained_calls_copies"]


def shown(graph: Graph) -> list[str]:
    """Return the tensors of the part that is drawn."""
    result = unwind(graph)
    assert result.layouts is not None
    part = around(graph, result.pairs, result.layouts)
    return [graph.tensor_name(t) for t in part]


def test_pictures_are_those_that_are_drawn_elsewhere() -> None:
    """A small graph is drawn whole, tiles by bytes and by tensor; a changed graph says so."""
    result, machine = unwind(CALLS()), unwind(tiled())
    assert str(result.graph.draw(result)) in drawn(result)
    assert str(result.graph.draw(result)) in report_html(result)
    html, found = report_html(machine, why_seconds=0), simulate(machine.graph, machine)
    assert "tiles" in sections(html)
    assert all(str(found.draw(by)) in html for by in ("bytes", "tensor"))
    assert missing(html, *(told for _, told in found.rows())) == []
    result.graph.valued_pair("a", "c", 9)
    assert "has changed since" in report_html(result, why_seconds=0)
    assert "has changed since" in result.to_html()
    result.graph.remove("c")
    assert "has changed since" in report_html(result, why_seconds=0)


def test_reasons_that_cannot_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time runs out it is told how many are left; what is fixed is not explained."""
    result = unwind(CALLS())
    given = unwind(CALLS(), "greedy0").layouts
    assert given is not None
    assert "some layouts were given" in reasons(unwind(CALLS(), fixed={"x": given["x"]}), 20.0)
    monkeypatch.setattr(module.time, "monotonic", iter(range(0, 1000, 10)).__next__)
    assert "Time ran out before 1 more were looked at" in reasons(result, 5.0)


def test_the_part_that_is_drawn_stays_small() -> None:
    """Pairs that no sink decides come last; of too many tensors only a pair's own are drawn."""
    graph = Graph()
    for i in range(PART):
        graph.valued_pair(graph.source((2,)), graph.source((2,)), 1000 + i)
    x = graph.sink((1,), name="x")
    graph.valued_pair(x, graph.source((1,), name="s"), 2)
    graph.valued_pair(x, graph.source((1,), name="t"), 1)
    part = shown(graph)
    assert {"x", "s", "t"} <= set(part)
    assert len(part) == PART - 1  # three, and ten pairs
    wide = Graph()
    joined = wide.concat([wide.sink((1,)) for _ in range(60)], 0, name="joined")
    wide.valued_pair(joined, wide.source((60,), name="s"), 1)
    assert shown(wide) == ["joined", "s"]


def test_a_long_order_is_folded() -> None:
    """Twenty steps are shown, some more can be unfolded, the rest is counted."""
    graph = Graph()
    x = graph.sink((1,), name="x0")
    graph.valued_pair(x, graph.source((1,)), 1)
    for i in range(MOST):
        known = graph.barrier([x], (1,), name=f"b{i}")
        x = graph.sink((1,), name=f"x{i + 1}")
        graph.valued_pair(x, known, 1)
    html = in_order(unwind(graph))
    steps = 2 * MOST + 1
    assert html.count("<li>") == MOST
    assert f"{steps - STEPS:,} more steps" in html
    assert f'start="{STEPS + 1}"' in html
    assert f"... and {steps - MOST:,} more steps" in html


def test_huge_results_and_runs_have_small_pages() -> None:
    """A thousand sinks, pairs and steps are summed up; some solves are shown, others counted."""
    graph = Graph()
    for i in range(1000):
        x = graph.sink((2,), name=f"x{i}")
        graph.valued_pair(x, graph.source((2,), name=f"s{i}"), 1 + i % 7)
        graph.valued_pair(x, graph.source((2,), name=f"t{i}"), 1)
    assert len(report_html(unwind(graph), TRACE)) < 60_000
    rows = [
        row(
            instance=f"i{i}",
            solver=solver,
            score=Decimal(100 - k),
            seconds=0.1 + i,
            pairs=(("a", "b", "1", 100, 100 - k),),
        )
        for i in range(SOLVES // 2 + 10)
        for k, solver in enumerate(["auto", "greedy0"])
    ]
    html = bench_html(rows)
    assert len(cells(html, "solves")) == SOLVES + 1
    assert "... and 20 more solves" in html
    assert len(cells(html, "losses")) == LOSSES + 1
    assert len(html) < 1_500_000
