"""Prices of capacity, by hand and against trying everything."""

from __future__ import annotations

import random
from fractions import Fraction

from layoutopt.base.result import Status
from layoutopt.graphs.unwinding import Graph
from layoutopt.machine.whatif import shadow_prices
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.machine.test_capacitated import full, tried
from tests.machine.test_whatif import crowds, resized
from tests.support import refused


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
    for graph in (*crowds(20), *map(contested, range(60))):
        memory = graph.tile_memory
        assert memory is not None
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


def test_without_time() -> None:
    """No prices, no bound; the score of the layouts is known."""
    found = shadow_prices(full(), unwind(full()), time_limit=0)
    assert (found.score, found.bound, found.tiles, found.sinks) == (20, None, (), ())
    assert found.bound_at({0: 1}) is None


def test_bad_input() -> None:
    """A machine, layouts, and legal ones, are needed; tiles are those of the machine."""
    graph = Graph()
    graph.sink((2,), name="x")
    with refused("the graph has no tile memory"):
        shadow_prices(graph, unwind(graph))
    with refused("the result has no layouts"):
        shadow_prices(full(room=2), unwind(full(room=2)))
    with refused("capacity: tile 0 holds 6 of 4 bytes"):
        shadow_prices(full(), {"x": [("s", 0, 0, [(6, 1, 1)])]})
    with refused("2 is not a tile; tiles are 0 to 1"):
        shadow_prices(full(), unwind(full())).bound_at({2: 1})
