"""Random graphs of views whose tensors are tied to each other in awkward ways."""

from __future__ import annotations

import random
from math import prod

from msgspec.structs import replace

from layoutopt.graphs.ops import Source
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory
from tests.support import with_ops

VALUES = [1, 1, 2, 3, 5, "0.5", 7]


def awkward(seed: int, widest: int = 6, largest: int = 72, negative: bool = False) -> Graph:
    """Return a random graph of views.

    Sinks and sources are often square; views are transposes, reversals, ragged slices,
    sub-samples, nested stripes, concatenations (also of a tensor with itself, and of sinks with
    sources), broadcasts and reshapes between shapes that have nothing in common.  Tensors are
    tied to other views of the same size, to themselves reversed or transposed, and to sources.

    Parameters
    ----------
    widest
        Largest dimension of a root.
    largest
        Largest number of elements of a tensor.
    negative
        Whether some values are negative or zero.
    """
    draw = random.Random(seed)
    graph = Graph(f"awkward-{seed}")
    found: list[Tensor] = []

    def shape() -> tuple[int, ...]:
        if draw.random() < 0.35:
            side = draw.randint(2, max(2, min(widest, int(largest**0.5))))
            return (side, side)
        while True:
            dims = tuple(draw.randint(1, widest) for _ in range(draw.randint(1, 3)))
            if prod(dims) <= largest:
                return dims

    for _ in range(draw.randint(1, 3)):
        found.append(graph.sink(shape()))
    for _ in range(draw.randint(0, 2)):
        own = shape()
        mapping = None
        if draw.random() < 0.2:
            mapping = [draw.randrange(4) for _ in range(prod(own))]
        found.append(graph.source(own, mapping))
    if draw.random() < 0.2:
        found.append(graph.fixed_point([], shape()))
    for _ in range(draw.randint(1, 8)):
        view = _view(graph, draw, draw.choice(found), found, largest)
        if view.size <= largest:
            found.append(view)
    for _ in range(draw.randint(2, 6)):
        _tie(graph, draw, found, negative)
    return graph


def on_tiles(graph: Graph, seed: int, grain: int = 1) -> Graph:
    """Return a graph on a small machine with ample room, its sources by various rules.

    Parameters
    ----------
    grain
        The machine's.
    """
    draw = random.Random(seed)
    tiles = draw.randint(2, 7)
    ops = [_placed(draw, op, tiles) if isinstance(op, Source) else op for op in graph.ops]
    found = with_ops(graph, ops)
    found.tile_memory = TileMemory(tiles, 10**6, grain=grain)
    return found


def _placed(draw: random.Random, source: Source, tiles: int) -> Source:
    """Return a source that lies by a grid, linearly, by a list, or by default."""
    kind, shape = draw.random(), source.given()
    if kind < 0.2:
        return replace(source, mapping=None)
    if kind < 0.4:
        return replace(source, mapping=tuple(draw.randrange(tiles) for _ in range(prod(shape))))
    blocks = []
    left = tiles
    for n in shape:
        blocks.append(draw.randint(1, max(1, min(left, n))))
        left //= blocks[-1]
    chunks = {"min_elements_per_tile": draw.randint(1, 5), "grain": draw.randint(1, 3)}
    rule = {"kind": "grid", "blocks": blocks} if kind < 0.8 else {"kind": "linear", **chunks}
    return replace(source, mapping=None, rule=rule)


def _view(
    graph: Graph, draw: random.Random, x: Tensor, found: list[Tensor], largest: int
) -> Tensor:
    """Add a view of a tensor."""
    shape, rank = x.shape, len(x.shape)
    kind = draw.choice(
        ["reshape", "reshape", "shuffle", "reverse", "slice", "sample", "sett"]
        + ["concat", "expand"]
    )
    if kind == "reshape":
        return graph.reshape(x, _factored(draw, x.size))
    if kind == "shuffle":
        return graph.dim_shuffle(x, draw.sample(range(rank), rank))
    if kind == "reverse":
        return graph.reverse(x, draw.sample(range(rank), draw.randint(0, rank)))
    if kind == "slice":
        ends = [sorted(draw.sample(range(n + 1), 2)) if n else [0, 0] for n in shape]
        return graph.slice(x, [a for a, _ in ends], [b for _, b in ends])
    if kind == "sample":
        return graph.sub_sample(x, [draw.randint(1, 3) for _ in shape])
    if kind == "sett":
        stripes = [
            [
                (draw.randint(1, 3), draw.randint(0, 2), draw.randint(-2, 2))
                for _ in range(draw.randint(0, 2))
            ]
            for _ in shape
        ]
        return graph.sett_sample(x, stripes)
    if kind == "concat" and rank:
        axis = draw.randrange(rank)
        alike = [
            t
            for t in found
            if len(t.shape) == rank
            and t.shape[:axis] + t.shape[axis + 1 :] == shape[:axis] + shape[axis + 1 :]
        ]
        joined = [x, *(draw.choice(alike) for _ in range(draw.randint(1, 2)))]
        if sum(t.size for t in joined) <= largest:
            return graph.concat(draw.sample(joined, len(joined)), axis)
    wide = [draw.randint(1, 3) if n == 1 else n for n in shape]
    wide = [draw.randint(1, 3)] * (draw.random() < 0.4) + wide
    return graph.expand(x, wide) if prod(wide) <= largest else graph.identity(x)


def _factored(draw: random.Random, size: int) -> list[int]:
    """Return a random shape of so many elements."""
    dims = []
    while size > 1:
        d = draw.choice([d for d in range(2, size + 1) if size % d == 0])
        dims.append(d)
        size //= d
    draw.shuffle(dims)
    return [*dims, 0] if size == 0 else dims


def _tie(graph: Graph, draw: random.Random, found: list[Tensor], negative: bool) -> None:
    """Add a ValuedPair of a tensor and something of its size."""
    x = draw.choice(found)
    value = draw.choice([*VALUES, -2, 0, -1]) if negative else draw.choice(VALUES)
    kind = draw.random()
    if kind < 0.25:
        graph.valued_pair(x, graph.source(x.shape), value)
    elif kind < 0.4:
        graph.valued_pair(x, graph.reverse(x, range(len(x.shape))), value)
    elif kind < 0.55 and len(x.shape) == 2:
        graph.valued_pair(graph.flatten(graph.dim_shuffle(x, (1, 0))), graph.flatten(x), value)
    elif kind < 0.6:
        graph.valued_pair(x, draw.choice([x, graph.identity(x)]), value)
    else:
        alike = [t for t in found if t.size == x.size and t.index != x.index]
        if alike:
            other = draw.choice(alike)
            graph.valued_pair(graph.flatten(x), graph.flatten(other), value)
