"""What the page of one result says."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.figures import FIGURES
from layoutopt import Graph, UnwindingResult, unwind
from layoutopt.base.result import PairScore
from layoutopt.machine.simulation import simulate
from layoutopt.report import result as report_pairs
from layoutopt.report.layouts import PART, around, drawn, sinks_by_class
from layoutopt.report.result import MOST, STEPS, in_order, pair_tables, reasons, report_html
from tests.report.samples import TRACE, empty, infeasible, many, nothing, tiled
from tests.report.test_parts import read


@pytest.fixture
def calls() -> UnwindingResult:
    """Return the figure whose best layouts give up x ~ target_x, worth 60."""
    return unwind(FIGURES["chained_calls_copies"]())


def cells(html: str) -> list[list[str]]:
    """Return the words of all cells of all tables, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [
        ["".join(read(c).text) for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)]
        for row in rows
    ]


def sections(html: str) -> list[str]:
    """Return the names of a page's sections."""
    return re.findall(r'<section id="([\w-]+)">', html)


def test_a_page_has_all_that_is_known(calls: UnwindingResult) -> None:
    """Sections in order, the command line, versions, and the picture as it is drawn elsewhere."""
    html = report_html(calls, TRACE, "layoutopt solve a.json")
    assert sections(html) == [
        *("layouts", "sinks", "pairs", "why", "order", "progress", "size", "origin")
    ]
    words = " ".join(read(html).text)
    for told in ("130", "190", "it is proved that no layouts earn more", "layoutopt solve a.json"):
        assert told in words
    assert f"layoutopt {calls.version}, seed 0" in words
    assert "ortools 9." in words
    assert str(calls.graph.draw(calls)) in html
    assert calls.graph.description in words


def test_what_is_not_known_is_left_out(calls: UnwindingResult) -> None:
    """Without trace no charts; without time no reasons; without graph neither pictures."""
    assert "progress" not in sections(report_html(calls))
    assert "why" not in sections(report_html(calls, why_seconds=0))
    alone = report_html(replace(calls, graph=None))
    assert sections(alone) == ["sinks", "pairs", "order", "size", "origin"]
    assert "<svg" not in alone


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            replace(nothing(), bound=None),
            ["Unknown", "neither layouts nor a bound were found", "Stopped: time limit"],
        ),
        (replace(nothing(), bound=7), ["Unknown", "any earn 7 at most"]),
        (infeasible(), ["Infeasible", "no layouts", "384 bytes"]),
    ],
)
def test_no_layouts_have_a_page(result: UnwindingResult, told: list[str]) -> None:
    """It says why, and has neither pictures nor pairs."""
    html = report_html(result)
    assert sections(html) == ["size", "origin"]
    for words in told:
        assert words in " ".join(read(html).text)


def test_open_results_say_how_much_may_be_missing(calls: UnwindingResult) -> None:
    """With a bound and without."""
    words = " ".join(read(report_html(replace(calls, bound=Decimal(143)), why_seconds=0)).text)
    assert "no layouts earn more than 143, which is 10.00% above this score" in words
    words = " ".join(read(report_html(replace(calls, bound=None), why_seconds=0)).text)
    assert "nothing is proved about better ones" in words


def test_pairs_stand_in_the_order_of_their_losses(calls: UnwindingResult) -> None:
    """The one that loses comes first, with all of what is lost."""
    html = pair_tables(calls.pairs)
    head, first, *rest = cells(html)
    assert head == ["pair", "loses", "share of all losses", "value", "matched", "earns"]
    assert first == ["xtarget_x", "60", " 100.00%", "10", "0 of 6", "0"]
    assert {row[1] for row in rest} == {"0"}
    assert "1 of 9 pairs loses 60; all together earn 130." in html


def test_many_pairs_stand_by_class() -> None:
    """Sixty that lose 600 each are one line, sixty that lose nothing another."""
    html = pair_tables(unwind(many()).pairs)
    _, far, near = cells(html)
    assert far[1:] == ["60", "36,000", " 100.00%", "1", "0 of 600", "0"]
    assert near[1:] == ["60", "0", "", "3", "600 of 600", "108,000"]
    assert "x0" in far[0]
    assert "and 59 like it" in far[0]
    assert "x59, far59" in far[0]


def test_shares_of_losses_leave_gains_out() -> None:
    """A pair of negative value that does not match gains, which is no part of what is lost."""
    pairs = [
        PairScore("a", "b", Decimal(3), 4, 1),  # loses 9
        PairScore("c", "d", Decimal(1), 3, 0),  # loses 3
        PairScore("e", "f", Decimal(-5), 2, 0),  # loses -10
    ]
    rows = cells(pair_tables(pairs))[1:]
    assert [row[1:3] for row in rows] == [["9", " 75.00%"], ["3", " 25.00%"], ["-10", ""]]


def test_no_pairs_are_told() -> None:
    """A graph without pairs says so, and one that loses nothing, too."""
    assert "no ValuedPairs" in report_html(unwind(empty()))
    html = pair_tables([PairScore("a", "b", Decimal(3), 4, 4)])
    assert "1 pair: 12 earned, nothing lost." in html


def test_reasons_name_the_pairs_in_the_way(calls: UnwindingResult) -> None:
    """Winning x ~ target_x would earn 60 and cost 66 of three others."""
    html = reasons(calls, 20.0)
    words = " ".join(read(html).text)
    assert "x, target_x: loses 60" in words
    assert "would earn 60 and cost 66" in words
    assert "It pays from a value of 11 on, in place of 10." in words
    assert [row[:2] for row in cells(html)[1:]] == [["xmatmul", "-54"], ["ax", "-6"], ["bx", "-6"]]


def test_winning_that_costs_nothing_needs_no_higher_value() -> None:
    """Two places are worth the same: it would be as good to win the other one."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    for name in "st":
        graph.valued_pair(x, graph.source((4,), name=name), 3)
    words = " ".join(read(reasons(unwind(graph), 20.0)).text)
    assert "that would be as good" in words
    assert "It pays" not in words
    assert "It also pays" not in words


def test_reasons_are_given_once_for_each_class() -> None:
    """Of sixty pairs that are alike one is looked at."""
    html = reasons(unwind(many()), 20.0)
    assert html.count("<h3>") == 1
    assert "(and 59 like it)" in html
    assert "cost 1,800 of (x0, near0)" in "".join(read(html).text)


def test_reasons_end_in_time(calls: UnwindingResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time runs out it is told how many were left; with none nothing is tried."""
    assert reasons(calls, 0.0) == ""
    monkeypatch.setattr(report_pairs.time, "monotonic", iter(range(0, 1000, 10)).__next__)
    assert "Time ran out before 1 more were looked at" in reasons(calls, 5.0)


def test_a_pair_is_explained_once() -> None:
    """Also where it is valued twice, as the explanation is of both together."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    s, t = graph.source((4,), name="s"), graph.source((4,), name="t")
    graph.valued_pair(x, s, 9)
    graph.valued_pair(x, t, 3)
    graph.valued_pair(t, x, 2)
    html = reasons(unwind(graph), 20.0)
    assert html.count("<h3>") == 1
    assert "loses 20" in html


def test_given_layouts_are_not_explained() -> None:
    """What is fixed is not known to the explanation, which would find better layouts."""
    graph = FIGURES["chained_calls_copies"]()
    given = unwind(graph, "greedy0").layouts
    assert given is not None
    result = unwind(graph, fixed={"x": given["x"]})
    assert "some layouts were given" in reasons(result, 20.0)


def test_nothing_lost_has_no_reasons() -> None:
    """Where all pairs match there is nothing to explain."""
    assert reasons(unwind(FIGURES["matmul"]()), 10.0) == ""


def test_sinks_that_lie_alike_are_one_line() -> None:
    """Sixty sinks at sources of one shape; the names of the others can be unfolded."""
    rows = cells(sinks_by_class(unwind(many())))
    assert len(rows) == 2
    assert rows[1][1:3] == ["[30, 20]", "600"]
    assert rows[1][0].startswith("x0and 59 like itx1; x2")
    assert "near0 (source): 600" in rows[1][3]


def test_sinks_tell_how_much_lies_where() -> None:
    """Four elements at a source, two at locations of their own."""
    graph = Graph()
    x = graph.sink((6,), name="x")
    graph.valued_pair(x[:4], graph.source((4,), name="s"), 1)
    html = sinks_by_class(unwind(graph))
    assert [row[2] for row in cells(html)[1:]] == ["6"]
    assert "s (source): 4" in html
    assert "its own: 2" in html
    assert "width:66.67%" in html


def test_a_small_graph_is_drawn_whole(calls: UnwindingResult) -> None:
    """As notebooks show it."""
    assert str(calls.graph.draw(calls)) in drawn(calls)


def test_of_a_large_graph_a_part_is_drawn() -> None:
    """One pair of each class, with what its tensors come from."""
    result = unwind(many())
    html = drawn(result)
    assert "Of 180 tensors 3 are drawn" in html
    for name in ("x0", "far0", "near0"):
        assert f">{name}</text>" in html
    assert ">x1</text>" not in html


def test_the_part_holds_what_locations_come_from() -> None:
    """Views are followed back to sinks, and sinks to what they take locations of."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    view = graph.reverse(graph.identity(x), (0,), name="view")
    graph.valued_pair(view, graph.source((4,), name="s"), 2)
    graph.valued_pair(x, graph.source((4,), name="other"), 1)
    lonely = graph.source((3,), name="a"), graph.source((3,), name="b")
    graph.valued_pair(*lonely, 100)
    result = unwind(graph)
    assert result.layouts is not None
    part = around(graph, [result.pairs[1]], result.layouts)
    assert [graph.tensor_name(t) for t in part] == ["x", "s", "other"]
    part = around(graph, [result.pairs[0]], result.layouts)
    assert [graph.tensor_name(t) for t in part] == ["x", "identity0", "view", "s"]
    assert len(around(graph, result.pairs, result.layouts)) == 7


def test_pairs_that_nobody_can_decide_come_last() -> None:
    """Two sources that lie apart may lose most, but only where a sink lies is up to us."""
    graph = Graph()
    for i in range(PART):
        graph.valued_pair(graph.source((2,)), graph.source((2,)), 1000 + i)
    x = graph.sink((1,), name="x")
    graph.valued_pair(x, graph.source((1,), name="s"), 2)
    graph.valued_pair(x, graph.source((1,), name="t"), 1)
    result = unwind(graph)
    assert result.layouts is not None
    part = [graph.tensor_name(t) for t in around(graph, result.pairs, result.layouts)]
    assert {"x", "s", "t"} <= set(part)
    assert len(part) == PART - 1  # three, and ten pairs


def test_the_part_stays_small() -> None:
    """A pair whose tensors come from too many others is drawn without these."""
    graph = Graph()
    parts = [graph.sink((1,)) for _ in range(60)]
    joined = graph.concat(parts, 0, name="joined")
    graph.valued_pair(joined, graph.source((60,), name="s"), 1)
    result = unwind(graph)
    assert result.layouts is not None
    part = around(graph, result.pairs, result.layouts)
    assert [graph.tensor_name(t) for t in part] == ["joined", "s"]
    assert len(part) < PART


def test_a_changed_graph_says_so(calls: UnwindingResult) -> None:
    """Its layouts fit no longer."""
    calls.graph.remove("c")
    assert "has changed since" in report_html(calls, why_seconds=0)


def test_order_tells_what_must_be_known() -> None:
    """Sink y takes locations of a barrier's output, which needs x: x, the barrier, y."""
    graph = Graph()
    x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
    graph.valued_pair(x, graph.source((2,)), 1)
    graph.valued_pair(y, graph.barrier([x], (2,), name="b"), 1)
    html = in_order(unwind(graph))
    items = ["".join(read(item).text) for item in re.findall("<li>(.*?)</li>", html)]
    assert items == ["set x", "b is known", "set y"]


def test_order_does_not_matter_without_barriers(calls: UnwindingResult) -> None:
    """And that is said."""
    assert "in any order" in in_order(calls)


def test_order_names_parts_of_sinks() -> None:
    """Where one half of a sink waits for a barrier that needs the other half."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    graph.valued_pair(x[:2], graph.source((2,)), 1)
    graph.valued_pair(x[2:], graph.barrier([x[:2]], (2,), name="b"), 1)
    words = "".join(read(in_order(unwind(graph))).text)
    assert "set x (1 of its 2 pieces)" in words
    assert words.index("pieces") < words.index("b is known")


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


def test_a_result_from_a_file_has_its_order() -> None:
    """Without a graph the sinks stand in the order of the file."""
    result = unwind(FIGURES["chained_calls_barrier"]())
    words = "".join(read(in_order(replace(result, graph=None))).text)
    assert words.startswith("Set ")
    assert "x" in words


def test_tiles_are_told() -> None:
    """Numbers, both pictures, and exchanges of the simulation."""
    result = unwind(tiled())
    html = report_html(result, why_seconds=0)
    found = simulate(result.graph, result)
    assert "tiles" in sections(html)
    for by in ("bytes", "tensor"):
        assert str(found.draw(by)) in html
    for _, told in found.rows():
        assert told in read(html).text


def test_a_huge_result_has_a_small_page() -> None:
    """Thousands of sinks, pairs and steps are summed up."""
    graph = Graph()
    for i in range(3000):
        x = graph.sink((2,), name=f"x{i}")
        graph.valued_pair(x, graph.source((2,), name=f"s{i}"), 1 + i % 7)
        graph.valued_pair(x, graph.source((2,), name=f"t{i}"), 1)
    assert len(report_html(unwind(graph), TRACE)) < 200_000
