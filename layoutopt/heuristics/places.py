"""Places: what a heuristic gives locations to, and how views and ValuedPairs relate them.

A place is an element of a tensor.  Where tensors are too large for that, greedy0 works on boxes
of elements instead (:mod:`layoutopt.greedy_boxes`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np

from layoutopt.graphs.op import Shape, size
from layoutopt.graphs.ops import Flatten, Identity, Reshape, Squeeze, SumLike
from layoutopt.graphs.store import GraphStore
from layoutopt.problem import IntArray


class Places(Protocol):
    """The places of a graph's tensors, numbered within each tensor."""

    def count(self, t: int) -> int:
        """Return how many places a tensor has."""

    def gather(self, i: int) -> tuple[IntArray, list[int]] | None:
        """Return where each place of the output of view ``i`` comes from.

        Returns
        -------
        source, starts
            Numbers that count through the places of all carriers, and the first number of each
            carrier, and their end; ``None`` if every place keeps its number.
        """

    def lowest(self, i: int) -> IntArray:
        """Return which places of the output of ``expand`` op ``i`` are at index 0.

        That is asked of broadcast dimensions only: shape ``(places,)``, Boolean.
        """

    def pair(self, t: int, p: int) -> tuple[IntArray, IntArray] | None:
        """Return places of two tensors of a ValuedPair that are drawn together.

        ``None`` if equal numbers are.
        """


class Elements:
    """All elements of a graph as places: the number of a place is its flat index.

    Parameters
    ----------
    graph
        The graph.
    """

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        self._gathers: dict[int, tuple[IntArray, list[int]]] = {}
        self._count = np.arange(0)

    def count(self, t: int) -> int:
        """Return how many elements a tensor has."""
        return size(self.graph.shapes[t])

    def gather(self, i: int) -> tuple[IntArray, list[int]] | None:
        """Return where each output element of a view comes from."""
        op = self.graph.ops[i]
        if isinstance(op, Identity | Flatten | Squeeze | Reshape | SumLike):
            return None
        if i not in self._gathers:
            shapes = [self.graph.shapes[t] for t in self.graph.carriers(i)]
            starts = np.cumsum([0, *map(size, shapes)]).tolist()
            if starts[-1] > len(self._count):
                self._count = np.arange(starts[-1])
            arrays = [
                self._count[a:b].reshape(shape)
                for (a, b), shape in zip(pairwise(starts), shapes, strict=True)
            ]
            self._gathers[i] = np.asarray(op.view(arrays)).reshape(-1), starts
        return self._gathers[i]

    def lowest(self, i: int) -> IntArray:
        """Return which output elements are at index 0 where ``expand`` broadcasts."""
        [carrier] = self.graph.carriers(i)
        out = self.graph.shapes[self.graph.op_outputs[i][0]]
        found = np.zeros(out, bool)
        found[_corner(self.graph.shapes[carrier], out)] = True
        return found.reshape(-1)

    def pair(self, _t: int, _p: int) -> None:
        """Return ``None``: equal numbers are drawn together."""


def _corner(shape: Shape, out: Shape) -> tuple[slice, ...]:
    lead = (slice(0, 1),) * (len(out) - len(shape))
    return lead + tuple(slice(0, 1) if n == 1 else slice(None) for n in shape)
