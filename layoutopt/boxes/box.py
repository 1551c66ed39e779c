"""Boxes: strided loops over flat elements, on two sides at once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import NamedTuple, TypeAlias

from layoutopt.base.result import Loop

Shape: TypeAlias = tuple[int, ...]

Vector: TypeAlias = tuple[int, ...]

SHORT = 4
"""Loops of up to so many steps may be written as so many boxes."""


def strides(shape: Shape) -> list[int]:
    """Return the row-major stride of each dimension, in elements."""
    steps = [1]
    for n in shape[:0:-1]:
        steps.append(steps[-1] * n)
    return steps[::-1][: len(shape)]


class VectorBox(NamedTuple):
    """Members ``start + sum_j i_j * step_j``: vectors of quantities.

    A loop is ``(extent, step)`` of a free index ``i_j``; different indices are different members.
    """

    start: Vector
    loops: tuple[tuple[int, Vector], ...]

    @property
    def members(self) -> int:
        """The number of members."""
        return prod([extent for extent, _ in self.loops])


class Box(NamedTuple):
    """Pairs of flat elements, ``start + sum(i * from_stride)`` and ``to + sum(i * to_stride)``.

    A box says where elements of a tensor come from, or where they lie.  The former, ``there``, are
    of the tensor ``label``, the latter are ``here``; loops are ``(extent, from_stride,
    to_stride)``.  A :data:`~layoutopt.base.result.Piece` is a box whose label is a name.
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
    def inverse(self) -> Box:
        """The same with both sides exchanged."""
        loops = tuple([(n, here, there) for n, there, here in self.loops])
        return Box(self.label, self.to, self.start, loops)

    @property
    def places(self) -> VectorBox:
        """The elements of ``to`` alone."""
        return VectorBox((self.to,), tuple([(n, (here,)) for n, _, here in self.loops]))

    @property
    def vectors(self) -> VectorBox:
        """The pairs of elements, those of ``to`` first."""
        loops = tuple([(n, (here, there)) for n, there, here in self.loops])
        return VectorBox((self.to, self.start), loops)


def plus(a: Vector, b: Vector, factor: int = 1) -> Vector:
    """Return ``a + factor * b``."""
    return tuple([x + factor * y for x, y in zip(a, b, strict=True)])


def times(a: Vector, factor: int) -> Vector:
    """Return ``factor * a``."""
    return tuple([factor * x for x in a])


def canonical(label: int, start: int, to: int, loops: Iterable[Loop]) -> Box:
    """Return a box in its canonical form: few loops of positive ``to_stride``, ascending."""
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
    return Box(label, start, to, tuple(joint))


def unfolded(box: Box, shape: Shape) -> list[Box]:
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
