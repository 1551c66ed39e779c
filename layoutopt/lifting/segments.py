"""Segments: blocks as pieces of straight lines between the values of two slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layoutopt.errors import SizeError
from layoutopt.lifting.families import NOTHING, Relation
from layoutopt.lifting.slots import Slot, SlotBlock
from layoutopt.pieces import outer_sum
from layoutopt.problem import IntArray

VALUES_LIMIT = 4 * 10**6
"""The most values of a slot that are ever written down one by one."""


@dataclass(frozen=True, eq=False)
class Segments:
    """A relation of the values of two slots, or a set of values of one.

    Parameters
    ----------
    out, inp
        Numbers of the slots; ``inp`` is :data:`~layoutopt.lifting.families.NOTHING` for a set.
    out_start, in_start
        First values; those of ``inp`` go up or down from there.
    length
        How many values follow each other.
    sign
        1 where both sides go up, -1 where ``inp`` goes down.
    mark
        What tells the pieces of a set apart, if anything does.
    """

    out: int
    inp: int
    out_start: IntArray
    in_start: IntArray
    length: IntArray
    sign: IntArray
    mark: IntArray | None = None


def segments_of(family: Relation, block: SlotBlock, slots: Sequence[Slot]) -> Segments:
    """Return the segments of one block of a family.

    Raises
    ------
    SizeError
        If the block is irregular and too large to be written down.
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
    count = 1
    for extent, _, _ in block.loops:
        count *= extent
    check_count(count)
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
    """Refuse to write too many values of slots down.

    Raises
    ------
    SizeError
        If there are more than :data:`VALUES_LIMIT`.
    """
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
