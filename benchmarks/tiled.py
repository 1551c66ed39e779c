"""Small graphs on tile memories whose capacity decides, one reason each.

Locations are tiles here.  Every description says what to expect of the optimum.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutopt.generate.families import generate
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory


def crowd() -> Graph:
    """Return six tensors that all want one tile, which holds two of them."""
    graph = Graph(
        "crowd",
        "six sinks of 4 elements want tile 0, worth 6 to 1 each; it holds two: 4 (6 + 5) = 44",
    )
    for value in range(6, 0, -1):
        sink = graph.sink((4,), name=f"x{value}")
        target = graph.source((4,), mapping=[0] * 4, name=f"tile{value}")
        graph.valued_pair(sink, target, value)
    graph.tile_memory = TileMemory(4, 8, element_bytes={"default": 1})
    return graph


def knapsack() -> Graph:
    """Return three elements of different bytes that want one tile."""
    graph = Graph(
        "knapsack",
        "6, 5 and 5 bytes, worth 7, 5 and 5, want a tile of 10: the best per byte is left out",
    )
    for name, value in (("a", 7), ("b", 5), ("c", 5)):
        sink = graph.sink((1,), name=name)
        graph.valued_pair(sink, graph.source((1,), mapping=[0], name=f"{name}_tile"), value)
    graph.tile_memory = TileMemory(3, 10, element_bytes={"default": 5, "a": 6})
    return graph


def together() -> Graph:
    """Return weights with states that would lie beside them, on tiles that are too small."""
    graph = Graph(
        "together",
        "four weights want tile 0, worth 5, and their states them, worth 4: a tile holds four",
    )
    for i in range(4):
        weight, state = graph.sink((1,), name=f"w{i}"), graph.sink((1,), name=f"m{i}")
        graph.valued_pair(weight, graph.source((1,), mapping=[0], name=f"tile{i}"), 5)
        graph.valued_pair(weight, state, 4)
    graph.tile_memory = TileMemory(3, 4, element_bytes={"default": 1})
    return graph


def grains() -> Graph:
    """Return a tensor in two grains, most of both drawn to a tile that holds one."""
    graph = Graph(
        "grains",
        "all but one of 6 elements want tile 0, worth 1 each; it holds one of their two grains",
    )
    x = graph.sink((6,), name="x")
    graph.valued_pair(x, graph.source((6,), mapping=[0, 0, 0, 1, 0, 0], name="wanted"), 1)
    graph.tile_memory = TileMemory(2, 4, element_bytes={"default": 1}, grain=4)
    return graph


def hooked() -> Graph:
    """Return a normalisation whose output lies where its input does, on tiles that are full."""
    graph = Graph(
        "hooked", "what a barrier makes lies where its input does, which two tensors want elsewhere"
    )
    x, bias = graph.sink((8,), name="x"), graph.sink((8,), name="bias")
    normed = graph.barrier([x], (8,), hook="normalisation", name="normed")
    graph.valued_pair(normed, graph.source((8,), mapping=[0, 0, 1, 1] * 2, name="wanted"), 3)
    graph.valued_pair(x, graph.source((8,), mapping=[0] * 8, name="given"), 2)
    graph.valued_pair(bias, normed, 2)
    graph.tile_memory = TileMemory(4, 5, element_bytes={"default": 1})
    return graph


def layers() -> Graph:
    """Return a training step of dense layers on tiles that are nearly full."""
    return _loaded("layers", "dense-layers", {"layers": "2", "width": "6"}, 8, "1.05")


def transformer() -> Graph:
    """Return a training step of a transformer on tiles that are nearly full."""
    return _loaded("transformer", "transformer", {}, 64, "1.1")


def _loaded(name: str, family: str, settings: dict[str, str], tiles: int, load: str) -> Graph:
    """Return a family's instance on tiles that hold ``load`` times the mean."""
    graph = generate(family, settings)
    needed = 2 * sum(sink.size for sink in graph.sinks())
    whole, _, part = load.partition(".")
    room = needed * int(whole + part) // (tiles * 10 ** len(part))
    graph.name = name
    graph.description = f"{family} on {tiles} tiles that hold {load} times the mean of {needed:,} B"
    graph.tile_memory = TileMemory(tiles, room, element_bytes={"default": 2})
    return graph


TILED: dict[str, Callable[[], Graph]] = {
    build.__name__: build
    for build in (crowd, knapsack, together, grains, hooked, layers, transformer)
}
"""All of them by name."""
