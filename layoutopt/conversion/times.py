"""What the ops of a graph take, by a table of costs."""

from __future__ import annotations

from collections.abc import Iterator

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.required import required
from layoutopt.conversion.tally import size_of
from layoutopt.operators.op import Op
from layoutopt.requirements.costs import OpCosts
from layoutopt.requirements.desired import Desired


class Times:
    """Costs of the ops of one graph.

    Parameters
    ----------
    graph
        The graph.
    costs
        The table.
    """

    def __init__(self, graph: ConversionGraph, costs: OpCosts) -> None:
        self._graph, self._costs = graph, costs

    def of(self, op: Op) -> Iterator[tuple[Desired, int]]:
        """Yield the layouts that an op may run in, and the femtoseconds that it takes."""
        lines = self._costs.of(op)
        size = sum(size_of(self._graph, n) for n in (*op.inputs, *op.outputs) if n) if lines else 0
        for line in lines:
            yield line.desired, line.fixed + line.per_byte * size

    def total(self) -> int:
        """Return the femtoseconds that all ops take as they are written."""
        return sum(map(self.written, self._graph.ops))

    def written(self, op: Op) -> int:
        """Return what an op takes as it is written; nothing if its layouts are not in the table."""
        fitting = []
        for desired, time in self.of(op):
            needed = required(op, desired)
            if needed is not None and all(form is None for form in (*needed[0], *needed[1])):
                fitting.append(time)
        return min(fitting, default=0)
