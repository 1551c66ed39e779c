"""Many boxes as few, with the same elements."""

from __future__ import annotations

import random

import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.result import Loop
from layoutopt.boxes.box import Box, canonical
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.merge import folded, merged
from tests.boxes.listing import elements
from tests.check.samples import cut

BY_HAND: dict[str, tuple[list[tuple[int, int, int, list[Loop]]], int]] = {
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


@pytest.mark.parametrize("name", BY_HAND)
def test_merged_by_hand(name: str) -> None:
    """Boxes that continue each other, or follow each other at equal steps, become few."""
    written, count = BY_HAND[name]
    boxes = [canonical(*box) for box in written]
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
        boxes.append(canonical(origin[k], at, first, [(n, slope[k] * step, step)]))
    for found in merged(boxes, Equations(10**5)), folded(boxes):
        assert elements(found) == elements(boxes)
        assert len(found) <= len(boxes)
        assert [box.to for box in found] == sorted(box.to for box in found)


def test_merging_is_counted() -> None:
    """Looking through many boxes takes steps, also where none can be merged."""
    boxes = [Box(0, 0, k * k, ()) for k in range(1000)]
    assert len(merged(boxes, Equations(1000))) == 1000
    with pytest.raises(SizeError):
        merged(boxes, Equations(100))


def test_merging_triangles_of_any_size() -> None:
    """Rows of a triangle of a billion elements are told by about two boxes for each bit."""
    n = 45_000
    rows = [canonical(0, n * k, n * k, [(k + 1, 1, 1)]) for k in range(n)]
    found = merged(rows, Equations(10**5))
    assert sum(box.elements for box in found) == n * (n + 1) // 2
    assert len(found) < 40
