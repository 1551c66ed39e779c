"""Joins: which elements several boxes have in common, found by equations.

No element is looked at; a :class:`BoxIndex` leaves out pairs of boxes that cannot meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

import numpy as np

from layoutopt.boxes.box import Box, Shape, VectorBox, canonical, plus, strides
from layoutopt.boxes.equation import Equations, Term

FEW = 8
"""Lists of up to so many boxes are gone through one by one."""

COMPARED_PER_STEP = 5000
"""How many boxes of longer lists are compared with one in the time of a step."""


class BoxIndex:
    """Boxes of a tensor of a shape, to be asked which of them are near others.

    ``origin`` is the shape of the tensor whose locations the boxes take, if these are to be near,
    too.
    """

    def __init__(
        self, boxes: Sequence[Box], shape: Shape, equations: Equations, origin: Shape | None = None
    ) -> None:
        self.boxes, self.shape, self.origin = boxes, shape, origin
        self.equations = equations
        if len(boxes) > FEW:
            hulls = [self._hull(box) for box in boxes]
            order = sorted(range(len(boxes)), key=lambda k: hulls[k][0][0])
            self.boxes = [boxes[k] for k in order]
            self._low, self._high = np.array([hulls[k] for k in order], np.int64).transpose(1, 2, 0)
            self._reach = np.maximum.accumulate(self._high[0])
            rests = [_rests(box, shape) for box in self.boxes]
            table = np.array(rests, np.int64).reshape(len(rests), 2, len(shape))
            self._first, self._step = table.transpose(1, 2, 0)

    def near(self, box: Box) -> Sequence[Box]:
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

    def _hull(self, box: Box) -> tuple[list[int], list[int]]:
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


def _rests(box: Box, shape: Shape) -> tuple[list[int], list[int]]:
    """Return for each dimension an index of a box, and a divisor of all differences or 0."""
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


def join(one: VectorBox, two: VectorBox, equations: Equations) -> Iterator[VectorBox]:
    """Yield the members of two boxes that have their first quantity in common.

    They are boxes of the other quantities of the first, then those of the second.
    """
    (key, *mine), (other, *others) = one.start, two.start
    none, nothing = (0,) * len(mine), (0,) * len(others)
    terms = [Term(step[0], n, (*step[1:], *nothing)) for n, step in one.loops]
    terms += [Term(-step[0], n, (*none, *step[1:])) for n, step in two.loops]
    start = (*mine, *others)
    for part in equations.solve(tuple(terms), other - key, len(start)):
        yield VectorBox(plus(start, part.start), part.loops)


def join_on(
    one: Sequence[VectorBox], two: Sequence[VectorBox], shape: Shape, equations: Equations
) -> Iterator[tuple[int, int, VectorBox]]:
    """Join all boxes of two lists on their first quantity, flat elements of a tensor of a shape.

    Yielded are the number of a box in each list, and what :func:`join` says of the two.
    """

    def by_key(number: int, box: VectorBox) -> Box:
        return Box(number, 0, box.start[0], tuple([(n, 0, step[0]) for n, step in box.loops]))

    places = BoxIndex([by_key(k, box) for k, box in enumerate(two)], shape, equations)
    for k, box in enumerate(one):
        for near in places.near(by_key(k, box)):
            for part in join(box, two[near.label], equations):
                yield k, near.label, part


def common(a: Box, b: Box, equations: Equations) -> Iterator[VectorBox]:
    """Yield the elements that two boxes of a tensor have in common, as :func:`join` does.

    They are boxes of two quantities: where these elements are in the tensor of either box's label.
    """
    return join(a.vectors, b.vectors, equations)


def image(move: Box, places: BoxIndex, equations: Equations) -> Iterator[Box]:
    """Yield where elements lie that come from others, by the boxes that these are in.

    ``move`` says which elements come from which, whatever its label, ``places`` has the latter.
    """
    equations.spend()
    inverse = move.inverse
    for box in places.near(inverse):
        for (to, start), loops in common(inverse, box, equations):
            yield canonical(box.label, start, to, [(n, there, here) for n, (here, there) in loops])
