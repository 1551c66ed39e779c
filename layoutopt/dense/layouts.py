"""Origins of sink elements as the pieces of layouts."""

from __future__ import annotations

from layoutopt.dense.boxes import boxes
from layoutopt.graphs.store import Store
from layoutopt.pieces import Piece
from layoutopt.problem import IntArray

Layouts = dict[str, tuple[Piece, ...]]


def pieces_of(graph: Store, tensors: IntArray, elements: IntArray) -> tuple[Piece, ...]:
    """Write the origins of a sink's elements, root tensor and flat element, as pieces."""
    found = boxes(tensors, elements)
    return tuple((graph.tensor_name(b.origin), b.start, b.to, b.loops) for b in found)
