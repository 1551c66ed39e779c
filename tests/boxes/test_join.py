"""Which boxes meet, and what they have in common, against lists of their elements."""

from __future__ import annotations

import random
from collections import Counter
from math import prod

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.boxes.box import Box, VectorBox, canonical
from layoutopt.boxes.equation import Equations
from layoutopt.boxes.join import FEW, BoxIndex, common, image, join_on
from tests.boxes.listing import elements, members, random_box, random_shape
from tests.check.samples import cut


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
