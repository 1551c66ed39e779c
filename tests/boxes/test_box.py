"""Boxes of one and of several quantities, written otherwise."""

from __future__ import annotations

import random

import pytest

from layoutopt.boxes.box import Box, canonical, unfolded
from tests.boxes.listing import elements, members, random_box, random_shape


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
