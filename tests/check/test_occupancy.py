"""Layouts on tile memories, against lists of every element's tile, found round by round."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.check.elements import (
    by_elements,
    by_pieces,
    held,
    occupied,
    takes_hooked,
    without_hooks,
)
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Barrier, Kind
from layoutopt.graphs.tiling import memory_of, root_tiles
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory
from tests.check.samples import Layouts, random_layouts
from tests.hooked import BATCHED, random_hooked
from tests.lowering.graphs import awkward, on_tiles

Tiles = list[int | None]
"""The tile of each element; ``None`` where it is not known."""


pytestmark = pytest.mark.usefixtures("hooks")


def tiles_of(graph: Graph, layouts: Layouts) -> list[Tiles]:
    """Return the tiles of all tensors: what follows from what is known, until nothing more does."""
    found: list[Tiles] = [[None] * prod(shape) for shape in graph.shapes]
    while True:
        after = list(found)
        for i in range(len(graph.ops)):
            for t in graph.op_outputs[i]:
                after[t] = _tiles_of_one(graph, layouts, i, t, after)
        if after == found:
            return found
        found = after


def _tiles_of_one(graph: Graph, layouts: Layouts, i: int, t: int, found: list[Tiles]) -> Tiles:
    op, shape = graph.ops[i], graph.shapes[t]
    if op.kind is Kind.SINK:
        tiles: Tiles = [None] * prod(shape)
        for name, start, to, loops in layouts[graph.tensor_name(t)]:
            for index in product(*[range(n) for n, _, _ in loops]):
                here = to + sum(k * step for k, (_, _, step) in zip(index, loops, strict=True))
                there = start + sum(k * step for k, (_, step, _) in zip(index, loops, strict=True))
                tiles[here] = (
                    there if name == TILE else _own(graph, graph.number(name), found)[there]
                )
        return tiles
    if op.kind is Kind.VIEW:
        values: list[int | None] = []
        numbers = []
        for c in graph.carriers(i):
            own = np.arange(len(values), len(values) + len(found[c]))
            numbers.append(own.reshape(graph.shapes[c]))
            values += found[c]
        return [values[k] for k in np.asarray(op.view(numbers)).ravel().tolist()]
    return _own(graph, t, found)


def _own(graph: Graph, t: int, found: list[Tiles]) -> Tiles:
    """Return the tiles that a tensor has of its own, by a hook or a rule."""
    i = graph.producers[t]
    op = graph.ops[i]
    if not isinstance(op, Barrier) or op.hook is None:
        return list(root_tiles(graph, t).tiles().tolist())
    [source] = graph.op_inputs[i]
    if None in found[source]:
        return [None] * prod(graph.shapes[t])
    batch = np.array(found[source]).reshape(1, *graph.shapes[source])
    tiles = BATCHED[op.hook](batch, graph.shapes[t], memory_of(graph).tiles)
    return list(tiles.ravel().tolist())


def expected_faults(graph: Graph, tiles: list[Tiles]) -> list[str]:
    """Return a line for tiles that are too full, and one for each sink whose grains are torn."""
    memory, used, lines = memory_of(graph), Counter[int](), []
    for sink in graph.sinks():
        for tile in tiles[sink.index]:
            if tile is not None:
                used[tile] += memory.bytes_of(sink.name)
    room = memory.bytes_per_tile
    over = [tile for tile in sorted(used) if used[tile] > room]
    if over:
        named = ", ".join(f"tile {tile} holds {used[tile]}" for tile in over[:3])
        more = f" and {len(over) - 3} more tiles are overfull" if len(over) > 3 else ""
        excess = sum(used[tile] - room for tile in over)
        lines.append(f"capacity: {named} of {room} bytes{more}; {excess} bytes too many in all")
    for sink in graph.sinks():
        own = tiles[sink.index]
        torn = sum(tile != own[e - e % memory.grain] for e, tile in enumerate(own))
        if torn:
            lines.append(
                f"grain: {torn} elements of sink {sink.name!r} are not on the tile of the "
                f"first element of their grain of {memory.grain}"
            )
    return lines


def judged(graph: Graph, layouts: Layouts, seen: Counter[str]) -> None:
    """Hold evaluations against the tiles of all elements; layouts cover the sinks."""
    memory, tiles = memory_of(graph), tiles_of(graph, layouts)
    found = by_elements(graph, layouts)
    matched = [
        sum(x == y and x is not None for x, y in zip(tiles[a], tiles[b], strict=True))
        for a, b, _ in graph.pairs
    ]
    assert [pair.matched for pair in found.pairs] == matched
    broken = list(found.violations)
    waits = any(None in own for own in tiles)
    assert broken[:waits] == [line for line in broken if line.startswith("barrier order")]
    assert broken[waits:] == expected_faults(graph, tiles)
    for sink, own in held(graph, layouts):
        counts = Counter(tile for tile in tiles[sink.index] if tile is not None)
        width = memory.bytes_of(sink.name)
        assert own.tolist() == [width * counts[tile] for tile in range(memory.tiles)]
    assert occupied(graph, layouts).tolist() == sum(own for _, own in held(graph, layouts)).tolist()
    try:
        without_hooks(graph, layouts)
    except SizeError:
        seen["by elements alone"] += 1
    else:
        assert by_pieces(graph, layouts).violations == found.violations
    seen["waits"] += waits
    seen["matched"] += sum(matched)
    seen["torn"] += "grain" in str(broken)
    seen["full"] += "capacity" in str(broken)
    seen["more"] += "more tiles" in str(broken)
    seen["tiles of hooks"] += takes_hooked(graph, layouts)


def test_rules() -> None:
    """Where rules and mappings say where roots lie, in elements of one to three bytes."""
    seen = Counter[str]()
    for seed in range(60):
        graph = on_tiles(awkward(seed), seed)
        tiles, widths = memory_of(graph).tiles, {"default": 1 + seed % 2, "sink0": 3}
        graph.tile_memory = TileMemory(tiles, seed % 4 * 9 + 1, widths, grain=1 + seed % 3)
        layouts = random_layouts(graph, seed)
        if by_elements(graph, layouts).score is not None:
            judged(graph, layouts, seen)
    assert min(seen[what] for what in ["matched", "torn", "full", "more"]) > 5, seen


def test_hooks() -> None:
    """Where barriers have hooks, chains of them, and pieces that wait for themselves."""
    seen = Counter[str]()
    for seed in range(120):
        graph = random_hooked(seed)
        layouts = random_layouts(graph, seed)
        if by_elements(graph, layouts).score is not None:
            judged(graph, layouts, seen)
    wanted = ["matched", "torn", "full", "waits", "tiles of hooks", "by elements alone"]
    assert min(seen[what] for what in wanted) > 10, seen


def sinks(*sizes: int, tiles: int, room: int, grain: int = 1, width: int = 1) -> Graph:
    """Return a graph of sinks ``a``, ``b``, ... on a machine; ``b`` has elements of 4 bytes."""
    graph = Graph()
    graph.tile_memory = TileMemory(tiles, room, {"default": width, "b": 4}, grain=grain)
    for name, size in zip("abcde", sizes, strict=False):
        graph.sink((size,), name=name)
    return graph
