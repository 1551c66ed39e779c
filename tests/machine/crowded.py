"""Tiny graphs on tiles with hardly any room, and their optima by trying everything."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction

from msgspec.structs import replace

from layoutopt.graphs.ops import Kind, Source, UnwindingOp
from layoutopt.graphs.tiling import memory_of, root_tiles
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.tiles.memory import TileMemory
from models.statement import state
from models.tiles import maximum_on_tiles
from tests.lowering.graphs import awkward, on_tiles
from tests.support import with_ops

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

    def cut(op: UnwindingOp) -> UnwindingOp:
        if not isinstance(op, Source):
            return op
        mapping = op.mapping and tuple(int(tile) % memory.tiles for tile in op.mapping)
        rule = op.rule if op.rule and op.rule["kind"] == "linear" else None
        return replace(op, mapping=mapping, rule=rule)

    found = with_ops(graph, map(cut, graph.ops))
    found.tile_memory = memory
    return found


def spelt_out(graph: Graph) -> Iterator[UnwindingOp]:
    """Yield a graph's ops; sources that list their tiles are in place of all with locations."""
    for i, op in enumerate(graph.ops):
        if op.kind in (Kind.SINK, Kind.VIEW):
            yield op
            continue
        for t in graph.op_outputs[i]:
            tiles = tuple(root_tiles(graph, t).tiles().tolist())
            name, shape = graph.tensor_name(t), graph.shapes[t]
            yield Source(id=name, inputs=(), shape=shape, mapping=tiles)


def tried(graph: Graph) -> Fraction | None:
    """Return the optimum by trying everything; ``None`` if nothing fits."""
    memory, listed = memory_of(graph), with_ops(graph, spelt_out(graph))
    given = state(instance_bytes(listed).decode())
    grains: dict[tuple[str, int], list[int]] = {}
    width = []
    for e, (name, _, flat) in enumerate(given.elements):
        grains.setdefault((name, flat // memory.grain), []).append(e)
        width.append(memory.bytes_of(name))
    room, tiles = memory.bytes_per_tile, memory.tiles
    return maximum_on_tiles(given, list(grains.values()), width, room, tiles)
