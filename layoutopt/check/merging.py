"""Many boxes written as few."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from layoutopt.base.result import Loop
from layoutopt.check.boxes import CheckedBox, normal
from layoutopt.check.equations import Equations
from layoutopt.check.terms import Term

Walk: TypeAlias = tuple[tuple[int, int], ...]

BOXES_PER_STEP = 4
"""How many boxes are looked through in the time of one step."""


def merged(boxes: Iterable[CheckedBox], equations: Equations) -> list[CheckedBox]:
    """Return the same elements in fewer boxes, ordered by their first element.

    Two boxes become one where one continues a loop of the other.  Three or more become one, or
    a few, where they follow each other at equal distances and grow or shrink by equal numbers.
    Where boxes have elements in common, all of them come again as often.

    Parameters
    ----------
    boxes
        Boxes that begin at different elements; of those that come to begin at one, one is lost.
    equations
        What solves equations, and says how many may be solved.
    """
    found = sorted(boxes, key=lambda box: box.to)
    before = len(found) + 1
    while 1 < len(found) < before:
        before = len(found)
        equations.spend(before // BOXES_PER_STEP)
        found = _in_rows(_end_to_end(found), equations)
    return found


def _end_to_end(boxes: Sequence[CheckedBox]) -> list[CheckedBox]:
    at = {box.to: box for box in boxes}
    for to in [box.to for box in boxes]:
        box = at.get(to)
        while box is not None:
            box = _continued(box, at)
    return [at[to] for to in sorted(at)]


def _continued(box: CheckedBox, at: dict[int, CheckedBox]) -> CheckedBox | None:
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


def _replaced(
    at: dict[int, CheckedBox], first: CheckedBox, second: CheckedBox, loops: Iterable[Loop]
) -> CheckedBox:
    del at[second.to]
    at[first.to] = normal(first.label, first.start, first.to, loops)
    return at[first.to]


def _in_rows(boxes: Iterable[CheckedBox], equations: Equations) -> list[CheckedBox]:
    """Join runs of boxes that follow each other and grow at equal steps."""
    alike: dict[tuple[int, Walk], list[CheckedBox]] = defaultdict(list)
    for box in boxes:
        alike[box.label, tuple([loop[1:] for loop in box.loops])].append(box)
    free = {box.to: box for box in boxes}
    found: list[CheckedBox] = []
    for key in sorted(alike, key=lambda key: -len(key[1])):  # ends have one loop less
        for run in _runs([box for box in alike[key] if box.to in free]):
            found += _row(run, free, equations)
    return sorted(found, key=lambda box: box.to)


def _runs(boxes: Iterable[CheckedBox]) -> Iterator[list[CheckedBox]]:
    """Yield boxes in runs of equal steps from each to the next."""
    run: list[CheckedBox] = []
    for box in boxes:
        if len(run) > 1 and _step(run[-1], box) != _step(run[0], run[1]):
            cut = 1 if len(run) == 2 else len(run)  # the second may begin a run with this one
            yield run[:cut]
            run = run[cut:]
        run.append(box)
    if run:
        yield run


def _step(a: CheckedBox, b: CheckedBox) -> tuple[int, int, tuple[int, ...]]:
    """Return how much further the start is, here and there, and by how much all loops grow."""
    growth = tuple([n - m for (m, _, _), (n, _, _) in zip(a.loops, b.loops, strict=True)])
    return b.start - a.start, b.to - a.to, growth


def _row(
    run: list[CheckedBox], free: dict[int, CheckedBox], equations: Equations
) -> Sequence[CheckedBox]:
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
        return [normal(*run[0][:3], (*run[0].loops, (len(run), there, here)))]
    found = _staircase(run, grows[0], equations)
    return found if len(found) < len(run) else run


def _with_ends(run: list[CheckedBox], k: int, free: dict[int, CheckedBox]) -> list[CheckedBox]:
    """Return a run whose loop ``k`` grows, with the boxes at its ends where that is no loop."""
    there, here, growth = _step(run[0], run[1])
    before: list[CheckedBox] = []
    after: list[CheckedBox] = []
    for box, sign, ends in ((run[0], -1, before), (run[-1], 1, after)):
        label, start, to, loops = box
        if loops[k][0] + sign * growth[k] == 1:
            rest = loops[:k] + loops[k + 1 :]
            end = CheckedBox(label, start + sign * there, to + sign * here, rest)
            ends += [end] if free.get(end.to) == end else []
    return [*before, *run, *after]


def _staircase(run: Sequence[CheckedBox], k: int, equations: Equations) -> list[CheckedBox]:
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
        found.append(normal(label, start, to, (*both, *loops[:k], *loops[k + 1 :])))
    return found
