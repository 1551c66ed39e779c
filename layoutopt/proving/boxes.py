"""Boxes of several quantities: joined on one of them, written in indices, and cut by views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np

from layoutopt.certificate.sums import Box
from layoutopt.check import boxes as flat_boxes
from layoutopt.check.boxes import Places
from layoutopt.check.equations import Equations
from layoutopt.check.terms import Term
from layoutopt.errors import SizeError

MOST = 2 * 10**5
"""The most boxes of one list."""


def met(
    one: Sequence[Box], two: Sequence[Box], shape: Sequence[int], equations: Equations
) -> list[Box]:
    """Join two lists of boxes on their first quantity.

    Parameters
    ----------
    shape
        The tensor whose flat elements that quantity names.

    Returns
    -------
    list
        For each member of ``one`` and of ``two`` with the same first quantity that, the others of
        ``one`` and the others of ``two``; tags are put together.
    """
    labelled = [
        flat_boxes.Box(k, 0, box.start[0], tuple([(n, 0, s[0]) for n, s in box.loops]))
        for k, box in enumerate(two)
    ]
    places = Places(labelled, tuple(shape), equations)
    found: list[Box] = []
    for box in one:
        own = flat_boxes.Box(0, 0, box.start[0], tuple([(n, 0, s[0]) for n, s in box.loops]))
        for other in places.near(own):
            found += _met(box, two[other.label], equations)
        if len(found) > MOST:
            raise SizeError(f"a certificate needs more than {MOST:,} boxes for one tensor")
    return found


def _met(one: Box, two: Box, equations: Equations) -> Iterator[Box]:
    """Yield the boxes of what two boxes have in common."""
    mine, others = len(one.start), len(two.start) - 1
    terms = [Term(s[0], n, (*s, *[0] * others)) for n, s in one.loops]
    terms += [Term(-s[0], n, (*[0] * mine, *s[1:])) for n, s in two.loops]
    start = (*one.start, *two.start[1:])
    apart = two.start[0] - one.start[0]
    for first, loops in equations.solve(tuple(terms), apart, mine + others):
        begin = tuple([a + b for a, b in zip(start, first, strict=True)])
        yield Box(one.tag + two.tag, begin, tuple([(n, s) for n, s in loops if n > 1]))


def indexed(boxes: Iterable[Box], shape: Sequence[int]) -> list[Box]:
    """Write the last quantity of boxes, flat elements of a tensor, as indices.

    Boxes are cut where their loops carry from one index into the next.
    """
    found: list[Box] = []
    for box in boxes:
        found += _indexed(box, tuple(shape))
        if len(found) > MOST:
            raise SizeError(f"a certificate needs more than {MOST:,} boxes for one tensor")
    return found


def _indexed(box: Box, shape: tuple[int, ...]) -> Iterator[Box]:
    """Yield boxes with a quantity for each dimension instead of the last one."""
    if not shape:
        yield box.of(*range(len(box.start) - 1))
        return
    *outer, n = shape
    todo = [box]
    while todo:
        own = todo.pop()
        loops, start = [], own.start
        for extent, step in own.loops:
            if extent == 1:
                continue
            rest = step[-1] % n
            if 2 * rest > n or (rest == 0 and step[-1] < 0):  # a step down is a turned step up
                start = _plus(start, step, extent - 1)
                step = tuple([-s for s in step])
            loops.append((extent, step))
        own = Box(own.tag, start, tuple(loops))
        low = start[-1] % n
        spans = [s[-1] % n * (extent - 1) for extent, s in loops]
        if low + sum(spans) >= n:
            todo += _cut_at_carry(own, low, spans, n)
            continue
        split = [(m, (s[-1] % n, *s[:-1], s[-1] // n)) for m, s in loops]
        digits = Box(own.tag, (low, *start[:-1], start[-1] // n), tuple(split))
        for inner in _indexed(digits, tuple(outer)):
            yield inner.of(*range(1, len(inner.start)), 0)


def _cut_at_carry(box: Box, low: int, spans: Sequence[int], n: int) -> list[Box]:
    """Cut one loop of a box whose lowest index runs over its end."""
    k = max(range(len(spans)), key=spans.__getitem__)
    extent, step = box.loops[k]
    rest = step[-1] % n
    period, others = n // gcd(rest, n), sum(spans) - spans[k]
    if extent > period:
        return [*periods(box, k, period)]
    first = (n - 1 - low - others) // rest + 1  # steps before any element carries
    if not 0 < first < extent:
        first = -((low - n) // rest)  # steps from which on all carry
    if not 0 < first < extent:
        first = extent // 2
    return parts(box, k, [0, first, extent])


def parts(box: Box, k: int, cuts: Sequence[int]) -> list[Box]:
    """Cut a box along one loop."""
    step = box.loops[k][1]
    found = []
    for a, b in pairwise(cuts):
        loop = ((b - a, step),) if b - a > 1 else ()
        loops = (*box.loops[:k], *loop, *box.loops[k + 1 :])
        found.append(Box(box.tag, _plus(box.start, step, a), loops))
    return found


def periods(box: Box, k: int, period: int) -> Iterator[Box]:
    """Cut a box into one that goes through whole periods of a loop, and one of the rest."""
    extent, step = box.loops[k]
    times, rest = divmod(extent, period)
    for whole in parts(box, k, [0, times * period]):
        outer = (times, tuple([period * s for s in step]))
        inner = ((period, step),) if period > 1 else ()
        loops = (*box.loops[:k], *inner, *box.loops[k + 1 :])
        yield Box(whole.tag, whole.start, (*loops, outer) if times > 1 else loops)
    if rest:
        yield from parts(box, k, [times * period, extent])


def _plus(start: tuple[int, ...], step: tuple[int, ...], times: int) -> tuple[int, ...]:
    return tuple([a + times * s for a, s in zip(start, step, strict=True)])


def decided(boxes: Iterable[Box]) -> list[Box]:
    """Cut boxes ``(element, where, where)`` of equal tags until both are the same, or differ."""
    found, todo = [], list(boxes)
    while todo:
        box = todo.pop()
        gaps = [(n, s[1] - s[2]) for n, s in box.loops]
        gap = Box((), (box.start[1] - box.start[2],), tuple([(n, (s,)) for n, s in gaps]))
        low, high = gap.ends(0)
        common = gcd(*[s for _, s in gaps])
        equal = low == high == 0
        unlike = low > 0 or high < 0 or (common and gap.start[0] % common)
        if box.tag[:2] != box.tag[2:] or equal or unlike:
            found.append(box)
            if len(found) > MOST:
                raise SizeError(f"a certificate needs more than {MOST:,} boxes for one pair")
        else:
            k = max(range(len(gaps)), key=lambda k: abs(gaps[k][1]) * (gaps[k][0] - 1))
            todo += parts(box, k, [0, gaps[k][0] // 2, gaps[k][0]])
    return found


def cut(boxes: Iterable[Box], kept: Sequence[Any]) -> tuple[list[Box], list[Box]]:
    """Cut boxes of indices so that each is kept whole, or not at all.

    Parameters
    ----------
    kept
        The indices of each dimension that are kept; the last quantities of boxes are such.

    Returns
    -------
    tuple
        Those that are kept, and those that are not.
    """
    inner, outer = list(boxes), []
    for d, own in enumerate(kept):
        q = d - len(kept)
        todo, inner = inner, []
        while todo:
            box = todo.pop()
            if not _meets(box, q, own):
                outer.append(box)
            elif _straight(box, q, own):
                inner.append(box)
            else:
                todo += _smaller(box, q, own)
            if len(inner) + len(outer) + len(todo) > MOST:
                raise SizeError(f"a certificate needs more than {MOST:,} boxes for one tensor")
    return inner, outer


def _meets(box: Box, q: int, kept: Any) -> bool:
    """Return whether some index of a box may be kept."""
    if not len(kept):
        return False
    low, high = _ends(box, q)
    if isinstance(kept, range):
        common = gcd(kept.step, *[s[q] for _, s in box.loops])
        return high >= kept[0] and low <= kept[-1] and (low - kept[0]) % common == 0
    first, end = np.searchsorted(kept, [low, high + 1])
    return bool(first < end) and bool(np.isin(_values(box, q), kept[first:end]).any())


def _straight(box: Box, q: int, kept: Any) -> bool:
    """Return whether all indices of a box are kept, and follow each other as the box does."""
    low, high = _ends(box, q)
    if isinstance(kept, range):
        return low in kept and high in kept and all(s[q] % kept.step == 0 for _, s in box.loops)
    values = _values(box, q)
    ranks = np.searchsorted(kept, values)
    if (ranks == len(kept)).any() or (kept[ranks] != values).any():
        return False
    for axis in range(ranks.ndim):
        if (np.diff(ranks, axis=axis) != np.diff(ranks, axis=axis).flat[0]).any():
            return False
    return True


def _smaller(box: Box, q: int, kept: Any) -> Iterator[Box]:
    """Cut a box along the loop that moves an index furthest."""
    k = max(range(len(box.loops)), key=lambda k: abs(box.loops[k][1][q]) * (box.loops[k][0] - 1))
    extent, step = box.loops[k]
    low, high = _ends(box, q)
    if isinstance(kept, range):
        below, above = low < kept[0], high > kept[-1]
        odd = [k for k, (_, s) in enumerate(box.loops) if s[q] % kept.step]
        if odd and not (below or above):
            k = odd[0]
            extent, step = box.loops[k]
            period = kept.step // gcd(kept.step, step[q])
            if extent > period:
                yield from periods(box, k, period)
            else:
                yield from parts(box, k, range(extent + 1))
            return
        edge = kept[0] if below else kept[-1] + 1
        if step[q] < 0:  # from the last step whose index reaches the edge on, the next is below
            first = (box.start[q] - edge) // -step[q] + 1
        else:
            first = -((box.start[q] - edge) // step[q])
        yield from parts(box, k, [0, first if 0 < first < extent else extent // 2, extent])
        return
    alone = sum(1 for _, s in box.loops if s[q]) == 1
    if not alone:
        yield from parts(box, k, [0, extent // 2, extent])
        return
    values = box.start[q] + step[q] * np.arange(extent)
    ranks = np.searchsorted(kept, values)
    there = kept[np.minimum(ranks, len(kept) - 1)] == values
    turns = np.flatnonzero(there[1:] != there[:-1]) + 1
    bends = np.flatnonzero(there[2:] & there[1:-1] & there[:-2] & (np.diff(ranks, 2) != 0)) + 2
    cuts = np.unique([0, *turns, *bends, extent]).tolist()
    yield from parts(box, k, cuts if len(cuts) > 2 else [0, extent // 2, extent])


def _ends(box: Box, q: int) -> tuple[int, int]:
    return box.ends(q % len(box.start))


def _values(box: Box, q: int) -> Any:
    found = np.array(box.start[q])
    for n, s in box.loops:
        if s[q]:
            found = found[..., None] + s[q] * np.arange(n)
    return found
