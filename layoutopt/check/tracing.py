"""Boxes of all tensors, derived through views from those of root tensors.

A view's boxes follow from its carriers' by solving an equation for each pair of overlapping boxes
(:mod:`layoutopt.boxes.join`), independently of the number of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from layoutopt.boxes.box import Box, canonical
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.join import BoxIndex, image
from layoutopt.boxes.merge import merged
from layoutopt.check.affine import moves
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.store import GraphStore


class Tracing:
    """Boxes of all tensors, computed on demand.

    Parameters
    ----------
    given
        Returns the boxes of a root tensor, by number.
    equations
        Solver of equations, with a limit of their number.
    """

    def __init__(
        self, graph: GraphStore, given: Callable[[int], Iterable[Box]], equations: Equations
    ) -> None:
        self.graph, self.given, self.equations = graph, given, equations
        self._found: dict[int, list[Box]] = {}
        self._places: dict[int, BoxIndex] = {}

    def boxes(self, t: int) -> list[Box]:
        """Return the boxes of a tensor; each element is in exactly one."""
        stack = [t]
        while stack:
            producer = self.graph.producers[stack[-1]]
            missing = [c for c in self.graph.carriers(producer) if c not in self._found]
            if missing and stack[-1] not in self._found:
                stack += missing
            else:
                out = stack.pop()
                if out not in self._found:
                    self._found[out] = merged(self._traced(out), self.equations)
        return self._found[t]

    def places(self, t: int) -> BoxIndex:
        """Return an index of a tensor's boxes."""
        if t not in self._places:
            self._places[t] = BoxIndex(self.boxes(t), self.graph.shapes[t], self.equations)
        return self._places[t]

    def _traced(self, t: int) -> Iterator[Box]:
        graph, producer = self.graph, self.graph.producers[t]
        op = graph.ops[producer]
        if op.kind is not Kind.VIEW:
            yield from self.given(t)
            return
        carriers = graph.carriers(producer)
        for move in moves(op, [graph.shapes[c] for c in carriers], graph.shapes[t]):
            places = self.places(carriers[move.label])
            yield from image(canonical(*move), places, self.equations)
