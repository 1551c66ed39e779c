"""Boxes in normal form, which of them meet, and many of them written as few."""

from __future__ import annotations

import random
from math import prod

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.result import Index, Loop, outer_sum
from layoutopt.check.boxes import FEW as FEW_BOXES
from layoutopt.check.boxes import BoxIndex, CheckedBox, normal, unfolded
from layoutopt.check.equations import Equations
from layoutopt.check.flow import strides
from layoutopt.check.merging import merged
from tests.check.samples import cut

Elements = set[tuple[int, int, int]]


def both(box: CheckedBox) -> tuple[Index, Index]:
    """Return the flat elements there and here, in the order of the loops."""
    return (
        outer_sum([np.arange(n) * there for n, there, _ in box.loops], box.start),
        outer_sum([np.arange(n) * here for n, _, here in box.loops], box.to),
    )


def elements(boxes: list[CheckedBox]) -> list[tuple[int, int, int]]:
    """Return element here, label and element there of everything in boxes, in order of these."""
    found = []
    for box in boxes:
        there, here = both(box)
        found += [(int(t), box.label, int(f)) for f, t in zip(there, here, strict=True)]
    return sorted(found)


def test_normal() -> None:
    """Loops of one value go, negative ones turn round, and those that go on are joined."""
    for loops, expected in [
        ([], CheckedBox(7, 100, 100, ())),
        ([(1, 5, 9)], CheckedBox(7, 100, 100, ())),
        ([(2, 3, 3), (3, 1, 1)], CheckedBox(7, 100, 100, ((6, 1, 1),))),
        ([(2, 3, 6), (3, 1, 1)], CheckedBox(7, 100, 100, ((3, 1, 1), (2, 3, 6)))),
        ([(2, 6, 3), (3, 1, 1)], CheckedBox(7, 100, 100, ((3, 1, 1), (2, 6, 3)))),
        ([(3, 1, -1)], CheckedBox(7, 102, 98, ((3, -1, 1),))),
        ([(3, -1, -1), (2, 3, 3)], CheckedBox(7, 98, 98, ((6, 1, 1),))),
        ([(4, 0, 1), (2, 0, 4), (5, 0, 0)], CheckedBox(7, 100, 100, ((5, 0, 0), (8, 0, 1)))),
    ]:
        assert normal(7, 100, 100, loops) == expected


def test_turned() -> None:
    """Both sides change places, and twice is the same again."""
    box = CheckedBox(1, 2, 3, ((4, 5, 6),))
    assert box.turned == CheckedBox(1, 3, 2, ((4, 6, 5),))
    assert box.turned.turned == box
    assert box.elements == 4


@pytest.mark.parametrize("seed", range(40))
def test_no_meeting_is_missed(seed: int) -> None:
    """All boxes with a common element are near, and of long lists some others are not."""
    draw = random.Random(seed)
    shape = tuple(draw.choice([2, 3, 4, 5]) for _ in range(draw.randint(1, 3)))
    size = int(np.prod(shape))
    boxes = [
        normal(0, draw.randrange(size), first, [(n, 0, step)])
        for first, n, step in cut(draw, size, pieces=0.8)
    ]
    places = BoxIndex(boxes, shape, Equations(10**6))
    far = 0
    for box in boxes + [normal(0, 0, 0, [(size, 1, 1)])]:
        here = set(both(box)[1].tolist())
        near = places.near(box)
        assert {b for b in boxes if here & set(both(b)[1].tolist())} <= set(near)
        far += len(boxes) - len(near)
    assert far > 0 or len(boxes) < 20


def random_box(draw: random.Random, here: tuple[int, ...], there: tuple[int, ...]) -> CheckedBox:
    """Return a box of up to three loops of either direction, inside tensors of two shapes."""
    loops: list[Loop] = []
    ends = []
    walks: list[list[int]] = []
    extents = [draw.choice([1, 2, 2, 3, 4]) for _ in range(draw.randint(0, 3))]
    for shape in (there, here):
        size, low, high = prod(shape), 0, 0
        walks.append([])
        for n in extents:
            step = draw.choice([0, 1, draw.randint(1, size), *strides(shape)])
            step *= draw.choice([1, 1, 2, 3])
            step *= draw.choice([1, 1, -1])
            step = step if high - low + abs(step) * (n - 1) < size else 0
            low, high = low + min(0, step * (n - 1)), high + max(0, step * (n - 1))
            walks[-1].append(step)
        ends.append(draw.randint(-low, size - 1 - high))
    loops = list(zip(extents, *walks, strict=True))
    return CheckedBox(0, *ends, tuple(loops))


@pytest.mark.parametrize("seed", range(12))
def test_no_meeting_of_any_loops_is_missed(seed: int) -> None:
    """Of boxes of any loops, those with a common element are near, by one side and by both."""
    draw = random.Random(seed)
    far = 0
    for _ in range(20):
        here, there = (
            tuple(draw.choice([1, 2, 3, 4, 6]) for _ in range(draw.randint(1, 3))) for _ in range(2)
        )
        boxes = [normal(*random_box(draw, here, there)) for _ in range(FEW_BOXES + 4)]
        asked = boxes[:4] + [random_box(draw, here, there) for _ in range(9)]
        by_one, by_both = (BoxIndex(boxes, here, Equations(99), o) for o in (None, there))
        held = [set(elements([box])) for box in boxes]
        for box in asked:
            own = set(elements([box]))
            near = by_both.near(box)
            assert all(other in near for other, e in zip(boxes, held, strict=True) if own & e)
            mine, near = {to for to, _, _ in own}, by_one.near(box)
            met = [not mine.isdisjoint(to for to, _, _ in e) for e in held]
            assert all(other in near for other, meets in zip(boxes, met, strict=True) if meets)
            far += len(boxes) - len(near)
    assert far > 100


def test_near_by_both_sides() -> None:
    """With the origin's shape, boxes that lie in other rows there are not near."""
    boxes = [CheckedBox(0, 10 * k, 10 * k, ((10, 1, 1),)) for k in range(10)]
    column = CheckedBox(0, 30, 4, ((10, 1, 10),))  # row 3 there, column 4 here
    assert len(BoxIndex(boxes, (10, 10), Equations(9)).near(column)) == 10
    assert BoxIndex(boxes, (10, 10), Equations(9), (10, 10)).near(column) == [boxes[3]]


def test_comparing_is_counted() -> None:
    """Looking through long lists takes steps."""
    boxes = [CheckedBox(0, 0, k, ((2, 0, 10**6),)) for k in range(20_000)]
    places = BoxIndex(boxes, (2 * 10**6,), Equations(10))
    with pytest.raises(SizeError):
        for box in boxes[:10]:
            places.near(box)


RUN = [(1, 1, 1), (5, 1, 1)]

FEW: dict[str, tuple[list[tuple[int, int, int, list[Loop]]], int]] = {
    "one after the other": ([(0, 5, 0, [(3, 1, 1)]), (0, 8, 3, [(4, 1, 1)])], 1),
    "other labels": ([(0, 5, 0, [(3, 1, 1)]), (1, 8, 3, [(4, 1, 1)])], 2),
    "other places there": ([(0, 5, 0, [(3, 1, 1)]), (0, 9, 3, [(4, 1, 1)])], 2),
    "other steps there": ([(0, 5, 0, [(3, 1, 1)]), (0, 8, 3, [(4, 2, 1)])], 2),
    "halves of rows": ([(0, 0, 0, [(4, 6, 6), (2, 1, 1)]), (0, 2, 2, [(4, 6, 6), (4, 1, 1)])], 1),
    "rows at one distance": ([(0, 9 * k, 5 * k, [(3, 1, 1)]) for k in range(4)], 1),
    "rows of other steps there": ([(0, 9 * k, 5 * k, [(3, k, 1)]) for k in range(4)], 4),
    "two rows": ([(0, 9 * k, 5 * k, [(3, 1, 1)]) for k in range(2)], 2),
    "a single element first": ([(0, 0, 0, []), (0, 1, 1, [(6, 1, 1)])], 1),
    "a single element last": ([(0, 6, 6, []), (0, 0, 0, [(6, 1, 1)])], 1),
    "single elements": ([(0, 3 * k, 2 * k, []) for k in range(9)], 1),
    "reversed": ([(0, 9 - k, k, []) for k in range(9)], 1),
    "something beside rows": (
        [(0, 9 * k, 5 * k, [(3, 1, 1)]) for k in range(4)] + [(0, 90, 90, [(2, 1, 1)])],
        2,
    ),
    "something before rows": (
        [(0, 0, 0, [(3, 1, 1)])] + [(0, 50 + 9 * k, 50 + 5 * k, [(3, 1, 1)]) for k in range(3)],
        2,
    ),
    "squares that grow": (
        [(0, 999 * k, 999 * k, [(k + 2, 1, 1), (k + 2, 20, 20)]) for k in range(16)],
        16,
    ),
    "a triangle without its tip": ([(0, 16 * k, 16 * k, [(k + 2, 1, 1)]) for k in range(15)], 8),
    "a triangle of 16 rows": ([(0, 16 * k, 16 * k, [(k + 1, 1, 1)]) for k in range(16)], 5),
    "a triangle upside down": ([(0, 17 * k, 17 * k, [(16 - k, 1, 1)]) for k in range(16)], 5),
    "a trapezium": ([(0, 90 * k, 90 * k, [(40 - 2 * k, 1, 1)]) for k in range(16)], 8),
    "a triangle of columns of blocks": (
        [(0, 16 * k, k, [(k + 1, 1, 20), (3, 500, 500)]) for k in range(16)],
        5,
    ),
}


@pytest.mark.parametrize("name", FEW)
def test_merged_by_hand(name: str) -> None:
    """Boxes that continue each other, or follow each other at equal steps, become few."""
    written, count = FEW[name]
    boxes = [normal(*box) for box in written]
    found = merged(boxes[::-1], Equations(10**4))
    assert len(found) <= count
    assert elements(found) == elements(boxes)


@pytest.mark.parametrize("seed", range(60))
def test_merged_elements_stay(seed: int) -> None:
    """Cut in random runs, any boxes hold the same elements when merged, and are no more."""
    draw = random.Random(seed)
    size = draw.randint(1, 90)
    origin = [draw.choice([0, 0, 0, 1]) for _ in range(3)]
    slope = [draw.choice([0, 1, 1, 2, -1]) for _ in range(3)]
    boxes = []
    for first, n, step in cut(draw, size, pieces=draw.random()):
        k = draw.choice([0, 0, 0, 1, 2])
        at = 500 + slope[k] * first
        boxes.append(normal(origin[k], at, first, [(n, slope[k] * step, step)]))
    found = merged(boxes, Equations(10**5))
    assert elements(found) == elements(boxes)
    assert len(found) <= len(boxes)
    assert [box.to for box in found] == sorted(box.to for box in found)


def test_merging_is_counted() -> None:
    """Looking through many boxes takes steps, also where none can be merged."""
    boxes = [CheckedBox(0, 0, k * k, ()) for k in range(1000)]
    assert len(merged(boxes, Equations(1000))) == 1000
    with pytest.raises(SizeError):
        merged(boxes, Equations(100))


def test_merging_triangles_of_any_size() -> None:
    """Rows of a triangle of a billion elements are told by about two boxes for each bit."""
    n = 45_000
    rows = [normal(0, n * k, n * k, [(k + 1, 1, 1)]) for k in range(n)]
    found = merged(rows, Equations(10**5))
    assert sum(box.elements for box in found) == n * (n + 1) // 2
    assert len(found) < 40


def test_unfolded_boxes() -> None:
    """Parts of a box without its jumps hold the same elements, at the same places."""
    draw = random.Random(7)
    jumps = 0
    for _ in range(300):
        shape = tuple(draw.randint(1, 6) for _ in range(3))
        loops = tuple(
            (draw.randint(1, 5), draw.randint(-3, 3), draw.randint(-40, 40)) for _ in range(3)
        )
        box = CheckedBox(4, 9, 100, loops)
        parts = unfolded(box, shape)
        jumps += len(parts) > 1
        assert sorted(elements(parts)) == sorted(elements([box]))
    assert jumps > 50
