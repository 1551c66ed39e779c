"""Answers in hand: whatever a search comes to, what a heuristic had is not lost."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

from layoutopt import unwind
from layoutopt.base.errors import SizeError
from layoutopt.base.result import Status, Stopped
from layoutopt.check import elements
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph

LIMIT = 1.5


def small() -> Graph:
    """Return a graph on which greedy0 earns 8 of 15, and default layouts nothing."""
    graph = Graph("aliases")
    x = graph.sink((1,), name="x")
    a, b = graph.source((1,), name="a"), graph.source((1,), name="b")
    for _ in range(5):
        graph.valued_pair(graph.identity(x), b, 3)
    graph.valued_pair(x, a, 8)
    return graph


def forever(*_: Any, **__: Any) -> Any:
    """Go on until somebody ends it from outside."""
    while True:
        pass


@pytest.mark.parametrize("solver", ["auto", "cpsat", "mip", "refined"])
@pytest.mark.parametrize("step", ["lower", "stoppable"])
def test_a_search_without_end(monkeypatch: pytest.MonkeyPatch, solver: str, step: str) -> None:
    """Where tracing or solving takes all the time, the answer is that of greedy0."""
    monkeypatch.setattr(f"layoutopt.unwinding.{step}", forever)
    begun = time.monotonic()
    result = unwind(small(), solver, time_limit=LIMIT)
    assert time.monotonic() - begun < LIMIT + 5  # slow machines included
    assert (result.score, result.stopped) == (8, Stopped.TIME_LIMIT)
    assert elements.evaluate(small(), result.layouts or {}).score == 8
    assert abs(result.seconds["total"] - LIMIT) < 5


def test_a_check_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check of a better answer does not end in time, that in hand is given."""
    monkeypatch.setattr("layoutopt.unwinding.evaluate", forever)
    result = unwind(small(), time_limit=LIMIT)
    assert (result.score, result.bound, result.status) == (8, 15, Status.FEASIBLE)
    assert result.stopped is Stopped.TIME_LIMIT


def test_a_heuristic_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then there are at least default layouts, checked; and the search finds what it finds."""
    monkeypatch.setattr("layoutopt.lowering.reserve.greedy0", forever)
    assert unwind(small(), time_limit=LIMIT).score == 15
    monkeypatch.setattr("layoutopt.unwinding.lower", forever)
    result = unwind(small(), time_limit=LIMIT)
    assert (result.score, result.status) == (0, Status.FEASIBLE)


def test_a_graph_that_is_too_irregular(monkeypatch: pytest.MonkeyPatch) -> None:
    """What greedy0 chose is the answer even then, with a limit and without one."""

    def refuse(*_: Any) -> Any:
        raise SizeError("irregular")

    monkeypatch.setattr("layoutopt.unwinding.lower", refuse)
    result = unwind(small(), time_limit=20)
    assert (result.score, result.stopped) == (8, Stopped.SIZE_LIMIT)
    result = unwind(small())
    assert (result.score, result.stopped) == (8, Stopped.SIZE_LIMIT)


@pytest.mark.parametrize("limit", [None, 60.0])
@pytest.mark.parametrize("step", ["lower", "stoppable", "evaluate"])
def test_ctrl_c(monkeypatch: pytest.MonkeyPatch, step: str, limit: float | None) -> None:
    """It ends soon with a checked answer, whatever it comes upon, a check included."""
    monkeypatch.setattr(f"layoutopt.unwinding.{step}", forever)
    pressed = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    begun = time.monotonic()
    pressed.start()
    result = unwind(small(), time_limit=limit)
    assert time.monotonic() - begun < 6  # slow machines included; it takes less than 2
    assert (result.stopped, result.status) == (Stopped.INTERRUPTED, Status.FEASIBLE)
    assert result.score == (0 if (step, limit) == ("lower", None) else 8)


def test_limits_change_no_answer() -> None:
    """With time enough, results are those without a limit."""
    for seed in range(10):
        graph = random_graph(seed)
        free, limited = unwind(graph), unwind(graph, time_limit=60)
        assert (free.layouts, free.bound) == (limited.layouts, limited.bound)
