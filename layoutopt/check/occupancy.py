"""What sinks take of a tile memory, and whether grains stay together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from layoutopt.check.boxes import Box, normal
from layoutopt.check.matching import Layouts, Matching
from layoutopt.graphs.op import Array
from layoutopt.graphs.store import Store
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import TILE, every_tile, memory_of, root_tiles
from layoutopt.tiles.blocks import TileMap
from layoutopt.tiles.counting import Walk, on_each

SHOWN = 3
"""How many tiles that are too full are named."""


def occupied(graph: Store, layouts: Layouts) -> Array:
    """Return the bytes of sink elements on each tile.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    layouts
        Pieces by sink name, which cover all sinks.

    Returns
    -------
    array
        Shape ``(tiles,)``.

    Raises
    ------
    SizeError
        If pieces are too irregular to be counted.
    """
    memory = memory_of(graph)
    total = np.zeros(memory.tiles, np.int64)
    known: dict[str, TileMap] = {TILE: every_tile(memory.tiles)}
    for sink in graph.sinks():
        for name, start, _, loops in layouts[sink.name]:
            if name not in known:
                known[name] = root_tiles(graph, graph.number(name))
            walk = Walk(known[name], start, tuple(step for _, step, _ in loops))
            tiles, counts = on_each(walk, [extent for extent, _, _ in loops])
            np.add.at(total, tiles, counts * memory.bytes_of(sink.name))
    return total


def faults(graph: Store, layouts: Layouts, matching: Matching) -> Iterator[str]:
    """Yield a line for each rule of the tile memory that layouts break.

    Parameters
    ----------
    matching
        What compares locations in these layouts.
    """
    memory = memory_of(graph)
    used = occupied(graph, layouts)
    over = np.flatnonzero(used > memory.bytes_per_tile)
    if len(over):
        excess = int((used[over] - memory.bytes_per_tile).sum())
        named = ", ".join(f"tile {t} holds {used[t]}" for t in over[:SHOWN].tolist())
        more = f" and {len(over) - SHOWN} more tiles are too full" if len(over) > SHOWN else ""
        yield (
            f"capacity: {named} of {memory.bytes_per_tile} bytes{more}; "
            f"{excess} bytes too many in all"
        )
    if memory.grain > 1:
        for sink in graph.sinks():
            apart = sink.size - matching.alike(sink.index, _heads(sink, memory.grain))
            if apart:
                yield (
                    f"grain: {apart} elements of sink {sink.name!r} are on another tile than the "
                    f"first of their grain of {memory.grain}"
                )


def _heads(sink: Tensor, grain: int) -> list[Box]:
    """Return for each element of a sink the first of its grain, as boxes."""
    whole = sink.size // grain * grain
    found = []
    if whole:
        found.append(normal(sink.index, 0, 0, [(whole // grain, grain, grain), (grain, 0, 1)]))
    if sink.size > whole:
        found.append(normal(sink.index, whole, whole, [(sink.size - whole, 0, 1)]))
    return found
