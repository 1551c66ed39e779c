"""Boxes: arrays of origins as few strided loops, and exactly those arrays."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from layoutopt.boxes.box import Box
from layoutopt.boxes.merge import boxes_of

Ints = NDArray[np.int64]


def unfolded(found: list[Box], size: int) -> tuple[Ints, Ints]:
    """Return the arrays that boxes describe, every position set exactly once."""
    origin, start = np.full(size, -1), np.full(size, -1)
    for box in found:
        steps = [(box.start, box.to)]
        for extent, of, to in box.loops:
            steps = [(a + i * of, b + i * to) for a, b in steps for i in range(extent)]
        for a, b in steps:
            assert origin[b] == -1
            origin[b], start[b] = box.label, a
    assert (origin >= 0).all()
    return origin, start


def folded(origin: Ints, start: Ints) -> list[Box]:
    """Return the boxes of arrays, after comparing what they say with the arrays."""
    found = boxes_of(origin, start)
    again = unfolded(found, len(origin))
    assert np.array_equal(again[0], origin)
    assert np.array_equal(again[1], start)
    assert [box.to for box in found] == sorted(box.to for box in found)
    return found


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=40))
def test_any_array(entries: list[tuple[int, int]]) -> None:
    """Whatever the origins are, boxes give them back."""
    table = np.array(entries, np.int64).reshape(-1, 2)
    found = folded(table[:, 0], table[:, 1])
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
        folded(np.array(origin), np.array(start))


def test_few_boxes_for_large_arrays() -> None:
    """A million elements in a 4-dimensional transpose take one box, not many passes."""
    x = np.arange(2**20).reshape(32, 32, 32, 32).transpose(3, 0, 2, 1).reshape(-1)
    [box] = boxes_of(np.zeros_like(x), x)
    extents = [extent for extent, _, _ in box.loops]
    assert np.prod(extents) == 2**20
