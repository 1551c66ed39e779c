"""Boxes of all tensors that a certificate speaks of, as its checker will see them."""

from __future__ import annotations

from typing import Any

from layoutopt.certificate.sums import Box, flat
from layoutopt.certificate.views import CUTTING, FIXED, SAME, carried, carriers, kept_indices
from layoutopt.check.equations import Equations
from layoutopt.graphs.op import Kind, size
from layoutopt.graphs.store import Store
from layoutopt.proving.boxes import cut, indexed, met
from layoutopt.proving.copies import Locations


class Tracer:
    """Follows boxes through ops, and notes what a checker has to be told.

    Parameters
    ----------
    graph
        The graph.
    ops
        Its ops, as instance files write them.
    places
        Numbers of locations.
    sinks
        For each sink, by tensor number, its boxes ``(element, copy, location)``.
    equations
        What solves equations, and says how many may be solved.

    Attributes
    ----------
    tensors, cuts, sinks
        What is noted, by tensor: boxes of tensors that hold their input in another shape, kept
        and left boxes of what views cut, and boxes of sinks.
    """

    def __init__(
        self,
        graph: Store,
        ops: list[dict[str, Any]],
        places: Locations,
        sinks: dict[int, list[Box]],
        equations: Equations,
    ) -> None:
        self.graph, self.ops, self.places, self.equations = graph, ops, places, equations
        self.tensors: dict[str, list[Box]] = {}
        self.cuts: dict[str, dict[str, list[Box]]] = {}
        self.sinks: dict[str, list[Box]] = {}
        self._found: dict[int, list[Box]] = {}
        for t, boxes in sinks.items():
            shape = graph.shapes[t]
            whole = indexed([box.of(1, 2, 0) for box in boxes], shape)
            self.sinks[graph.tensor_name(t)] = whole
            self._found[t] = [box.of(0, *range(2, 2 + len(shape))) for box in whole]

    def boxes(self, t: int) -> list[Box]:
        """Return the boxes ``(where, indices...)`` of a tensor."""
        stack = [t]
        while stack:
            missing = [c for c in self._sources(stack[-1]) if c not in self._found]
            if missing and stack[-1] not in self._found:
                stack += missing
            else:
                out = stack.pop()
                if out not in self._found:
                    self._found[out] = self._view(out) if self._sources(out) else self._own(out)
        return self._found[t]

    def flat(self, t: int) -> list[Box]:
        """Return the boxes ``(element, where)`` of a tensor."""
        shape = self.graph.shapes[t]
        return [turned(box, shape) for box in self.boxes(t)]

    def together(self, a: int, b: int) -> list[Box]:
        """Return boxes ``(element, where, where)`` of two tensors of one shape."""
        return met(self.flat(a), self.flat(b), self.graph.shapes[a], self.equations)

    def _sources(self, t: int) -> list[int]:
        producer = self.graph.producers[t]
        if self.graph.ops[producer].kind is not Kind.VIEW:
            return []
        inputs = self.graph.op_inputs[producer]
        return [inputs[i] for i in carriers(self.ops[producer])]

    def _own(self, t: int) -> list[Box]:
        shape, mapped = self.graph.shapes[t], self.places.mapped(t)
        if mapped is not None:
            return indexed([box.of(1, 0, tag=FIXED) for box in mapped], shape)
        count = size(shape)
        whole = Box(FIXED, (self.places.starts[t], 0), ((count, (1, 1)),))
        return indexed([whole], shape) if count else []

    def _view(self, t: int) -> list[Box]:
        ins, out = self._sources(t), self.graph.shapes[t]
        op, shapes = self.ops[self.graph.producers[t]], [self.graph.shapes[c] for c in ins]
        inputs, name = [self._found[c] for c in ins], self.graph.tensor_name(t)
        if op["type"] in CUTTING:
            kept, left = cut(inputs[0], kept_indices(op, shapes[0]))
            self.cuts[name] = {"kept": kept, "left": left}
            inputs = [kept]
        elif op["type"] in SAME and shapes[0] != out:
            self.tensors[name] = indexed([flat(box, shapes[0]) for box in inputs[0]], out)
            return self.tensors[name]
        return carried(op, shapes, inputs)


def turned(box: Box, shape: tuple[int, ...]) -> Box:
    """Return a box ``(where, indices...)`` as ``(element, where)``."""
    return flat(box, shape).of(1, 0)
