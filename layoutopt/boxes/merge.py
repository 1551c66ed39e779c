"""Many boxes written as few: lists of boxes, and arrays of where elements come from.

The first elements of boxes that are merged are in a table, by which those are found that continue
others; arrays are folded, column by column, for boxes that follow each other evenly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.result import Index, Loop
from layoutopt.boxes.box import Box, canonical
from layoutopt.boxes.equation import Equations, Term

MANY = 20_000
"""So many boxes are not folded."""

BOXES_PER_STEP = 4
"""How many boxes are looked through in the time of one step."""


def merged(boxes: Iterable[Box], equations: Equations) -> list[Box]:
    """Return the same elements in fewer boxes, ordered by their first element.

    Two boxes become one where one continues a loop of the other.  Three or more become one, or
    a few, where they follow each other at equal distances and grow or shrink by equal numbers.
    Where boxes have elements in common, all of them come again as often.  Of boxes that come to
    begin at the same element one is lost.
    """
    found = sorted(boxes, key=lambda box: box.to)
    before = len(found) + 1
    while 1 < len(found) < before:
        before = len(found)
        equations.spend(before // BOXES_PER_STEP)
        found = _in_rows(_end_to_end(found), equations)
    return found


def _end_to_end(boxes: Sequence[Box]) -> list[Box]:
    at = {box.to: box for box in boxes}
    for to in [box.to for box in boxes]:
        box = at.get(to)
        while box is not None:
            box = _continued(box, at)
    return [at[to] for to in sorted(at)]


def _continued(box: Box, at: dict[int, Box]) -> Box | None:
    """Join a box with one that continues a loop of it, in the table, and return both."""
    label, start, to, loops = box
    for k, (n, there, here) in enumerate(loops):
        rest = loops[:k] + loops[k + 1 :]
        after = at.get(to + n * here) if here else None
        if after is not None and after[:2] == (label, start + n * there):
            more = _extent(after.loops, rest, k, there, here)
            if more:
                return _replaced(at, box, after, (*rest, (n + more, there, here)))
        ahead = at.get(to - here)
        if ahead is not None and ahead == (label, start - there, to - here, rest):
            return _replaced(at, ahead, box, (*rest, (n + 1, there, here)))
    return None


def _extent(loops: tuple[Loop, ...], rest: tuple[Loop, ...], k: int, there: int, here: int) -> int:
    """Return the extent of loop ``k`` if loops are the rest and that loop, else 0."""
    if loops == rest:
        return 1
    if len(loops) != len(rest) + 1 or loops[:k] + loops[k + 1 :] != rest:
        return 0
    return loops[k][0] if loops[k][1:] == (there, here) else 0


def _replaced(at: dict[int, Box], first: Box, second: Box, loops: Iterable[Loop]) -> Box:
    del at[second.to]
    at[first.to] = canonical(first.label, first.start, first.to, loops)
    return at[first.to]


def _in_rows(boxes: Iterable[Box], equations: Equations) -> list[Box]:
    """Join runs of boxes that follow each other and grow at equal steps."""
    alike: dict[tuple[int, tuple[tuple[int, int], ...]], list[Box]] = defaultdict(list)
    for box in boxes:
        alike[box.label, tuple([(there, here) for _, there, here in box.loops])].append(box)
    free = {box.to: box for box in boxes}
    found: list[Box] = []
    for key in sorted(alike, key=lambda key: -len(key[1])):  # ends have one loop less
        for run in _runs([box for box in alike[key] if box.to in free]):
            found += _row(run, free, equations)
    return sorted(found, key=lambda box: box.to)


def _runs(boxes: Iterable[Box]) -> Iterator[list[Box]]:
    """Yield boxes in runs of equal steps from each to the next."""
    run: list[Box] = []
    for box in boxes:
        if len(run) > 1 and _step(run[-1], box) != _step(run[0], run[1]):
            cut = 1 if len(run) == 2 else len(run)  # the second may begin a run with this one
            yield run[:cut]
            run = run[cut:]
        run.append(box)
    if run:
        yield run


def _step(a: Box, b: Box) -> tuple[int, int, tuple[int, ...]]:
    """Return how much further the start is, here and there, and by how much all loops grow."""
    growth = tuple([n - m for (m, _, _), (n, _, _) in zip(a.loops, b.loops, strict=True)])
    return b.start - a.start, b.to - a.to, growth


def _row(run: list[Box], free: dict[int, Box], equations: Equations) -> Sequence[Box]:
    """Return a run in as few boxes as possible: one if they are alike, some if one loop grows.

    They are taken from the free boxes.
    """
    there, here, growth = _step(run[0], run[1]) if len(run) > 2 else (0, 0, ())
    grows = [k for k, more in enumerate(growth) if more]
    if len(grows) == 1:
        run = _with_ends(run, grows[0], free)
    for box in run:
        free.pop(box.to, None)
    if len(run) < 3 or len(grows) > 1:
        return run
    if not grows:
        return [canonical(*run[0][:3], (*run[0].loops, (len(run), there, here)))]
    found = _staircase(run, grows[0], equations)
    return found if len(found) < len(run) else run


def _with_ends(run: list[Box], k: int, free: dict[int, Box]) -> list[Box]:
    """Return a run whose loop ``k`` grows, with the boxes at its ends where that is no loop."""
    there, here, growth = _step(run[0], run[1])
    before: list[Box] = []
    after: list[Box] = []
    for box, sign, ends in ((run[0], -1, before), (run[-1], 1, after)):
        label, start, to, loops = box
        if loops[k][0] + sign * growth[k] == 1:
            rest = loops[:k] + loops[k + 1 :]
            end = Box(label, start + sign * there, to + sign * here, rest)
            ends += [end] if free.get(end.to) == end else []
    return [*before, *run, *after]


def _staircase(run: Sequence[Box], k: int, equations: Equations) -> list[Box]:
    """Return a run whose loop ``k`` grows in few boxes.

    In box ``x`` of it, ``i + rest = n + growth * x - 1`` for the index ``i`` of that loop, and
    ``rest`` may be anything from 0 on.
    """
    label, start, to, loops = run[1]
    there, here, growth = _step(run[1], run[2])
    n, *step = loops[k]
    first = n - growth[k]
    most = max(first, first + growth[k] * (len(run) - 1))
    terms = (
        Term(-growth[k], len(run), (there, here)),
        Term(1, most, tuple(step)),
        Term(1, most, (0, 0)),
    )
    found = []
    for (ahead, further), inner in equations.solve(terms, first - 1, 2):
        start, to = run[0].start + ahead, run[0].to + further
        both = [(m, there, here) for m, (there, here) in inner]
        found.append(canonical(label, start, to, (*both, *loops[:k], *loops[k + 1 :])))
    return found


def boxes_of(origin: Index, start: Index) -> list[Box]:
    """Write an array of origins, tensor and flat element, as boxes that cover each position once.

    Positions that follow each other with constant strides become a loop; equal loops that
    follow each other with constant strides become a loop of loops; and so on while that
    makes fewer boxes.
    """
    to = np.arange(len(origin), dtype=start.dtype)
    if (origin[1:] < origin[:-1]).any():
        to = np.argsort(origin, kind="stable")
        origin, start = origin[to], start[to]
    items = _Columns(origin, start, to, np.zeros((len(to), 0, 3), np.int64))
    return sorted(_folded(items), key=lambda box: box.to)


def folded(boxes: Sequence[Box]) -> list[Box]:
    """Return the same elements in fewer boxes, ordered by their first element.

    In place of rows of growing boxes, as :func:`merged` joins, these are any two or more boxes
    that are alike and follow each other at equal distances.  Very many boxes are left as they are.
    """
    found = [canonical(*box) for box in boxes]
    before = len(found) + 1 if len(found) <= MANY else 0
    while len(found) < before:
        before = len(found)
        depths: dict[int, list[Box]] = defaultdict(list)
        for box in _end_to_end(found):
            depths[len(box.loops)].append(box)
        found = [canonical(*box) for alike in depths.values() for box in _at_one_depth(alike)]
    found = [box._replace(loops=_plain(box.loops[::-1])) for box in found]
    return sorted(found, key=lambda box: box.to)


def _at_one_depth(boxes: Sequence[Box]) -> list[Box]:
    """Fold boxes with equally many loops."""
    origin, start, to = np.array([(b.label, b.start, b.to) for b in boxes], np.int64).T
    loops = np.array([b.loops for b in boxes], np.int64).reshape(len(boxes), len(boxes[0].loops), 3)
    order = np.lexsort((to, *loops.reshape(len(boxes), -1).T, origin))
    return _folded(_Columns(origin[order], start[order], to[order], loops[order]))


@dataclass(eq=False)
class _Columns:
    """Boxes of one depth, as columns: loops have shape ``(items, depth, 3)``."""

    label: Index
    start: Index
    to: Index
    loops: Index


def _folded(items: _Columns) -> list[Box]:
    while len(items.to) > 1:
        joined = _joined_columns(items)
        if len(joined.to) == len(items.to):
            break
        items = joined
    return [
        Box(int(o), int(s), int(t), _plain(loops))
        for o, s, t, loops in zip(
            items.label, items.start, items.to, items.loops.tolist(), strict=True
        )
    ]


def _plain(loops: Iterable[Sequence[int]]) -> tuple[Loop, ...]:
    """Return loops as pieces have them: without those of extent 1, but one at least."""
    kept = tuple((n, f, t) for n, f, t in loops if n > 1)
    return kept or ((1, 1, 1),)


def _joined_columns(items: _Columns) -> _Columns:
    """Join runs of neighbouring boxes into one box with one more loop each."""
    first, length = _column_runs(items)
    many = length > 1
    after = np.where(many, first + 1, first)
    outer = np.stack(
        [length, items.start[after] - items.start[first], items.to[after] - items.to[first]], axis=1
    )
    loops = np.concatenate([outer[:, None, :], items.loops[first]], axis=1)
    return _Columns(items.label[first], items.start[first], items.to[first], loops)


def _column_runs(items: _Columns) -> tuple[Index, Index]:
    """Return first member and length of runs with one origin, equal loops and equal steps.

    Taken greedily from the left.  A *link* joins two neighbours; equal links next to each
    other form a *block*, which becomes a run.  Where one run ends, the link to the next box
    is lost.  So a block of one link is lost exactly if a run ends at its left.
    """
    fits = items.label[1:] == items.label[:-1]
    fits &= (items.loops[1:] == items.loops[:-1]).all(axis=(1, 2))
    turn = ~fits[1:] | ~fits[:-1]
    for place in (items.start, items.to):
        step = np.diff(place)
        turn |= step[1:] != step[:-1]
    opens = np.flatnonzero(np.r_[True, turn])
    links = np.diff(np.r_[opens, len(fits)])
    makes = _makes_run(links, fits[opens])
    late = np.r_[False, makes[:-1]] & makes  # the run before took the first link's left end
    first = opens[makes] + late[makes]
    length = links[makes] + 1 - late[makes]
    edge = np.zeros(len(items.to) + 1, np.int8)
    edge[first] += 1
    edge[first + length] -= 1
    alone = np.flatnonzero(np.cumsum(edge[:-1], dtype=np.int8) == 0)
    firsts = np.concatenate([first, alone])
    order = np.argsort(firsts)
    return firsts[order], np.concatenate([length, np.ones(len(alone), np.int64)])[order]


def _makes_run(links: Index, fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which blocks become runs: long ones do, every other one of short ones does."""
    sure = fits & (links > 1)
    settled = sure | ~fits
    number = np.arange(len(links))
    last = np.maximum.accumulate(np.where(settled, number, -1))
    odd = (number - last) % 2 == 1
    after_run = np.where(last >= 0, sure[last], False)
    return np.asarray(sure | (~settled & (odd != after_run)))
