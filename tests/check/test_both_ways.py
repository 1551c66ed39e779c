"""Piece by piece against element by element: equal evaluations of any layouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from layoutopt.check import elements, order
from layoutopt.check.elements import Evaluation
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory
from tests.check.samples import Layouts, random_layouts
from tests.lowering.graphs import awkward, on_tiles
from tests.models.instances import FAMILIES

GRAPHS: dict[str, Callable[[int], Graph]] = {
    "small": lambda seed: random_graph(seed, elements=12, ops=20, pairs=8, negative=True),
    "large": lambda seed: random_graph(seed, elements=40, ops=14, pairs=8),
    "larger": lambda seed: random_graph(seed, elements=150, ops=10, pairs=8, barriers=False),
    "mappings": lambda seed: random_graph(seed, elements=60, ops=3, pairs=12),
    "mixed": FAMILIES["mixed"],
    "tangle": FAMILIES["tangle"],
}


def both(graph: Graph, layouts: Layouts) -> Evaluation:
    """Evaluate both ways, which must agree in everything, and in what waits for what."""
    found = elements.by_elements(graph, layouts)
    assert elements.by_pieces(graph, layouts) == found
    if found.score is not None:
        assert order.by_pieces(graph, layouts, elements.STEPS) == order.by_elements(graph, layouts)
    return found


@pytest.mark.parametrize("family", GRAPHS)
def test_random_layouts(family: str) -> None:
    """Legal layouts, cycles of barriers, overlaps, gaps and pieces outside are judged alike."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        graph = GRAPHS[family](seed)
        for variant in range(3):
            found = both(graph, random_layouts(graph, 10 * seed + variant))
            seen["matched"] += sum(pair.matched for pair in found.pairs)
            for line in found.violations or ("legal",):
                for kind in ("legal", "barrier order", "set twice", "within", "of"):
                    if kind in line:
                        seen[kind] += 1
                        break
    assert seen["legal"] > 15
    assert min(seen["set twice"], seen["within"], seen["of"]) > 3
    assert seen["matched"] > 50
    if family not in ("larger", "mappings"):
        assert seen["barrier order"] > 5


def test_random_layouts_on_tiles() -> None:
    """On a tile memory equal tiles are counted alike, and so are full tiles and torn grains."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        graph = on_tiles(awkward(seed), seed, grain=1 + seed % 3)
        roomy = graph.tile_memory
        assert roomy is not None
        tight = TileMemory(roomy.tiles, 40, grain=roomy.grain, element_bytes={"sink0": 3})
        graph.tile_memory = tight if seed % 2 else roomy
        found = both(graph, random_layouts(graph, seed))
        seen["matched"] += sum(pair.matched for pair in found.pairs)
        for line in found.violations or ("legal",):
            seen[line.split(":")[0].split(" ")[0]] += 1
    assert min(seen["matched"], seen["legal"], seen["capacity"], seen["grain"]) > 10


def test_parts_of_shared_mappings() -> None:
    """Sources of few locations, in runs and at random, read in steps and copied by an expand."""
    graph = Graph()
    s = graph.source((12,), [k // 3 for k in range(12)], name="s")
    t = graph.source((12,), ["a", 0, "a", 1, 2, 3, 3, 2, 1, 0, "0", 0], name="t")
    x, y = graph.sink((4,), name="x"), graph.sink((12,), name="y")
    graph.valued_pair(graph.expand(x, (5, 4)), graph.expand(graph.slice(t, (1,), (5,)), (5, 4)), 1)
    graph.valued_pair(y, s, 1)
    graph.valued_pair(y, t, 1)
    layouts: Layouts = {
        "x": (("s", 2, 0, ((4, 3, 1),)),),  # 0 1 2 3 beside 0 a 1 2
        "y": (("t", 11, 0, ((6, -1, 1),)), ("s", 0, 6, ((6, 2, 1),))),
    }  # 0 "0" 0 1 2 3 | 0 0 1 2 2 3 beside 0 0 0 1 1 1 2 2 2 3 3 3 and a 0 a 1 2 3 3 2 1 0 "0" 0
    found = both(graph, layouts)
    assert [pair.matched for pair in found.pairs] == [5, 4, 4]


def test_equal_pieces_need_no_equations() -> None:
    """Thousands of pieces without any order are compared at once where they are the same."""
    graph = Graph()
    n = 3000
    x, y = graph.sink((n,), name="x"), graph.sink((n,), name="y")
    graph.source((n,), name="s")
    graph.valued_pair(x, y, 1)
    mixed = tuple(("s", k * k % n, k, ((1, 1, 1),)) for k in range(n))
    found = elements.by_pieces(graph, {"x": mixed, "y": mixed}, limit=5 * n)
    assert found.pairs[0].matched == n


def test_nothing_of_a_sink_waits_for_nothing() -> None:
    """A barrier behind an expand to no elements is known from the start."""
    graph = Graph()
    x = graph.sink((1,), name="x")
    graph.barrier([graph.expand(x, (0,))], (1,), name="b")
    graph.valued_pair(x, graph.tensor("b"), 1)
    found = both(graph, {"x": (("b", 0, 0, ((1, 1, 1),)),)})
    assert (found.violations, found.score) == ((), 1)


def test_what_is_left_of_a_sink_waits_alone() -> None:
    """Barriers behind slices, samples and stripes wait for the pieces that these keep, only."""
    graph = Graph()
    x = graph.sink((6, 4), name="x")
    graph.barrier([graph.slice(x, (0, 0), (6, 2))], (1,), name="sliced")
    graph.barrier([graph.sub_sample(graph.dim_shuffle(x, (1, 0)), (3, 1))], (1,), name="sampled")
    graph.barrier([graph.sett_sample(x, [[(1, 5, 2)], []])], (1,), name="striped")
    graph.barrier([graph.concat([x, x], 0)], (1,), name="all")
    y = graph.sink((4,), name="y")
    columns = tuple(("x", k, k, ((6, 4, 4),)) for k in range(4))
    taken = tuple(
        (name, 0, k, ((1, 1, 1),)) for k, name in enumerate(["sliced", "sampled", "striped", "all"])
    )
    given = order.by_pieces(graph, {"x": columns, "y": taken}, elements.STEPS)
    parts = {graph.ops[b].id: set(kept) for b, (kept, _) in given.needs.items()}
    assert parts == {
        "sliced": {0, 1},
        "sampled": {0, 3},
        "striped": {0, 1, 2, 3},
        "all": {0, 1, 2, 3},
    }
    assert given == order.by_elements(graph, {"x": columns, "y": taken})
    assert y.size == 4
