"""Answers in hand: whatever a search comes to, what a heuristic had is not lost."""

from __future__ import annotations

import math
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from layoutopt import unwind
from layoutopt.base.deadline import BUSY
from layoutopt.base.entries import built_in
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.result import Status
from layoutopt.check import elements
from layoutopt.generate.random_graphs import random_graph
from layoutopt.network.solvers.formulation import by_cpsat, by_highs
from tests.support import aliases, hard_problem

LIMIT = 1.0


def forever(*_: Any, **__: Any) -> Any:
    """Go on until somebody ends it from outside."""
    while True:
        time.sleep(0.001)


def make_endless(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Let a step of :func:`unwind` go on until somebody ends it."""
    if step == "search":
        endless = replace(built_in()["auto"], place=forever)
        monkeypatch.setattr("layoutopt.unwinding.solver_named", lambda _: endless)
    else:
        monkeypatch.setattr(f"layoutopt.unwinding.{step}", forever)


def refuse(*_: Any) -> Any:
    """Find everything too irregular."""
    raise SizeError("irregular")


def test_a_start_whose_check_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the search takes all the time, so may the check whether its start is in order."""
    until = time.monotonic() + 20

    def slow(*_: Any) -> bool:
        while time.monotonic() < until:
            time.sleep(0.001)
        return True

    make_endless(monkeypatch, "search")
    monkeypatch.setattr("layoutopt.network.heuristics.frame.allowed", slow)
    result = unwind(aliases(), time_limit=LIMIT)
    assert time.monotonic() < until - 10
    assert (result.score, result.stopped) == (8, Stopped.TIME_LIMIT)


@pytest.mark.parametrize(
    ("step", "solver"),
    [("lower", "auto"), *(("search", solver) for solver in ("auto", "cpsat", "mip", "refined"))],
)
def test_a_search_without_end(monkeypatch: pytest.MonkeyPatch, step: str, solver: str) -> None:
    """Where tracing or solving takes all the time, the answer is that of greedy0."""
    make_endless(monkeypatch, step)
    begun = time.monotonic()
    result = unwind(aliases(), solver, time_limit=LIMIT)
    assert time.monotonic() - begun < LIMIT + 5  # slow machines included
    assert (result.score, result.stopped) == (8, Stopped.TIME_LIMIT)
    assert elements.evaluate(aliases(), result.layouts or {}).score == 8
    assert abs(result.seconds["total"] - LIMIT) < 5


def test_a_check_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check of a better answer does not end in time, that in hand is given."""
    monkeypatch.setattr("layoutopt.unwinding.evaluate", forever)
    result = unwind(aliases(), time_limit=LIMIT)
    assert (result.score, result.bound, result.status) == (8, 15, Status.FEASIBLE)
    assert result.stopped is Stopped.TIME_LIMIT


def test_a_heuristic_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there are at least default layouts, checked; and the search finds what it finds."""
    monkeypatch.setattr("layoutopt.lowering.assignment.greedy0", forever)
    assert unwind(aliases(), time_limit=LIMIT).score == 15
    monkeypatch.setattr("layoutopt.unwinding.lower", forever)
    result = unwind(aliases(), time_limit=LIMIT)
    assert (result.score, result.status) == (0, Status.FEASIBLE)


def test_a_graph_that_is_too_irregular(monkeypatch: pytest.MonkeyPatch) -> None:
    """What greedy0 chose is the answer even then, with a limit and without one."""
    monkeypatch.setattr("layoutopt.unwinding.lower", refuse)
    result = unwind(aliases(), time_limit=20)
    assert (result.score, result.stopped) == (8, Stopped.SIZE_LIMIT)
    result = unwind(aliases())
    assert (result.score, result.stopped) == (8, Stopped.SIZE_LIMIT)


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize(("step", "score"), [("lower", 8), ("search", 8), ("greedy0", 0)])
def test_memory_that_runs_out(
    monkeypatch: pytest.MonkeyPatch, step: str, score: int, limit: float | None
) -> None:
    """greedy0 is asked when what the solver took is free again, default layouts are after that."""

    def greedy(*_: Any, **__: Any) -> Any:
        raise MemoryError

    if step == "search":
        found = replace(built_in()["auto"], place=greedy)
        monkeypatch.setattr("layoutopt.unwinding.solver_named", lambda _: found)
    else:
        monkeypatch.setattr("layoutopt.unwinding.lower", greedy)
    if step == "greedy0":
        monkeypatch.setattr("layoutopt.lowering.heuristics.choose", greedy)
        monkeypatch.setattr("layoutopt.lowering.assignment.greedy0", greedy)
    result = unwind(aliases(), time_limit=limit)
    assert (result.score, result.status) == (score, Status.FEASIBLE)
    assert result.stopped is Stopped.MEMORY_LIMIT
    assert elements.evaluate(aliases(), result.layouts or {}).score == score


@pytest.mark.parametrize("solver", ["auto", "mip", "greedy0"])
@pytest.mark.parametrize("limit", [None, 60.0])
def test_a_layout_that_cannot_be_checked(
    monkeypatch: pytest.MonkeyPatch, solver: str, limit: float | None
) -> None:
    """Where pieces are too irregular to be checked, others that are not are the answer."""
    monkeypatch.setattr("layoutopt.unwinding.evaluate", refuse)
    result = unwind(aliases(), solver, time_limit=limit)
    assert (result.stopped, result.status) == (Stopped.SIZE_LIMIT, Status.FEASIBLE)
    assert elements.evaluate(aliases(), result.layouts or {}).score == result.score


@pytest.mark.parametrize("solver", ["auto", "cpsat", "mip", "refined", "greedy0"])
def test_a_limit_that_is_over_at_once(solver: str) -> None:
    """Default layouts are checked even then, but not where a limit of 0 asks for nothing."""
    result = unwind(aliases(), solver, time_limit=1e-6)
    assert (result.stopped, result.status) == (Stopped.TIME_LIMIT, Status.FEASIBLE)
    assert elements.evaluate(aliases(), result.layouts or {}).score == result.score
    assert unwind(aliases(), solver, time_limit=0).status is Status.UNKNOWN


@pytest.mark.parametrize("solver", [by_cpsat, by_highs])
@pytest.mark.parametrize(
    ("left", "stopped"), [(0.05, Stopped.TIME_LIMIT), (math.inf, Stopped.SIZE_LIMIT)]
)
def test_a_programme_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch, solver: Any, left: float, stopped: Stopped
) -> None:
    """It is refused before it is written, by the memory and by the time that there is."""
    if stopped is Stopped.SIZE_LIMIT:
        monkeypatch.setattr("layoutopt.base.limits.available_memory", lambda: 2**26)
    monkeypatch.setattr("layoutopt.network.solvers.formulation.indicators", None)
    problem = hard_problem(1, 1000, 20)
    result = solver(problem, Limits(deadline=time.monotonic() + left), None)
    assert (result.labelling, result.stopped) == (None, stopped)
    assert result.bound == problem.ceiling()


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize("step", ["lower", "search", "evaluate"])
def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, step: str, limit: float | None) -> None:
    """It ends soon with a checked answer, whatever it comes upon, a check included."""
    make_endless(monkeypatch, step)
    begun, worked = time.monotonic(), time.process_time()
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    result = unwind(aliases(), time_limit=limit)
    assert time.process_time() - worked < 6  # it takes about 4
    assert time.monotonic() - begun < 6 + BUSY  # where others take the processor
    assert (result.stopped, result.status) == (Stopped.INTERRUPTED, Status.FEASIBLE)
    assert result.score == (0 if (step, limit) == ("lower", None) else 8)


def test_limits_change_no_answer() -> None:
    """With time enough, results are those without a limit."""
    for seed in range(10):
        graph = random_graph(seed)
        free, limited = unwind(graph), unwind(graph, time_limit=60)
        assert (free.layouts, free.bound) == (limited.layouts, limited.bound)
