"""Boxes that are cut and written otherwise have the members that they had, by listing them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from math import prod

from layoutopt.certificate.sums import CertifiedBox
from layoutopt.certify.copies import decided
from tests.certificate.test_sums import members

Member = tuple[tuple[int, ...], tuple[int, ...]]


def tagged(boxes: Iterable[CertifiedBox]) -> Counter[Member]:
    """Return tags and members, with how often they are there."""
    return Counter((box.tag, member) for box in boxes for member in members(box))


def drawn(draw: random.Random, shape: tuple[int, ...]) -> CertifiedBox:
    """Return a box of an index of its own for each member and one or more quantities inside.

    Steps are of either sign, and of 0; all members stay between 0 and the sizes.
    """
    start, loops = [0, *(draw.randrange(n) for n in shape)], list[tuple[int, tuple[int, ...]]]()
    for _ in range(draw.randint(0, 3)):
        extent = draw.randint(2, 7)
        steps = [draw.randint(-4, 9) for _ in shape]
        loops.append((extent, (prod(n for n, _ in loops), *steps)))
    return CertifiedBox((draw.randrange(3),), tuple(start), tuple(loops))


def inside(box: CertifiedBox, shape: tuple[int, ...]) -> bool:
    """Return whether all members are within the sizes, the first quantity aside."""
    return all(box.ends(q)[0] >= 0 and box.ends(q)[1] < n for q, n in enumerate(shape, 1))


def some(shape: tuple[int, ...], count: int, seed: int) -> list[CertifiedBox]:
    """Return random boxes within a shape."""
    draw, found = random.Random(seed), list[CertifiedBox]()
    while len(found) < count:
        box = drawn(draw, shape)
        if inside(box, shape):
            found.append(box)
    return found


def test_pairs_are_decided() -> None:
    """In each box both places are the same for all members, for none, or not to be compared."""
    compared = 0
    for seed in range(400):
        draw = random.Random(seed)
        boxes = some((12, 12), 4, seed)
        boxes = [box._replace(tag=(0, 1, 0, draw.choice([1, 1, 1, 2]))) for box in boxes]
        found = decided(boxes)
        assert tagged(found) == tagged(boxes)
        for box in found:
            same = {values[1] == values[2] for values in members(box)}
            assert len(same) == 1 or box.tag[:2] != box.tag[2:]
            compared += box.tag[:2] == box.tag[2:]
    assert compared > 400
