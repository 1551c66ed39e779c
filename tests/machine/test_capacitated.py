"""Graphs on tile memories whose capacity binds, against trying everything, and by hand."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from layoutopt.base.limits import Limits
from layoutopt.base.result import Status
from layoutopt.check.elements import by_elements, evaluate
from layoutopt.graphs.unwinding import Graph
from layoutopt.lowering import lower
from layoutopt.machine.capacitated import place
from layoutopt.machine.simulation import simulate
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import unwind
from tests.machine.crowded import crowded, tried
from tests.support import refused


@pytest.mark.parametrize("lifted", [False, True])
def test_tiny_graphs(lifted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Score, proof, and the proof that nothing fits are those of trying everything."""
    if lifted:
        monkeypatch.setattr("layoutopt.machine.capacitated.LIFT_FROM", 0)
        monkeypatch.setattr(lower, "LIFT_FROM", 0)
    seen: Counter[str] = Counter()
    seed = 0
    while sum(seen.values()) < 30:
        seed += 1
        graph = crowded(seed)
        if graph is None:
            continue
        best, result = tried(graph), unwind(graph)
        seen[str(result.status)] += 1
        if best is None:
            assert result.status is Status.INFEASIBLE, seed
            assert result.score is result.layouts is None
            continue
        assert result.status is Status.OPTIMAL, seed
        assert result.score == best, seed
        assert result.layouts is not None
        assert by_elements(graph, result.layouts).violations == ()
    assert min(seen.values()) > 5


def full(tiles: int = 2, room: int = 4, grain: int = 1) -> Graph:
    """Return a sink of six elements that is drawn to tile 0, on a small machine."""
    graph = Graph("full")
    graph.tile_memory = TileMemory(tiles, room, element_bytes={"default": 1}, grain=grain)
    x = graph.sink((6,), name="x")
    graph.valued_pair(x, graph.source((6,), [0] * 6, name="s"), 5)
    return graph


def test_the_search_for_places_tells_it_too() -> None:
    """Asked alone, without a look at all bytes before, it gives the same reason."""
    found, _ = place(full(room=2), Limits())
    assert found.infeasible == unwind(full(room=2)).infeasible
    assert found.infeasible.startswith("sinks need 6 bytes, 2 more")
    assert found.labelling is None


def mapped(shape: tuple[int, ...], mapping: Any = None, **more: Any) -> Graph:
    """Return a graph on a machine, with another source."""
    graph = full()
    graph.source(shape, mapping, **{"name": "m", **more})
    return graph


def test_what_cannot_be_kept_on_tiles() -> None:
    """Fresh locations, which are tiles of others too, and tiles by number are refused in a line."""
    graph = full(room=9)
    with refused("fixed: elements of sink 'x' are given locations of sink 'x'; on a tile memory"):
        unwind(graph, fixed={"x": [("x", 0, 0, [(6, 1, 1)])]})
    for kept in ({"fixed": unwind(full())}, {"start": unwind(full())}):
        with refused("pieces of origin 'tile' are not read here; name a source on the tile"):
            unwind(graph, **kept)
    kept_apart = unwind(graph, fixed={"x": [("s", 0, 0, [(6, 1, 1)])]})
    assert (kept_apart.status, kept_apart.score) == (Status.OPTIMAL, 30)


def loose(seed: int) -> Graph | None:
    """Return sinks of several widths on hardly enough tiles, most in no pair; perhaps too large."""
    draw = random.Random(seed)
    graph = Graph(f"loose-{seed}")
    sinks = [graph.sink((draw.randint(1, 4),)) for _ in range(draw.randint(1, 4))]
    if sum(sink.size for sink in sinks) > 9:
        return None
    tiles, width = draw.randint(2, 4), {sink.name: draw.randint(1, 4) for sink in sinks}
    total = sum(sink.size * width[sink.name] for sink in sinks)
    room = max(1, -(-total // tiles) + draw.choice([0, 0, 0, 1, 1, 2]))
    graph.tile_memory = TileMemory(tiles, room, {"default": 1} | width, draw.choice([1, 1, 1, 2]))
    for sink in sinks:
        if draw.random() < 0.35:
            where = [draw.randrange(tiles) for _ in range(sink.size)]
            graph.valued_pair(sink, graph.source(sink.shape, where), draw.randint(-1, 4))
    itself = graph.source((1,), [0])
    graph.valued_pair(itself, itself, 1)
    return graph


def test_what_no_pair_reaches_is_packed() -> None:
    """Tiles are filled as the search for room says: the widest first would leave some over."""
    graphs = [graph for graph in map(loose, range(110)) if graph is not None]
    graph = Graph("packed")
    graph.tile_memory = TileMemory(3, 7, element_bytes={"default": 2, "wide": 3})
    graph.sink((4,), name="narrow")
    graph.sink((4,), name="wide")
    source = graph.source((2,), [1, 2])
    graph.valued_pair(source, source, 2)
    for one in (graph, *graphs):
        best, result = tried(one), unwind(one)
        if best is None:
            assert result.status is Status.INFEASIBLE, one.name
        else:
            assert (result.status, result.score) == (Status.OPTIMAL, best), one.name
            assert by_elements(one, result.layouts or {}).violations == ()


def test_what_no_pair_reaches_is_put_where_there_is_room() -> None:
    """Elements in no pair stay where the linear rule puts them, unless that is too full.

    An empty sink has a layout, too.
    """
    graph = full()
    graph.sink((2,), name="y")
    graph.sink((0, 3), name="empty")
    result = unwind(graph)
    assert (result.score, result.status) == (20, Status.OPTIMAL)
    assert result.layouts is not None
    assert result.layouts["y"] == (("tile", 1, 0, ((2, 0, 1),)),)
    assert result.layouts["empty"] == ()
    roomy = full(room=8)
    roomy.sink((2,), name="y")
    found = unwind(roomy).layouts
    assert found is not None
    assert found["y"] == (("y", 0, 0, ((2, 1, 1),)),)


@pytest.mark.parametrize("kind", ["start", "fixed"])
def test_what_is_given_in_part_need_not_fit_with_the_default(kind: str) -> None:
    """Two elements fill a tile, on which the other two would be by default: these go elsewhere."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    graph.source((1,), [1], name="one")
    graph.valued_pair(x[2:], graph.source((2,), [0, 0]), 5)
    graph.tile_memory = TileMemory(2, 2, {"default": 1})
    given = {"x": [("one", 0, 0, ((2, 0, 1),))]}
    found = unwind(graph, **{kind: given})
    assert (found.status, found.score) == ("optimal", 10)
    with refused(f"{kind}: capacity: tile 1 holds 4 of 2 bytes"):
        unwind(graph, **{kind: {"x": [("one", 0, 0, ((4, 0, 1),))]}})
    graph.sink((1,), name="y")
    with refused(f"{kind}: capacity: tile 1 holds 3 of 2 bytes; 1 bytes too many in all"):
        unwind(graph, **{kind: {"x": [("one", 0, 0, ((3, 0, 1),))]}})


def test_more_bytes_than_are_counted_are_refused() -> None:
    """Neither a score nor a number of bytes is told that 64 bits do not hold."""
    graph = Graph()
    x, y = (
        graph.sink((2**31,), name="x"),
        graph.source((2**31,), rule={"kind": "grid", "blocks": [1]}),
    )
    graph.valued_pair(x, y, 1)
    graph.tile_memory = TileMemory(2**23, 2**40, {"default": 2**32})
    whole = {"x": [(y.name, 0, 0, ((2**31, 1, 1),))]}
    for call in (unwind, lambda g: evaluate(g, whole), lambda g: simulate(g, whole)):
        with refused("where less than 2^61 is allowed"):
            call(graph)
