"""Barrier order: an order of setting sinks such that every barrier is known before its use.

A barrier is known once all elements of all its inputs are.  A piece of a sink whose origin is a
barrier can be set once that barrier is known, any other piece at any time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np

from layoutopt.base import result
from layoutopt.base.result import Step
from layoutopt.boxes.box import Box, canonical
from layoutopt.boxes.equation import Equations
from layoutopt.check.affine import STEPS, carried, either
from layoutopt.check.matching import Layouts, Tracing
from layoutopt.graphs import ops
from layoutopt.graphs.locations import TILE
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tiling import hook_of


@dataclass(frozen=True)
class Dependencies:
    """Dependencies between pieces, counted through all sinks, and barriers.

    ``sink_pieces`` has for each of the sinks, in the graph's order, its pieces; ``waits_for`` for
    each piece the barrier that is its origin, if any; ``needs`` for each used barrier the pieces
    and barriers that its inputs depend on.
    """

    sinks: Sequence[str]
    sink_pieces: Sequence[range]
    waits_for: Sequence[int | None]
    needs: dict[int, tuple[frozenset[int], frozenset[int]]]


class Clock:
    """State of an execution: pieces set and barriers known so far."""

    def __init__(self, given: Dependencies) -> None:
        self.given = given
        self.known: set[int] = set()
        self.set: set[int] = set()
        self.missing = {b: len(p) + len(c) for b, (p, c) in given.needs.items()}
        self._readers: dict[tuple[bool, int], list[int]] = defaultdict(list)
        self._waiting: dict[int, list[int]] = defaultdict(list)
        for barrier, (own, barriers) in given.needs.items():
            for piece in own:
                self._readers[False, piece].append(barrier)
            for other in barriers:
                self._readers[True, other].append(barrier)
        for piece, awaited in enumerate(given.waits_for):
            if awaited is not None:
                self._waiting[awaited].append(piece)
        self.freed: list[int] = []
        self._learn([b for b, count in self.missing.items() if count == 0])

    def can_set(self, piece: int) -> bool:
        """Return whether a piece's barrier, if any, is known."""
        barrier = self.given.waits_for[piece]
        return barrier is None or barrier in self.known

    def put(self, piece: int) -> None:
        """Set a piece; barriers whose inputs are complete become known."""
        self.set.add(piece)
        self._learn(self._arrived(False, piece))

    def _arrived(self, is_barrier: bool, which: int) -> list[int]:
        complete = []
        for reader in self._readers[is_barrier, which]:
            self.missing[reader] -= 1
            if self.missing[reader] == 0:
                complete.append(reader)
        return complete

    def _learn(self, complete: list[int]) -> None:
        while complete:
            barrier = complete.pop()
            self.known.add(barrier)
            self.freed.extend(self._waiting[barrier])
            complete.extend(self._arrived(True, barrier))


def derive(given: Dependencies) -> tuple[tuple[Step, ...], list[int]]:
    """Return an order, and the barriers that never become known because of a cycle.

    Sinks are set at once where possible, in the graph's order; a sink is set piece by piece only
    if one of its pieces depends on another one through barriers.
    """
    clock = Clock(given)
    owner = {p: s for s, pieces in enumerate(given.sink_pieces) for p in pieces}
    blocked = [sum(not clock.can_set(p) for p in pieces) for pieces in given.sink_pieces]
    whole = [s for s, count in enumerate(blocked) if count == 0]  # ascending, so that it is a heap
    parts = [p for p in range(len(given.waits_for)) if clock.can_set(p)]
    clock.freed.clear()
    steps: list[Step] = []
    while whole or parts:
        if whole:
            sink = heapq.heappop(whole)
            pieces = [p for p in given.sink_pieces[sink] if p not in clock.set]
            if len(pieces) == len(given.sink_pieces[sink]):
                steps.append(given.sinks[sink])
            else:
                steps.extend(_part(given, sink, p) for p in pieces)
        else:
            pieces = [heapq.heappop(parts)]
            if pieces[0] in clock.set:
                continue
            steps.append(_part(given, owner[pieces[0]], pieces[0]))
        for piece in pieces:
            clock.put(piece)
        for piece in clock.freed:
            heapq.heappush(parts, piece)
            blocked[owner[piece]] -= 1
            if blocked[owner[piece]] == 0:
                heapq.heappush(whole, owner[piece])
        clock.freed.clear()
    return tuple(steps), sorted(b for b in given.needs if b not in clock.known)


def _part(given: Dependencies, sink: int, piece: int) -> Step:
    return given.sinks[sink], piece - given.sink_pieces[sink].start


def faults(given: Dependencies, steps: Iterable[Step]) -> list[str]:
    """Return a line for each fault of an order."""
    clock = Clock(given)
    number = {name: s for s, name in enumerate(given.sinks)}
    found = []
    for step in steps:
        name, part = (step, None) if isinstance(step, str) else step
        if name not in number:
            found.append(f"order: {name!r} is not a sink")
            continue
        pieces = given.sink_pieces[number[name]]
        if part is not None and not 0 <= part < len(pieces):
            found.append(f"order: sink {name!r} has no piece {part}")
            continue
        for piece in pieces if part is None else [pieces[part]]:
            if piece in clock.set:
                found.append(f"order: {step!r} is set twice")
            elif not clock.can_set(piece):
                found.append(f"order: {step!r} is set before the barrier at its origin is known")
            else:
                clock.put(piece)
    left = [
        n
        for n, pieces in zip(given.sinks, given.sink_pieces, strict=True)
        if any(p not in clock.set for p in pieces)
    ]
    if left and not found:
        found.append(f"order: {left[0]!r} is never set")
    return found


PARTIAL = (ops.Slice, ops.SubSample, ops.SettSample)
"""Views that omit elements."""


def dependencies(graph: GraphStore, layouts: Layouts) -> Dependencies:
    """Return the dependencies between pieces and barriers.

    Included are barriers that are origins of pieces, and those that these depend on.
    """
    return either(graph, partial(by_elements, graph, layouts), partial(by_pieces, graph, layouts))


def by_elements(graph: GraphStore, layouts: Layouts) -> Dependencies:
    """Return the dependencies, computed with arrays of the token of each element."""
    return _gathered(graph, layouts, _Tokens(graph, layouts).held)


def by_pieces(graph: GraphStore, layouts: Layouts, limit: int = STEPS) -> Dependencies:
    """Return the dependencies, computed with boxes in at most so many steps."""
    return _gathered(graph, layouts, _TokensOfBoxes(graph, layouts, Equations(limit)).held)


def _gathered(
    graph: GraphStore, layouts: Layouts, held: Callable[[int], Iterable[int]]
) -> Dependencies:
    """Return the dependencies, given the tokens of tensors.

    On the tokens of its elements a tensor's locations depend: piece ``p``, counted through all
    sinks; barrier ``b`` as ``-2 - b``; or none, -1.
    """
    sinks = [sink.name for sink in graph.sinks()]
    spans: list[range] = []
    waits_for: list[int | None] = []
    for name in sinks:
        spans.append(range(len(waits_for), len(waits_for) + len(layouts[name])))
        for piece in layouts[name]:
            waits_for.append(_awaited(graph, piece[0]))
    needs: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
    todo = {b for b in waits_for if b is not None}
    while todo:
        barrier = todo.pop()
        behind = {p for t in graph.op_inputs[barrier] for p in held(t)}
        parts = frozenset(p for p in behind if p >= 0)
        others = frozenset(-2 - p for p in behind if p < -1)
        needs[barrier] = parts, others
        more = others | {waits_for[p] for p in parts}
        todo |= {b for b in more if b is not None and b not in needs}
    return Dependencies(sinks, spans, waits_for, needs)


def _awaited(graph: GraphStore, origin: str) -> int | None:
    """Return the barrier that is an origin, if it is one."""
    if graph.tile_memory is not None and origin == TILE:
        return None
    producer = graph.producers[graph.number(origin)]
    return producer if _waits(graph, producer) else None


def _waits(graph: GraphStore, i: int) -> bool:
    """Return whether an op's locations become known after its inputs'.

    On a tile memory, this holds for barriers with hooks only, as other tiles are given by rules.
    """
    if graph.tile_memory is not None:
        return hook_of(graph, i) is not None
    return graph.ops[i].kind is Kind.BARRIER


def _first_pieces(graph: GraphStore, layouts: Layouts) -> dict[str, int]:
    """Return the number of each sink's first piece."""
    names = [sink.name for sink in graph.sinks()]
    starts = accumulate((len(layouts[name]) for name in names), initial=0)
    return dict(zip(names, starts, strict=False))


class _Tokens:
    """Token of each element: piece ``p``, barrier ``b`` as ``-2 - b``, or none, -1.

    If all elements of a tensor have the same token, it is stored as a number.
    """

    def __init__(self, graph: GraphStore, layouts: Layouts) -> None:
        self.graph, self.layouts = graph, layouts
        self.found: dict[int, int | Array] = {}
        self.first = _first_pieces(graph, layouts)

    def held(self, t: int) -> set[int]:
        """Return the distinct tokens of a tensor's elements."""
        if size(self.graph.shapes[t]) == 0:
            return set()
        for out in self.graph.view_order([t], self.found):
            self.found[out] = self._of(self.graph.producers[out], out)
        token = self.found[t]
        return {token} if isinstance(token, int) else set(np.unique(token).tolist())

    def _of(self, i: int, t: int) -> int | Array:
        op, graph = self.graph.ops[i], self.graph
        if op.kind is Kind.SINK:
            return self._of_sink(t)
        if op.kind is not Kind.VIEW:
            return -2 - i if _waits(graph, i) else -1
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
        layout, start = self.layouts[name], self.first[name]
        if len(layout) == 1:
            return start
        token = np.empty(size(self.graph.shapes[t]), np.int64)
        for k, piece in enumerate(layout):
            token[result.written(piece)] = start + k
        return token


class _TokensOfBoxes:
    """Tokens of boxes of elements, as their labels."""

    def __init__(self, graph: GraphStore, layouts: Layouts, equations: Equations) -> None:
        self.graph, self.layouts = graph, layouts
        self.first = _first_pieces(graph, layouts)
        self.tracing = Tracing(graph, self._given, equations)

    def held(self, t: int) -> set[int]:
        """Return the distinct tokens of a tensor's elements."""
        found: set[int] = set()
        seen, stack = {t}, [t]
        while stack:
            out = stack.pop()
            producer = self.graph.producers[out]
            op, count = self.graph.ops[producer], size(self.graph.shapes[out])
            if op.kind is Kind.VIEW and count and not isinstance(op, PARTIAL):
                more = set(self.graph.carriers(producer)) - seen
                seen |= more
                stack += more
            else:
                found |= {box.label for box in self.tracing.boxes(out)}
        return found

    def _given(self, t: int) -> Iterator[Box]:
        i = self.graph.producers[t]
        op, count = self.graph.ops[i], size(self.graph.shapes[t])
        if op.kind is Kind.SINK:
            name = self.graph.tensor_name(t)
            for token, (_, _, to, loops) in enumerate(self.layouts[name], self.first[name]):
                yield canonical(token, 0, to, [(n, 0, here) for n, _, here in loops])
        elif count:
            yield canonical(-2 - i if _waits(self.graph, i) else -1, 0, 0, [(count, 0, 1)])
