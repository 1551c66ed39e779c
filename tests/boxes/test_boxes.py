"""Strided boxes held against lists of elements: algebra, folding, merging, joins, covers."""

from __future__ import annotations

import random
from collections import Counter
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from layoutopt.base import result
from layoutopt.base.errors import SizeError
from layoutopt.base.result import Loop, Piece
from layoutopt.boxes.box import Box, VectorBox, canonical, unfolded
from layoutopt.boxes.cover import cover
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.join import FEW, BoxIndex, common, image, join_on
from layoutopt.boxes.merge import boxes_of, folded, merged
from tests.boxes.listing import elements, members, random_box, random_shape
from tests.check.samples import cut

# Boxes of one and of several quantities, written otherwise


@pytest.mark.parametrize("seed", range(20))
def test_same_elements(seed: int) -> None:
    """In canonical form, inverted, unfolded and as vectors, boxes hold the elements they held."""
    draw = random.Random(seed)
    for _ in range(30):
        here, there = random_shape(draw), random_shape(draw)
        box = random_box(draw, here, there)
        expected = elements([box])
        plain = canonical(*box)
        assert elements([plain]) == elements(unfolded(box, here)) == expected
        assert canonical(*plain) == plain
        assert all(n > 1 and step >= 0 for n, _, step in plain.loops)
        assert sorted((to, k, at) for at, k, to in elements([box.inverse])) == expected
        pairs = sorted((to, box.label, at) for to, at in members([box.vectors]).elements())
        assert pairs == expected
        assert sorted(members([box.places]).elements()) == [(to,) for to, _, _ in expected]
        assert box.elements == box.vectors.members == len(expected)


def test_unfolded_boxes() -> None:
    """Parts of a box without its jumps hold the same elements, at the same places."""
    draw = random.Random(7)
    jumps = 0
    for _ in range(300):
        shape = tuple(draw.randint(1, 6) for _ in range(3))
        loops = tuple(
            (draw.randint(1, 5), draw.randint(-3, 3), draw.randint(-40, 40)) for _ in range(3)
        )
        box = Box(4, 9, 100, loops)
        parts = unfolded(box, shape)
        jumps += len(parts) > 1
        assert sorted(elements(parts)) == sorted(elements([box]))
    assert jumps > 50


# Boxes: arrays of origins as few strided loops, and exactly those arrays


Ints = NDArray[np.int64]


def compared(origin: Ints, start: Ints) -> list[Box]:
    """Return the boxes of arrays, after comparing what they say with the arrays."""
    found = boxes_of(origin, start)
    expected = zip(range(len(origin)), origin.tolist(), start.tolist(), strict=True)
    assert elements(found) == list(expected)
    assert [box.to for box in found] == sorted(box.to for box in found)
    return found


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=40))
def test_any_array(entries: list[tuple[int, int]]) -> None:
    """Whatever the origins are, boxes give them back."""
    table = np.array(entries, np.int64).reshape(-1, 2)
    found = compared(table[:, 0], table[:, 1])
    assert len(found) <= len(entries)


def test_random_walks() -> None:
    """Arrays made of runs with random strides and jumps, as layouts mostly are."""
    for seed in range(300):
        draw = random.Random(seed)
        origin: list[int] = []
        start: list[int] = []
        while len(origin) < 60:
            first, step = draw.randint(0, 50), draw.choice([-2, -1, 0, 1, 1, 3])
            for i in range(draw.randint(1, 7)):
                origin.append(draw.choice([0, 0, 1]) if seed % 3 == 0 else 0)
                start.append(first + step * i)
        compared(np.array(origin), np.array(start))


def test_few_boxes_for_large_arrays() -> None:
    """A million elements in a 4-dimensional transpose take one box, not many passes."""
    x = np.arange(2**20).reshape(32, 32, 32, 32).transpose(3, 0, 2, 1).reshape(-1)
    [box] = boxes_of(np.zeros_like(x), x)
    extents = [extent for extent, _, _ in box.loops]
    assert np.prod(extents) == 2**20


# Many boxes as few, with the same elements


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


# Which boxes meet, and what they have in common, against lists of their elements


@pytest.mark.parametrize("seed", range(40))
def test_no_meeting_is_missed(seed: int) -> None:
    """All boxes with a common element are near, and of long lists some others are not."""
    draw = random.Random(seed)
    shape = tuple(draw.choice([2, 3, 4, 5]) for _ in range(draw.randint(1, 3)))
    size = int(np.prod(shape))
    boxes = [
        canonical(0, draw.randrange(size), first, [(n, 0, step)])
        for first, n, step in cut(draw, size, pieces=0.8)
    ]
    places = BoxIndex(boxes, shape, Equations(10**6))
    far = 0
    for box in boxes + [canonical(0, 0, 0, [(size, 1, 1)])]:
        here = members([box.places]).keys()
        near = places.near(box)
        assert {b for b in boxes if here & members([b.places]).keys()} <= set(near)
        far += len(boxes) - len(near)
    assert far > 0 or len(boxes) < 20


@pytest.mark.parametrize("seed", range(12))
def test_no_meeting_of_any_loops_is_missed(seed: int) -> None:
    """Of boxes of any loops, those with a common element are near, by one side and by both."""
    draw = random.Random(seed)
    far = 0
    for _ in range(20):
        here, there = random_shape(draw), random_shape(draw)
        boxes = [
            canonical(*random_box(draw, here, there))._replace(label=0) for _ in range(FEW + 4)
        ]
        asked = boxes[:4] + [random_box(draw, here, there)._replace(label=0) for _ in range(9)]
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
    boxes = [Box(0, 10 * k, 10 * k, ((10, 1, 1),)) for k in range(10)]
    column = Box(0, 30, 4, ((10, 1, 10),))  # row 3 there, column 4 here
    assert len(BoxIndex(boxes, (10, 10), Equations(9)).near(column)) == 10
    assert BoxIndex(boxes, (10, 10), Equations(9), (10, 10)).near(column) == [boxes[3]]


def test_comparing_is_counted() -> None:
    """Looking through long lists takes steps."""
    boxes = [Box(0, 0, k, ((2, 0, 10**6),)) for k in range(20_000)]
    places = BoxIndex(boxes, (2 * 10**6,), Equations(10))
    with pytest.raises(SizeError):
        for box in boxes[:10]:
            places.near(box)


@pytest.mark.parametrize("seed", range(20))
def test_common(seed: int) -> None:
    """What two boxes have in common, once for each pair of their members."""
    draw, met = random.Random(seed), 0
    for _ in range(20):
        here = random_shape(draw)
        one, two = (random_box(draw, here, random_shape(draw)) for _ in range(2))
        expected = Counter(
            (a, b) for to, _, a in elements([one]) for at, _, b in elements([two]) if to == at
        )
        assert members(common(one, two, Equations(10**5))) == expected
        met += expected.total() > 1
    assert met > 3


@pytest.mark.parametrize("seed", range(20))
def test_image(seed: int) -> None:
    """What moves lies where the elements that it comes from do, in whichever boxes these are."""
    draw, moved = random.Random(seed), 0
    for _ in range(10):
        here, middle, there = (random_shape(draw) for _ in range(3))
        move = random_box(draw, here, middle)
        boxes = [canonical(*random_box(draw, middle, there)) for _ in range(2 * FEW)]
        expected = sorted(
            (to, label, start)
            for to, _, at in elements([move])
            for place, label, start in elements(boxes)
            if place == at
        )
        places = BoxIndex(boxes, middle, Equations(10**5))
        assert elements(image(move, places, Equations(10**5))) == expected
        moved += len(expected)
    assert moved > 100


def several(draw: random.Random, shape: tuple[int, ...], count: int) -> list[VectorBox]:
    """Return boxes of two quantities, of which the first is inside a shape."""
    found = list[VectorBox]()
    while len(found) < count:
        box = random_box(draw, shape, (9,))
        found.append(box.vectors)
    return found


@pytest.mark.parametrize("shape", [(60,), (6, 10), (5, 3, 4)])
def test_join_on(shape: tuple[int, ...]) -> None:
    """Members with the same first quantity come together, as often as there are pairs of such."""
    draw, joined = random.Random(prod(shape)), 0
    for _ in range(12):
        one, two = several(draw, shape, 12), several(draw, shape, 2 * FEW)
        expected: Counter[tuple[int, ...]] = Counter()
        for a, mine in enumerate(one):
            for b, other in enumerate(two):
                for (key, x), times in members([mine]).items():
                    for (place, y), often in members([other]).items():
                        if key == place:
                            expected[a, b, x, y] += times * often
        found: Counter[tuple[int, ...]] = Counter()
        for a, b, part in join_on(one, two, shape, Equations(10**6)):
            found.update({(a, b, *pair): times for pair, times in members([part]).items()})
        assert found == expected
        joined += expected.total()
    assert joined > 100


# Whether pieces cover a sink once: by loops, against marking every element


N = 65536


def piece(to: int, *walk: tuple[int, int]) -> Piece:
    """Return a piece of certain elements; where they lie does not matter here."""
    return "s", 0, to, tuple((n, 0, step) for n, step in walk)


def triangles(n: int) -> list[Piece]:
    """Return the rows of the lower triangle of a matrix, and the columns of the upper one."""
    rows = [piece(n * k, (k + 1, 1)) for k in range(n)]
    return rows + [piece(k, (k, n)) for k in range(1, n)]


def merges(written: list[tuple[int, int, int, list[Loop]]]) -> int:
    """Return into how many boxes some are merged, which hold the same elements."""
    boxes = [canonical(*box) for box in written]
    found = merged(boxes[::-1], Equations(10**4))
    assert elements(found) == elements(boxes)
    return len(found)


def test_one_element_inside_a_triangle() -> None:
    """A single piece on top of many that are merged is found, wherever it lies."""
    n = 13
    rows = [piece(n * k, (k + 1, 1)) for k in range(n)]
    rest = [piece(k, (k, n)) for k in range(2, n)]
    for k in range(n):
        for place in range(n * k, n * k + k + 1):
            layout = [*rows, *rest, piece(place)]
            found = cover(layout, (n, n), Equations(10**5))
            assert found == "1 elements are set twice, and as many are not set", place


def random_layout(draw: random.Random) -> tuple[list[Piece], int]:
    """Return pieces that set as many elements as a sink has, and that number."""
    size = draw.randint(1, 60)
    runs = list(cut(draw, size))
    layout: list[Piece] = []
    for first, n, step in runs:
        factors = [d for d in range(1, n + 1) if n % d == 0]
        inner = draw.choice(factors)
        loops: list[Loop] = [(inner, 0, step), (n // inner, 0, step * inner)]
        luck = draw.random()
        if luck < 0.1:  # somewhere else
            first = draw.randint(0, size - 1 - step * (n - 1))
        elif luck < 0.2:  # closer together
            loops = [(extent, there, min(here, 1)) for extent, there, here in loops]
        elif luck < 0.3:  # any small steps
            loops = [(extent, 0, draw.randint(0, 2)) for extent, _, _ in loops]
        layout.append(("s", 0, first, tuple(loops)))
    draw.shuffle(layout)
    return layout, size


def test_against_elements() -> None:
    """On random pieces, many of which overlap, both ways say the same."""
    draw, seen = random.Random(1), {True: 0, False: 0}
    while min(seen.values()) < 200:
        layout, size = random_layout(draw)
        if any(result.fault(part, size, 1) for part in layout):
            continue
        expected = result.cover(layout, size)
        shape = draw.choice([(a, size // a) for a in range(1, size + 1) if size % a == 0])
        assert cover(layout, shape, Equations(10**5)) == expected, (layout, shape)
        seen[expected is None] += 1


def test_one_box_against_elements() -> None:
    """Loops of any steps, that come to elements twice or only seem to, beside single elements."""
    draw, seen = random.Random(2), {True: 0, False: 0}
    while min(seen.values()) < 300:
        walk = [(draw.randint(2, 4), draw.randint(1, 9)) for _ in range(draw.randint(2, 3))]
        layout = [piece(0, *walk)]
        taken = set(result.written(layout[0]).tolist())
        size = max(max(taken) + 1, result.elements(layout[0]))
        free = [k for k in range(size) if k not in taken]
        layout += [piece(k) for k in free[: size - result.elements(layout[0])]]
        expected = result.cover(layout, size)
        assert cover(layout, (size,), Equations(10**5)) == expected, layout
        seen[expected is None] += 1
