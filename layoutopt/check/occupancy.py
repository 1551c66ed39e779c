"""Bytes of sinks on each tile, and grains that are spread over several tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from layoutopt.boxes.box import Box, canonical
from layoutopt.check.located import UNKNOWN, Hooked, takes_hooked
from layoutopt.check.matching import Layouts
from layoutopt.graphs.ops import Array
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import TileMaps, memory_of
from layoutopt.tiles.counting import on_each

SHOWN = 3
"""Largest number of overfull tiles in a message."""

HEAVIEST = 3
"""Largest number of sinks in a message."""


def occupied(graph: GraphStore, layouts: Layouts) -> Array:
    """Return the bytes of sink elements on each tile, shape ``(tiles,)``; see :func:`held`."""
    total = np.zeros(memory_of(graph).tiles, np.int64)
    for _, own in held(graph, layouts):
        total += own
    return total


def held(graph: GraphStore, layouts: Layouts) -> Iterator[tuple[Tensor, Array]]:
    """Yield each sink, and the bytes of its elements on each tile, shape ``(tiles,)``."""
    memory = memory_of(graph)
    where = Hooked(graph, layouts) if takes_hooked(graph, layouts) else None
    maps = TileMaps(graph)
    counted = cache(on_each)  # equal layers have equal boxes
    for sink in graph.sinks():
        count = np.zeros(memory.tiles, np.int64)
        if where is not None:
            there = where.of(sink.index)
            np.add.at(count, there[there != UNKNOWN], 1)
            yield sink, count * memory.bytes_of(sink.name)
            continue
        for name, start, _, loops in layouts[sink.name]:
            walk = tuple([(extent, step) for extent, step, _ in loops])
            tiles, counts = counted(maps.of(name), start, walk)
            np.add.at(count, tiles, counts)
        yield sink, count * memory.bytes_of(sink.name)


def overfull(graph: GraphStore) -> str:
    """Return the reason why all sinks exceed a graph's tile memory in total, or an empty string.

    The bytes used on a tile are a multiple of the greatest common divisor of the grains' bytes.
    """
    memory = memory_of(graph)
    need = {s.name: s.size * memory.bytes_of(s.name) for s in graph.sinks()}
    total, common = sum(need.values()), math.gcd(*_grains(graph)) or 1
    room = memory.tiles * (memory.bytes_per_tile // common * common)
    if total <= room:
        return ""
    heaviest = sorted(need, key=lambda name: -need[name])[:HEAVIEST]
    largest = ", ".join(f"{name!r} {need[name]:,}" for name in heaviest)
    multiples = f" in multiples of {common:,}" if total <= memory.total else ""
    return (
        f"sinks need {total:,} bytes, {total - room:,} more than all {memory.tiles:,} "
        f"tiles hold{multiples}; the heaviest: {largest}"
    )


def sure_to_fit(graph: GraphStore) -> bool:
    """Return whether the sinks fit into a graph's tile memory even if packed greedily.

    If a grain of ``w`` bytes fits on no tile, every tile has at most ``w - g`` free bytes, where
    ``g`` divides the bytes of all grains.
    """
    memory, grains = memory_of(graph), _grains(graph)
    common = math.gcd(*grains) or 1
    least = memory.bytes_per_tile // common * common - max(grains, default=0) + common
    total = sum(sink.size * memory.bytes_of(sink.name) for sink in graph.sinks())
    return total <= memory.tiles * max(least, 0)


def _grains(graph: GraphStore) -> set[int]:
    """Return the distinct numbers of bytes of grains of sinks."""
    memory = memory_of(graph)
    found = set()
    for sink in graph.sinks():
        whole, rest = divmod(sink.size, memory.grain)
        sizes = ([memory.grain] if whole else []) + ([rest] if rest else [])
        found |= {size * memory.bytes_of(sink.name) for size in sizes}
    return found


def faults(
    graph: GraphStore, layouts: Layouts, alike: Callable[[int, Sequence[Box]], int]
) -> Iterator[str]:
    """Yield a line for each rule of the tile memory that layouts violate.

    ``alike`` counts elements of a tensor, by number, on the same tile as the others given by boxes.
    """
    memory = memory_of(graph)
    used = occupied(graph, layouts)
    over = np.flatnonzero(used > memory.bytes_per_tile)
    if len(over):
        excess = int((used[over] - memory.bytes_per_tile).sum())
        named = ", ".join(f"tile {t} holds {used[t]}" for t in over[:SHOWN].tolist())
        more = f" and {len(over) - SHOWN} more tiles are overfull" if len(over) > SHOWN else ""
        yield (
            f"capacity: {named} of {memory.bytes_per_tile} bytes{more}; "
            f"{excess} bytes too many in all"
        )
    if memory.grain > 1:
        for sink in graph.sinks():
            apart = sink.size - alike(sink.index, _heads(sink, memory.grain))
            if apart:
                yield (
                    f"grain: {apart} elements of sink {sink.name!r} are not on the tile of the "
                    f"first element of their grain of {memory.grain}"
                )


def _heads(sink: Tensor, grain: int) -> list[Box]:
    """Return the map from each element of a sink to the first of its grain, as boxes."""
    whole = sink.size // grain * grain
    found = []
    if whole:
        found.append(canonical(sink.index, 0, 0, [(whole // grain, grain, grain), (grain, 0, 1)]))
    if sink.size > whole:
        found.append(canonical(sink.index, whole, whole, [(sink.size - whole, 0, 1)]))
    return found
