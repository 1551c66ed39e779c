"""Elements that nobody cares about, put where there is room on a tile memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from layoutopt.dense.layouts import Layouts
from layoutopt.graphs.store import Store
from layoutopt.graphs.tiling import TILE, memory_of, root_tiles
from layoutopt.pieces import Loop, Piece
from layoutopt.problem import IntArray
from layoutopt.tiles.counting import Walk, on_each


def filled(
    graph: Store,
    layouts: Mapping[str, Sequence[Piece]],
    room: IntArray,
    linear: bool = True,
    shares: Mapping[int, IntArray] | None = None,
) -> Layouts | None:
    """Return layouts in which whatever lies at fresh locations has tiles with room.

    Such elements stay where the linear rule puts them, if all of them fit there; else each tile
    gets its share.  Where shares are not known, tiles are filled one after the other, with the
    widest elements first, which may leave some over although there is a way.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    layouts
        Pieces by sink; origins that are sinks mean fresh locations.
    room
        Shape ``(tiles,)``: the bytes that everything else leaves.
    linear
        Whether elements may stay where the linear rule puts them; else all get tiles by number.
    shares
        For each number of bytes how many elements that take so many go to each tile, if known.

    Returns
    -------
    dict or None
        ``None`` if elements are left over in the end.
    """
    memory = memory_of(graph)
    sinks = {sink.name for sink in graph.sinks()}
    loose = {
        name: [n for n, piece in enumerate(pieces) if piece[0] in sinks]
        for name, pieces in layouts.items()
    }
    found: Layouts = {name: tuple(pieces) for name, pieces in layouts.items()}
    if linear and (_linear(graph, layouts, loose) <= room).all():
        return found
    left = room.copy()
    shares = {} if shares is None else {width: share.copy() for width, share in shares.items()}
    for name in sorted(loose, key=lambda name: -memory.bytes_of(name)):
        if not loose[name]:
            continue
        kept = [piece for n, piece in enumerate(found[name]) if n not in set(loose[name])]
        for n in loose[name]:
            width = memory.bytes_of(name)
            counts = shares.get(width, left // width)
            before = counts.copy()
            moved = _poured(found[name][n], counts)
            if moved is None:
                return None
            left -= (before - counts) * width
            kept += moved
        found[name] = tuple(sorted(kept, key=lambda piece: piece[2]))
    return found


def _linear(
    graph: Store, layouts: Mapping[str, Sequence[Piece]], loose: Mapping[str, Sequence[int]]
) -> IntArray:
    """Return the bytes that some pieces take of each tile by the linear rule."""
    memory = memory_of(graph)
    total = np.zeros(memory.tiles, np.int64)
    for name, numbers in loose.items():
        for n in numbers:
            origin, start, _, loops = layouts[name][n]
            tiles = root_tiles(graph, graph.number(origin))
            walk = Walk(tiles, start, tuple(step for _, step, _ in loops))
            where, counts = on_each(walk, [extent for extent, _, _ in loops])
            total[where] += counts * memory.bytes_of(name)
    return total


def _poured(piece: Piece, counts: IntArray) -> list[Piece] | None:
    """Return a piece cut and put on tiles; ``None`` if there is too little room.

    Parameters
    ----------
    counts
        How many elements each tile may take, which become fewer.
    """
    _, _, to, loops = piece
    rest = [(to, tuple((extent, 0, step) for extent, _, step in loops))]
    found: list[Piece] = []
    for tile in np.flatnonzero(counts).tolist():
        while counts[tile] and rest:
            first, own = rest.pop()
            count = math.prod(extent for extent, _, _ in own)
            taken = min(int(counts[tile]), count)
            boxes, others = _cut(first, own, taken)
            found += [(TILE, tile, at, inner) for at, inner in boxes]
            rest += others
            counts[tile] -= taken
        if not rest:
            return found
    return None if rest else found


Walked = tuple[int, tuple[Loop, ...]]


def _cut(to: int, loops: tuple[Loop, ...], count: int) -> tuple[list[Walked], list[Walked]]:
    """Return the boxes of the first elements of a box, and those of the rest, last ones first."""
    head: list[Walked] = []
    rest: list[Walked] = []
    while loops and count:
        (extent, _, step), inner = loops[0], loops[1:]
        each = math.prod(n for n, _, _ in inner)
        whole, count = divmod(count, each)
        if whole:
            head.append((to, ((whole, 0, step), *inner)))
        left = extent - whole - (1 if count else 0)
        if left:
            rest.append((to + (extent - left) * step, ((left, 0, step), *inner)))
        to, loops = to + whole * step, inner
    return head, rest
