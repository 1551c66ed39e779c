"""Machines of other capacities: prices, sweeps, cycles."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import count, islice, pairwise

import pytest
from msgspec.structs import replace

from layoutopt import cycle_values
from layoutopt.base.result import Result, Status
from layoutopt.graphs.tiling import memory_of
from layoutopt.graphs.unwinding import Graph
from layoutopt.machine.simulation import exchange_rate
from layoutopt.machine.whatif import capacity_sweep, nested, shadow_prices, smallest_machine
from layoutopt.tiles.hooks import hook
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.machine.crowded import crowded, refitted, tried
from tests.machine.test_capacitated import full
from tests.support import named_pairs, refused

# Scores at other capacities and the smallest machine, against unwinding and trying everything


def crowds(number: int) -> Iterator[Graph]:
    """Yield so many tiny graphs on machines with hardly any room."""
    yield from islice(filter(None, map(crowded, count(1000))), number)


def resized(graph: Graph, room: int) -> Graph:
    """Return a graph on a machine with other capacities."""
    return refitted(graph, replace(memory_of(graph), bytes_per_tile=room))


def test_a_sweep_is_unwinding_at_each_capacity() -> None:
    """Score, bound and status are those of solving each machine by itself, and never fall."""
    seen: Counter[Status] = Counter()
    for graph in crowds(21):
        own = memory_of(graph).bytes_per_tile
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
    for graph in crowds(30):
        memory = memory_of(graph)
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
    graph.tile_memory = replace(memory_of(graph), bytes_per_tile=5)
    assert point.score == unwind(graph).score == 3 * 7 + 2 * 5
    hook("what-if")(lambda inputs, shapes, memory: [inputs[0] * 0 for _ in shapes])
    odd = graph.barrier([graph.sink((3,), name="z")], (3,), hook="what-if", name="odd")
    graph.valued_pair(odd, graph.source((3,), [0, 0, 0], name="u"), 7)
    for ask in (smallest_machine, lambda g: capacity_sweep(g, [1])):
        with refused("barrier 'odd': its hook is no view"):
            ask(graph)


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


def test_without_a_machine() -> None:
    """Both questions need a tile memory."""
    graph = Graph()
    graph.sink((2,))
    for ask in (smallest_machine, lambda g: capacity_sweep(g, [1])):
        with refused("the graph has no tile memory"):
            ask(graph)


# Prices of capacity, by hand and against trying everything


def wanted(room: int = 4) -> Graph:
    """Return two sinks that want tile 0: three bytes of 5 each, and two elements of 2 bytes of 8.

    Of 4 bytes there two elements of ``x`` and one of ``y`` earn most, 18.  A byte of ``y`` is
    worth 4: as if elements could be split, that gives 3 * 5 + 8 / 2 = 19.
    """
    graph = Graph("wanted")
    graph.tile_memory = TileMemory(2, room, {"x": 1, "y": 2})
    for name, elements, value in (("x", 3, 5), ("y", 2, 8)):
        there = graph.source((elements,), [0] * elements, name=f"{name} there")
        graph.valued_pair(graph.sink((elements,), name=name), there, value)
    return graph


def test_grains_and_units() -> None:
    """With grains of 3 bytes fewer are worth nothing; values have a unit, constants count."""
    graph = full(grain=3)
    a = graph.source((1,), [1], name="a")
    graph.valued_pair(a, graph.source((1,), [1], name="b"), "0.5")
    found = shadow_prices(graph, unwind(graph))
    assert (found.score, found.bound, found.grain) == (Fraction(31, 2), Fraction(31, 2), 3)
    assert found.tiles[0].price == 5
    assert found.bound_at({0: 1}) == Fraction(31, 2)
    assert found.bound_at({0: 2}) == Fraction(31, 2) + 15


def contested(seed: int) -> Graph:
    """Return a tiny graph whose sinks want the same few tiles, at different values."""
    draw = random.Random(seed)
    graph, tiles = Graph(), draw.randint(2, 3)
    sizes = [draw.randint(1, 4) for _ in range(2)]
    width = {f"x{n}": draw.randint(1, 3) for n in range(2)}
    for n, elements in enumerate(sizes):
        x = graph.sink((elements,), name=f"x{n}")
        for _ in range(draw.randint(1, 2)):
            there = [min(draw.randrange(tiles), draw.randrange(tiles)) for _ in range(elements)]
            graph.valued_pair(x, graph.source((elements,), there), draw.randint(1, 9))
    total = sum(n * width[f"x{k}"] for k, n in enumerate(sizes))
    room = max(3, -(-total // tiles) + draw.randint(0, 2))
    graph.tile_memory = TileMemory(tiles, room, width, draw.choice([1, 1, 2]))
    return graph


def test_prices_are_sound_at_every_capacity() -> None:
    """What they prove is never below the best score, with more bytes or fewer on all tiles."""
    priced = tight = 0
    for graph in (*crowds(10), *map(contested, range(50))):
        memory = memory_of(graph)
        result = unwind(graph)
        if result.layouts is None:
            assert result.status is Status.INFEASIBLE
            continue
        found = shadow_prices(graph, result)
        assert found.bound is not None
        assert found.bound >= found.score == result.score
        tight += found.bound == found.score
        assert all(t.price >= 0 for t in found.tiles)
        assert sorted(t.tile for t in found.tiles) == list(range(memory.tiles))
        costs = sum(t.price * t.used for t in found.tiles)
        assert sum(s.cost for s in found.sinks) == costs
        priced += costs > 0
        for more in (-2, -1, 1, 2, 3):
            room = memory.bytes_per_tile + more
            best = tried(resized(graph, room)) if room > 0 else None
            proved = found.bound_at(dict.fromkeys(range(memory.tiles), more))
            assert proved is not None
            assert best is None or proved >= best
    assert min(priced, tight) > 20


def test_without_time_of_prices() -> None:
    """No prices, no bound; the score of the layouts is known."""
    found = shadow_prices(full(), unwind(full()), time_limit=0)
    assert (found.score, found.bound, found.tiles, found.sinks) == (20, None, (), ())
    assert found.bound_at({0: 1}) is None


# Values from the bytes of elements and the bandwidth of tiles


def example() -> Graph:
    """Return pairs of a sink and its views, of a named view, and of values that are no costs."""
    graph = Graph("example")
    x, y = graph.sink((2, 3), name="x"), graph.sink((3, 2), name="y")
    s = graph.source((3, 2), name="s")
    turned = graph.dim_shuffle(x, (1, 0), name="turned")
    graph.valued_pair(s, graph.identity(turned, name="again"), 100)
    graph.valued_pair(turned, y, "0.001")
    graph.valued_pair(graph.identity(y, name="half"), s, 7)
    graph.valued_pair(y, s, 0)
    graph.valued_pair(turned, y, -3)
    return graph


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(None, ["1.5", "0.5", "0.25", "0", "-3"]), (8, ["0.75", "0.25", "0.125", "0", "-3"])],
)
def test_values_are_bytes_by_bandwidth(rate: int | None, expected: list[str]) -> None:
    """Views have the bytes of what they show, unless they are named; 4 is the usual bandwidth."""
    widths = {"default": 2, "x": 6, "half": 1}
    graph, memory = example(), TileMemory(4, 100, widths, exchange_bytes_per_cycle=rate)
    before = named_pairs(graph)
    found = cycle_values(graph, memory)
    assert [value for _, _, value in named_pairs(found)] == [Decimal(v) for v in expected]
    assert [pair[:2] for pair in named_pairs(found)] == [pair[:2] for pair in before]
    assert (named_pairs(graph), graph.tile_memory) == (before, None)
    assert found.tile_memory == memory
    graph.tile_memory = memory
    assert cycle_values(graph) == found


def test_numbers_that_are_no_decimals() -> None:
    """A third has no finite decimal; a bandwidth that divides is fine."""
    graph = example()
    with refused("2 bytes at 3 bytes per cycle are no finite decimal number"):
        cycle_values(graph, TileMemory(4, 100, {"default": 2, "x": 6}, exchange_bytes_per_cycle=3))
    found = cycle_values(graph, TileMemory(4, 100, {"default": 6}, exchange_bytes_per_cycle=3))
    assert named_pairs(found)[0][2] == 2
    assert exchange_rate(TileMemory(1, 1)) == 4


def test_costs_are_of_the_given_layouts() -> None:
    """Layouts other than the best are priced as well: here all of ``y`` and none of ``x``."""
    graph = wanted()
    layouts = {"x": [("tile", 1, 0, [(3, 0, 1)])], "y": [("tile", 0, 0, [(2, 0, 1)])]}
    found = shadow_prices(graph, layouts)
    assert (found.score, found.bound) == (16, 19)
    assert [(s.sink, s.cost) for s in found.sinks] == [("y", 16), ("x", 0)]
