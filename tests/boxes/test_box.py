"""Boxes of one and of several quantities, written otherwise."""

from __future__ import annotations

import random

import pytest

from layoutopt.boxes.box import Box, canonical, strides, unfolded
from tests.boxes.listing import elements, members, random_box, random_shape


def test_canonical() -> None:
    """Loops of one value go, negative ones turn round, and those that go on are joined."""
    for loops, expected in [
        ([], Box(7, 100, 100, ())),
        ([(1, 5, 9)], Box(7, 100, 100, ())),
        ([(2, 3, 3), (3, 1, 1)], Box(7, 100, 100, ((6, 1, 1),))),
        ([(2, 3, 6), (3, 1, 1)], Box(7, 100, 100, ((3, 1, 1), (2, 3, 6)))),
        ([(2, 6, 3), (3, 1, 1)], Box(7, 100, 100, ((3, 1, 1), (2, 6, 3)))),
        ([(3, 1, -1)], Box(7, 102, 98, ((3, -1, 1),))),
        ([(3, -1, -1), (2, 3, 3)], Box(7, 98, 98, ((6, 1, 1),))),
        ([(4, 0, 1), (2, 0, 4), (5, 0, 0)], Box(7, 100, 100, ((5, 0, 0), (8, 0, 1)))),
    ]:
        assert canonical(7, 100, 100, loops) == expected


def test_inverse() -> None:
    """Both sides change places, and twice is the same again."""
    box = Box(1, 2, 3, ((4, 5, 6),))
    assert box.inverse == Box(1, 3, 2, ((4, 6, 5),))
    assert box.inverse.inverse == box
    assert box.elements == 4


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


def test_strides() -> None:
    """Row-major, by hand."""
    assert strides((2, 3, 4)) == [12, 4, 1]
    assert strides(()) == []
    assert strides((5,)) == [1]
