"""Graphs with barrier hooks, and without."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.graphs.locations import flow
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tiling import check_hooks, hooked, opaque, output_tiles, relaxed, viewed
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.tiles.memory import TileMemory
from tests.hooked import own_hooks, random_hooked
from tests.support import named_pairs, refused

VIEWS = [
    ("same", (2, 3), [(2, 3)]),
    ("normalisation", (4, 3), [(4, 3), (4, 1), (4,)]),
    ("reduce", (2, 3, 2), [(2,), (2, 3), (3,), (1, 3, 1), ()]),
    ("broadcast", (2, 3, 2), [(2,), (3, 1), (3, 2), (1, 1, 2), ()]),
    ("pool", (1, 7, 4), [(1, 3, 2), (1, 2, 4), (1, 7, 1)]),
    ("reduce", (2, 0), [(2, 0), (0,)]),
]


@pytest.mark.parametrize(("name", "shape", "outputs"), VIEWS)
def test_views_are_what_hooks_compute(
    name: str, shape: tuple[int, ...], outputs: list[tuple[int, ...]]
) -> None:
    """The views that stand for a barrier carry each tile to where the hook puts it."""
    graph = Graph("views")
    x = graph.sink(shape, name="x")
    outs = graph.barrier([x], shapes=outputs, hook=name, name="b")
    for k, out in enumerate(outs):
        graph.valued_pair(out, graph.source(out.shape, name=f"s{k}"), 1)
    graph.tile_memory = TileMemory(64, 1024)
    tiles = np.random.default_rng(1).permutation(64)[: x.size]
    expected = output_tiles(graph, hooked(graph)[0], [tiles])
    plain = viewed(graph)
    assert not hooked(plain)
    roots = {
        t: np.full(s, -1)
        for t, s in enumerate(plain.shapes)
        if plain.kind(plain.handle(t)) is not Kind.VIEW
    }
    roots[plain.number("x")] = tiles.reshape(shape)
    found = flow(plain, roots, [a for a, _, _ in plain.pairs])
    for (a, _, _), tile in zip(plain.pairs, expected, strict=True):
        assert found[a].reshape(-1).tolist() == tile.tolist()


def test_hooks_that_do_not_matter() -> None:
    """A user's hook whose outputs influence no pair is left out; others stay."""
    with own_hooks():
        graph = Graph("idle")
        x = graph.sink((2,), name="x")
        one = graph.barrier([x], (2,), hook="ascending", name="one")
        two = graph.barrier([one], (2,), hook="crowd", name="two")
        graph.barrier([two], (2,), hook="crowd", name="idle")
        graph.valued_pair(graph.reverse(two, [0]), x, 1)
        graph.tile_memory = TileMemory(4, 64)
        found = viewed(graph)
        assert [found.ops[i].id for i in hooked(found)] == ["one", "two"]
        free = relaxed(graph)
        assert [t.name for t in free.sinks()] == ["x", "one#", "two#", "idle#"]


def test_opaque_graphs() -> None:
    """They are the same graph but for the hooks; without a tile memory there are none."""
    with own_hooks():
        for seed in range(20):
            graph = random_hooked(seed)
            found = opaque(graph)
            assert hooked(graph)
            assert not hooked(found)
            assert named_pairs(found) == named_pairs(graph)
            text = instance_bytes(graph)
            for name in {graph.ops[i].hook for i in hooked(graph)}:
                text = text.replace(b',"hook":"%s"' % str(name).encode(), b"")
            assert instance_bytes(found) == text
            graph.tile_memory = None
            assert not hooked(graph)


def test_hooks_that_do_not_fit() -> None:
    """Errors name barrier and hook."""
    graph = Graph("unfit")
    graph.barrier([graph.sink((2,), name="x")], (3,), hook="pool", name="b")
    check_hooks(graph)  # without tiles a hook says nothing
    graph.tile_memory = TileMemory(4, 64)
    with refused("barrier 'b': hook 'pool': output shape [3] has no windows over [2]"):
        check_hooks(graph)
    with refused("barrier 'b': hook 'pool': output shape [3]"):
        viewed(graph)
