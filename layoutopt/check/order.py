"""Barrier order: an order of setting sinks such that every barrier is known before its use.

A barrier is known once all elements of all its inputs are.  A piece of a sink whose origin is a
barrier can be set once that barrier is known, any other piece at any time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.base import result
from layoutopt.base.result import Step
from layoutopt.boxes.box import Box, canonical
from layoutopt.boxes.equation import Equations
from layoutopt.check.affine import passed_on
from layoutopt.check.matching import Layouts, Tracing
from layoutopt.graphs import ops
from layoutopt.graphs.locations import TILE, hook_of
from layoutopt.graphs.ops import Array, Kind, size
from layoutopt.graphs.store import GraphStore


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
    """State of an execution: pieces set and barriers known so far; pieces that became free."""

    def __init__(self, given: Dependencies) -> None:
        self.given = given
        self.known: set[int] = set()
        self.set: set[int] = set()
        self.freed: list[int] = []
        self._missing = {b: len(p) + len(c) for b, (p, c) in given.needs.items()}
        self._readers: dict[int, list[int]] = defaultdict(list)  # by piece, or barrier as -1 - b
        self._waiting: dict[int | None, list[int]] = defaultdict(list)
        for barrier, (pieces, barriers) in given.needs.items():
            for needed in (*pieces, *(-1 - b for b in barriers)):
                self._readers[needed].append(barrier)
        for piece, awaited in enumerate(given.waits_for):
            self._waiting[awaited].append(piece)
        self._learn([b for b, count in self._missing.items() if count == 0])

    def can_set(self, piece: int) -> bool:
        """Return whether a piece's barrier, if any, is known."""
        barrier = self.given.waits_for[piece]
        return barrier is None or barrier in self.known

    def put(self, piece: int) -> None:
        """Set a piece; barriers whose inputs are complete become known."""
        self.set.add(piece)
        self._learn(self._completed(piece))

    def _learn(self, complete: list[int]) -> None:
        while complete:
            barrier = complete.pop()
            self.known.add(barrier)
            self.freed += self._waiting[barrier]
            complete += self._completed(-1 - barrier)

    def _completed(self, needed: int) -> list[int]:
        """Return the barriers that lack nothing any more when a piece or barrier arrives."""
        for reader in self._readers[needed]:
            self._missing[reader] -= 1
        return [reader for reader in self._readers[needed] if self._missing[reader] == 0]


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


def by_elements(graph: GraphStore, layouts: Layouts) -> Dependencies:
    """Return the dependencies, computed with arrays of the token of each element."""
    return _gathered(graph, layouts, _Tokens(graph, layouts))


def by_pieces(graph: GraphStore, layouts: Layouts, limit: int) -> Dependencies:
    """Return the dependencies, computed with boxes in at most so many steps."""
    return _gathered(graph, layouts, _TokensOfBoxes(graph, layouts, limit))


def _gathered(graph: GraphStore, layouts: Layouts, tokens: _Tokens) -> Dependencies:
    waits_for = [_awaited(graph, piece[0]) for sink in tokens.pieces for piece in layouts[sink]]
    needs: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
    todo = {b for b in waits_for if b is not None}
    while todo:
        barrier = todo.pop()
        behind = {p for t in graph.op_inputs[barrier] for p in tokens.held(t)}
        parts = frozenset(p for p in behind if p >= 0)
        others = frozenset(-2 - p for p in behind if p < -1)
        needs[barrier] = parts, others
        more = others | {waits_for[p] for p in parts}
        todo |= {b for b in more if b is not None and b not in needs}
    return Dependencies([*tokens.pieces], [*tokens.pieces.values()], waits_for, needs)


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


class _Tokens:
    """What the location of each element depends on: a piece, a barrier ``b`` as ``-2 - b``, or -1.

    ``pieces`` has the numbers of each sink's pieces, counted through all sinks.
    """

    def __init__(self, graph: GraphStore, layouts: Layouts) -> None:
        self.graph, self.layouts = graph, layouts
        self.pieces: dict[str, range] = {}
        count = 0
        for sink in graph.sinks():
            self.pieces[sink.name] = range(count, count + len(layouts[sink.name]))
            count += len(layouts[sink.name])
        self._found: dict[int, Array] = {}

    def held(self, t: int) -> set[int]:
        """Return the distinct tokens of a tensor's elements."""
        for out in self.graph.view_order([t], self._found):
            self._found[out] = self._made(out)
        lowest = -2 - len(self.graph.ops)
        return {lowest + n for n in np.bincount(self._found[t] - lowest).nonzero()[0].tolist()}

    def own(self, t: int) -> int:
        """Return the token of all elements of a root tensor that is no sink."""
        producer = self.graph.producers[t]
        return -2 - producer if _waits(self.graph, producer) else -1

    def _made(self, t: int) -> Array:
        graph, op = self.graph, self.graph.op_of(t)
        if op.kind is Kind.VIEW:
            return passed_on(graph, t, self._found)
        count = size(graph.shapes[t])
        if op.kind is not Kind.SINK:
            return np.broadcast_to(np.int32(self.own(t)), count)  # takes no memory
        token, name = np.empty(count, np.int32), graph.tensor_name(t)
        for number, piece in zip(self.pieces[name], self.layouts[name], strict=True):
            token[result.written(piece)] = number
        return token


class _TokensOfBoxes(_Tokens):
    """The same by boxes, whose labels are tokens."""

    def __init__(self, graph: GraphStore, layouts: Layouts, limit: int) -> None:
        super().__init__(graph, layouts)
        self.tracing = Tracing(graph, self._given, Equations(limit))

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
        count, name = size(self.graph.shapes[t]), self.graph.tensor_name(t)
        if self.graph.op_of(t).kind is Kind.SINK:
            for token, (_, _, to, loops) in zip(self.pieces[name], self.layouts[name], strict=True):
                yield canonical(token, 0, to, [(n, 0, here) for n, _, here in loops])
        elif count:
            yield canonical(self.own(t), 0, 0, [(count, 0, 1)])
