"""Numbers of elements of tensors, and of two tensors together, on each tile of a tile memory.

By elements, tiles go through views as arrays; by pieces, the boxes of
:mod:`layoutopt.check.matching` are counted without going through their elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base import result
from layoutopt.base.errors import InputError
from layoutopt.boxes.box import Box
from layoutopt.boxes.cover import cover
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.join import BoxIndex, common
from layoutopt.check.affine import SMALL, STEPS, carried, either
from layoutopt.check.elements import coverage
from layoutopt.check.hooked import UNKNOWN, Hooked
from layoutopt.check.matching import Layouts, Matching
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import TILE, hooked, root_tiles
from layoutopt.tiles.blocks import TileMap
from layoutopt.tiles.counting import on_both, on_each

Integers = NDArray[np.int64]

Counts: TypeAlias = tuple[Integers, Integers]
"""Tiles, ascending, and a number for each; all other tiles have 0."""

NOTHING: Counts = np.zeros(0, np.int64), np.zeros(0, np.int64)


class Spread(Protocol):
    """Questions about layouts on a tile memory; tensors are given by number."""

    def each(self, t: int) -> Counts:
        """Return how many elements of a tensor lie on each tile."""

    def both(self, a: int, b: int) -> Counts:
        """Return at how many positions two tensors of one shape both lie on each tile."""


def spread(graph: GraphStore, layouts: Layouts) -> Spread:
    """Return what counts elements by tile: one by one in small graphs, by pieces in large ones.

    Barriers with hooks are evaluated element by element.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    layouts
        Pieces by sink name, which cover all sinks.

    Raises
    ------
    InputError
        If a hook does not fit, or a barrier with one waits for itself.
    SizeError
        If there are hooks, and the elements do not fit the memory.
    """
    if hooked(graph):
        tiles = Hooked(graph, layouts).tiles
        if any((each == UNKNOWN).any() for each in tiles.values()):
            raise InputError("barrier order: a barrier with a hook waits for itself")
        return SpreadByElements(graph, layouts, tiles)
    small = sum(map(size, graph.shapes)) <= SMALL
    return SpreadByElements(graph, layouts) if small else SpreadByPieces(graph, layouts)


def uncovered(graph: GraphStore, layouts: Layouts) -> tuple[str, ...]:
    """Return a line for every sink that pieces do not cover once, and for pieces that fit nothing.

    Raises
    ------
    SizeError
        As :func:`layoutopt.check.elements.evaluate` does.
    """

    def by_pieces(limit: int) -> tuple[str, ...]:
        equations = Equations(limit)
        return coverage(graph, layouts, lambda layout, t: cover(layout, t.shape, equations))

    def by_elements() -> tuple[str, ...]:
        return coverage(graph, layouts, lambda layout, t: result.cover(layout, t.size))

    return either(graph, by_elements, by_pieces)


def summed(parts: Iterable[Counts]) -> Counts:
    """Return the sums of numbers by tile."""
    listed = [part for part in parts if len(part[0])]
    if len(listed) < 2:
        return listed[0] if listed else NOTHING
    tiles, of = np.unique(np.concatenate([tiles for tiles, _ in listed]), return_inverse=True)
    total = np.zeros(len(tiles), np.int64)
    np.add.at(total, of, np.concatenate([numbers for _, numbers in listed]))
    return tiles, total


class SpreadByElements:
    """Tiles of all elements as arrays, kept for every tensor that was asked for.

    Parameters
    ----------
    tiles
        Those of tensors, by number, that are known already.
    """

    def __init__(
        self, graph: GraphStore, layouts: Layouts, tiles: dict[int, Array] | None = None
    ) -> None:
        self.graph, self.layouts = graph, layouts
        self._found = {} if tiles is None else tiles
        self._rules: dict[int, TileMap] = {}

    def each(self, t: int) -> Counts:
        """Return how many elements of a tensor lie on each tile."""
        return _counted(self._tiles(t))

    def both(self, a: int, b: int) -> Counts:
        """Return at how many positions two tensors of one shape both lie on each tile."""
        mine, other = self._tiles(a), self._tiles(b)
        return _counted(mine[mine == other])

    def _tiles(self, t: int) -> Array:
        stack = [t]
        while stack:
            carriers = self.graph.carriers(self.graph.producers[stack[-1]])
            missing = [c for c in carriers if c not in self._found]
            if missing and stack[-1] not in self._found:
                stack += missing
            else:
                out = stack.pop()
                if out not in self._found:
                    self._found[out] = self._of(out, carriers)
        return self._found[t]

    def _of(self, t: int, carriers: Sequence[int]) -> Array:
        graph, op = self.graph, self.graph.ops[self.graph.producers[t]]
        if op.kind is Kind.VIEW:
            shapes = [graph.shapes[c] for c in carriers]
            return carried(op, [self._found[c] for c in carriers], shapes, graph.shapes[t])
        if op.kind is not Kind.SINK:
            return root_tiles(graph, t).tiles()
        taken = np.empty(size(graph.shapes[t]), np.int64)
        for piece in self.layouts[graph.tensor_name(t)]:
            where = result.read(piece)
            if piece[0] != TILE:
                where = self._rule(graph.number(piece[0])).at(where)
            taken[result.written(piece)] = where
        return taken

    def _rule(self, root: int) -> TileMap:
        """Return the tiles of a root tensor, worked out once."""
        if root not in self._rules:
            self._rules[root] = root_tiles(self.graph, root)
        return self._rules[root]


def _counted(tiles: Array) -> Counts:
    found, counts = np.unique(tiles, return_counts=True)
    return found.astype(np.int64), counts.astype(np.int64)


class SpreadByPieces:
    """The same by boxes.

    Parameters
    ----------
    limit
        How many steps may be taken; see :class:`layoutopt.boxes.equation.Equations`.
    """

    def __init__(self, graph: GraphStore, layouts: Layouts, limit: int = STEPS) -> None:
        self.graph = graph
        self.equations = Equations(limit)
        matching = Matching(graph, layouts, self.equations)
        self.tracing, self.map = matching.tracing, matching.map
        self._known: dict[object, Counts] = {}

    def each(self, t: int) -> Counts:
        """Return how many elements of a tensor lie on each tile.

        Raises
        ------
        SizeError
            If layouts or views are too irregular to be counted so.
        """
        return summed(self._each(box) for box in self.tracing.boxes(t))

    def both(self, a: int, b: int) -> Counts:
        """Return at how many positions two tensors of one shape both lie on each tile.

        Raises
        ------
        SizeError
            If layouts or views are too irregular to be counted so.
        """
        mine, other = self.tracing.boxes(a), self.tracing.boxes(b)
        same = set(mine) & set(other)
        parts = [self._each(box) for box in same]
        rest = [box for box in other if box not in same]
        near = BoxIndex(rest, self.graph.shapes[a], self.equations)
        for box in mine:
            if box not in same:
                parts += [found for twin in near.near(box) for found in self._meeting(box, twin)]
        return summed(parts)

    def _each(self, box: Box) -> Counts:
        tiles, loops = self.map(box.label), tuple([(n, step) for n, step, _ in box.loops])
        key = id(tiles), box.start, loops
        if key not in self._known:
            self._known[key] = on_each(tiles, box.start, loops)
        return self._known[key]

    def _meeting(self, a: Box, b: Box) -> list[Counts]:
        """Return the numbers of common elements of two boxes that are on equal tiles, in parts."""
        maps, found = (self.map(a.label), self.map(b.label)), []
        for part in common(a, b, self.equations):
            key = id(maps[0]), id(maps[1]), part
            if key not in self._known:
                self._known[key] = on_both(maps, *part)
            found.append(self._known[key])
        return found
