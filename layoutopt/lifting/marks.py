"""Marks: what the names of a fixed part's locations tell apart.

A part's locations may be named by a sum of steps along axes (:mod:`layoutopt.tiles.blocks`): the
tiles of a machine, say.  Two values of a slot can be exchanged only where these steps have one
value, so each step becomes a mark on an interval of the slot.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from layoutopt.lifting.families import NOTHING
from layoutopt.lifting.segments import Segments, check_count
from layoutopt.lifting.slots import Slot
from layoutopt.problem import IntArray
from layoutopt.tiles.blocks import TileMap


def marked_strides(codes: TileMap) -> Iterator[int]:
    """Yield the flat distance of neighbours, and of ends, along each axis where names change."""
    for axis in _telling(codes):
        yield codes.strides[axis]
        yield codes.strides[axis] * codes.shape[axis]


def marked_digits(codes: TileMap, bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last digit of each axis along which names change.

    Parameters
    ----------
    codes
        The names of a part's locations, by number.
    bounds
        What one step of each of the part's digits means in flat elements, ascending from 1.
    """
    for axis in _telling(codes):
        stride, around = codes.strides[axis], codes.strides[axis] * codes.shape[axis]
        low = max(d for d, b in enumerate(bounds) if stride % b == 0)
        above = (d for d, b in enumerate(bounds) if b >= around and b % around == 0)
        yield low, next(above, len(bounds)) - 1


def marks_of(codes: TileMap, slots: Sequence[Slot], numbers: Sequence[int]) -> list[Segments]:
    """Return for each slot along which names change its intervals of one name.

    Parameters
    ----------
    codes
        The names of a part's locations, by number.
    slots
        All slots.
    numbers
        The numbers of the part's own slots, each of which holds whole axes.

    Raises
    ------
    SizeError
        If too many values would have to be told apart.
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
        flat = slot.flats(np.arange(slot.size))
        sums: IntArray = np.zeros(slot.size, np.int64)
        for axis in axes:
            sums += codes.steps[axis].at(flat // codes.strides[axis] % codes.shape[axis])
        starts = np.flatnonzero(np.r_[True, np.diff(sums) != 0])
        values = sums[starts]
    length = np.diff(np.r_[starts, slot.size])
    ones = np.ones(len(starts), np.int64)
    return Segments(number, NOTHING, starts, np.zeros_like(starts), length, ones, values)
