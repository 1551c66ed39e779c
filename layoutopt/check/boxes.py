"""Boxes: which elements of a tensor take which locations, as strided loops instead of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from layoutopt.base.result import Loop
from layoutopt.check.equations import Equations
from layoutopt.check.flow import strides
from layoutopt.graphs.ops import Shape

SHORT = 4
"""Loops of up to so many steps may be written as so many boxes."""

FEW = 8
"""Lists of up to so many boxes are gone through one by one."""

COMPARED_PER_STEP = 5000
"""How many boxes of longer lists are compared with one in the time of a step."""


class CheckedBox(NamedTuple):
    """Elements ``to + sum(i * to_stride)`` lie where others, ``start + sum(i * from_stride)``, do.

    Parameters
    ----------
    label
        Whose elements the latter are.
    start, to
        First flat element there, and here.
    loops
        ``(extent, from_stride, to_stride)``.
    """

    label: int
    start: int
    to: int
    loops: tuple[Loop, ...]

    @property
    def elements(self) -> int:
        """How many elements these are."""
        return prod([extent for extent, _, _ in self.loops])

    @property
    def turned(self) -> CheckedBox:
        """The same with both sides exchanged."""
        loops = tuple([(n, here, there) for n, there, here in self.loops])
        return CheckedBox(self.label, self.to, self.start, loops)


def normal(label: int, start: int, to: int, loops: Iterable[Loop]) -> CheckedBox:
    """Return a box in few loops of positive ``to_stride``, in ascending order."""
    ahead = []
    for n, there, here in loops:
        if n > 1 and here < 0:
            start, to = start + there * (n - 1), to + here * (n - 1)
            there, here = -there, -here
        if n > 1:
            ahead.append((here, there, n))
    joint: list[Loop] = []
    for here, there, n in sorted(ahead):
        if joint and (joint[-1][1] * joint[-1][0], joint[-1][2] * joint[-1][0]) == (there, here):
            joint[-1] = (joint[-1][0] * n, *joint[-1][1:])
        else:
            joint.append((n, there, here))
    return CheckedBox(label, start, to, tuple(joint))


def unfolded(box: CheckedBox, shape: Shape) -> list[CheckedBox]:
    """Return a box of a tensor without short loops that jump across rows, as several boxes.

    These are compact, so that fewer of them are near each other.
    """
    rows = [step for step in strides(shape) if step > 1]
    found = [box._replace(loops=())]
    kept: list[Loop] = []
    for n, there, here in box.loops:
        if n <= SHORT and any(abs(here) > row and here % row for row in rows):
            found = [
                part._replace(start=part.start + k * there, to=part.to + k * here)
                for part in found
                for k in range(n)
            ]
        else:
            kept.append((n, there, here))
    return [part._replace(loops=tuple(kept)) for part in found]


class BoxIndex:
    """Boxes of a tensor, to be asked which of them are near others.

    Parameters
    ----------
    boxes
        The boxes, in normal form.
    shape
        The tensor's shape.
    equations
        What counts the steps.
    origin
        The shape of the tensor whose locations the boxes take, if these are to be near, too.
    """

    def __init__(
        self,
        boxes: Sequence[CheckedBox],
        shape: Shape,
        equations: Equations,
        origin: Shape | None = None,
    ) -> None:
        self.boxes, self.shape, self.origin = boxes, shape, origin
        self.equations = equations
        if len(boxes) > FEW:
            self.boxes = sorted(boxes, key=lambda box: box.to)
            hulls = [self._hull(box) for box in self.boxes]
            self._low, self._high = np.array(hulls, np.int64).transpose(1, 2, 0)
            self._reach = np.maximum.accumulate(self._high[0])
            rests = [_rests(box, shape) for box in self.boxes]
            table = np.array(rests, np.int64).reshape(len(rests), 2, len(shape))
            self._first, self._step = table.transpose(1, 2, 0)

    def near(self, box: CheckedBox) -> Sequence[CheckedBox]:
        """Return all boxes that may have elements in common with a box, at equal locations."""
        if len(self.boxes) <= FEW:
            return self.boxes
        low, high = self._hull(box)
        begin = int(np.searchsorted(self._reach, low[0]))
        end = int(np.searchsorted(self._low[0], high[0], "right"))
        self.equations.spend((end - begin) // COMPARED_PER_STEP)
        meets = np.ones(end - begin, bool)
        for d in range(len(low)):
            meets &= self._low[d, begin:end] <= high[d]
            meets &= self._high[d, begin:end] >= low[d]
        found = begin + np.flatnonzero(meets)
        for d, (first, step) in enumerate(zip(*_rests(box, self.shape), strict=True)):
            common = np.maximum(np.gcd(self._step[d, found], step), 1)
            found = found[(self._first[d, found] - first) % common == 0]
        return [self.boxes[k] for k in found.tolist()]

    def _hull(self, box: CheckedBox) -> tuple[list[int], list[int]]:
        low, high = _hull(box.to, [(n, step) for n, _, step in box.loops], self.shape)
        if self.origin is not None:
            there = _hull(box.start, [(n, step) for n, step, _ in box.loops], self.origin)
            low, high = low + there[0], high + there[1]
        return low, high


def _hull(first: int, walk: Sequence[tuple[int, int]], shape: Shape) -> tuple[list[int], list[int]]:
    """Return the lowest and the highest flat element, and index of each dimension."""
    first += sum(min(0, step * (n - 1)) for n, step in walk)
    spans = [(step, abs(step) * (n - 1)) for n, step in walk]
    low, high = [first], [first + sum(span for _, span in spans)]
    for n, step in zip(shape, strides(shape), strict=True):
        around = n * step
        begin = first % around
        end = begin + sum(span for stride, span in spans if stride % around)
        inside = end < around
        low.append(begin // step if inside else 0)
        high.append(end // step if inside else n - 1)
    return low, high


def _rests(box: CheckedBox, shape: Shape) -> tuple[list[int], list[int]]:
    """Return for each dimension an index of a box, and a number that divides all differences.

    That number is 0 where the index is always the same.
    """
    low = box.to + sum(min(0, stride * (m - 1)) for m, _, stride in box.loops)
    spans = [(abs(stride), abs(stride) * (m - 1)) for m, _, stride in box.loops if m > 1]
    firsts, numbers = [], []
    for n, step in zip(shape, strides(shape), strict=True):
        around, number = n * step, 1
        inner = sum(span for stride, span in spans if stride % step)
        if low % step + inner < step:
            reach = sum(span for stride, span in spans if stride % around)
            wraps = low % around + reach >= around
            own = [stride // step for stride, _ in spans if not stride % step]
            number = gcd(*[stride % n for stride in own], n if wraps else 0)
        firsts.append(low // step % n)
        numbers.append(number)
    return firsts, numbers
