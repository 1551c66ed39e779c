"""Random layouts, legal and illegal, for the comparison of the two ways to check them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from layoutopt.base.result import Loop, Piece
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph

Layouts = dict[str, tuple[Piece, ...]]


class Origin(NamedTuple):
    """Whose locations pieces may take, and how many there are."""

    name: str
    size: int


def random_layouts(graph: Graph, seed: int) -> Layouts:
    """Return layouts of random pieces of any origin; most are legal but for barrier order.

    On a tile memory some pieces name tiles.  In some layouts, pieces are added, left out or put
    on top of others, or are any loops at all.
    """
    draw = random.Random(seed)
    roots = [t for t in graph.tensors() if graph.kind(t) is not Kind.VIEW and t.size]
    origins = [Origin(t.name, t.size) for t in roots]
    if graph.tile_memory is not None:
        origins += [Origin(TILE, graph.tile_memory.tiles)] * len(origins)
    layouts: Layouts = {}
    for sink in graph.sinks():
        pieces = list(_partition(draw, sink, origins))
        if draw.random() < 0.15:
            _spoil(draw, pieces, sink, origins)
        draw.shuffle(pieces)
        layouts[sink.name] = tuple(pieces)
    if draw.random() < 0.02:
        layouts.pop(next(iter(layouts)))
    return layouts


def cut(draw: random.Random, size: int, pieces: float = 0.5) -> Iterator[tuple[int, int, int]]:
    """Yield ``(first, extent, step)`` of strided runs that cover ``0 .. size - 1`` once.

    Parameters
    ----------
    pieces
        How likely a run is cut further.
    """
    left = [(0, size, 1)] if size else []
    while left:
        first, n, step = left.pop()
        luck = draw.random()
        if n > 1 and luck < 0.7 * pieces:
            middle = draw.randint(1, n - 1)
            left += [(first, middle, step), (first + middle * step, n - middle, step)]
        elif n > 1 and luck < pieces:
            left += [(first, (n + 1) // 2, 2 * step), (first + step, n // 2, 2 * step)]
        else:
            yield first, n, step


def _partition(draw: random.Random, sink: Tensor, origins: list[Origin]) -> Iterator[Piece]:
    """Yield pieces that cover a sink once."""
    for first, n, step in cut(draw, sink.size):
        inner = draw.choice([d for d in range(1, n + 1) if n % d == 0])
        walk = [(inner, step), (n // inner, step * inner)]
        yield _piece(draw, first, walk, draw.choice([Origin(sink.name, sink.size), *origins]))


def _piece(draw: random.Random, to: int, walk: list[tuple[int, int]], origin: Origin) -> Piece:
    """Return a piece of certain elements of a sink, with any elements of an origin that fit."""
    straight = draw.random() < 0.5
    low = high = 0
    loops: list[Loop] = []
    for n, here in walk:
        there = here if straight else draw.choice([0, 1, -1, 2, here, -here, draw.randint(-5, 5)])
        if high - low + abs(there) * (n - 1) >= origin.size:
            there = 0
        low, high = low + min(0, there * (n - 1)), high + max(0, there * (n - 1))
        back = draw.random() < 0.3  # the same loop from its other end
        to, start = (to + here * (n - 1), there * (n - 1)) if back else (to, 0)
        loops.append((n, -there, -here) if back else (n, there, here))
        low, high = (low - start, high - start) if back else (low, high)
    start = draw.randint(-low, origin.size - 1 - high)
    if straight and -low <= to <= origin.size - 1 - high:
        start = to
    draw.shuffle(loops)
    return origin.name, start, to, tuple(loops)


def _spoil(draw: random.Random, pieces: list[Piece], sink: Tensor, origins: list[Origin]) -> None:
    """Make a layout illegal, mostly."""
    luck = draw.random()
    if luck < 0.25 and pieces:
        pieces.append(draw.choice(pieces))
    elif luck < 0.4 and pieces:
        pieces.pop()
    elif luck < 0.7 and len(pieces) > 1:
        origin, start, _, loops = pieces.pop()
        pieces.append((origin, start, pieces[0][2], loops))
    else:
        factors = [d for d in range(1, sink.size + 1) if sink.size % d == 0]
        inner = draw.choice(factors or [1])
        extents = (inner, sink.size // inner) if sink.size else (1, 2)
        loops = tuple((n, 0, draw.randint(-1, 3)) for n in extents)
        name = draw.choice(origins).name if origins else sink.name
        pieces[:] = [(name, 0, draw.randint(-1, 2), loops)]
