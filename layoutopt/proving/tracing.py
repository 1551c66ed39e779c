"""Boxes of all tensors that a certificate speaks of, as its checker will see them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from layoutopt.certificate.sums import Box
from layoutopt.certificate.views import (
    CUTTING,
    FIXED,
    SAME,
    along,
    carriers,
    crossed,
    kept_of,
    line,
    relation,
    runs,
    scaled,
    steps_of,
)
from layoutopt.check.equations import Equations
from layoutopt.graphs.op import Kind
from layoutopt.graphs.store import GraphStore
from layoutopt.proving.boxes import met
from layoutopt.proving.copies import NumberedLocations


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
    sinks
        The boxes ``(copy, location, element)`` of each sink.
    views
        For each view, and each input that its elements come from, ``"kept"``: boxes ``(side,
        element, element of the view)``; and ``"left"``: ``(side, element)``.
    """

    def __init__(
        self,
        graph: GraphStore,
        ops: list[dict[str, Any]],
        places: NumberedLocations,
        sinks: dict[int, list[Box]],
        equations: Equations,
    ) -> None:
        self.graph, self.ops, self.places, self.equations = graph, ops, places, equations
        self.views: dict[str, list[dict[str, list[Box]]]] = {}
        self.sinks = {
            graph.tensor_name(t): [box.of(1, 2, 0) for box in own] for t, own in sinks.items()
        }
        self._found = {t: [box.of(0, 1) for box in own] for t, own in sinks.items()}

    def boxes(self, t: int) -> list[Box]:
        """Return the boxes ``(element, side)`` of a tensor."""
        stack = [t]
        while stack:
            out = stack[-1]
            missing = [c for c in self._sources(out) if c not in self._found]
            stack += missing
            if not missing and stack.pop() not in self._found:
                self._found[out] = self._view(out) if self._sources(out) else self._own(out)
        return self._found[t]

    def together(self, a: int, b: int) -> list[Box]:
        """Return boxes ``(element, side, side)`` of two tensors of one shape."""
        return met(self.boxes(a), self.boxes(b), self.graph.shapes[a], self.equations)

    def _sources(self, t: int) -> list[int]:
        producer = self.graph.producers[t]
        if self.graph.ops[producer].kind is not Kind.VIEW:
            return []
        inputs = self.graph.op_inputs[producer]
        return [inputs[i] for i in carriers(self.ops[producer])]

    def _own(self, t: int) -> list[Box]:
        mapped = self.places.mapped(t)
        if mapped is not None:
            return [box._replace(tag=FIXED) for box in mapped]
        whole = line(prod(self.graph.shapes[t]), self.places.starts[t])
        return [box.of(1, 0, tag=FIXED) for box in whole]

    def _view(self, t: int) -> list[Box]:
        ins, op = self._sources(t), self.ops[self.graph.producers[t]]
        if op["type"] in SAME:
            return self._found[ins[0]]
        shapes = [self.graph.shapes[c] for c in ins]
        claims, found = [], []
        for c, moved, left in zip(ins, relation(op, shapes), _left(op, shapes), strict=True):
            both, shape = self._found[c], self.graph.shapes[c]
            kept, rest = (met(own, both, shape, self.equations) for own in (moved, left))
            claims.append(
                {"kept": [b.of(2, 0, 1) for b in kept], "left": [b.of(1, 0) for b in rest]}
            )
            found += [box.of(1, 2) for box in kept]
        self.views[self.graph.tensor_name(t)] = claims
        return found


def _left(op: dict[str, Any], shapes: list[tuple[int, ...]]) -> list[list[Box]]:
    """Return for each input of a view boxes ``(element,)`` of what the op leaves out."""
    if op["type"] not in CUTTING:
        nothing = op["type"] == "expand" and not prod(op["shape"])
        whole = [[box.of(0) for box in line(prod(shape))] for shape in shapes]
        return whole if nothing else [[] for _ in shapes]
    [shape], found = shapes, []
    steps = steps_of(shape)

    def at(d: int, boxes: list[Box]) -> list[Box]:
        return [scaled(box.of(0), (steps[d],)) for box in boxes]

    kept = [at(d, along(op, shapes, 0, d)[1]) for d in range(len(shape))]
    for d in range(len(shape)):
        rest = [at(e, line(shape[e])) for e in range(d + 1, len(shape))]
        found += crossed([*kept[:d], at(d, _between(op, shape[d], d)), *rest], 1)
    return [found]


def _between(op: dict[str, Any], n: int, d: int) -> list[Box]:
    """Return boxes, with indices first, of what an op leaves of a dimension."""
    if op["type"] == "slice":
        a, b = op["lower"][d], op["upper"][d]
        return line(a) + line(n - b, b)
    if op["type"] == "sub_sample":
        s = op["strides"][d]
        times, rest = divmod(n, s)
        whole = [Box((), (1, 0), (*own.loops, (times, (s, 0)))) for own in line(s - 1) if times]
        return whole + line(max(rest - 1, 0), times * s + 1)
    stripes = op["setts"][d]
    return runs(np.setdiff1d(np.arange(n), kept_of(n, stripes))) if stripes else []
