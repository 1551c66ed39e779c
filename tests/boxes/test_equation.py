"""Solutions of linear equations over boxes, against lists of all of them."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.boxes.box import VectorBox
from layoutopt.boxes.equation import Equations, Term
from tests.boxes.listing import members

STYLES = {
    "any": lambda draw, base: draw.randint(-12, 12),
    "units": lambda draw, base: draw.choice([1, 1, 1, -1, -1, 2]),
    "few divisors": lambda draw, base: draw.choice([2, 3, 4, 6, 12, -2, -3, 5, 7]),
    "digits": lambda draw, base: draw.choice([1, base, base**2, base**3, -1, -base, -(base**2)]),
    "diagonals": lambda draw, base: draw.choice(
        [1, base, base + 1, -1, -base, -base - 1, 1 - base]
    ),
}
"""How coefficients are drawn; a base is the row length of a matrix, say."""


def terms_of(pairs: list[tuple[int, int]]) -> tuple[Term, ...]:
    """Return variables of coefficients and extents, whose weights tell their own values."""
    return tuple(
        Term(c, n, tuple(int(j == k) for j in range(len(pairs)))) for k, (c, n) in enumerate(pairs)
    )


def solve(pairs: list[tuple[int, int]], total: int, limit: int = 10**5) -> list[VectorBox]:
    """Return all solutions, their weights being the values of the variables."""
    return Equations(limit).solve(terms_of(pairs), total, len(pairs))


def listed(pairs: list[tuple[int, int]], total: int) -> list[tuple[int, ...]]:
    """Return all solutions by trying everything."""
    return [
        x
        for x in product(*[range(n) for _, n in pairs])
        if sum(c * i for (c, _), i in zip(pairs, x, strict=True)) == total
    ]


def draw_pairs(
    draw: random.Random, style: str, variables: int, extent: int
) -> list[tuple[int, int]]:
    """Return random coefficients and extents, among them those just beside a base."""
    base = draw.choice([3, 4, 6, 8])
    extents = [1, 2, base - 1, base, base + 1, extent, draw.randint(1, extent)]
    return [
        (STYLES[style](draw, base), draw.choice(extents)) for _ in range(draw.randint(0, variables))
    ]


@pytest.mark.parametrize("style", STYLES)
def test_against_all_values(style: str) -> None:
    """Each solution is in exactly one box, and there is nothing else in the boxes."""
    draw, solved = random.Random(style), 0
    for _ in range(300):
        pairs = draw_pairs(draw, style, variables=6, extent=9)
        if prod(n for _, n in pairs) > 5000:
            continue
        total = sum(c * draw.randrange(n) for c, n in pairs) + draw.choice([0, 0, 1])
        expected = listed(pairs, total)
        assert sorted(members(solve(pairs, total)).elements()) == expected, (pairs, total)
        solved += len(expected) > 1
    assert solved > 50


def counts(pairs: list[tuple[int, int]]) -> tuple[int, np.ndarray]:
    """Return the least sum, and how many solutions each sum from there on has."""
    ways = np.zeros(sum(abs(c) * (n - 1) for c, n in pairs) + 1, np.int64)
    ways[0] = 1
    for c, n in pairs:
        ways = sum(np.pad(ways, (abs(c) * i, 0))[: len(ways)] for i in range(n))
    return sum(min(0, c * (n - 1)) for c, n in pairs), ways


@pytest.mark.parametrize("style", STYLES)
def test_against_convolution(style: str) -> None:
    """For larger extents, numbers of solutions, found by adding up sums variable by variable."""
    draw, solved = random.Random(style), 0
    for _ in range(60):
        pairs = draw_pairs(draw, style, variables=6, extent=60)
        least, ways = counts(pairs)
        total = least + draw.randrange(len(ways))
        parts = solve(pairs, total)
        assert sum(part.members for part in parts) == ways[total - least], (pairs, total)
        for start, loops in parts:
            assert sum(c * x for (c, _), x in zip(pairs, start, strict=True)) == total
            for n, step in loops:
                assert n == 1 or sum(c * x for (c, _), x in zip(pairs, step, strict=True)) == 0
        solved += bool(parts)
    assert solved > 20


def test_steps_are_limited() -> None:
    """What needs more steps than are left is given up in one line; answers are remembered."""
    pairs = [(1009, 1000), (1013, 1000), (-997, 1000), (1, 300), (-7, 300)]
    with pytest.raises(SizeError, match="too irregular") as error:
        solve(pairs, 0, limit=1000)
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(SizeError):  # the four boxes of the answer are not all that counts
        solve([(1009, 1000), (1013, 1000), (-997, 1000)], 0, limit=20)
    equations = Equations(10**4)
    first = equations.solve(terms_of([(4, 6), (-6, 4)]), 0, 2)
    left = equations.left
    assert equations.solve(terms_of([(4, 6), (-6, 4)]), 0, 2) == first
    assert equations.left == left - len(first)
