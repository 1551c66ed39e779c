"""Searches that do not end as they should: the graph as it is given is the answer then."""

from __future__ import annotations

import time

import numpy as np
import pytest

from layoutopt.base import deadline
from layoutopt.base.limits import Interrupt, Limits
from layoutopt.base.result import Status, Stopped
from layoutopt.conversion import labelling
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.network.costs.problem import CostAnswer
from tests.conversion.running import arrays_of, run, run_conversion


def given() -> ConversionGraph:
    """Return two transposes of 24 elements of 4 bytes, of which none is needed."""
    graph = ConversionGraph("given")
    x = graph.input("x", (2, 3, 4), "NWC")
    y = graph.op("Relu", [graph.op("Transpose", [x], {"perm": (0, 2, 1)})])
    graph.output(graph.op("Transpose", [y], {"perm": (0, 2, 1)}))
    return graph


def out_of_memory(*_given: object) -> CostAnswer:
    """Find no more memory."""
    raise MemoryError


def without_end(*_given: object) -> CostAnswer:
    """Go on for ever, and look at no limit."""
    while True:
        sum(range(100))


def stopped() -> Interrupt:
    """Return a request to stop that has come."""
    interrupt = Interrupt()
    interrupt.set()
    return interrupt


@pytest.mark.parametrize(
    ("solve", "limits", "why"),
    [
        (out_of_memory, Limits(), Stopped.MEMORY_LIMIT),
        (out_of_memory, Limits(deadline=time.monotonic() + 10**6), Stopped.MEMORY_LIMIT),
        (without_end, Limits(deadline=0), Stopped.TIME_LIMIT),
        (without_end, Limits(interrupt=stopped()), Stopped.INTERRUPTED),
    ],
)
def test_what_is_given_is_the_answer(
    monkeypatch: pytest.MonkeyPatch, solve: object, limits: Limits, why: Stopped
) -> None:
    """A search that is ended leaves the graph at its cost, 192 bytes, with nothing proved."""
    graph = given()
    assert convert_graph(graph).objective == (0,)
    monkeypatch.setattr(labelling, "solve_pbqp", solve)
    monkeypatch.setitem(deadline.PATIENCE, "solve", deadline.Patience(0.0, 0.0))
    found = convert_graph(graph, limits=limits)
    assert (found.status, found.stopped) == (Status.FEASIBLE, why)
    assert (found.objective, found.bound) == ((192,), (0,))
    arrays = arrays_of(graph, 0)
    before, after = run(graph, arrays), run_conversion(found, arrays)
    for name in graph.outputs:
        np.testing.assert_array_equal(after[name], before[name])


def test_no_search_follows_when_memory_has_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after in the same call sees that memory is full."""
    limits = Limits()
    monkeypatch.setattr(labelling, "solve_pbqp", out_of_memory)
    convert_graph(given(), limits=limits)
    assert limits.stopped is Stopped.MEMORY_LIMIT
