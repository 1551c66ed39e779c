"""Tiles of all tensors of a graph whose barriers have hooks, element by element.

The tiles of a barrier's outputs are computed from those of its inputs.  Tiles that depend on
themselves remain unknown; they violate barrier order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from layoutopt.base import result
from layoutopt.base.errors import SizeError
from layoutopt.base.memory import require
from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box
from layoutopt.check.affine import carried
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import check_hooks, hook_of, hooked, output_tiles, root_tiles, viewed

ELEMENT_BYTES = 24
"""Bytes per element."""

UNKNOWN = -1
"""The tile of an element that depends on itself."""


class Hooked:
    """The tiles of all tensors for given layouts.

    Parameters
    ----------
    graph
        A graph with a tile memory.
    layouts
        Pieces by sink name, which cover all sinks.

    Attributes
    ----------
    tiles
        A flat array for each tensor, by number.

    Raises
    ------
    InputError
        If a hook or rule does not fit or fails.
    SizeError
        If the elements do not fit into memory: hooks are evaluated element by element.
    """

    def __init__(self, graph: GraphStore, layouts: Mapping[str, Sequence[Piece]]) -> None:
        count = sum(map(size, graph.shapes))
        require(ELEMENT_BYTES * count, "evaluating hooks for every element")
        check_hooks(graph)
        self.graph, self.layouts = graph, layouts
        self.tiles: dict[int, Array] = {}
        self._own: dict[int, Array] = {}
        for _ in range(len(hooked(graph)) + 1):  # each round computes at least one more barrier
            before, self.tiles = self.tiles, {}
            for i in range(len(graph.ops)):
                self._make(i, before)
            if not any((tiles == UNKNOWN).any() for tiles in self.tiles.values()):
                break

    def matched(self, a: int, b: int) -> int:
        """Count the positions at which two tensors have equal tiles."""
        one, two = self.tiles[a], self.tiles[b]
        return int(np.count_nonzero((one == two) & (one != UNKNOWN)))

    def alike(self, t: int, others: Sequence[Box]) -> int:
        """Count elements of a tensor on the same tile as the others given by boxes."""
        return same_tile(self.tiles[t], others)

    def _make(self, i: int, before: Mapping[int, Array]) -> None:
        """Compute the tiles of an op's outputs from those of the last round."""
        graph = self.graph
        op, outputs = graph.ops[i], graph.op_outputs[i]
        if op.kind is Kind.SINK:
            self.tiles[outputs[0]] = self._laid_out(outputs[0], before)
        elif op.kind is Kind.VIEW:
            carriers = graph.carriers(i)
            shapes = [graph.shapes[c] for c in carriers]
            values = [self.tiles[c] for c in carriers]
            for t in outputs:
                self.tiles[t] = carried(op, values, shapes, graph.shapes[t])
        elif hook_of(graph, i) is None:
            self.tiles |= {t: self._fixed(t) for t in outputs}
        else:
            inputs = [self.tiles[t] for t in graph.op_inputs[i]]
            if any((tiles == UNKNOWN).any() for tiles in inputs):
                found = [np.full(size(graph.shapes[t]), UNKNOWN) for t in outputs]
            else:
                found = output_tiles(graph, i, inputs)
            self.tiles |= zip(outputs, found, strict=True)

    def _laid_out(self, t: int, before: Mapping[int, Array]) -> Array:
        graph = self.graph
        found = np.full(size(graph.shapes[t]), UNKNOWN, np.int64)
        for piece in self.layouts[graph.tensor_name(t)]:
            taken = result.read(piece)
            if piece[0] != TILE:
                origin = graph.number(piece[0])
                if hook_of(graph, graph.producers[origin]) is None:
                    taken = self._fixed(origin)[taken]
                elif origin in before:
                    taken = before[origin][taken]
                else:
                    continue
            found[result.written(piece)] = taken
        return found

    def _fixed(self, t: int) -> Array:
        """Return the tiles of a tensor placed by a rule or a mapping."""
        if t not in self._own:
            self._own[t] = root_tiles(self.graph, t).tiles()
        return self._own[t]


def same_tile(tiles: Array, others: Sequence[Box]) -> int:
    """Count elements of a tensor on the same tile as the others given by boxes.

    Parameters
    ----------
    tiles
        The tile of each element, flat.
    others
        Boxes whose elements are mapped to the others.
    """
    return sum(
        int(np.count_nonzero(tiles[result.read(box)] == tiles[result.written(box)]))
        for box in others
    )


def takes_hooked(graph: GraphStore, layouts: Mapping[str, Sequence[Piece]]) -> bool:
    """Return whether the origin of a piece is an output of a barrier with a hook."""
    outputs = {graph.tensor_name(t) for i in hooked(graph) for t in graph.op_outputs[i]}
    return any(piece[0] in outputs for layout in layouts.values() for piece in layout)


def without_hooks(graph: GraphStore, layouts: Mapping[str, Sequence[Piece]]) -> GraphStore:
    """Return a graph for the check by pieces, with views in place of built-in hooks.

    Raises
    ------
    SizeError
        If there are users' hooks, or origins of pieces are outputs of barriers with hooks.
    """
    if not hooked(graph):
        return graph
    found = viewed(graph)
    if hooked(found) or takes_hooked(graph, layouts):
        count = sum(map(size, graph.shapes))
        what = "users' hooks" if hooked(found) else "pieces with origins in barriers with hooks"
        raise SizeError(f"{what} are evaluated element by element; {count:,} are too many")
    return found
