"""Graphs in a notation of one line for each op or valued pair.

``x: sink 2x3``, ``s: source 2``, ``s: source 2 at 0 7`` with a mapping, and
``b: barrier x y -> 2`` add tensors, ``v: slice x 0 1`` the slice of a vector, ``v: reverse x``,
``v: sub_sample x 2``, ``v: identity x``, ``v: concat x y`` and ``v: expand x 3x2`` views;
``f: fixed_point x -> 2`` as well.  ``x ~ s = 2.1`` is a valued pair, ``tiles 4 64 2`` a tile
memory: numbers of tiles, bytes and elements of a grain.
"""

from __future__ import annotations

from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory


def sizes(text: str) -> tuple[int, ...]:
    """Return a shape, such as that of ``2x3``."""
    return tuple(map(int, text.split("x")))


def add(graph: Graph, line: str) -> None:
    """Add the op or the pair of a line."""
    if " ~ " in line:
        pair, value = line.split(" = ")
        a, b = pair.split(" ~ ")
        graph.valued_pair(a, b, value)
        return
    if line.startswith("tiles "):
        tiles, room, *grain = map(int, line.split()[1:])
        graph.tile_memory = TileMemory(tiles, room, grain=grain[0] if grain else 1)
        return
    name, words = line.split(": ")
    kind, *given = words.split()
    match kind, given:
        case "sink" | "source", [shape]:
            getattr(graph, kind)(sizes(shape), name=name)
        case "source", [shape, "at", *places]:
            graph.source(sizes(shape), list(map(int, places)), name=name)
        case "barrier" | "fixed_point", [*inputs, "->", shape]:
            getattr(graph, kind)(inputs, sizes(shape), name=name)
        case "slice", [x, low, high]:
            graph.slice(x, sizes(low), sizes(high), name=name)
        case "sub_sample", [x, strides]:
            graph.sub_sample(x, sizes(strides), name=name)
        case "expand", [x, shape]:
            graph.expand(x, sizes(shape), name=name)
        case "concat", inputs:
            graph.concat(inputs, 0, name=name)
        case "identity", [x]:
            graph.identity(x, name=name)
        case "reverse", [x]:
            graph.reverse(x, [0], name=name)
        case _:
            raise ValueError(line)


def graph_of(text: str) -> Graph:
    """Return the graph of some lines."""
    graph = Graph()
    for line in text.strip().splitlines():
        add(graph, line)
    return graph
