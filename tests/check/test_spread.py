"""Elements by tile, counted by pieces and one by one."""

from __future__ import annotations

import pytest

from layoutopt.base.errors import SizeError
from layoutopt.boxes.equation import Equations
from layoutopt.check.elements import STEPS, Located, evaluate, uncovered
from layoutopt.check.matching import Matching
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.counting import Counts
from layoutopt.tiles.memory import TileMemory
from tests.check.samples import Layouts, random_layouts
from tests.lowering.graphs import awkward, on_tiles


def sample(seed: int) -> tuple[Graph, Layouts]:
    """Return a random graph on a small machine, and layouts that cover it; some name tiles."""
    graph = on_tiles(awkward(seed, negative=seed % 3 == 0), seed)
    assert graph.tile_memory is not None
    count = graph.tile_memory.tiles
    machine = TileMemory(count, 60, {"default": 2, "sink0": 3}, exchange_bytes_per_cycle=8)
    for again in range(20):
        x = graph.sinks()[0]
        layouts = random_layouts(graph, 100 * seed + again)
        if seed % 2 and x.size:
            layouts[x.name] = (("tile", seed % count, 0, ((x.size, 0, 1),)),)
        if evaluate(graph, layouts).score is not None:
            graph.tile_memory = machine
            return graph, layouts
    raise AssertionError("no layouts of this graph cover it")


def plain(counts: Counts) -> list[tuple[int, int]]:
    """Return counts as a list, without those that are 0."""
    tiles, numbers = (x.tolist() for x in counts)
    assert tiles == sorted(set(tiles))
    return [(tile, n) for tile, n in zip(tiles, numbers, strict=True) if n]


def test_both_ways_agree() -> None:
    """Each tensor's elements by tile, and those of both tensors of each pair, are the same."""
    seen = 0
    for seed in range(70):
        graph, layouts = sample(seed)
        one, other = Located(graph, layouts), Matching(graph, layouts, Equations(STEPS))
        for t in range(len(graph.shapes)):
            assert plain(one.each(t)) == plain(other.each(t)), (seed, t)
        for a, b, _ in graph.pairs:
            assert plain(one.both(a, b)) == plain(other.both(a, b)), (seed, a, b)
            seen += len(plain(one.both(a, b)))
    assert seen > 200


def test_what_is_too_irregular_is_refused() -> None:
    """Steps are limited."""
    graph, layouts = sample(3)
    with pytest.raises(SizeError):
        where = Matching(graph, layouts, Equations(0))
        for a, b, _ in graph.pairs:
            where.both(a, b)


@pytest.mark.parametrize("size", [6, 2 * 10**9])
def test_sinks_that_are_not_covered_once(size: int) -> None:
    """By elements and by pieces each sink that is not covered once is told, and no other."""
    graph = Graph("wide")
    x, y = graph.sink((size,), name="x"), graph.sink((size,), name="y")
    whole: Layouts = {t.name: ((t.name, 0, 0, ((size, 1, 1),)),) for t in (x, y)}
    assert uncovered(graph, whole) == ()
    for own in (
        (("y", 0, 0, ((size - 1, 1, 1),)),),
        (("y", 0, 0, ((size, 1, 1),)), ("x", 3, 3, ())),
        (),
    ):
        [line] = uncovered(graph, whole | {"y": own})
        assert "y" in line
