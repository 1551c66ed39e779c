"""What no reduction solves, with easier ways out barred."""

from __future__ import annotations

import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.costs import reductions as reduce_module
from layoutopt.network.costs import solve
from layoutopt.network.costs.problem import Problem
from layoutopt.network.costs.reductions import tidy
from layoutopt.network.costs.solve import solve_parts
from layoutopt.network.costs.work import Infeasible
from layoutopt.network.solvers import cpsat
from tests.pbqp.cases import opened, optimum, random_problem


@pytest.fixture
def unreduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing but normal form before the stages."""
    monkeypatch.setattr(solve, "_easy", lambda *_: None)
    monkeypatch.setattr(reduce_module, "RULES", ((tidy,),))
    monkeypatch.setattr(reduce_module, "dominate", lambda *_: [])


@pytest.fixture
def barred(unreduced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bar large tables as well, so that relaxation, polishing and CP-SAT remain."""
    monkeypatch.setattr(solve, "LARGE_TABLE", 0)


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("wide", [1, pytest.param(2**45, marks=pytest.mark.cpsat)])
def test_every_stage_ends_with_a_proof(stage: int, wide: int) -> None:
    """From any stage on 60 random problems are solved, or proved infeasible."""
    feasible = 0
    for seed in range(60):
        problem = random_problem(seed, nodes=5, wide=wide)
        best, work = optimum(problem), opened(problem)
        try:
            found = None if work is None else solve_parts(work, Limits(), None, stage)
        except Infeasible:
            assert best is None
            continue
        if work is not None and found is not None:
            assert found.labels is not None
            assert opened(problem).value(found.labels) == best == found.bound
            feasible += 1
    assert feasible > 30


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_a_labelling_to_begin_with_is_not_lost(stage: int) -> None:
    """Without time it is what is found, with a bound below it."""
    for seed in range(40):
        problem = random_problem(seed)
        best, work = optimum(problem), opened(problem)
        if work is None or best is None:
            continue
        start = solve_parts(opened(problem), Limits(), None).labels
        found = solve_parts(work, Limits(deadline=0.0), start, stage)
        assert found.labels == start
        assert found.bound <= best


@pytest.mark.usefixtures("barred")
def test_what_polishing_closes_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that cost 4 become ones that cost 2, which is the least of the table."""
    monkeypatch.setattr(cpsat, "solve_programme", None)
    work = opened(Problem.of([[0, 0, 0]] * 2, [(0, 1, [[4, 3, 2], [3, 5, 9], [9, 4, 6]])]))
    assert work is not None
    found = solve_parts(work, Limits(), [0, 0], 1)
    assert (found.labels, found.bound) == ([0, 2], 2)


@pytest.mark.usefixtures("unreduced")
def test_large_tables_come_before_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they solve needs no CP-SAT."""
    monkeypatch.setattr(cpsat, "solve_programme", None)
    for seed in range(40):
        problem = random_problem(seed)
        best, work = optimum(problem), opened(problem)
        if work is not None and best is not None:
            found = solve_parts(work, Limits(), None, 2)
            assert found.labels is not None
            assert opened(problem).value(found.labels) == best == found.bound


@pytest.mark.usefixtures("unreduced")
def test_large_tables_need_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is little memory, it is CP-SAT that finds the optimum."""
    problem = random_problem(1)
    work = opened(problem)
    assert work is not None
    monkeypatch.setattr(solve, "available", lambda: 2**20)
    monkeypatch.setattr(solve, "eliminate", None)
    assert solve_parts(work, Limits(), None, 2).bound == optimum(problem)


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize("stage", [0, 1, 2])
def test_what_only_search_sees_to_be_infeasible(stage: int) -> None:
    """Three nodes of two labels that all must differ: half of each label suits the relaxation."""
    differ = ((None, 0), (0, None))
    ring = [(0, 1, differ), (1, 2, differ), (2, 0, differ)]
    work = opened(Problem.of([[0, 0]] * 3, ring))
    assert work is not None
    with pytest.raises(Infeasible):
        solve_parts(work, Limits(), None, stage)


@pytest.mark.usefixtures("barred")
def test_without_a_relaxation_there_is_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where HiGHS fails the optimum is found all the same."""
    monkeypatch.setattr(solve, "relax", lambda *_: None)
    for seed in range(40):
        problem = random_problem(seed, nodes=5)
        best, work = optimum(problem), opened(problem)
        if work is not None and best is not None:
            assert solve_parts(work, Limits(), None).bound == best


@pytest.mark.usefixtures("barred")
def test_numbers_beyond_the_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts whose numbers are too large for solvers get a labelling and a bound that holds."""
    monkeypatch.setattr(solve, "LARGEST", 0)
    monkeypatch.setattr(cpsat, "solve_programme", None)
    for solver in ("relax", "polish"):
        monkeypatch.setattr(solve, solver, None)
    for seed in range(40):
        problem = random_problem(seed, nodes=5)
        best, work = optimum(problem), opened(problem)
        if work is not None and best is not None:
            found = solve_parts(work, Limits(), None)
            assert found.bound <= best
