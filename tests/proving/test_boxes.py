"""Boxes that are cut and written otherwise have the members that they had, by listing them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from layoutopt.certificate.sums import Box
from layoutopt.proving.boxes import cut, decided, indexed

Member = tuple[tuple[int, ...], tuple[int, ...]]


def members(boxes: Iterable[Box]) -> Counter[Member]:
    """Return tags and members, with how often they are there."""
    found: Counter[Member] = Counter()
    for box in boxes:
        for at in product(*(range(n) for n, _ in box.loops)):
            moved = [
                sum(i * s[q] for i, (_, s) in zip(at, box.loops, strict=True))
                for q in range(len(box.start))
            ]
            found[box.tag, tuple(a + b for a, b in zip(box.start, moved, strict=False))] += 1
    return found


def drawn(draw: random.Random, shape: tuple[int, ...]) -> Box:
    """Return a box of an index of its own for each member and one or more quantities inside.

    Steps are of either sign, and of 0; all members stay between 0 and the sizes.
    """
    start, loops = [0, *(draw.randrange(n) for n in shape)], list[tuple[int, tuple[int, ...]]]()
    for _ in range(draw.randint(0, 3)):
        extent = draw.randint(2, 7)
        steps = [draw.randint(-4, 9) for _ in shape]
        loops.append((extent, (prod(n for n, _ in loops), *steps)))
    return Box((draw.randrange(3),), tuple(start), tuple(loops))


def inside(box: Box, shape: tuple[int, ...]) -> bool:
    """Return whether all members are within the sizes, the first quantity aside."""
    return all(box.ends(q)[0] >= 0 and box.ends(q)[1] < n for q, n in enumerate(shape, 1))


def some(shape: tuple[int, ...], count: int, seed: int) -> list[Box]:
    """Return random boxes within a shape."""
    draw, found = random.Random(seed), list[Box]()
    while len(found) < count:
        box = drawn(draw, shape)
        if inside(box, shape):
            found.append(box)
    return found


@pytest.mark.parametrize("shape", [(60,), (6, 10), (5, 3, 4), (7, 1, 9), (2, 30)])
def test_flat_elements_are_written_as_indices(shape: tuple[int, ...]) -> None:
    """Each member's flat element becomes its indices, as NumPy unravels it."""
    for seed in range(40):
        flat = some((prod(shape),), 5, seed)
        expected: Counter[Member] = Counter()
        for (tag, (own, element)), times in members(flat).items():
            index = [int(i) for i in np.unravel_index(element, shape)]
            expected[tag, (own, *index)] += times
        assert members(indexed(flat, shape)) == expected


def _kept(draw: random.Random, n: int) -> Any:
    """Return indices that a view keeps: evenly, or just any."""
    if draw.random() < 0.5:
        first = draw.randrange(n)
        return range(first, draw.randint(first, n), draw.randint(1, 4))
    return np.array(sorted(draw.sample(range(n), draw.randint(0, n))), np.int64)


def test_boxes_are_kept_whole_or_not_at_all() -> None:
    """What is kept is what has all its indices kept, in boxes that are straight among these."""
    for seed in range(600):
        draw = random.Random(seed)
        shape = draw.choice([(40,), (12, 9), (20, 15)])
        kept = [_kept(draw, n) for n in shape]
        boxes = some(shape, 4, seed)
        inner, outer = cut(boxes, kept)
        assert members([*inner, *outer]) == members(boxes)
        for box in inner:
            for _, values in members([box]):
                assert all(v in set(own) for v, own in zip(values[1:], kept, strict=True))
            for q, own in enumerate(kept, 1):
                ranks = {int(v): r for r, v in enumerate(own)}
                _assert_straight(box, q, ranks)
        for _, values in members(outer):
            assert not all(v in set(own) for v, own in zip(values[1:], kept, strict=True))


def _assert_straight(box: Box, q: int, ranks: dict[int, int]) -> None:
    """Check that each loop goes the same way among the kept indices wherever it begins."""
    for k, (extent, step) in enumerate(box.loops):
        others = [loop for i, loop in enumerate(box.loops) if i != k]
        moves = set()
        for _, values in members([box._replace(loops=tuple(others))]):
            row = [ranks[values[q] + i * step[q]] for i in range(extent)]
            moves.update(np.diff(row).tolist())
        assert len(moves) <= 1


def test_pairs_are_decided() -> None:
    """In each box both places are the same for all members, for none, or not to be compared."""
    compared = 0
    for seed in range(400):
        draw = random.Random(seed)
        boxes = some((12, 12), 4, seed)
        boxes = [box._replace(tag=(0, 1, 0, draw.choice([1, 1, 1, 2]))) for box in boxes]
        found = decided(boxes)
        assert members(found) == members(boxes)
        for box in found:
            same = {values[1] == values[2] for _, values in members([box])}
            assert len(same) == 1 or box.tag[:2] != box.tag[2:]
            compared += box.tag[:2] == box.tag[2:]
    assert compared > 400
