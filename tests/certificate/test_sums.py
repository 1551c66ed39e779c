"""Boxes hold what they say, and sums over them tell different lists apart."""

from __future__ import annotations

import random
from collections import Counter
from math import prod
from typing import Any

import pytest

from layoutopt.certificate.sums import EXPONENTS, MOST, CertifiedBox, Sums, disjoint
from tests.boxes import listing


def members(box: CertifiedBox) -> list[tuple[int, ...]]:
    """Return what a box holds, one by one."""
    return [*listing.members([(box.start, box.loops)]).elements()]


def random_box(draw: random.Random, width: int, tags: int = 2) -> CertifiedBox:
    """Return a small box, with loops of extent 1, without steps, or back over itself among them."""
    loops = []
    for _ in range(draw.randint(0, 2)):
        loops.append((draw.randint(1, 3), tuple(draw.randint(-2, 2) for _ in range(width))))
    start = tuple(draw.randint(-3, 3) for _ in range(width))
    return CertifiedBox((draw.randrange(tags),), start, tuple(loops))


def test_sums_are_equal_exactly_if_members_are() -> None:
    """Two lists of boxes have the same sum exactly if they hold the same members as often."""
    draw, equal = random.Random(1), 0
    for _ in range(400):
        one = [random_box(draw, 2) for _ in range(draw.randint(0, 3))]
        alone = [CertifiedBox(box.tag, member, ()) for box in one for member in members(box)]
        draw.shuffle(alone)
        if alone and draw.random() < 0.5:
            k = draw.randrange(len(alone))
            tag, (x, y), _ = alone[k]
            change = draw.choice([(tag, x + 1, y), (tag, x, y - 1), ((1 - tag[0],), x, y)])
            alone[k] = CertifiedBox(change[0], (change[1], change[2]), ())
        held = [Counter((b.tag, m) for b in boxes for m in members(b)) for boxes in (one, alone)]
        sums = Sums(10**6)
        totals = [sums.total(boxes) for boxes in (one, alone)]
        assert (totals[0] == totals[1]) == (held[0] == held[1])
        equal += held[0] == held[1]
    assert 100 < equal < 380


@pytest.mark.parametrize("largest", [1, 2**124, 2**200, 2**600, 2**5000])
def test_fields_are_larger_than_all_coefficients(largest: int) -> None:
    """No coefficient that can occur is zero in the field, in either sign."""
    prime = Sums(largest).prime
    assert prime > 2 * largest
    assert prime.bit_length() in EXPONENTS


def test_ends_and_members_are_what_is_there() -> None:
    """Counted, smallest and largest members are those of all members written down."""
    draw = random.Random(2)
    for _ in range(200):
        box = random_box(draw, 3)
        every = members(box)
        assert box.members == len(every)
        for q in range(3):
            assert box.ends(q) == (min(m[q] for m in every), max(m[q] for m in every))
        assert sorted(members(box.of(2, 0))) == sorted((m[2], m[0]) for m in every)
        assert box.of(1, tag=(7,)).tag == (7,)


def test_boxes_apart_have_no_member_in_common() -> None:
    """Of small boxes none are said to be apart that share a copy and a location."""
    draw, told, true = random.Random(3), 0, 0
    for _ in range(4000):
        one, two = random_box(draw, 2), random_box(draw, 2)
        if draw.random() < 0.5:  # the same copies
            loops = [
                (n, (s[0], draw.randint(-2, 2))) if draw.random() < 0.8 else (n, s)
                for n, s in one.loops
            ]
            two = CertifiedBox(one.tag, (one.start[0], draw.randint(-3, 3)), tuple(loops))
        common = set(members(one)) & set(members(two))
        if disjoint(one, two):
            assert not common
            told += 1
        true += not common
    assert told > 0.9 * true > 1000


def apart(*given: Any) -> bool:
    """Return whether boxes are told apart: by ranges, remainders, or copies that are each once."""
    one, two = (CertifiedBox((), start, loops) for start, loops in given)
    told = disjoint(one, two)
    assert disjoint(two, one) is told
    assert not told or not set(members(one)) & set(members(two))
    return told


GOOD: list[Any] = [[1, 2], [3, -4, 5], [[2, [1, 0, 0]], [1, [7, 7, 7]]]]


def test_members_that_go_far_are_equal_by_accident_only_if_they_are_read() -> None:
    """Powers repeat after ``p - 1``, and some after a divisor of it, which no member reaches."""
    sums = Sums(1)
    period = sums.prime - 1
    boxes = [CertifiedBox((), (x,), ()) for x in (3, 3 + period)]
    assert sums.total(boxes[:1]) == sums.total(boxes[1:])
    assert prod([MOST, MOST]) < period  # two quantities of what is read are not that far
