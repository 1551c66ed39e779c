"""What the page of a batch run says."""

from __future__ import annotations

import re
from decimal import Decimal

from layoutopt.report.batch import LOSSES, SOLVES, bench_html
from tests.report.samples import LONG, MARKUP, batch, row
from tests.report.test_parts import read
from tests.report.test_result import cells, sections


def part(html: str, key: str) -> str:
    """Return one section of a page."""
    return html.partition(f'<section id="{key}">')[2].partition("</section>")[0]


def test_a_page_has_all_that_is_known() -> None:
    """Sections in order, what was run where and with what, and the command line."""
    html = bench_html(batch(), "layoutopt bench show s.sqlite")
    expected = ["solvers", "profiles", "solves", "losses", "progress", "failures", "origin"]
    assert sections(html) == expected
    words = read(html).text
    for told in ("a machine", "time limit 60.0", "layoutopt bench show s.sqlite", "layoutopt 1.0"):
        assert told in words
    lead = re.findall("<dl.*</dl>", html)[0]
    assert read(lead).text == [
        *("instances", "7", "solvers", "2", "solves", "11", "proved", "5", "failed", "1"),
        *("seconds in all", "13.4"),
    ]


def test_solvers_are_summed_up() -> None:
    """Seven solves of auto, of which four are optimal; greedy is behind on three of four."""
    head, auto, greedy = cells(part(bench_html(batch()), "solvers"))
    assert dict(zip(head, auto, strict=True)) | {"seconds": ""} == {
        **{"solver": "auto", "solves": "7", "optimal": "4", "feasible": "0", "infeasible": "1"},
        **{"unknown": "1", "failed": "1", "mean gap": "0", "behind": "0", "mean loss": "0"},
        "seconds": "",
    }
    assert dict(zip(head, greedy, strict=True))["behind"] == "3"
    assert dict(zip(head, greedy, strict=True))["mean loss"] == "15.00%"  # 0, 10, 20, 30


def test_versions_and_machines_are_told_where_they_differ() -> None:
    """Each has a line of its own."""
    rows = [row(), row(version="2.0"), row(machine="another")]
    found = cells(part(bench_html(rows), "solvers"))
    assert found[0][:3] == ["solver", "version", "machine"]
    assert [line[:3] for line in found[1:]] == [
        ["auto", "1.0", "a machine"],
        ["auto", "1.0", "another"],
        ["auto", "2.0", "a machine"],
    ]


def test_every_solve_has_a_line() -> None:
    """With its own gap, that to the best bound of the instance, and its loss."""
    head, first, second, *rest = cells(part(bench_html(batch()), "solves"))
    assert head[2:] == [
        *("status", "score", "bound", "gap", "to best bound", "loss", "seconds", "MiB")
    ]
    assert first[2:] == ["optimal", "100", "100", "0", "0", "0", "1.000", "95"]
    assert second[2:] == ["feasible", "100", "-", "-", "0", "0", "0.100", "-"]
    by_status = {line[2]: line for line in rest}
    assert by_status["infeasible"][3:8] == ["-", "-", "-", "0", "-"]
    assert by_status["failed"][3:8] == ["-"] * 5
    last = next(line for line in rest if line[0] == "d" and line[2] == "feasible")
    assert last[6:8] == ["42.86%", "30.00%"]  # 30 of 70, 30 of 100


def test_where_solvers_lose() -> None:
    """Greedy matches three positions worth 10 less on the last instance, on which it loses 30."""
    found = cells(part(bench_html(batch()), "losses"))
    assert [line[2] for line in found[1:]] == ["30", "20", "10"]
    assert found[1][0] == "d"
    assert found[1][3] == f"p, {MARKUP}: 30"


def test_pairs_that_only_one_names_are_left_out() -> None:
    """Of those it is not known what the other one earns."""
    alone = ("c", "d", "1", 9, 2), ("e", "f", "-1", 9, 2)
    rows = [
        row(score=Decimal(10), pairs=(("a", "b", "1", 9, 9),)),
        row(solver="x", score=Decimal(5), pairs=(*alone, ("a", "b", "1", 9, 5))),
    ]
    assert cells(part(bench_html(rows), "losses"))[1][3] == "a, b: 4"


def test_other_layouts_that_are_as_good_lose_nothing() -> None:
    """A solver may win other pairs than the first of the best ones."""
    rows = [
        row(score=Decimal(9), pairs=(("a", "b", "1", 9, 9), ("c", "d", "1", 9, 0))),
        row(solver="x", score=Decimal(9), pairs=(("a", "b", "1", 9, 0), ("c", "d", "1", 9, 9))),
    ]
    assert "losses" not in sections(bench_html(rows))


def test_failures_are_told() -> None:
    """With the error and the log."""
    [_, line] = cells(part(bench_html(batch()), "failures"))
    assert line == ["g", "auto", MARKUP + LONG, "g"]
    assert "failures" not in sections(bench_html([row()]))


def test_no_results_have_a_page() -> None:
    """It says so."""
    html = bench_html([])
    assert "The store holds no results." in read(html).text
    assert sections(html) == ["origin"]


def test_a_large_run_has_a_readable_page() -> None:
    """Of very many solves some are shown, and the rest is counted."""
    rows = [
        row(instance=f"i{i}", solver=solver, score=Decimal(100 - k), seconds=0.1 + i)
        for i in range(SOLVES // 2 + 10)
        for k, solver in enumerate(["auto", "greedy0"])
    ]
    rows = [
        row(**{f: getattr(r, f) for f in ("instance", "solver", "score", "seconds")}, pairs=p)
        for r in rows
        for p in [(("a", "b", "1", 100, int(r.score or 0)),)]
    ]
    html = bench_html(rows)
    assert len(cells(part(html, "solves"))) == SOLVES + 1
    assert "... and 20 more solves" in html
    assert len(cells(part(html, "losses"))) == LOSSES + 1
    assert len(html) < 1_500_000
