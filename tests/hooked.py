"""Small random graphs with barrier hooks, and their optima by trying all layouts.

Everything about tiles is said here once more: hooks are formulas over batches of layouts, views
are index arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import product

import numpy as np

from layoutopt.base.numbers import to_integers
from layoutopt.graphs.ops import Barrier, Kind, Source, size
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.tiling import memory_of
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.hooks import HOOKS, hook
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map

MOST = 4**6
"""Graphs whose sinks have more layouts are not tried out."""

BATCHED: dict[str, Callable[[np.ndarray, tuple[int, ...], int], np.ndarray]] = {
    "same": lambda x, shape, tiles: x,
    "normalisation": lambda x, shape, tiles: x,
    "reduce": lambda x, shape, tiles: x[..., 0],
    "broadcast": lambda x, shape, tiles: x[:, 0],
    "pool": lambda x, shape, tiles: x[:, ::2],
    "ascending": lambda x, shape, tiles: np.sort(x.reshape(len(x), -1), axis=1),
    "crowd": lambda x, shape, tiles: (
        np.zeros((len(x), *shape), int)
        + (x.reshape(len(x), -1).sum(axis=1) % tiles).reshape(-1, *[1] * len(shape))
    ),
    "neighbours": lambda x, shape, tiles: (x + np.roll(x, -1, axis=1)) % tiles,
}
"""What hooks do to a batch of layouts; its first axis counts these."""


@contextmanager
def own_hooks() -> Iterator[None]:
    """Know some hooks of a user for a while: two of all elements, one of two elements each."""

    def around(inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> list[np.ndarray]:
        each = np.arange(inputs[0][0])
        return [np.stack([each, np.roll(each, -1)], axis=1)]

    hook("ascending")(lambda x, shapes, memory: [np.sort(x[0].ravel()).reshape(shapes[0])])
    hook("crowd")(lambda x, shapes, memory: [np.full(shapes[0], x[0].sum() % memory.tiles)])
    hook("neighbours", reads=around)(
        lambda x, shapes, memory: [
            np.array(
                [(a + b) % memory.tiles for a, b in zip(x[0], [*x[0][1:], x[0][0]], strict=True)]
            )
        ]
    )
    try:
        yield
    finally:
        HOOKS.clear()


def random_hooked(seed: int) -> Graph:
    """Return a random graph of one or two sinks, with one or two hooks and perhaps a chain."""
    draw = random.Random(seed)
    graph = Graph(f"hooked-{seed}")
    tiles = draw.choice([2, 2, 3, 3, 4])
    most = draw.choice([3, 4, 4, 6] if tiles < 4 else [2, 4])
    shapes = {2: [(2,)], 3: [(3,), (2,)], 4: [(4,), (2, 2)], 6: [(3, 2), (2, 3), (6,)]}[most]
    known = [graph.sink(draw.choice(shapes), name="x")]
    if draw.random() < 0.4:
        known.append(graph.sink((2,), name="y"))
    for k in range(draw.choice([1, 1, 2, 2, 2])):
        for _ in range(draw.randint(0, 2)):
            known.append(_view(graph, draw, draw.choice(known)))
        # A chain half of the time: the next hook reads what comes of the last one.
        known.append(_hooked(graph, draw, known[-1] if draw.random() < 0.5 else known[0], k))
    for t in list(known):
        if draw.random() < 0.7:
            mapping = [draw.randrange(tiles) for _ in range(t.size)]
            known.append(graph.source(t.shape, mapping, name=f"s{len(known)}"))
    known.append(graph.barrier([known[0]], known[0].shape, name="opaque"))
    _pair_up(graph, draw, known)
    grain = draw.choice([1, 1, 1, 2, 3])
    width = {"x": draw.randint(1, 3)} if draw.random() < 0.4 else {}
    total = sum(sink.size * width.get(sink.name, 1) for sink in graph.sinks())
    room = total if draw.random() < 0.4 else max(1, total // tiles + draw.randint(-1, 3))
    graph.tile_memory = TileMemory(tiles, room, element_bytes={"default": 1} | width, grain=grain)
    return graph


def _view(graph: Graph, draw: random.Random, x: Tensor) -> Tensor:
    kind = draw.choice(["reverse", "flatten", "slice", "turn"])
    if kind == "turn" and len(x.shape) == 2:
        return graph.dim_shuffle(x, (1, 0))
    if kind == "slice" and x.shape and x.shape[0] > 1:
        return graph.slice(x, (1, *[0] * (len(x.shape) - 1)), x.shape)
    return graph.reverse(x, [0]) if kind == "reverse" and x.shape else graph.flatten(x)


def _hooked(graph: Graph, draw: random.Random, x: Tensor, k: int) -> Tensor:
    shape, fits = x.shape, ["same", "normalisation", "ascending", "crowd", "crowd", "ascending"]
    if len(shape) == 2 and shape[0] != shape[1]:
        fits += ["reduce", "broadcast"] * 8
    if len(shape) == 1:
        fits += ["neighbours", "neighbours"]
        fits += ["pool"] if shape[0] % 2 == 0 else []
    name = draw.choice(fits)
    out = {"reduce": shape[:1], "broadcast": shape[1:], "pool": (shape[0] // 2,)}.get(name, shape)
    return graph.barrier([x], out, hook=name, name=f"h{k}")


def _pair_up(graph: Graph, draw: random.Random, known: list[Tensor]) -> None:
    signed = draw.random() < 0.3
    for i, a in enumerate(known):
        for b in known[:i]:
            if a.shape == b.shape and draw.random() < 0.6:
                value = draw.choice([1, 2, 3, 5, 8]) * (-1 if signed and draw.random() < 0.4 else 1)
                graph.valued_pair(a, b, value)


def layouts_of(graph: Graph) -> dict[int, np.ndarray] | None:
    """Return all layouts that fit, shape ``(layouts, elements)`` by sink; ``None`` if too many."""
    memory = memory_of(graph)
    grains = [-(-sink.size // memory.grain) for sink in graph.sinks()]
    if memory.tiles ** sum(grains) > MOST:
        return None
    every = np.array(list(product(range(memory.tiles), repeat=sum(grains))))
    found, used, start = {}, np.zeros((len(every), memory.tiles), int), 0
    for sink, count in zip(graph.sinks(), grains, strict=True):
        own = np.repeat(every[:, start : start + count], memory.grain, axis=1)[:, : sink.size]
        for tile in range(memory.tiles):
            used[:, tile] += (own == tile).sum(axis=1) * memory.bytes_of(sink.name)
        found[sink.index], start = own, start + count
    fits = (used <= memory.bytes_per_tile).all(axis=1)
    return {t: own[fits] for t, own in found.items()}


def best_of_all(graph: Graph, sinks: dict[int, np.ndarray]) -> Fraction | None:
    """Return the best score of all given layouts; ``None`` if there are none."""
    memory = memory_of(graph)
    count = len(next(iter(sinks.values())))
    if not count:
        return None
    where = dict(sinks)
    for i, op in enumerate(graph.ops):
        [t] = graph.op_outputs[i]
        shape = graph.shapes[t]
        if op.kind is Kind.VIEW:
            carriers = graph.carriers(i)
            starts = np.cumsum([0, *(size(graph.shapes[c]) for c in carriers)])
            numbers = [
                (start + np.arange(size(graph.shapes[c]))).reshape(graph.shapes[c])
                for start, c in zip(starts, carriers, strict=False)
            ]
            taken = np.concatenate([where[c] for c in carriers], axis=1)
            where[t] = taken[:, op.view(numbers).reshape(-1)]
        elif isinstance(op, Barrier) and op.hook is not None:
            [source] = graph.op_inputs[i]
            batch = where[source].reshape(count, *graph.shapes[source])
            where[t] = BATCHED[op.hook](batch, shape, memory.tiles).reshape(count, -1)
        elif op.kind is not Kind.SINK:
            mapping = op.mapping if isinstance(op, Source) else None
            own = tile_map(shape, memory).tiles() if mapping is None else np.array(mapping)
            where[t] = np.broadcast_to(own, (count, len(own)))
    values, unit = to_integers([value for _, _, value in graph.pairs])
    total = np.zeros(count, object)  # Python's integers, which hold any sum
    for (a, b, _), value in zip(graph.pairs, values, strict=True):
        total += value * (where[a] == where[b]).sum(axis=1).astype(object)
    return max(total) * unit
