"""In which order sinks can be set so that every barrier is known when it is needed.

A barrier is known once all elements of all its inputs are.  A piece of a sink can be set
once the barrier whose locations it takes is known; any other piece can be set at once.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from layoutopt.pieces import Step


@dataclass(frozen=True)
class Dependencies:
    """Who waits for whom.

    Parameters
    ----------
    sinks
        Names of the sinks, in the graph's order.
    sink_pieces
        For each sink the numbers of its pieces, counted through all sinks.
    waits_for
        For each piece the barrier whose locations it takes, or ``None``.
    needs
        For each barrier that matters the pieces and the barriers that its inputs hold.
    """

    sinks: Sequence[str]
    sink_pieces: Sequence[range]
    waits_for: Sequence[int | None]
    needs: dict[int, tuple[frozenset[int], frozenset[int]]]


class Clock:
    """What is set and known so far."""

    def __init__(self, given: Dependencies) -> None:
        self.given = given
        self.known: set[int] = set()
        self.set: set[int] = set()
        self.missing = {b: len(p) + len(c) for b, (p, c) in given.needs.items()}
        self._readers: dict[tuple[bool, int], list[int]] = defaultdict(list)
        self._waiting: dict[int, list[int]] = defaultdict(list)
        for barrier, (pieces, barriers) in given.needs.items():
            for piece in pieces:
                self._readers[False, piece].append(barrier)
            for other in barriers:
                self._readers[True, other].append(barrier)
        for piece, awaited in enumerate(given.waits_for):
            if awaited is not None:
                self._waiting[awaited].append(piece)
        self.freed: list[int] = []
        self._learn([b for b, count in self.missing.items() if count == 0])

    def can_set(self, piece: int) -> bool:
        """Return whether a piece's barrier, if it has one, is known."""
        barrier = self.given.waits_for[piece]
        return barrier is None or barrier in self.known

    def put(self, piece: int) -> None:
        """Set a piece; barriers that are complete now become known."""
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
    """Return an order, and the barriers that never become known because they are in a cycle.

    Sinks are set whole where possible, in the graph's order; a sink is set piece by piece
    only where some barrier needs a part of it before another part can be set.
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
    """Return what is wrong with an order, if anything."""
    clock = Clock(given)
    number = {name: s for s, name in enumerate(given.sinks)}
    found = []
    for step in steps:
        name, part = (step, None) if isinstance(step, str) else step
        if name not in number:
            found.append(f"order: {name!r} is no sink")
            continue
        pieces = given.sink_pieces[number[name]]
        if part is not None and not 0 <= part < len(pieces):
            found.append(f"order: sink {name!r} has no piece {part}")
            continue
        for piece in pieces if part is None else [pieces[part]]:
            if piece in clock.set:
                found.append(f"order: {step!r} is set twice")
            elif not clock.can_set(piece):
                found.append(f"order: {step!r} is set before the barrier it takes locations of")
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
