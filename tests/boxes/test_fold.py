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


def test_views_of_one_tensor_are_one_box() -> None:
    """Transposed, flipped, sliced, repeated: one box each, with no more loops than axes."""
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    for view, loops in [
        (x, 1),
        (x.transpose(3, 1, 0, 2), 4),
        (x.transpose(0, 2, 3, 1), 3),
        (x[:, ::-1], 3),
        (x[1:, 1:3, ::2, ::3], 2),  # strides 20 and 10 are one loop
        (np.broadcast_to(x[..., :1], x.shape), 2),
        (np.broadcast_to(x, (7, *x.shape)), 2),
        (x.reshape(6, 20).T, 2),
    ]:
        flat = view.reshape(-1)
        [box] = folded(np.zeros_like(flat), flat)
        assert len(box.loops) == loops


def test_concatenations_are_one_box_for_each_part() -> None:
    """Two tensors side by side need two boxes, in any number of rows."""
    left, right = np.arange(20).reshape(10, 2), np.arange(30).reshape(10, 3)
    flat = np.concatenate([left, right], axis=1).reshape(-1)
    owner = np.concatenate([left * 0, right * 0 + 1], axis=1).reshape(-1)
    found = folded(owner, flat)
    assert [box.label for box in found] == [0, 1]


def test_few_boxes_for_large_arrays() -> None:
    """A million elements in a 4-dimensional transpose take one box, not many passes."""
    x = np.arange(2**20).reshape(32, 32, 32, 32).transpose(3, 0, 2, 1).reshape(-1)
    [box] = boxes_of(np.zeros_like(x), x)
    extents = [extent for extent, _, _ in box.loops]
    assert np.prod(extents) == 2**20


def test_small_arrays() -> None:
    """Nothing, one element, and two that do not fit together."""
    none = np.zeros(0, np.int64)
    assert boxes_of(none, none) == []
    assert boxes_of(np.array([4]), np.array([7])) == [Box(4, 7, 0, ((1, 1, 1),))]
    assert boxes_of(np.array([1, 0]), np.array([5, 5])) == [
        Box(1, 5, 0, ((1, 1, 1),)),
        Box(0, 5, 1, ((1, 1, 1),)),
    ]
    assert boxes_of(np.array([0, 0]), np.array([9, 2])) == [Box(0, 9, 0, ((2, -7, 1),))]


def test_runs_are_taken_from_the_left() -> None:
    """Where two runs could share an element, the first keeps it: 0 1 2 | 4 6 of 0 1 2 4 6."""
    found = folded(np.zeros(5, np.int64), np.array([0, 1, 2, 4, 6]))
    assert [box.loops for box in found] == [((3, 1, 1),), ((2, 2, 1),)]
