"""Exact cover of a tensor by boxes, decided by their loops alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd, prod
from typing import TypeAlias

from layoutopt.base import result
from layoutopt.base.result import Piece
from layoutopt.boxes.box import Box, Shape, VectorBox, canonical, unfolded
from layoutopt.boxes.equation import Equations, Term
from layoutopt.boxes.join import BoxIndex, join
from layoutopt.boxes.merge import merged

Signed: TypeAlias = dict[VectorBox, int]
"""A set of elements, as a sum of sets that come to no element twice, maybe counted negatively."""

MANY, MARKED = 200, 10**8
"""Sinks of up to so many elements that are in more pieces than this are marked one by one."""


class Covers:
    """Faults of covers, each found once for sinks that are covered by equal pieces."""

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self._known: dict[object, str | None] = {}

    def fault(self, layout: Sequence[Piece], shape: Shape) -> str | None:
        """Return what :func:`cover` does."""
        walks = tuple((to, tuple((n, step) for n, _, step in loops)) for _, _, to, loops in layout)
        if (walks, shape) not in self._known:
            if len(layout) > MANY and prod(shape) <= MARKED:
                found = result.cover(layout, prod(shape))
            else:
                found = cover(layout, shape, self.equations)
            self._known[walks, shape] = found
        return self._known[walks, shape]


def cover(layout: Sequence[Piece], shape: Shape, equations: Equations) -> str | None:
    """Return why pieces, each inside a tensor, do not cover each element exactly once, or ``None``.

    This is :func:`layoutopt.base.result.cover` for tensors of any size.
    """
    total = sum(map(result.elements, layout))
    if total != prod(shape):
        return f"pieces set {total} elements of {prod(shape)}"
    equations.spend(len(layout))
    boxes = _fewer([_written(piece) for piece in layout], equations)
    boxes = [part for box in boxes for part in unfolded(box, shape)]
    boxes = [box._replace(label=n) for n, box in enumerate(boxes)]
    twice = _clashing(boxes, shape, equations)
    if not twice:
        return None
    union: Signed = {}
    for box in twice:
        union = _united(union, _spread(box, equations), equations)
    covered = sum(sign * part.members for part, sign in union.items())
    missing = sum(box.elements for box in twice) - covered
    return f"{missing} elements are set twice, and as many are not set"


def _written(piece: Piece) -> Box:
    _origin, _from, to, loops = piece
    return canonical(0, 0, to, [(n, 0, step) for n, _, step in loops])


def _fewer(boxes: Sequence[Box], equations: Equations) -> list[Box]:
    """Return boxes that come to the same elements, each as often, with numbers as labels."""
    firsts: dict[int, Box] = {}
    others = [box for box in boxes if firsts.setdefault(box.to, box) is not box]
    few = merged(firsts.values(), equations)
    if sum(box.elements for box in few) < sum(box.elements for box in firsts.values()):
        few = list(firsts.values())
    return [box._replace(label=n) for n, box in enumerate([*few, *others])]


def _clashing(boxes: Sequence[Box], shape: Shape, equations: Equations) -> list[Box]:
    """Return the boxes that share an element with another one, or come to one twice."""
    every = BoxIndex(boxes, shape, equations)
    twice: dict[int, Box] = {}
    for box in boxes:
        equations.spend()
        if not _simple(box, equations):
            twice[box.label] = box
        for other in every.near(box):
            if other.label > box.label and _common(box.places, other.places, equations):
                twice[box.label], twice[other.label] = box, other
    return list(twice.values())


def _simple(box: Box, equations: Equations) -> bool:
    """Return whether a box comes to no element twice."""
    reach = 0
    for n, _, step in box.loops:
        if step <= reach:
            break
        reach += step * (n - 1)
    else:
        return True
    steps = [step for _, _, step in box.loops]
    span = sum(step * (n - 1) for n, _, step in box.loops)
    if span // max(1, gcd(*steps)) + 1 < box.elements:  # there are not so many places
        return False
    terms = [Term(sign * step, n, ()) for n, _, step in box.loops for sign in (1, -1)]
    return equations.count(tuple(terms), 0) == box.elements


def _common(a: VectorBox, b: VectorBox, equations: Equations) -> list[VectorBox]:
    """Return the elements that are in both of two sets."""
    twice = VectorBox(a.start * 2, tuple([(n, step * 2) for n, step in a.loops]))
    found = []
    for (start,), loops in join(twice, b, equations):
        walk = [(n, 0, step) for n, (step,) in loops]
        found.append(canonical(0, 0, start, walk).places)
    return found


def _united(a: Signed, b: Signed, equations: Equations) -> Signed:
    """Return the elements that are in one of two sets: both, less what they have in common."""
    total = Counter(a)
    total.update(b)
    for one, sign in a.items():
        for other, factor in b.items():
            for places in _common(one, other, equations):
                total[places] -= sign * factor
    return {places: sign for places, sign in total.items() if sign}


def _spread(box: Box, equations: Equations) -> Signed:
    """Return the elements that a box comes to, each once."""
    found: Signed = {VectorBox((box.to,), ()): 1}
    reach = 0
    for n, _, step in box.loops:
        if step > reach:
            found = {
                VectorBox(to, (*loops, (n, (step,)))): sign for (to, loops), sign in found.items()
            }
        elif step:
            found = _repeated(found, n, step, equations)
        reach += step * (n - 1)
    return found


def _repeated(found: Signed, n: int, step: int, equations: Equations) -> Signed:
    """Return the elements of copies of a set that overlap, each copy a step further."""
    [((to,), loops), *others] = found
    if others or len(loops) != 1:
        union: Signed = {}
        for k in range(n):
            copy = {
                VectorBox((to + k * step,), loops): sign for ((to,), loops), sign in found.items()
            }
            union = _united(union, copy, equations)
        return union
    [(m, (stride,))] = loops
    again = stride // gcd(stride, step)  # so many copies further, the same places come again
    union = {}
    for k in range(min(again, n)):
        equations.spend()
        times, shift = -(-(n - k) // again), again * step // stride
        gaps = ((m, (stride,)), (times, (again * step,)))
        solid = ((m + (times - 1) * shift, (stride,)),)
        union[VectorBox((to + k * step,), solid if shift <= m else gaps)] = 1
    return union
