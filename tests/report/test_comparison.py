"""What the page of a comparison says."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.figures import FIGURES
from layoutopt import Comparison, compare
from layoutopt.report.comparison import comparison_html
from layoutopt.unwinding import SOLVERS
from tests.report.samples import empty, many, nothing
from tests.report.test_batch import part
from tests.report.test_parts import read
from tests.report.test_result import cells, sections


def test_one_comparison() -> None:
    """A row for each solver, what greedy0 loses by pair, and every layout once."""
    found = compare(FIGURES["chained_calls_copies"](), ["auto", "cpsat", "greedy0"])
    html = comparison_html(found, "layoutopt compare a.json")
    assert sections(html) == ["solvers", "losses", "layouts", "origin"]
    head, *rows = cells(part(html, "solvers"))
    assert head == ["solver", "status", "score", "bound", "gap", "to best bound", "seconds", "loss"]
    assert [row[:6] for row in rows] == [
        ["auto", "optimal", "130", "130", "0", "0"],
        ["cpsat", "optimal", "130", "130", "0", "0"],
        ["greedy0", "feasible", "124", "190", "53.23%", "4.84%"],
    ]
    assert "greedy0 loses 4.62% against auto: 124 in place of 130" in read(html).text
    _, first, *_, last = cells(part(html, "losses"))
    assert first == ["xmatmul", "54", "9", "0", "6", "6"]
    assert last == ["xtarget_x", "-60", "10", "6", "0", "6"]
    assert html.count("<figure>") == 2
    assert "auto: 130, cpsat: 130" in read(html).text
    assert "layoutopt compare a.json" in read(html).text


def test_several_comparisons() -> None:
    """One table of all, and a section for each, to which its name leads."""
    names = ["matmul", "chained_calls_copies"]
    html = comparison_html([compare(FIGURES[name]()) for name in names])
    assert sections(html) == ["solvers", "instance-1", "instance-2", "origin"]
    assert [row[0] for row in cells(part(html, "solvers"))[1:]] == [
        *("matmul", "matmul", "chained_calls_copies", "chained_calls_copies")
    ]
    assert part(html, "solvers").count('href="#instance-2"') == 2
    assert "match the same pairs" in part(html, "instance-1")
    assert "greedy0 loses" in part(html, "instance-2")
    assert "2 instances" in read(html).text


def test_large_graphs_are_not_drawn() -> None:
    """Nor is anything that is not there."""
    assert "layouts" not in sections(comparison_html(compare(many())))
    assert comparison_html(compare(empty(), SOLVERS)).count("<figure>") == 1


def test_nobody_found_layouts() -> None:
    """Then there is nothing to compare."""
    html = comparison_html(Comparison((nothing(),), "n"))
    assert "No solver found layouts." in read(html).text


def test_other_pairs_are_told() -> None:
    """Results that a user put together may not fit each other."""
    [first, second] = compare(FIGURES["matmul"]()).results
    html = comparison_html(Comparison((first, replace(second, pairs=second.pairs[:1]))))
    assert "Pairs cannot be compared" in html


def test_no_comparisons_have_a_page() -> None:
    """As a run that was interrupted at once leaves them."""
    assert "0 instances" in read(comparison_html([])).text
