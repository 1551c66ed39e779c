"""Rooms: parts of a root that its runs cut out, and smaller ones inside them.

Where two slots of a room run through the same positions of a strand, equal, smaller and larger
positions may need answers of their own.  Pairs of different positions are told apart by the
highest binary digit in which they differ: all that differ in one digit form a box of three
loops, so that a triangle is a few boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TypeAlias

from layoutopt.lifting.runs import Runs

Interval: TypeAlias = tuple[int, int, int]
"""A run, and positions ``first .. end - 1`` of it."""


@dataclass(frozen=True)
class Room:
    """Elements of a part whose slots run through intervals.

    Parameters
    ----------
    slots
        An interval for each slot of the part.
    joints
        ``(count, step, one, two)``: slots ``one`` and ``two`` move together, ``count`` times by
        ``step`` positions.
    """

    slots: tuple[Interval, ...]
    joints: tuple[tuple[int, int, int, int], ...] = ()

    def moved(self, intervals: dict[int, Interval], *joints: tuple[int, int, int, int]) -> Room:
        """Return a room with other intervals of some slots, and more joints."""
        slots = tuple(intervals.get(a, own) for a, own in enumerate(self.slots))
        return Room(slots, (*self.joints, *(joint for joint in joints if joint[0] > 1)))


def untangled(runs: Runs, room: Room) -> Iterator[Room]:
    """Cut a room where two of its slots run through the same positions of a strand."""
    a, b = next(_tangled(runs, room))
    (one, low, high), (two, start, end) = room.slots[a], room.slots[b]
    if (low, high) != (start, end) or len(list(_tangled(runs, room, a, b))) > 1:
        yield from _enumerated(room, a, b)
        return
    yield room.moved({a: (one, low, low + 1), b: (two, low, low + 1)}, (high - low, 1, a, b))
    for first, half, rest, count in halves(high - low):
        near, far = low + first, low + first + half
        joint = count, 2 * half, a, b
        yield room.moved({a: (one, near, far), b: (two, far, far + rest)}, joint)
        yield room.moved({a: (one, far, far + rest), b: (two, near, far)}, joint)


def _enumerated(room: Room, a: int, b: int) -> Iterator[Room]:
    """Cut a room into single positions of one slot, and intervals of another around them."""
    (one, low, high), (two, start, end) = room.slots[a], room.slots[b]
    for place in range(low, high):
        for left, right in ((start, place), (place, place + 1), (place + 1, end)):
            left, right = max(left, start), min(right, end)
            if left < right:
                yield room.moved({a: (one, place, place + 1), b: (two, left, right)})


def _tangled(runs: Runs, room: Room, *of: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of slots whose positions on one strand overlap, and are not one only.

    Parameters
    ----------
    of
        Slots of which one must be in a pair; all by default.
    """
    strand = runs.strand
    for a, (one, low, high) in enumerate(room.slots):
        for b in range(a + 1, len(room.slots)):
            other, start, end = room.slots[b]
            overlap = strand[one] == strand[other] and max(low, start) < min(high, end)
            wanted = not of or a in of or b in of
            if wanted and overlap and max(high - low, end - start) > 1:
                yield a, b


def halves(length: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield blocks that hold every two different positions once, in different halves.

    Yields
    ------
    first, half, rest, count
        ``count`` blocks that begin at ``first``, at distances of ``2 * half``: the lower half of
        each has ``half`` positions, the upper one ``rest``.  Two positions are in the two halves of
        a block of the highest binary digit in which they differ.
    """
    half = 1
    while half < length:
        full, rest = divmod(length, 2 * half)
        if full:
            yield 0, half, half, full
        if rest > half:
            yield full * 2 * half, half, rest - half, 1
        half *= 2


def orders(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return positions in given intervals, one tuple for each order in which they can stand.

    Between two ends of intervals as many positions as there are slots are enough.  Tuples with
    most different positions come first.
    """
    ends = sorted({end for interval in intervals for end in interval})
    points = [
        p for low, high in pairwise(ends) for p in range(low, min(high, low + len(intervals)))
    ]
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    for chosen in product(*([p for p in points if low <= p < high] for low, high in intervals)):
        rank = {p: r for r, p in enumerate(sorted(set(chosen)))}
        found.setdefault(tuple(rank[p] for p in chosen), chosen)
    return sorted(found.values(), key=lambda chosen: -len(set(chosen)))
