"""Several solvers on one graph: who loses what, and where."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from decimal import Decimal

import pytest

from benchmarks.figures import FIGURES
from layoutopt import Comparison, compare
from layoutopt.base.result import PairScore, UnwindingResult
from layoutopt.comparison import CSV_COLUMNS, CSV_PAIR_COLUMNS, csv_text, markdown_text
from layoutopt.generate.random_graphs import random_graph
from layoutopt.unwinding import SOLVERS
from tests.support import refused


@pytest.fixture
def calls() -> Comparison:
    """Return the figure on which greedy0 earns 124 of 130: it wins x ~ target_x, worth 60."""
    return compare(FIGURES["chained_calls_copies"]())


def result(solver: str, score: int | None, bound: int | None, *matched: int) -> UnwindingResult:
    """Return a result on two pairs, of 4 positions worth 10 and 8 positions worth 3."""
    titles = [("a", "b", Decimal(10), 4), ("c", "d", Decimal(3), 8)]
    return UnwindingResult(
        objective=score,
        bound=bound,
        instance="two",
        solver=solver,
        version="1",
        seed=0,
        max_score=Decimal(64),
        pairs=tuple(PairScore(*t, m) for t, m in zip(titles, matched, strict=False)),
    )


@pytest.fixture
def found() -> Comparison:
    """Return an open comparison: the best earns 52, nothing earns more than 60."""
    return Comparison(
        (
            result("exact", 52, 65, 4, 4),  # 40 + 12
            result("bounded", None, 60),
            result("quick", 44, None, 2, 8),  # 20 + 24
        ),
        "two",
    )


@pytest.mark.parametrize("seed", range(8))
def test_losses_by_pair_add_up(seed: int) -> None:
    """What a solver loses by pair is what its score is below the best."""
    comparison = compare(random_graph(seed), SOLVERS)
    assert comparison.best is not None
    for r in comparison.results:
        lost = [p.lost for p in comparison.where_lost() if p.solver == r.solver]
        assert r.score is not None
        assert sum(lost, Decimal(0)) == comparison.best - r.score


def test_results_of_other_pairs_are_refused(found: Comparison) -> None:
    """Pairs of two graphs cannot be compared."""
    other = replace(found.results[2], pairs=found.results[2].pairs[:1])
    with refused("exact", "quick", "ValuedPairs"):
        Comparison((found.results[0], other)).where_lost()


def test_no_solver_with_layouts_loses_nothing() -> None:
    """Without a score there is no best, and no table of pairs."""
    nothing = Comparison((result("a", None, None), result("b", None, 60)))
    assert nothing.best is None
    assert nothing.winner is None
    assert nothing.where_lost() == ()
    assert list(nothing.gaps()) == list(nothing.losses()) == [None, None]
    assert len(list(csv.reader(io.StringIO(nothing.to_csv())))) == 3
    assert "unnamed" in nothing.to_html()


def test_csv_has_all_digits(found: Comparison) -> None:
    """Numbers come back exactly, unknown ones are empty."""
    exact = replace(found.results[0], objective=Decimal("52.000000000000000000001"))
    rows = list(csv.DictReader(io.StringIO(Comparison((exact, *found.results[1:]), "n").to_csv())))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert [row["score"] for row in rows] == ["52.000000000000000000001", "", "44"]
    assert [row["bound"] for row in rows] == ["65", "60", ""]
    assert {row["best_bound"] for row in rows} == {"60"}
    assert [row["status"] for row in rows] == ["feasible", "unknown", "feasible"]
    assert float(rows[2]["gap_to_best_bound"]) == 16 / 44
    assert rows[1]["gap_to_best_bound"] == rows[2]["gap"] == ""
    assert {row["instance"] for row in rows} == {"n"}


def test_csv_of_pairs(calls: Comparison) -> None:
    """With pairs there is a line for each of where_lost."""
    rows = list(csv.DictReader(io.StringIO(calls.to_csv(pairs=True))))
    assert tuple(rows[0]) == CSV_PAIR_COLUMNS
    assert rows[0] == {
        "instance": "chained_calls_copies",
        "solver": "greedy0",
        "a": "x",
        "b": "matmul",
        "value": "9",
        "elements": "6",
        "matched": "0",
        "best": "6",
        "lost": "54",
    }
    assert len(rows) == 4


def test_several_comparisons_are_one_table(found: Comparison, calls: Comparison) -> None:
    """Heads stand once, and each line names its instance."""
    assert csv_text([found, calls]).splitlines() == [
        *found.to_csv().splitlines(),
        *calls.to_csv().splitlines()[1:],
    ]
    lines = markdown_text([found, calls]).splitlines()
    assert [line.split(" | ")[0] for line in lines] == [
        "| instance",
        "| ---",
        *["| two"] * 3,
        *["| chained_calls_copies"] * 2,
    ]


def test_markdown_has_both_tables(calls: Comparison) -> None:
    """The second one, of pairs, is there if it is asked for."""
    solvers, pairs = calls.to_markdown(pairs=True).split("\n\n")
    assert solvers == calls.to_markdown().rstrip("\n")
    assert solvers.splitlines()[3].startswith(
        "| chained_calls_copies | greedy0 | feasible | 124 | 190 | 53.23% | 4.84% |"
    )
    assert pairs.splitlines()[2] == (
        "| chained_calls_copies | greedy0 | x | matmul | 9 | 6 | 0 | 6 | 54 |"
    )


def test_html_is_what_notebooks_show(calls: Comparison) -> None:
    """Tables of solvers and pairs, and both pictures."""
    assert calls.to_html() == calls._repr_html_()
    assert "where solvers lose" in calls.to_html()
    assert "where solvers lose" not in compare(FIGURES["matmul"]()).to_html()


def test_long_tables_end() -> None:
    """A notebook shows thirty pairs, and counts the rest."""
    best = result("best", 52, None)
    pairs = tuple(PairScore(f"a{i}", "b", Decimal(1), 2, 2) for i in range(50))
    worse = tuple(replace(p, matched=1) for p in pairs)
    both = replace(best, pairs=pairs), replace(best, solver="worse", objective=2, pairs=worse)
    shown = Comparison(both).to_html()
    assert shown.count('<td style="text-align:left;overflow-wrap:anywhere">a') == 30
    assert "... and 20 more pairs" in shown
