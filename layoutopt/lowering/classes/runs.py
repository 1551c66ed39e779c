"""Runs: intervals of slot values that nothing tells apart.

Slots are cut wherever a segment begins or ends, and cuts travel through segments, until every
segment maps whole runs onto whole runs.  Runs that segments join are one *strand*; its positions
are one-dimensional orbits that look alike.  A strand that would come back to itself reversed is
cut in the middle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from layoutopt.base.errors import SizeError
from layoutopt.base.numbers import ranges, unique, without
from layoutopt.base.result import outer_sum
from layoutopt.lowering.classes.families import NOTHING, Relation
from layoutopt.lowering.classes.slots import Slot, SlotBlock
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray
from layoutopt.tiles.blocks import TileMap

VALUES_LIMIT = 4 * 10**6
"""The most values of a slot that are ever written down one by one."""


@dataclass(frozen=True, eq=False)
class Segments:
    """A relation of the values of two slots, or a set of values of one."""

    out: int  # number of one slot
    inp: int  # that of the other, or `NOTHING` for a set
    out_start: IntArray  # first values of `out`
    in_start: IntArray  # values of `inp` for these, from which they go up or down
    length: IntArray  # how many values follow each other
    sign: IntArray  # 1 where both sides go up, -1 where `inp` goes down
    mark: IntArray | None = None  # what tells the pieces of a set apart, if anything does


def segments_of(family: Relation, block: SlotBlock, slots: Sequence[Slot]) -> Segments:
    """Return the segments of one block of a family.

    Raises ``SizeError`` if the block is irregular and too large to be written down.
    """
    out = slots[block.out]
    inp = None if block.inp == NOTHING else slots[block.inp]
    straight = len(block.loops) == 1 and abs(block.loops[0][1]) == out.unit
    if straight and inp is not None:
        straight = abs(block.loops[0][2]) == inp.unit
    if straight:
        [(extent, out_step, in_step)] = block.loops
        first, sign = family.low(1), 1
        if out_step * in_step < 0:
            first, sign = first + (extent - 1) * abs(in_step), -1
        return Segments(
            block.out,
            block.inp,
            out.value(np.array([family.low(0)])),
            np.zeros(1, np.int64) if inp is None else inp.value(np.array([first])),
            np.array([extent]),
            np.array([sign]),
        )
    return _written(family, block, out, inp)


def _written(family: Relation, block: SlotBlock, out: Slot, inp: Slot | None) -> Segments:
    """Write all values down, and join those that follow each other."""
    check_count(prod([extent for extent, _, _ in block.loops]))
    values = out.value(_walk(family, block, 0))
    others = np.zeros_like(values) if inp is None else inp.value(_walk(family, block, 1))
    order = np.argsort(values, kind="stable")
    values, others = values[order], others[order]
    up, across = np.diff(values), np.diff(others)
    if inp is None:
        keep = up > 0
        values, others = values[np.r_[True, keep]], others[np.r_[True, keep]]
        up, across = np.diff(values), np.ones(len(values) - 1, np.int64)
    broken = (up != 1) | (np.abs(across) != 1)
    broken[1:] |= across[1:] != across[:-1]
    starts = np.flatnonzero(np.r_[True, broken])
    length = np.diff(np.r_[starts, len(values)])
    sign = np.ones(len(starts), np.int64)
    long = length > 1
    sign[long] = across[starts[long]]
    return Segments(block.out, block.inp, values[starts], others[starts], length, sign)


def check_count(values: int) -> None:
    """Raise ``SizeError`` for more than :data:`VALUES_LIMIT` values of slots to write down."""
    if values > VALUES_LIMIT:
        raise SizeError(
            f"irregular views: {values:,} values would have to be told apart, the limit is "
            f"{VALUES_LIMIT:,}"
        )


def _walk(family: Relation, block: SlotBlock, side: int) -> IntArray:
    """Return flat elements of one side while the block's loops run, the others at their lowest."""
    start, terms = family.low(side), []
    for loop in block.loops:
        extent, stride = loop[0], loop[1 + side]
        start += max(0, -(extent - 1) * stride)
        terms.append(np.arange(extent) * stride)
    return outer_sum(terms, start)


def marked_strides(codes: TileMap) -> Iterator[int]:
    """Yield the flat distance of neighbours, and of ends, along each axis where names change."""
    for axis in _telling(codes):
        yield codes.strides[axis]
        yield codes.strides[axis] * codes.shape[axis]


def marked_digits(codes: TileMap, bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last digit of each axis along which names of a part's locations change.

    ``bounds`` are what one step of each of the part's digits means in flat elements, ascending from
    1.
    """
    for axis in _telling(codes):
        stride, around = codes.strides[axis], codes.strides[axis] * codes.shape[axis]
        low = max(d for d, b in enumerate(bounds) if stride % b == 0)
        above = (d for d, b in enumerate(bounds) if b >= around and b % around == 0)
        yield low, next(above, len(bounds)) - 1


def marks_of(codes: TileMap, slots: Sequence[Slot], numbers: Sequence[int]) -> list[Segments]:
    """Return the intervals of one name of each slot along which names of locations change.

    ``numbers`` are those of the part's own slots, each of which holds whole axes.  Raises
    ``SizeError`` if too many values would have to be told apart.
    """
    axes: dict[int, list[int]] = defaultdict(list)
    for axis in _telling(codes):
        home = max(
            (weight, s)
            for s in numbers
            for weight, _, _ in slots[s].digits
            if codes.strides[axis] % weight == 0
        )[1]
        axes[home].append(axis)
    return [_marks(codes, slots[s], s, own) for s, own in axes.items()]


def _telling(codes: TileMap) -> list[int]:
    return [axis for axis, steps in enumerate(codes.steps) if len(steps.merged().starts) > 1]


def _marks(codes: TileMap, slot: Slot, number: int, axes: Sequence[int]) -> Segments:
    """Return the intervals of a slot in which the sum of some axes' steps stays the same."""
    straight = not slot.breaks and len(axes) == 1 and slot.unit == codes.strides[axes[0]]
    if straight and slot.size == codes.shape[axes[0]]:
        steps = codes.steps[axes[0]].merged()
        starts, values = steps.starts, steps.values
    else:
        check_count(slot.size)
        flat = slot.flat(np.arange(slot.size))
        sums: IntArray = np.zeros(slot.size, np.int64)
        for axis in axes:
            sums += codes.steps[axis].at(flat // codes.strides[axis] % codes.shape[axis])
        starts = np.flatnonzero(np.r_[True, np.diff(sums) != 0])
        values = sums[starts]
    length = np.diff(np.r_[starts, slot.size])
    ones = np.ones(len(starts), np.int64)
    return Segments(number, NOTHING, starts, np.zeros_like(starts), length, ones, values)


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of all slots, numbered through."""

    slot: IntArray  # slot of each run
    start: IntArray  # its first value
    length: IntArray  # its number of values
    first: IntArray  # number of the first run of each slot, and the number of runs
    strand: IntArray  # the strand of each run
    reversed: IntArray  # whether a run's values go down while its strand's positions go up

    def at(self, slot: int, values: IntArray) -> IntArray:
        """Return the runs that hold values of one slot."""
        a, b = self.first[slot], self.first[slot + 1]
        found: IntArray = a + np.searchsorted(self.start[a:b], values, side="right") - 1
        return found

    def values(self, run: IntArray, place: IntArray) -> IntArray:
        """Return the slot values of runs at positions ``place`` of their strands."""
        down = self.reversed[run]
        return np.asarray(self.start[run] + np.where(down, self.length[run] - 1 - place, place))


@dataclass(frozen=True, eq=False)
class Joins:
    """Runs that one block relates: pairs of runs, or single ones (``inp`` is -1), with marks."""

    out: IntArray
    inp: IntArray
    sign: IntArray
    mark: IntArray


Tie: TypeAlias = tuple[int, IntArray]
"""A slot, and values of it that become runs of their own, of one strand."""


def cut_runs(
    slots: Sequence[Slot], segments: Sequence[Segments], ties: Sequence[Tie]
) -> tuple[Runs, list[Joins]]:
    """Cut slots into runs, and return for each of ``segments`` which of them it relates.

    Segments are all relations and sets of values.
    """
    cuts = _Cuts(slots, segments)
    cuts.add(_ends(slots, segments, ties))
    while True:
        runs = cuts.runs()
        joins = [_joins(runs, one) for one in segments]
        strand, reversed_ = _strands(runs, joins, ties)
        folded = np.flatnonzero((reversed_ < 0) & (runs.length > 1))
        if not len(folded):
            found = Runs(runs.slot, runs.start, runs.length, runs.first, strand, reversed_ > 0)
            return found, joins
        middle: dict[int, list[IntArray]] = defaultdict(list)
        for s in unique(runs.slot[folded]).tolist():
            own = folded[runs.slot[folded] == s]
            half = runs.length[own]
            middle[s] += [runs.start[own] + half // 2, runs.start[own] + (half + 1) // 2]
        cuts.add({s: np.concatenate(c) for s, c in middle.items()})


def _ends(
    slots: Sequence[Slot], segments: Sequence[Segments], ties: Sequence[Tie]
) -> dict[int, IntArray]:
    """Return where segments begin and end, and all other cuts to begin with."""
    found: dict[int, list[IntArray]] = defaultdict(list)
    for one in segments:
        found[one.out] += [one.out_start, one.out_start + one.length]
        if one.inp != NOTHING:
            low = np.where(one.sign > 0, one.in_start, one.in_start - one.length + 1)
            found[one.inp] += [low, low + one.length]
    for s, slot in enumerate(slots):
        for radix in slot.breaks:
            check_count(slot.size // radix)
            found[s].append(np.arange(radix, slot.size, radix))
    for s, values in ties:
        found[s] += [values, values + 1]
    return {s: np.concatenate(c) for s, c in found.items() if c}


WAVES = 100  # after so many rounds of cuts that follow from cuts, slots are cut to single values


class _Cuts:
    """Cuts of all slots, closed under segments."""

    def __init__(self, slots: Sequence[Slot], segments: Sequence[Segments]) -> None:
        self.slots = slots
        self.cuts = [np.zeros(0, np.int64) for _ in slots]
        self.count = 0
        self.lines: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        for one in segments:
            if one.inp == NOTHING:
                continue
            rows = zip(
                *(x.tolist() for x in (one.out_start, one.in_start, one.length, one.sign)),
                strict=True,
            )
            for o, i, n, sign in rows:
                if n > 1:
                    low = i if sign > 0 else i - n + 1
                    self.lines[one.out].append((o, n, one.inp, low, sign))
                    self.lines[one.inp].append((low, n, one.out, o, sign))

    def add(self, wanted: dict[int, IntArray]) -> None:
        """Add cuts with all that follow from them.

        Where cuts follow from cuts without end, as along a shift, whole slots are cut to single
        values at once; more cuts than needed cost time and nothing else.
        """
        waves = 0
        while wanted:
            waves += 1
            if waves % WAVES == 0:
                for s in wanted:
                    check_count(self.slots[s].size)
                wanted = {s: np.arange(1, self.slots[s].size) for s in wanted}
            follow: dict[int, list[IntArray]] = defaultdict(list)
            for s, cuts in wanted.items():
                new = without(cuts, self.cuts[s])
                new = new[(new > 0) & (new < self.slots[s].size)]
                if not len(new):
                    continue
                self.cuts[s] = unique(np.concatenate([self.cuts[s], new]))
                self.count += len(new)
                check_count(self.count)
                for start, n, other, low, sign in self.lines[s]:
                    a, b = np.searchsorted(new, [start + 1, start + n])
                    if a < b:
                        steps = new[a:b] - start
                        follow[other].append(low + steps if sign > 0 else low + n - steps)
            wanted = {s: np.concatenate(c) for s, c in follow.items()}

    def runs(self) -> Runs:
        """Return the runs between cuts, without strands."""
        starts = [np.r_[0, cuts] for cuts in self.cuts]
        counts = [len(s) for s in starts]
        lengths = [
            np.diff(np.r_[own, slot.size]) for own, slot in zip(starts, self.slots, strict=True)
        ]
        none = np.zeros(0, np.int64)
        return Runs(
            np.repeat(np.arange(len(counts)), counts),
            np.concatenate([none, *starts]),
            np.concatenate([none, *lengths]),
            np.cumsum([0, *counts]),
            none,
            none,
        )


def _joins(runs: Runs, one: Segments) -> Joins:
    """Return the runs that a block relates."""
    a = runs.at(one.out, one.out_start)
    count = runs.at(one.out, one.out_start + one.length - 1) - a + 1
    step = ranges(0, count)
    out, sign = np.repeat(a, count) + step, np.repeat(one.sign, count)
    mark = np.repeat(np.zeros_like(count) if one.mark is None else one.mark, count)
    if one.inp == NOTHING:
        return Joins(out, np.full(len(out), -1), sign, mark)
    first = runs.at(one.inp, one.in_start)
    return Joins(out, np.repeat(first, count) + sign * step, sign, mark)


def _strands(runs: Runs, joins: Iterable[Joins], ties: Sequence[Tie]) -> tuple[IntArray, IntArray]:
    """Return the strand of each run, and its direction there.

    Every run stands twice, once for each direction; a join that turns direction crosses over.  The
    direction is 0 if values and positions go up together, 1 if one goes down, -1 if the strand
    meets itself reversed.
    """
    count = len(runs.slot)
    ends = [(j.out, j.inp, j.sign) for j in joins if len(j.out) and j.inp[0] >= 0]
    for s, values in ties:
        tied = runs.at(s, values)
        ends.append((tied[:-1], tied[1:], np.ones(len(tied) - 1, np.int64)))
    a, b, sign = (
        np.concatenate([np.zeros(0, np.int64), *(end[i] for end in ends)]) for i in range(3)
    )
    turn = np.where(sign > 0, 0, count)
    rows = np.concatenate([a, a + count])
    columns = np.concatenate([b + turn, b + (count - turn)])
    _, of = components(2 * count, rows, columns)
    up, down = of[:count], of[count:]
    direction = np.where(up == down, -1, np.where(up < down, 0, 1))
    direction[runs.length == 1] = np.maximum(direction[runs.length == 1], 0)
    _, strand = np.unique(np.minimum(up, down), return_inverse=True)
    return strand, direction
