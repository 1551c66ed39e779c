from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import layoutopt
from layoutopt.bench.job import Job, Solve, Worker, document_hash, outcomes
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import write_instance
from layoutopt.network import CostNetwork, write
from layoutopt.unwinding import unwind
from tests.bench.support import job_of, pair_graph


def job(path: Path, *solvers: str) -> Job:
    solves = tuple(Solve(name, 10.0, seed=2, repeat=1) for name in solvers)
    return job_of(path, *solves)


def test_a_row_says_what_unwind_says(tmp_path: Path) -> None:
    """Score, bound, status, sizes and pairs are those of the call; the rest is the job's."""
    graph = pair_graph()
    write_instance(graph, tmp_path / "a.json")
    auto, greedy = outcomes(job(tmp_path / "a.json", "auto", "greedy0"), Worker())
    row, result = auto.row, unwind(graph)
    assert (row.score, row.bound, row.max_score) == (6, 6, result.max_score)
    assert (row.status, row.stopped, row.error, auto.log) == ("optimal", "finished", "", "")
    assert (row.instance, row.instance_hash) == ("given", document_hash(graph))
    assert (row.solver, row.seed, row.repeat, row.version, row.machine) == (
        "auto",
        2,
        1,
        "7",
        "box",
    )
    assert row.parameters == {"gap": 0.0, "time_limit": 10.0, "workers": 1}
    assert dict(row.size) == {"ops": 3, "pairs": 2} | result.size
    assert row.pairs == (("x", "t", "2", 2, 0), ("x", "s", "3", 2, 2))  # what loses most is first
    assert {"read", "trace", "solve", "check"} <= row.phases.keys()
    assert row.trace[-1] == (row.seconds, 6.0, 6.0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", row.started)
    assert row.peak_bytes is not None
    assert row.peak_bytes > 10 << 20
    assert row.gap == 0
    assert (greedy.row.status, greedy.row.bound, greedy.row.gap) == (
        "feasible",
        10,
        pytest.approx(2 / 3),
    )


def test_objectives_of_networks_are_exact(tmp_path: Path) -> None:
    """Integers and finite decimals keep all their digits; others have 20."""
    for cost, score in (
        (Fraction(10**30 + 1, 8), "-125000000000000000000000000000.125"),
        (Fraction(10**3000 + 1), f"-{10**3000 + 1}"),
        (Fraction(1, 3), "-0.33333333333333333333"),
        (Fraction(1, 3 * 10**390), "-3.3333333333333333333E-391"),
    ):
        net = CostNetwork("one")
        net.node("a", net.domain(1), [cost])
        write(net, tmp_path / "a.json", overwrite=True)
        [found] = outcomes(job(tmp_path / "a.json", "auto"), Worker())
        assert str(found.row.score) == score
        assert Decimal(score) == found.row.bound


def test_what_cannot_be_read_fails_once_for_each_solve(tmp_path: Path) -> None:
    """The reason is the reader's own line; the identity stands for the hash."""
    (tmp_path / "a.json").write_text('{"format": "other"}')
    asked = job(tmp_path / "a.json", "auto", "greedy0")
    found = list(outcomes(asked, Worker()))
    assert [outcome.row.solver for outcome in found] == ["auto", "greedy0"]
    for outcome in found:
        assert (outcome.row.status, outcome.row.instance_hash) == ("failed", asked.identity)
        assert "a.json" in outcome.row.error
        assert "$.format" in outcome.row.error
        assert "Traceback" in outcome.log


ERRORS = {
    MemoryError(): "out of memory",
    ValueError("two\nlines"): "ValueError: two lines",
    RuntimeError(): "RuntimeError:",
    layoutopt.InputError("wrong", "$.x", "f"): "f: $.x: wrong",
    layoutopt.SolverError("HiGHS failed"): "HiGHS failed",
}


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_a_solver_raises_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A failure has its reason in one line, its traceback in the log, and others go on."""

    def broken(graph: Graph, solver: str, **_: object) -> object:
        if solver == "cpsat":
            raise error
        return unwind(graph, solver)

    monkeypatch.setattr("layoutopt.unwinding.unwind", broken)
    write_instance(pair_graph(), tmp_path / "a.json")
    first, second = outcomes(job(tmp_path / "a.json", "cpsat", "greedy0"), Worker())
    assert (first.row.status, first.row.error) == ("failed", ERRORS[error])
    assert (first.row.score, first.row.trace) == (None, ())
    assert "Traceback" in first.log
    assert first.row.seconds >= 0
    assert second.row.status == "feasible"
