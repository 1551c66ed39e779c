"""Numbers of elements on each tile, of tensors and of positions shared by two tensors.

By elements, tiles are arrays passed through views; by pieces, elements of the boxes of
:mod:`layoutopt.check.matching` are counted.
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
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import hooked, root_tiles
from layoutopt.tiles.blocks import TileMap
from layoutopt.tiles.counting import on_both, on_each

Integers = NDArray[np.int64]

Counts: TypeAlias = tuple[Integers, Integers]
"""Tiles, ascending, and their counts; all other tiles have 0."""

NOTHING: Counts = np.zeros(0, np.int64), np.zeros(0, np.int64)


class Spread(Protocol):
    """Counts of elements by tile; tensors are given by number."""

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""


def spread(graph: GraphStore, layouts: Layouts) -> Spread:
    """Return the counts of elements by tile, by elements in small graphs, by pieces in large ones.

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
        If a hook does not fit, or a barrier with a hook depends on itself.
    SizeError
        If there are hooks, and the elements do not fit into memory.
    """
    if hooked(graph):
        tiles = Hooked(graph, layouts).tiles
        if any((each == UNKNOWN).any() for each in tiles.values()):
            raise InputError("barrier order: a barrier with a hook waits for itself")
        return SpreadByElements(graph, layouts, tiles)
    small = sum(map(size, graph.shapes)) <= SMALL
    return SpreadByElements(graph, layouts) if small else SpreadByPieces(graph, layouts)


def uncovered(graph: GraphStore, layouts: Layouts) -> tuple[str, ...]:
    """Return a line for every sink that is not covered exactly once, and for every invalid piece.

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
    """Return the sums of counts by tile."""
    listed = [part for part in parts if len(part[0])]
    if len(listed) < 2:
        return listed[0] if listed else NOTHING
    tiles, of = np.unique(np.concatenate([tiles for tiles, _ in listed]), return_inverse=True)
    total = np.zeros(len(tiles), np.int64)
    np.add.at(total, of, np.concatenate([numbers for _, numbers in listed]))
    return tiles, total


class SpreadByElements:
    """Counts by elements; the tiles of each queried tensor are cached.

    Parameters
    ----------
    tiles
        Known tiles of tensors, by number.
    """

    def __init__(
        self, graph: GraphStore, layouts: Layouts, tiles: dict[int, Array] | None = None
    ) -> None:
        self.graph, self.layouts = graph, layouts
        self._found = {} if tiles is None else tiles
        self._rules: dict[int, TileMap] = {}

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""
        return _counted(self._tiles(t))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""
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
        """Return the tiles of a root tensor, cached."""
        if root not in self._rules:
            self._rules[root] = root_tiles(self.graph, root)
        return self._rules[root]


def _counted(tiles: Array) -> Counts:
    found, counts = np.unique(tiles, return_counts=True)
    return found.astype(np.int64), counts.astype(np.int64)


class SpreadByPieces:
    """Counts by boxes.

    Parameters
    ----------
    limit
        Limit of steps; see :class:`layoutopt.boxes.equation.Equations`.
    """

    def __init__(self, graph: GraphStore, layouts: Layouts, limit: int = STEPS) -> None:
        self.graph = graph
        self.equations = Equations(limit)
        matching = Matching(graph, layouts, self.equations)
        self.tracing, self.map = matching.tracing, matching.map
        self._known: dict[object, Counts] = {}

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile.

        Raises
        ------
        SizeError
            If layouts or views are too irregular for boxes.
        """
        return summed(self._each(box) for box in self.tracing.boxes(t))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile.

        Raises
        ------
        SizeError
            If layouts or views are too irregular for boxes.
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
        """Count the common elements of two boxes that are on equal tiles, in parts."""
        maps, found = (self.map(a.label), self.map(b.label)), []
        for part in common(a, b, self.equations):
            key = id(maps[0]), id(maps[1]), part
            if key not in self._known:
                self._known[key] = on_both(maps, *part)
            found.append(self._known[key])
        return found
