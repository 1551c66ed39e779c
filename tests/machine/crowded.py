"""Tiny graphs on tiles with hardly any room, and their optima by trying everything."""

from __future__ import annotations

import random
from fractions import Fraction

from layoutopt.graphs.ops import Kind, Source
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map
from models.statement import state
from models.tiles import maximum_on_tiles
from tests.lowering.graphs import awkward, on_tiles

GRAINS = 9
"""Instances with more grains take too long to be tried out."""


def crowded(seed: int) -> Graph | None:
    """Return a tiny graph on a machine with hardly any room, or ``None`` if it is not tiny."""
    draw = random.Random(seed)
    graph = on_tiles(awkward(seed, widest=3, largest=9, negative=seed % 4 == 0), seed)
    tiles, grain = draw.randint(2, 4), draw.choice([1, 1, 2, 3])
    sinks = graph.sinks()
    if sum(-(-sink.size // grain) for sink in sinks) > GRAINS or not sinks:
        return None
    width = {sink.name: draw.randint(1, 3) for sink in sinks if draw.random() < 0.5}
    total = sum(sink.size * width.get(sink.name, 1) for sink in sinks)
    room = max(1, -(-total // tiles) + draw.choice([-1, 0, 0, 1, 2, 4]))
    wide = {"default": 1} | width
    return refitted(graph, TileMemory(tiles, room, element_bytes=wide, grain=grain))


def refitted(graph: Graph, memory: TileMemory) -> Graph:
    """Return a graph on another machine, whose grids and lists are cut to its tiles."""
    found = Graph(graph.name)
    found.tile_memory = memory
    for op in graph.ops:
        if isinstance(op, Source):
            [shape] = op.infer([])
            mapping = op.mapping and tuple(int(tile) % memory.tiles for tile in op.mapping)
            rule = op.rule if op.rule and op.rule["kind"] == "linear" else None
            found.add(Source(id=op.id, inputs=(), shape=shape, mapping=mapping, rule=rule))
        else:
            found.add(op)
    for a, b, value in graph.pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), value)
    return found


def spelt_out(graph: Graph) -> Graph:
    """Return a graph in which the tiles of all sources, barriers and fixed points are listed."""
    memory = graph.tile_memory
    assert memory is not None
    found = Graph(graph.name)
    for i, op in enumerate(graph.ops):
        if op.kind in (Kind.SINK, Kind.VIEW):
            found.add(op)
            continue
        for t in graph.op_outputs[i]:
            shape = graph.shapes[t]
            rule = op.rule if isinstance(op, Source) else None
            tiles = tuple(tile_map(shape, memory, rule).tiles().tolist())
            own = op.mapping if isinstance(op, Source) and op.mapping is not None else tiles
            found.add(Source(id=graph.tensor_name(t), inputs=(), shape=shape, mapping=own))
    for a, b, value in graph.pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), value)
    return found


def tried(graph: Graph) -> Fraction | None:
    """Return the optimum by trying everything; ``None`` if nothing fits."""
    memory = graph.tile_memory
    assert memory is not None
    given = state(instance_bytes(spelt_out(graph)).decode())
    grains: dict[tuple[str, int], list[int]] = {}
    width = []
    for e, (name, _, flat) in enumerate(given.elements):
        grains.setdefault((name, flat // memory.grain), []).append(e)
        width.append(memory.bytes_of(name))
    room, tiles = memory.bytes_per_tile, memory.tiles
    return maximum_on_tiles(given, list(grains.values()), width, room, tiles)
