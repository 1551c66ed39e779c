"""Heuristics on graphs: starts, layouts that are kept, tile memories, hooks, and any size."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

from layoutopt import unwinding
from layoutopt.base.result import Status, UnwindingResult
from layoutopt.check.elements import evaluate
from layoutopt.generate.layers import training_step
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering.assignment import read_origins
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.hooked import own_hooks, random_hooked
from tests.machine.test_capacitated import crowded
from tests.support import HEURISTIC, refused

names = pytest.mark.parametrize("name", HEURISTIC)

CONTESTED = (0, 1, 2, 3, 4, 7, 8, 9, 21, 28, 32, 40, 43)
"""Seeds of tiny graphs on tiles; about half of the time heuristics find layouts that fit."""


@cache
def solved(seed: int) -> tuple[Graph, UnwindingResult]:
    """Return a random graph and its optimum."""
    graph = random_graph(seed, elements=20, ops=12, pairs=6, negative=seed % 2 == 0)
    return graph, unwind(graph)


@cache
def contested(seed: int) -> tuple[Graph, UnwindingResult]:
    """Return a tiny graph on tiles that may hold too little, and its optimum, if there is one."""
    graph = crowded(seed)
    assert graph is not None
    return graph, unwind(graph)


@cache
def hooked(seed: int) -> tuple[Graph, UnwindingResult]:
    """Return a graph whose barriers have hooks, which must be registered, and its optimum."""
    graph = random_hooked(seed)
    return graph, unwind(graph)


def legal(graph: Graph, result: UnwindingResult) -> None:
    """Check that layouts break no rule, and earn what the result says, within its bound."""
    found = evaluate(graph, result.layouts or {})
    assert (found.violations, found.score) == ((), result.score)
    assert result.bound is not None
    assert result.score is not None
    assert result.score <= result.bound


@pytest.mark.parametrize("name", ["refined", "alpha-expansion"])
def test_better_than_greedy0(name: str) -> None:
    """What begins with greedy0's answer earns at least as much, and often more."""
    better = 0
    for seed in range(10, 50):
        graph = random_graph(seed, elements=24, ops=14, pairs=8, negative=seed % 2 == 0)
        greedy, found = unwind(graph, "greedy0"), unwind(graph, name)
        assert (found.score or 0) >= (greedy.score or 0)
        better += (found.score or 0) > (greedy.score or 0)
    assert better > 10


@names
def test_given_layouts(name: str) -> None:
    """Fixed layouts are kept, and the answer is worth as much as a start at least."""
    for seed in range(8, 14):
        graph, best = solved(seed)
        assert (unwind(graph, name, start=best).score or 0) == (best.score or 0)
        kept = {sink: pieces for sink, pieces in [*(best.layouts or {}).items()][:1] if pieces}
        found = unwind(graph, name, fixed=kept)
        legal(graph, found)
        assert (found.score or 0) <= (best.score or 0)
        before, after = (read_origins(graph, layouts, "") for layouts in (kept, found))
        for sink in before:
            assert np.array_equal(before[sink], after[sink])


@names
def test_tile_memories(name: str) -> None:
    """Layouts that fit are an answer, others are none, and no optimum is beaten."""
    seen: Counter[str] = Counter()
    for seed in CONTESTED:
        graph, best = contested(seed)
        found = unwind(graph, name)
        seen[str(found.status)] += 1
        if found.layouts is None:
            assert (found.score, found.status) == (None, Status.UNKNOWN)
        else:
            legal(graph, found)
            assert best.score is not None
            assert (found.score or 0) <= best.score
    assert min(seen["feasible"] + seen["optimal"], seen["unknown"]) > 5


@names
def test_hooks(name: str) -> None:
    """Barriers' hooks count in what layouts earn, though heuristics do not see them."""
    answered = 0
    with own_hooks():
        for seed in range(11, 20):
            graph, best = hooked(seed)
            found = unwind(graph, name)
            if found.layouts is not None:
                legal(graph, found)
                assert best.bound is not None
                assert (found.score or 0) <= best.bound
                answered += 1
            if seed % 2:
                opaque = unwind(graph, name, barriers="opaque")
                assert opaque.bound is not None
                assert (opaque.score or 0) <= opaque.bound
        with refused("fixed layouts are not supported for graphs with barrier hooks"):
            graph = random_hooked(39)  # of its own, as it is changed
            sink = graph.sinks()[0]
            source = graph.source(sink.shape, name="here")
            given = {sink: ((source, 0, 0, ((sink.size, 1, 1),)),)}
            unwind(graph, name, fixed=given)
    assert answered > 2


def test_hooks_that_are_views() -> None:
    """A built-in hook is a view to heuristics, too: the output lies where its input does."""
    graph = Graph("views")
    graph.tile_memory = TileMemory(4, 100, {"default": 1})
    x = graph.sink((4,), name="x")
    known = graph.barrier([x], (4,), hook="same", name="b")
    graph.valued_pair(known, graph.source((4,), [3, 2, 1, 0], name="s"), 5)
    for name in HEURISTIC:
        assert unwind(graph, name).score == 20


@names
def test_any_size(name: str) -> None:
    """Layers of 10^9 weights are a few classes, solved without touching elements."""
    graph = training_step(layers=2, width=2**15)
    best, found = unwind(graph), unwind(graph, name)
    assert graph.sinks()[0].size > 10**4
    assert found.score == best.score
    assert found.size["free_elements"] > 10**9


@names
def test_starts_come_from_greedy0(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without greedy0's answer heuristics begin with fresh labels, and still answer."""
    monkeypatch.setattr(unwinding, "START_LIMIT", 0)
    for seed in range(12):
        graph, best = solved(seed)
        found = unwind(graph, name)
        legal(graph, found)
        assert (found.score or 0) <= (best.score or 0)


def test_numbers_of_any_size() -> None:
    """Values of hundreds of digits are scored exactly."""
    graph = Graph("wide")
    x = graph.sink((2,), name="x")
    for value in ("1e300", "1e-300", "3"):
        graph.valued_pair(x, graph.source((2,)), value)
    for name in HEURISTIC:
        found = unwind(graph, name)
        assert found.score == 2 * 10**300
