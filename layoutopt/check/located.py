"""Locations of all elements, as arrays of numbers: on a tile memory, of their tiles.

Elements of sinks have the numbers given by their pieces, those of views the numbers of their
inputs, all others numbers of their own (:mod:`layoutopt.graphs.locations`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from layoutopt.base import result
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import require
from layoutopt.boxes.box import Box
from layoutopt.check.affine import passed_on
from layoutopt.check.matching import Layouts
from layoutopt.graphs.locations import TILE, Locations
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import TileMaps, check_hooks, hook_of, hooked, output_tiles, viewed
from layoutopt.tiles.counting import Counts, counted

ELEMENT_BYTES = 24
"""Bytes per element where hooks are evaluated."""

UNKNOWN = -1
"""The tile of an element that depends on itself."""


class Located:
    """The location numbers of a graph's elements in layouts, which cover all sinks."""

    def __init__(self, graph: GraphStore, layouts: Layouts) -> None:
        self.graph, self.layouts = graph, layouts
        self.on_tiles = graph.tile_memory is not None
        self.numbers, self.maps = Locations(graph), TileMaps(graph)
        self.dtype = np.dtype(np.int32 if self.numbers.count < 2**31 else np.int64)
        self.found: dict[int, Array] = {}

    def of(self, t: int) -> Array:
        """Return the numbers of a tensor's elements, flat, which are kept."""
        for out in self.graph.view_order([t], self.found):
            self.found[out] = self.made(out, self.found)
        return self.found[t]

    def each(self, t: int) -> Counts:
        """Count the elements of a tensor on each tile."""
        return counted(self.of(t))

    def both(self, a: int, b: int) -> Counts:
        """Count the positions at which two tensors of one shape are both on each tile."""
        mine, other = self.of(a), self.of(b)
        return counted(mine[mine == other])

    def alike(self, t: int, others: Sequence[Box]) -> int:
        """Count elements of a tensor on the same tile as the others that boxes map them to."""
        tiles = self.of(t)
        same = (tiles[result.read(box)] == tiles[result.written(box)] for box in others)
        return sum(map(int, map(np.count_nonzero, same)))

    def matches(self) -> list[int]:
        """Count the positions with equal locations of each pair; arrays are held while needed."""
        graph = self.graph
        due: dict[int, list[int]] = {}
        for p, (a, b, _) in enumerate(graph.pairs):
            due.setdefault(max(graph.producers[a], graph.producers[b]), []).append(p)
        needed = graph.view_order({t for a, b, _ in graph.pairs for t in (a, b)})
        last = {c: graph.producers[t] for t in needed for c in graph.carriers(graph.producers[t])}
        for i, ps in due.items():
            last.update({t: max(i, last.get(t, i)) for p in ps for t in graph.pairs[p][:2]})
        expire: dict[int, list[int]] = {}
        for t, i in last.items():
            expire.setdefault(i, []).append(t)
        found: dict[int, Array] = {}
        matched = [0] * len(graph.pairs)
        for i, made in groupby(needed, key=graph.producers.__getitem__):
            found.update((t, self.made(t, found)) for t in made)
            for p in due.get(i, ()):
                a, b, _ = graph.pairs[p]
                matched[p] = int(np.count_nonzero(found[a] == found[b]))
            for t in expire.get(i, ()):
                del found[t]
        return matched

    def made(self, t: int, found: Mapping[int, Array]) -> Array:
        """Return the numbers of a tensor's elements, flat, if those of a view's carriers are."""
        kind = self.graph.ops[self.graph.producers[t]].kind
        if kind is Kind.VIEW:
            return passed_on(self.graph, t, found)
        if kind is Kind.SINK:
            return self._laid_out(t)
        if self.on_tiles:
            return self.maps[t].tiles()
        return self.at(t, np.arange(size(self.graph.shapes[t]), dtype=self.dtype))

    def at(self, t: int, elements: Array) -> Array:
        """Return the numbers of the locations of flat elements of a root tensor."""
        return self.maps[t].at(elements) if self.on_tiles else self.numbers.own_at(t, elements)

    def _laid_out(self, t: int) -> Array:
        taken = np.empty(size(self.graph.shapes[t]), self.dtype)
        for piece in self.layouts[self.graph.tensor_name(t)]:
            where = result.read(piece)
            if not (self.on_tiles and piece[0] == TILE):
                where = self.at(self.graph.number(piece[0]), where)
            taken[result.written(piece)] = where
        return taken


class Hooked(Located):
    """The tiles of all tensors of a graph whose barriers have hooks, ``found`` by number.

    The tiles of a barrier's outputs are computed from those of its inputs.  Tiles that depend on
    themselves remain unknown; they violate barrier order.
    """

    def __init__(self, graph: GraphStore, layouts: Layouts) -> None:
        require(ELEMENT_BYTES * sum(map(size, graph.shapes)), "evaluating hooks for every element")
        check_hooks(graph)
        super().__init__(graph, layouts)
        for _ in range(len(hooked(graph)) + 1):  # each round computes at least one more barrier
            self.before, self.found = self.found, {}
            for i in range(len(graph.ops)):
                self._make(i)
            self.complete = not any((tiles == UNKNOWN).any() for tiles in self.found.values())
            if self.complete:
                break

    def matches(self) -> list[int]:
        """Count the positions with equal tiles of each pair."""
        pairs = [(self.found[a], self.found[b]) for a, b, _ in self.graph.pairs]
        return [int(np.count_nonzero((a == b) & (a != UNKNOWN))) for a, b in pairs]

    def at(self, t: int, elements: Array) -> Array:
        """Return the tiles of flat elements of a root tensor, as known after the last round."""
        if hook_of(self.graph, self.graph.producers[t]) is None:
            return super().at(t, elements)
        known = self.before.get(t)
        return np.full(len(elements), UNKNOWN) if known is None else known[elements]

    def _make(self, i: int) -> None:
        """Compute the tiles of an op's outputs."""
        graph, outputs = self.graph, self.graph.op_outputs[i]
        if hook_of(graph, i) is None:
            for t in outputs:
                self.found[t] = self.made(t, self.found)
            return
        inputs = [self.found[t] for t in graph.op_inputs[i]]
        if any((tiles == UNKNOWN).any() for tiles in inputs):
            found = [np.full(size(graph.shapes[t]), UNKNOWN) for t in outputs]
        else:
            found = output_tiles(graph, i, inputs)
        self.found |= zip(outputs, found, strict=True)


def takes_hooked(graph: GraphStore, layouts: Layouts) -> bool:
    """Return whether the origin of a piece is an output of a barrier with a hook."""
    outputs = {graph.tensor_name(t) for i in hooked(graph) for t in graph.op_outputs[i]}
    return any(piece[0] in outputs for layout in layouts.values() for piece in layout)


def without_hooks(graph: GraphStore, layouts: Layouts) -> GraphStore:
    """Return a graph for the check by pieces, with views in place of built-in hooks.

    Users' hooks, and pieces whose origins are outputs of barriers with hooks, are refused.
    """
    if not hooked(graph):
        return graph
    found = viewed(graph)
    if hooked(found) or takes_hooked(graph, layouts):
        count = sum(map(size, graph.shapes))
        what = "users' hooks" if hooked(found) else "pieces with origins in barriers with hooks"
        raise SizeError(f"{what} are evaluated element by element; {count:,} are too many")
    return found
