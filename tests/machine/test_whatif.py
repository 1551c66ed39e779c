"""Scores at other capacities and the smallest machine, against unwinding and trying everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import count, islice, pairwise
from typing import Any

import pytest

from layoutopt.base.result import Result, Status
from layoutopt.graphs.unwinding import Graph
from layoutopt.machine.whatif import capacity_sweep, nested, smallest_machine
from layoutopt.tiles.hooks import hook
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.machine.crowded import crowded, refitted, tried
from tests.machine.test_capacitated import full
from tests.support import refused


def crowds(number: int) -> Iterator[Graph]:
    """Yield so many tiny graphs on machines with hardly any room."""
    yield from islice(filter(None, map(crowded, count(1000))), number)


def resized(graph: Graph, room: int) -> Graph:
    """Return a graph on a machine with other capacities."""
    memory = graph.tile_memory
    assert memory is not None
    return refitted(graph, TileMemory(memory.tiles, room, memory.element_bytes, memory.grain))


def test_a_sweep_is_unwinding_at_each_capacity() -> None:
    """Score, bound and status are those of solving each machine by itself, and never fall."""
    seen: Counter[Status] = Counter()
    for graph in crowds(28):
        assert graph.tile_memory is not None
        own = graph.tile_memory.bytes_per_tile
        sizes = range(max(1, own - 3), own + 3)
        points = capacity_sweep(graph, bytes_per_tile=sizes)
        assert [p.bytes_per_tile for p in points] == list(sizes)
        for p in points:
            result = unwind(resized(graph, p.bytes_per_tile))
            assert (p.status, p.score, p.bound) == (result.status, result.score, result.bound)
            seen[p.status] += 1
        scores = [p.score for p in points if p.score is not None]
        assert all(a <= b for a, b in pairwise(scores))
    assert min(seen[Status.OPTIMAL], seen[Status.INFEASIBLE]) > 28


def test_the_smallest_machine_is_the_smallest() -> None:
    """By trying everything: there as much is earned as with all on one tile, below it less."""
    sizes = set()
    for graph in crowds(70):
        memory = graph.tile_memory
        assert memory is not None
        total = sum(sink.size * memory.bytes_of(sink.name) for sink in graph.sinks())
        found = smallest_machine(graph)
        assert found.proved
        best = tried(resized(graph, total))
        assert best is not None
        assert tried(resized(graph, found.low)) == best
        assert found.low == 1 or tried(resized(graph, found.low - 1)) != best
        sizes.add((found.low, total))
    assert len(sizes) > 20


def test_large_graphs_are_counted_without_their_elements() -> None:
    """Ten thousand million elements that all want tile 0 get as many places as it has."""
    graph = Graph("large")
    graph.tile_memory = TileMemory(3, 10**9, {"default": 1})
    shape = (100_000, 100_000)
    s = graph.source(shape, rule={"kind": "grid", "blocks": [1, 1]}, name="s")
    graph.valued_pair(graph.sink(shape, name="x"), s, 1)
    sizes = [3 * 10**9, 4 * 10**9, 9_999_999_999, 2 * 10**10]
    points = capacity_sweep(graph, bytes_per_tile=sizes)
    assert [p.score for p in points] == [None, 4 * 10**9, 9_999_999_999, 10**10]
    assert [str(p.status) for p in points] == ["infeasible", "optimal", "optimal", "optimal"]
    assert smallest_machine(graph).low == 10**10


def test_barriers_that_are_views() -> None:
    """Built-in hooks are answered for; those that are no views are refused."""
    graph = full()
    y = graph.barrier([graph.sink((3,), name="y")], (3,), hook="same")
    graph.valued_pair(y, graph.source((3,), [0, 0, 0], name="t"), 7)
    [point] = capacity_sweep(graph, bytes_per_tile=[5])
    assert point.score == unwind(resized_in_place(graph, 5)).score == 3 * 7 + 2 * 5

    hook("what-if")(lambda inputs, shapes, memory: [inputs[0] * 0 for _ in shapes])
    odd = graph.barrier([graph.sink((3,), name="z")], (3,), hook="what-if", name="odd")
    graph.valued_pair(odd, graph.source((3,), [0, 0, 0], name="u"), 7)
    for ask in (smallest_machine, lambda g: capacity_sweep(g, [1])):
        with refused("barrier 'odd': its hook is no view"):
            ask(graph)


def resized_in_place(graph: Graph, room: int) -> Graph:
    """Give a graph's machine another capacity."""
    memory = graph.tile_memory
    assert memory is not None
    graph.tile_memory = TileMemory(memory.tiles, room, memory.element_bytes, memory.grain)
    return graph


def test_points_tell_of_each_other() -> None:
    """Scores hold for larger machines; bounds and proofs that nothing fits hold for smaller."""
    given = [
        Result(),
        Result(infeasible="no"),
        Result(objective=Decimal(3), bound=Decimal(9)),
        Result(bound=Decimal(8)),
        Result(objective=Decimal(5), bound=Decimal(8)),
        Result(objective=Decimal(8)),
    ]
    points = nested(range(1, 7), given)
    assert [(p.score, p.bound, str(p.status)) for p in points] == [
        (None, None, "infeasible"),
        (None, None, "infeasible"),
        (3, 8, "feasible"),
        (3, 8, "feasible"),
        (5, 8, "feasible"),
        (8, None, "feasible"),
    ]


def test_without_time() -> None:
    """Nothing is claimed but what bytes alone prove."""
    assert [p.status for p in capacity_sweep(full(), [0.5, 1], time_limit=0)] == ["unknown"] * 2
    found = smallest_machine(full(), time_limit=0)
    assert (found.low, found.high, found.proved) == (3, None, False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"scales": [0]}, "scale 0: makes 0 bytes per tile, 1 to 2^40 is allowed"),
        ({"scales": [1, -1]}, "scale -1: makes -4 bytes per tile"),
        ({"scales": [0.2]}, "scale 0.2: makes 0 bytes per tile"),
        ({"scales": [1e12]}, "1 to 2^40 is allowed"),
        ({"scales": ["x"]}, "value 'x' is not a decimal number"),
        ({"scales": [float("nan")]}, "value nan is not finite"),
        ({"bytes_per_tile": [4, 0]}, "bytes_per_tile: 0 is no integer from 1 to 2^40"),
        ({"bytes_per_tile": [-4]}, "bytes_per_tile: -4 is no integer"),
        ({"bytes_per_tile": [4.5]}, "bytes_per_tile: 4.5 is no integer"),
        ({"bytes_per_tile": [2**41]}, "is no integer from 1 to 2^40"),
        ({}, "either scales or bytes_per_tile"),
        ({"scales": [1], "bytes_per_tile": [1]}, "either scales or bytes_per_tile"),
        ({"scales": [1], "time_limit": -1}, "time_limit must be 0 seconds or more, got -1"),
        ({"scales": [1], "workers": 0}, "workers must be 1 or more, got 0"),
    ],
)
def test_bad_input(words: dict[str, Any], told: str) -> None:
    """Whatever is no capacity is one line that says what is allowed."""
    with refused(told):
        capacity_sweep(full(), **words)


def test_without_a_machine() -> None:
    """Both questions need a tile memory."""
    graph = Graph()
    graph.sink((2,))
    for ask in (smallest_machine, lambda g: capacity_sweep(g, [1])):
        with refused("the graph has no tile memory"):
            ask(graph)
