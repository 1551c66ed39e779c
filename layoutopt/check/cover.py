"""Exact cover of a sink by pieces, decided by their loops alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd, prod
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from layoutopt.base import result
from layoutopt.base.result import Piece
from layoutopt.check.boxes import BoxIndex, CheckedBox, normal, unfolded
from layoutopt.check.equations import Equations
from layoutopt.check.merging import merged
from layoutopt.check.terms import Term
from layoutopt.graphs.ops import Shape, size
from layoutopt.graphs.tensor import Tensor

Walk: TypeAlias = tuple[int, tuple[tuple[int, int], ...]]
"""First element, and loops ``(extent, step)`` that never come to one element twice."""

Signed: TypeAlias = dict[Walk, int]
"""A set of elements, as a sum of simple sets that may be counted negatively."""


MANY, MARKED = 200, 10**8
"""Sinks of up to so many elements that are in more pieces than this are marked one by one."""


class Covers:
    """Faults of covers, computed once for sinks that are covered equally.

    Parameters
    ----------
    equations
        What solves equations, and says how many may be solved.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self._known: dict[object, str | None] = {}

    def fault(self, layout: Sequence[Piece], sink: Tensor) -> str | None:
        """Return what :func:`cover` does."""
        shape = sink.shape
        walks = tuple((to, tuple((n, step) for n, _, step in loops)) for _, _, to, loops in layout)
        if (walks, shape) not in self._known:
            if len(layout) > MANY and sink.size <= MARKED:
                found = marked(layout, sink.size)
            else:
                found = cover(layout, shape, self.equations)
            self._known[walks, shape] = found
        return self._known[walks, shape]


def marked(layout: Sequence[Piece], count: int) -> str | None:
    """Return what :func:`cover` does, by marking every element; all pieces are inside the sink."""
    total = sum(map(result.elements, layout))
    if total != count:
        return f"pieces set {total} elements of {count}"
    seen = np.zeros(count, bool)
    for _origin, _from, to, loops in layout:
        extents, steps = [n for n, _, _ in loops], [step for _, _, step in loops]
        as_strided(seen[to:], extents, steps)[...] = True
    missing = count - int(np.count_nonzero(seen))
    return f"{missing} elements are set twice instead of others" if missing else None


def cover(layout: Sequence[Piece], shape: Shape, equations: Equations) -> str | None:
    """Return why pieces do not cover each element of a sink exactly once, or ``None``.

    This is :func:`layoutopt.base.result.cover` for sinks of any size.

    Parameters
    ----------
    layout
        The pieces, each inside the sink.
    shape
        The sink's shape.
    equations
        What solves equations, and says how many may be solved.
    """
    total = sum(map(result.elements, layout))
    if total != size(shape):
        return f"pieces set {total} elements of {size(shape)}"
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
    covered = sum(sign * prod([n for n, _ in loops]) for (_, loops), sign in union.items())
    missing = sum(box.elements for box in twice) - covered
    return f"{missing} elements are set twice instead of others"


def _written(piece: Piece) -> CheckedBox:
    _origin, _from, to, loops = piece
    return normal(0, 0, to, [(n, 0, step) for n, _, step in loops])


def _fewer(boxes: Sequence[CheckedBox], equations: Equations) -> list[CheckedBox]:
    """Return boxes that come to the same elements, each as often, with numbers as labels."""
    firsts: dict[int, CheckedBox] = {}
    others = [box for box in boxes if firsts.setdefault(box.to, box) is not box]
    few = merged(firsts.values(), equations)
    if sum(box.elements for box in few) < sum(box.elements for box in firsts.values()):
        few = list(firsts.values())
    return [box._replace(label=n) for n, box in enumerate([*few, *others])]


def _clashing(boxes: Sequence[CheckedBox], shape: Shape, equations: Equations) -> list[CheckedBox]:
    """Return the boxes that share an element with another one, or come to one twice."""
    every = BoxIndex(boxes, shape, equations)
    twice: dict[int, CheckedBox] = {}
    for box in boxes:
        equations.spend()
        if not _simple(box, equations):
            twice[box.label] = box
        for other in every.near(box):
            if other.label > box.label and _common(_key(box), _key(other), equations):
                twice[box.label], twice[other.label] = box, other
    return list(twice.values())


def _simple(box: CheckedBox, equations: Equations) -> bool:
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


def _key(box: CheckedBox) -> Walk:
    return box.to, tuple([(n, step) for n, _, step in box.loops])


def _common(a: Walk, b: Walk, equations: Equations) -> list[Walk]:
    """Return the elements that are in both of two sets."""
    terms = [Term(step, n, (step,)) for n, step in a[1]]
    terms += [Term(-step, n, (0,)) for n, step in b[1]]
    found = []
    for (start,), loops in equations.solve(tuple(terms), b[0] - a[0], 1):
        walk = [(n, 0, step) for n, (step,) in loops]
        found.append(_key(normal(0, 0, a[0] + start, walk)))
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


def _spread(box: CheckedBox, equations: Equations) -> Signed:
    """Return the elements that a box comes to, each once."""
    found: Signed = {(box.to, ()): 1}
    reach = 0
    for n, _, step in box.loops:
        if step > reach:
            found = {(to, (*loops, (n, step))): sign for (to, loops), sign in found.items()}
        elif step:
            found = _repeated(found, n, step, equations)
        reach += step * (n - 1)
    return found


def _repeated(found: Signed, n: int, step: int, equations: Equations) -> Signed:
    """Return the elements of copies of a set that overlap, each copy a step further."""
    [(to, loops), *others] = found
    if others or len(loops) != 1:
        union: Signed = {}
        for k in range(n):
            copy = {(to + k * step, loops): sign for (to, loops), sign in found.items()}
            union = _united(union, copy, equations)
        return union
    [(m, stride)] = loops
    again = stride // gcd(stride, step)  # so many copies further, the same places come again
    union = {}
    for k in range(min(again, n)):
        equations.spend()
        times, shift = -(-(n - k) // again), again * step // stride
        gaps = ((m, stride), (times, again * step))
        union[to + k * step, ((m + (times - 1) * shift, stride),) if shift <= m else gaps] = 1
    return union
