"""Slots: digits that move together, so that every family is a product of maps of one slot.

Two digits of a part are one *slot* if some family adds to both with a carry between them, or if
loops that share a slot on one side run through both on the other.  Then each family is a
product of *blocks*: relations between the values of one slot of each side.  A part whose digits
all end in one slot is treated as a vector; that is the whole fallback.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import mul
from typing import TypeVar

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.graphs.ops import Shape
from layoutopt.lowering.classes.families import NOTHING, Loop, Relation, System
from layoutopt.network.components import DisjointSets
from layoutopt.network.problem import IntArray

FAMILIES_LIMIT = 2 * 10**5

Chains = list[list[int]]

Values = TypeVar("Values", int, IntArray)
"""A value of a slot, or an array of them."""


def settle_digits(
    system: System, shapes: Sequence[Shape], marked: Sequence[Iterable[int]] = ()
) -> tuple[System, Chains]:
    """Return a system whose loops run within digits where possible, and the chains.

    The strides along which names of a part's locations change (``marked``) come first, then the
    strides of the tensors themselves (``shapes``, by part), or a stride of some slice could come
    before them and leave no room.  Raises ``SizeError`` if there are too many families.
    """
    chains: Chains = [[] for _ in system.parts]
    for part, chain, strides in zip(system.parts, chains, marked, strict=False):
        for stride in strides:
            _insert(chain, part.size, stride)
    own = [frozenset(accumulate(reversed(shape), mul)) for shape in shapes]
    families = list(system.families)
    for only in (own, None):
        families = _settled(system, families, chains, only)
    return System(system.parts, tuple(families)), chains


def _settled(
    system: System, families: list[Relation], chains: Chains, only: Sequence[frozenset[int]] | None
) -> list[Relation]:
    """Propose boundaries and split along them until nothing changes."""
    alive: dict[int, Relation] = dict(enumerate(families))
    at: list[set[int]] = [set() for _ in system.parts]
    for number, family in alive.items():
        for side in _sides(family):
            at[family.part(side)].add(number)
    todo, queued = deque(alive), set(alive)
    count = len(alive)
    while todo:
        number = todo.popleft()
        queued.discard(number)
        if number not in alive:
            continue
        family = alive[number]
        for side in _sides(family):
            part = family.part(side)
            allowed = None if only is None else only[part]
            if _extend(chains[part], system.parts[part].size, family, side, allowed):
                for other in at[part] - queued:
                    todo.append(other)
                    queued.add(other)
        pieces = _split(family, chains)
        if pieces is None:
            continue
        del alive[number]
        for side in _sides(family):
            at[family.part(side)].discard(number)
        for piece in pieces:
            alive[count] = piece
            for side in _sides(piece):
                at[piece.part(side)].add(count)
            todo.append(count)
            queued.add(count)
            count += 1
        if len(alive) > FAMILIES_LIMIT:
            raise SizeError(f"irregular views give more than {FAMILIES_LIMIT} strided boxes")
    return [alive[number] for number in sorted(alive)]


def _sides(family: Relation) -> tuple[int, ...]:
    return (0,) if family.inp == NOTHING else (0, 1)


def _extend(
    chain: list[int], size: int, family: Relation, side: int, allowed: frozenset[int] | None
) -> bool:
    """Add the boundaries that one side of a family asks for, and return whether any is new."""
    new = False
    for b in _proposals(family, side):
        new |= (allowed is None or b in allowed) and _insert(chain, size, b)
    return new


def _insert(chain: list[int], size: int, b: int) -> bool:
    """Add a boundary to the chain of a part of some size, if it is new and fits."""
    if not 1 < b < size or b in chain or any(b % c and c % b for c in chain):
        return False
    insort(chain, b)
    return True


def _proposals(family: Relation, side: int) -> Iterator[int]:
    """Yield the strides that the smaller loops of a side leave room for."""
    offset, span = family.low(side), 0
    for stride, extent in sorted((abs(loop[1 + side]), loop[0]) for loop in family.loops):
        if stride:
            if not span or span + offset % stride < stride:
                yield stride
            span += (extent - 1) * stride


def _split(family: Relation, chains: Chains) -> list[Relation] | None:
    """Split the first loop that crosses a boundary; ``None`` if there is none."""
    for side in _sides(family):
        chain, offset = chains[family.part(side)], family.low(side)
        for k, loop in enumerate(family.loops):
            extent, stride = loop[0], abs(loop[1 + side])
            if not stride:
                continue
            for b in chain[bisect_left(chain, stride + 1) :]:
                if b % stride:
                    continue
                phase, whole = offset % b // stride, b // stride
                if phase + extent > whole:
                    return _peeled(family, k, side, phase, whole)
    return None


def _peeled(family: Relation, k: int, side: int, phase: int, whole: int) -> list[Relation]:
    """Split loop ``k``, from step ``phase`` of a digit of ``whole`` steps, at digits' ends."""
    family = _upwards(family, k, side)
    extent, out, inp = family.loops[k]
    head = min((whole - phase) % whole, extent)
    count, tail = divmod(extent - head, whole)
    found = []
    for first, loops in (
        (0, ((head, out, inp),)),
        (head, ((count, out * whole, inp * whole), (whole, out, inp))),
        (extent - tail, ((tail, out, inp),)),
    ):
        found.append(_with_loops(family, k, first, loops))
    return [piece for piece in found if piece is not None]


def _upwards(family: Relation, k: int, side: int) -> Relation:
    """Return the same family with a positive stride of loop ``k`` on one side."""
    extent, out, inp = family.loops[k]
    if (inp if side else out) > 0:
        return family
    loops = (*family.loops[:k], (extent, -out, -inp), *family.loops[k + 1 :])
    return replace(
        family,
        out_start=family.out_start + (extent - 1) * out,
        in_start=family.in_start + (extent - 1) * inp,
        loops=loops,
    )


def _with_loops(family: Relation, k: int, first: int, loops: tuple[Loop, ...]) -> Relation | None:
    """Put loops in the place of loop ``k``, from its step ``first`` on; ``None`` if one is empty.

    Loops of extent 1 are left out.
    """
    _, out, inp = family.loops[k]
    every = (*family.loops[:k], *loops, *family.loops[k + 1 :])
    if any(extent == 0 for extent, _, _ in every):
        return None
    return replace(
        family,
        out_start=family.out_start + first * out,
        in_start=family.in_start + first * inp,
        loops=tuple(loop for loop in every if loop[0] > 1),
    )


@dataclass(frozen=True)
class Slot:
    """Digits of one part, as one number."""

    part: int
    # `(weight, size, radix)` of each digit, ascending: what one step of it means in flat elements,
    # how many values it has, and what one step means in the slot's number
    digits: tuple[tuple[int, int, int], ...]
    size: int  # number of values

    def value(self, flat: IntArray) -> IntArray:
        """Return the slot's number in flat elements of the part."""
        found: IntArray = np.zeros_like(flat)
        for weight, size, radix in self.digits:
            found = found + flat // weight % size * radix
        return found

    def flat(self, value: Values) -> Values:
        """Return what a value, or each of some values, adds to the flat element."""
        found = 0 * value
        for weight, size, radix in self.digits:
            found = found + value // radix % size * weight
        return found

    @property
    def breaks(self) -> tuple[int, ...]:
        """Radices at which the flat element does not go on evenly."""
        return tuple(
            radix
            for (below, size, _), (weight, _, radix) in zip(
                self.digits, self.digits[1:], strict=False
            )
            if weight != below * size
        )

    @property
    def unit(self) -> int:
        """What one step means in flat elements, between breaks."""
        return self.digits[0][0]


@dataclass(frozen=True)
class SlotBlock:
    """Loops of a family that run through one slot of each side."""

    out: int  # number of the slot of the output
    inp: int  # that of the input, or `NOTHING` where the loops do not move there
    # `(extent, out_stride, in_stride)`; empty where a slot stays at one value
    loops: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, eq=False)
class Slotted:
    """A system with its slots."""

    system: System
    slots: tuple[Slot, ...]  # all slots
    of: tuple[tuple[int, ...], ...]  # the numbers of each part's slots
    blocks: tuple[tuple[SlotBlock, ...], ...]  # the blocks of each family
    # for each family and side the slots that no block runs through
    constants: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def find_slots(
    system: System, chains: Chains, together: Sequence[Iterable[tuple[int, int]]] = ()
) -> Slotted:
    """Join digits to slots, and loops to blocks.

    For each part, ranges of digits, first and last, that are ``together`` share a slot.
    """
    first = np.cumsum([0, *(len(chain) + 1 for chain in chains)]).tolist()
    union = DisjointSets(first[-1])
    for p, ranges in enumerate(together):
        for low, high in ranges:
            for d in range(low, high):
                union.join(first[p] + d, first[p] + d + 1)
    homes = [_homes(system, family, chains, first, union) for family in system.families]
    joined = True
    while joined:
        joined = False
        for home in homes:
            for side in (0, 1):
                joined |= _couple(home, side, union)
    slots, number = _numbered(system, chains, first, union)
    of: list[list[int]] = [[] for _ in system.parts]
    for s, slot in enumerate(slots):
        of[slot.part].append(s)
    blocks, constants = [], []
    for family, home in zip(system.families, homes, strict=True):
        own = _blocks(family, home, union, number)
        blocks.append(own)
        moving = {b.out for b in own} | {b.inp for b in own}
        sides = [of[family.out], [] if family.inp == NOTHING else of[family.inp]]
        still = [tuple(s for s in side if s not in moving) for side in sides]
        constants.append((still[0], still[1]))
    return Slotted(system, tuple(slots), tuple(map(tuple, of)), tuple(blocks), tuple(constants))


Home = list[tuple[int, int]]
"""For each loop of a family a digit that it runs through on either side, or NOTHING."""


def _homes(
    system: System, family: Relation, chains: Chains, first: Sequence[int], union: DisjointSets
) -> Home:
    """Join the digits that carry into each other, and return each loop's."""
    sides = []
    for side in (0, 1):
        part = family.part(side)
        if part == NOTHING:
            sides.append([NOTHING] * len(family.loops))
            continue
        digits = _runs(family, side, [1, *chains[part]])
        for low, high in digits:
            for d in range(max(low, 0), high):
                union.join(first[part] + d, first[part] + d + 1)
        sides.append([NOTHING if low < 0 else first[part] + low for low, _ in digits])
    return list(zip(*sides, strict=True))


def _runs(family: Relation, side: int, bounds: list[int]) -> list[tuple[int, int]]:
    """Return for each loop the digits, first and last, that share its carries.

    Digits are taken from the lowest on.  Loops that begin in a digit add up to some largest
    number; while that does not fit below the next boundary, the next digit, and the loops that
    begin there, join them.  A loop that does not move has no digits: -1.
    """
    begins = defaultdict(list)
    found = [(NOTHING, NOTHING)] * len(family.loops)
    for k, loop in enumerate(family.loops):
        if loop[1 + side]:
            low = max(d for d, b in enumerate(bounds) if loop[1 + side] % b == 0)
            begins[low].append(k)
    offset, d = family.low(side), 0
    while d < len(bounds):
        members, span, last = list(begins[d]), 0, d
        if members:
            span = _span(family, side, begins[d])
            while last + 1 < len(bounds):
                room = bounds[last + 1]
                if offset % room // bounds[d] * bounds[d] + span < room:
                    break
                last += 1
                members += begins[last]
                span += _span(family, side, begins[last])
            for k in members:
                found[k] = d, last
        d = last + 1
    return found


def _span(family: Relation, side: int, loops: Sequence[int]) -> int:
    return sum((family.loops[k][0] - 1) * abs(family.loops[k][1 + side]) for k in loops)


def _couple(home: Home, side: int, union: DisjointSets) -> bool:
    """Join slots of the other side that loops of one slot run through."""
    joined = False
    seen: dict[int, int] = {}
    for digits in home:
        here, there = digits[side], digits[1 - side]
        if here != NOTHING and there != NOTHING:
            joined |= union.join(seen.setdefault(union.find(here), there), there)
    return joined


def _numbered(
    system: System, chains: Chains, first: Sequence[int], union: DisjointSets
) -> tuple[list[Slot], dict[int, int]]:
    """Return the slots, and the number of the slot of each set of digits."""
    slots: list[Slot] = []
    number: dict[int, int] = {}
    for p, part in enumerate(system.parts):
        members: dict[int, list[tuple[int, int]]] = defaultdict(list)
        bounds = [1, *chains[p]]
        for d, weight in enumerate(bounds):
            upper = bounds[d + 1] if d + 1 < len(bounds) else None
            size = upper // weight if upper else max(-(-part.size // weight), 1)
            members[union.find(first[p] + d)].append((weight, size))
        for root, digits in members.items():
            radix, rows = 1, []
            for weight, size in digits:
                rows.append((weight, size, radix))
                radix *= size
            number[root] = len(slots)
            slots.append(Slot(p, tuple(rows), radix))
    return slots, number


def _blocks(
    family: Relation, home: Home, union: DisjointSets, number: dict[int, int]
) -> tuple[SlotBlock, ...]:
    """Return the loops by the slots that they run through."""
    loops: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    inner: dict[int, int] = {}
    for (out, inp), loop in zip(home, family.loops, strict=True):
        slot = number[union.find(out)]
        loops[slot].append(loop)
        if inp != NOTHING:
            inner[slot] = number[union.find(inp)]
    return tuple(
        SlotBlock(slot, inner.get(slot, NOTHING), tuple(own)) for slot, own in loops.items()
    )
