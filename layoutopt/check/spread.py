"""Numbers of elements on each tile, of tensors and of positions shared by two tensors.

By elements, tiles are arrays passed through views; by pieces, elements of the boxes of
:mod:`layoutopt.check.matching` are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.boxes.box import Box
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.join import common
from layoutopt.check.affine import SMALL, STEPS, either
from layoutopt.check.elements import coverage
from layoutopt.check.located import UNKNOWN, Hooked, Located
from layoutopt.check.matching import Layouts, Matching
from layoutopt.graphs.ops import Array, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import hooked
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
    """
    if hooked(graph):
        tiles = Hooked(graph, layouts).tiles
        if any((each == UNKNOWN).any() for each in tiles.values()):
            raise InputError("barrier order: a barrier with a hook waits for itself")
        return SpreadByElements(graph, layouts, tiles)
    small = sum(map(size, graph.shapes)) <= SMALL
    return SpreadByElements(graph, layouts) if small else SpreadByPieces(graph, layouts)


def uncovered(graph: GraphStore, layouts: Layouts) -> tuple[str, ...]:
    """Return what :func:`layoutopt.check.elements.coverage` does, by the faster method."""
    return either(
        graph,
        partial(coverage, graph, layouts),
        lambda limit: coverage(graph, layouts, Equations(limit)),
    )


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
    """Counts by elements; the tiles of each queried tensor are kept."""

    def __init__(
        self, graph: GraphStore, layouts: Layouts, tiles: dict[int, Array] | None = None
    ) -> None:
        self.located = Located(graph, layouts)
        self._found = {} if tiles is None else tiles

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""
        return _counted(self._tiles(t))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""
        mine, other = self._tiles(a), self._tiles(b)
        return _counted(mine[mine == other])

    def _tiles(self, t: int) -> Array:
        for out in self.located.graph.view_order([t], self._found):
            self._found[out] = self.located.made(out, self._found)
        return self._found[t]


def _counted(tiles: Array) -> Counts:
    found, counts = np.unique(tiles, return_counts=True)
    return found.astype(np.int64), counts.astype(np.int64)


class SpreadByPieces:
    """Counts by boxes, in at most so many steps."""

    def __init__(self, graph: GraphStore, layouts: Layouts, limit: int = STEPS) -> None:
        self.graph = graph
        self.equations = Equations(limit)
        self.matching = Matching(graph, layouts, self.equations)
        self._on_each, self._on_both = cache(on_each), cache(on_both)

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""
        return summed(self._each(box) for box in self.matching.tracing.boxes(t))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""
        mine, other = self.matching.tracing.boxes(a), self.matching.tracing.boxes(b)
        same, others = self.matching.meeting(mine, other, self.graph.shapes[a])
        parts = [self._each(box) for box in same]
        parts += [part for box, twin in others for part in self._meeting(box, twin)]
        return summed(parts)

    def _each(self, box: Box) -> Counts:
        loops = tuple([(n, step) for n, step, _ in box.loops])
        return self._on_each(self.matching.maps[box.label], box.start, loops)

    def _meeting(self, a: Box, b: Box) -> list[Counts]:
        """Count the common elements of two boxes that are on equal tiles, in parts."""
        maps = self.matching.maps[a.label], self.matching.maps[b.label]
        return [self._on_both(maps, *part) for part in common(a, b, self.equations)]
