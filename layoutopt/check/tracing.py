"""Tensors of any size as boxes: what a graph's views make of boxes of its other tensors.

A view's boxes are found from its carriers' by solving an equation for each pair of boxes that
meet (:mod:`layoutopt.check.equations`); no element is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from layoutopt.check.boxes import BoxIndex, CheckedBox, normal
from layoutopt.check.equations import Equations
from layoutopt.check.merging import merged
from layoutopt.check.moves import moves
from layoutopt.check.terms import Term
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
        self, graph: GraphStore, given: Callable[[int], Iterable[CheckedBox]], equations: Equations
    ) -> None:
        self.graph, self.given, self.equations = graph, given, equations
        self._found: dict[int, list[CheckedBox]] = {}
        self._places: dict[int, BoxIndex] = {}

    def boxes(self, t: int) -> list[CheckedBox]:
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

    def _traced(self, t: int) -> Iterator[CheckedBox]:
        graph, producer = self.graph, self.graph.producers[t]
        op = graph.ops[producer]
        if op.kind is not Kind.VIEW:
            yield from self.given(t)
            return
        carriers = graph.carriers(producer)
        for move in moves(op, [graph.shapes[c] for c in carriers], graph.shapes[t]):
            yield from moved(move, self.places(carriers[move.label]), self.equations)


def moved(move: CheckedBox, places: BoxIndex, equations: Equations) -> Iterator[CheckedBox]:
    """Yield where elements lie that come from others, by the boxes that these are in.

    Parameters
    ----------
    move
        Which elements come from which; its label does not matter.
    places
        The boxes of the latter.
    equations
        What solves equations, and says how many may be solved.
    """
    equations.spend()
    moving = [Term(there, n, (0, here)) for n, there, here in move.loops]
    for box in places.near(move.turned):
        laid = [Term(-here, n, (there, 0)) for n, there, here in box.loops]
        for part in equations.solve(tuple(moving + laid), box.to - move.start, 2):
            start, to = part.start
            loops = [(n, there, here) for n, (there, here) in part.loops]
            yield normal(box.label, box.start + start, move.to + to, loops)
