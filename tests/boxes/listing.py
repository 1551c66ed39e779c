"""Boxes written out element by element, and random ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import product
from math import prod

from layoutopt.base.result import read, written
from layoutopt.boxes.box import Box, VectorBox, strides


def elements(boxes: Iterable[Box]) -> list[tuple[int, int, int]]:
    """Return element here, label and element there of everything in boxes, in order of these."""
    found: list[tuple[int, int, int]] = []
    for box in boxes:
        pairs = zip(written(box).tolist(), read(box).tolist(), strict=True)
        found += [(here, box.label, there) for here, there in pairs]
    return sorted(found)


def members(boxes: Iterable[VectorBox]) -> Counter[tuple[int, ...]]:
    """Return the members of boxes of several quantities, with how often they are there."""
    found: Counter[tuple[int, ...]] = Counter()
    for start, loops in boxes:
        for at in product(*(range(n) for n, _ in loops)):
            steps = [[i * s for s in step] for i, (_, step) in zip(at, loops, strict=True)]
            found[tuple(map(sum, zip(start, *steps, strict=True)))] += 1
    return found


def random_box(draw: random.Random, here: tuple[int, ...], there: tuple[int, ...]) -> Box:
    """Return a box of up to three loops of either direction, inside tensors of two shapes."""
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
    start, to = ends
    return Box(draw.randrange(2), start, to, tuple(zip(extents, *walks, strict=True)))


def random_shape(draw: random.Random) -> tuple[int, ...]:
    """Return the shape of a small tensor."""
    return tuple(draw.choice([1, 2, 3, 4, 6]) for _ in range(draw.randint(1, 3)))
