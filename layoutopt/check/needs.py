"""Which pieces and barriers wait for which, read off a graph and its layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from layoutopt import pieces
from layoutopt.check.flow import carried
from layoutopt.check.order import Dependencies
from layoutopt.graphs.op import Array, Kind, size
from layoutopt.graphs.store import Store
from layoutopt.pieces import Piece

Layouts = Mapping[str, Sequence[Piece]]


def dependencies(graph: Store, layouts: Layouts) -> Dependencies:
    """Return which pieces and barriers wait for which.

    Only barriers that some piece takes locations of, and those that these need, matter.
    """
    sinks = [sink.name for sink in graph.sinks()]
    spans: list[range] = []
    waits_for: list[int | None] = []
    for name in sinks:
        spans.append(range(len(waits_for), len(waits_for) + len(layouts[name])))
        for piece in layouts[name]:
            producer = graph.producers[graph.number(piece[0])]
            is_barrier = graph.ops[producer].kind is Kind.BARRIER
            waits_for.append(producer if is_barrier else None)
    tokens = _Tokens(graph, layouts, dict(zip(sinks, spans, strict=True)))
    needs: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
    todo = {b for b in waits_for if b is not None}
    while todo:
        barrier = todo.pop()
        held: set[int] = set()
        for t in graph.op_inputs[barrier]:
            held.update(tokens.held(t))
        parts = frozenset(p for p in held if p >= 0)
        others = frozenset(-2 - p for p in held if p < -1)
        needs[barrier] = parts, others
        behind = others | {waits_for[p] for p in parts}
        todo |= {b for b in behind if b is not None and b not in needs}
    return Dependencies(sinks, spans, waits_for, needs)


class _Tokens:
    """What each element waits for: piece ``p``, barrier ``-2 - b``, or nothing (-1).

    A tensor whose elements all wait for the same thing has a plain number, not an array.
    """

    def __init__(self, graph: Store, layouts: Layouts, spans: dict[str, range]) -> None:
        self.graph, self.layouts, self.spans = graph, layouts, spans
        self.found: dict[int, int | Array] = {}

    def held(self, t: int) -> set[int]:
        """Return the distinct tokens of a tensor's elements."""
        if size(self.graph.shapes[t]) == 0:
            return set()
        stack = [t]
        while stack:
            i = self.graph.producers[stack[-1]]
            missing = [c for c in self.graph.carriers(i) if c not in self.found]
            if missing:
                stack.extend(missing)
            else:
                out = stack.pop()
                self.found[out] = self._of(i, out)
        token = self.found[t]
        return {token} if isinstance(token, int) else set(np.unique(token).tolist())

    def _of(self, i: int, t: int) -> int | Array:
        op, graph = self.graph.ops[i], self.graph
        if op.kind is Kind.SINK:
            return self._of_sink(t)
        if op.kind is not Kind.VIEW:
            return -2 - i if op.kind is Kind.BARRIER else -1
        carriers = graph.carriers(i)
        inputs = [self.found[c] for c in carriers]
        if all(isinstance(x, int) and x == inputs[0] for x in inputs):
            return inputs[0]
        shapes = [graph.shapes[c] for c in carriers]
        full = [
            np.full(size(s), x, np.int64) if isinstance(x, int) else x
            for x, s in zip(inputs, shapes, strict=True)
        ]
        return carried(op, full, shapes, graph.shapes[t])

    def _of_sink(self, t: int) -> int | Array:
        name = self.graph.tensor_name(t)
        layout, start = self.layouts[name], self.spans[name].start
        if len(layout) == 1:
            return start
        token = np.empty(size(self.graph.shapes[t]), np.int64)
        for k, piece in enumerate(layout):
            token[pieces.written(piece)] = start + k
        return token
