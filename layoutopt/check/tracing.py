"""Tensors of any size as boxes: what a graph's views make of boxes of its other tensors.

A view's boxes are found from its carriers' by solving an equation for each pair of boxes that
meet (:mod:`layoutopt.boxes.join`); no element is looked at.
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
    """The boxes of all tensors, traced as far as somebody asks.

    Parameters
    ----------
    graph
        The graph.
    given
        Returns the boxes of a tensor, by number, that no view makes.
    equations
        What solves equations, and says how many may be solved.
    """

    def __init__(
        self, graph: GraphStore, given: Callable[[int], Iterable[Box]], equations: Equations
    ) -> None:
        self.graph, self.given, self.equations = graph, given, equations
        self._found: dict[int, list[Box]] = {}
        self._places: dict[int, BoxIndex] = {}

    def boxes(self, t: int) -> list[Box]:
        """Return the boxes of a tensor; each element is in one of them."""
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
        """Return the boxes of a tensor, to be asked which of them are near others."""
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
