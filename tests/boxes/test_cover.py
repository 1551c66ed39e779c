"""Whether pieces cover a sink once: by loops, against marking every element."""

from __future__ import annotations

import random

import pytest

from layoutopt.base import result
from layoutopt.base.result import Loop, Piece
from layoutopt.boxes.cover import cover
from layoutopt.boxes.equation import Equations
from tests.check.samples import cut

N = 65536


def piece(to: int, *walk: tuple[int, int]) -> Piece:
    """Return a piece of certain elements; where they lie does not matter here."""
    return "s", 0, to, tuple((n, 0, step) for n, step in walk)


def triangles(n: int) -> list[Piece]:
    """Return the rows of the lower triangle of a matrix, and the columns of the upper one."""
    rows = [piece(n * k, (k + 1, 1)) for k in range(n)]
    return rows + [piece(k, (k, n)) for k in range(1, n)]


LARGE: dict[str, tuple[list[Piece], tuple[int, ...], int]] = {
    "whole": ([piece(0, (N * N, 1))], (N, N), 0),
    "transposed": ([piece(0, (N, 1), (N, N))], (N, N), 0),
    "backwards": ([piece(N * N - 1, (N, -N), (N, -1))], (N, N), 0),
    "a diagonal and the rest": (
        *([piece(0, (N, N + 1)), piece(1, (N - 1, N + 1), (N, 1))], (N, N), 0),
    ),
    "a diagonal set twice": (
        *([piece(0, (N, N + 1)), piece(0, (N - 1, N + 1), (N, 1))], (N, N), N - 1),
    ),
    "columns": ([piece(k, (N, 300)) for k in range(300)], (N, 300), 0),
    "a column twice": ([piece(k - k // 299, (N, 300)) for k in range(300)], (N, 300), N),
    "halves one off": (
        *([piece(0, (N * N // 2, 1)), piece(N * N // 2 - 1, (N * N // 2, 1))], (N, N), 1),
    ),
    "one element all the time": ([piece(5, (N * N, 0))], (N, N), N * N - 1),
    "rows on top of each other": ([piece(0, (N, 0), (N, 1))], (N, N), N * N - N),
    "rows one further each": ([piece(0, (N, 1), (N, 1))], (N, N), N * N - (2 * N - 1)),
    "steps of 2 and 3": ([piece(0, (N, 2), (N, 3))], (N, N), N * N - (5 * (N - 1) - 1)),
    "steps of 2, 3 and 5, and the last": (
        *([piece(0, (3, 2), (3, 3), (3, 5)), piece(20)], (28,), 9),  # 0 2 3 .. 18 20, and 20
    ),
    "steps of 2, 3 and 7": ([piece(0, (3, 2), (3, 3), (3, 7))], (27,), 4),  # all of 0..24 but 1, 23
    "interleaved, and others on top": ([piece(0, (4, 2), (4, 5)), piece(0, (6, 1))], (22,), 4),
    "two loops that overlap a third": ([piece(0, (2, 1), (3, 2), (2, 4))], (12,), 2),
    "three times the same": ([piece(0, (N, 1))] * 3, (3, N), 2 * N),
    "triangles by rows and by columns": (triangles(2000), (2000, 2000), 0),
    "triangles that share the diagonal": (
        [*triangles(2000)[:-1], piece(0, (1999, 2001))],
        *((2000, 2000), 1999),
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_large(name: str) -> None:
    """Of billions of elements the number of those that are set again is exact.

    With steps 2 and 3 all sums from 0 to 5 (N - 1) are met but 1 and, from the other end, the
    last but one.
    """
    layout, shape, missing = LARGE[name]
    expected = f"{missing} elements are set twice instead of others" if missing else None
    assert cover(layout, shape, Equations(10**6)) == expected


def test_one_element_inside_a_triangle() -> None:
    """A single piece on top of many that are merged is found, wherever it lies."""
    n = 13
    rows = [piece(n * k, (k + 1, 1)) for k in range(n)]
    rest = [piece(k, (k, n)) for k in range(2, n)]
    for k in range(n):
        for place in range(n * k, n * k + k + 1):
            layout = [*rows, *rest, piece(place)]
            found = cover(layout, (n, n), Equations(10**5))
            assert found == "1 elements are set twice instead of others", place


def random_layout(draw: random.Random) -> tuple[list[Piece], int]:
    """Return pieces that set as many elements as a sink has, and that number."""
    size = draw.randint(1, 60)
    runs = list(cut(draw, size))
    layout: list[Piece] = []
    for first, n, step in runs:
        factors = [d for d in range(1, n + 1) if n % d == 0]
        inner = draw.choice(factors)
        loops: list[Loop] = [(inner, 0, step), (n // inner, 0, step * inner)]
        luck = draw.random()
        if luck < 0.1:  # somewhere else
            first = draw.randint(0, size - 1 - step * (n - 1))
        elif luck < 0.2:  # closer together
            loops = [(extent, there, min(here, 1)) for extent, there, here in loops]
        elif luck < 0.3:  # any small steps
            loops = [(extent, 0, draw.randint(0, 2)) for extent, _, _ in loops]
        layout.append(("s", 0, first, tuple(loops)))
    draw.shuffle(layout)
    return layout, size


def test_against_elements() -> None:
    """On random pieces, many of which overlap, both ways say the same."""
    draw, seen = random.Random(1), {True: 0, False: 0}
    while min(seen.values()) < 200:
        layout, size = random_layout(draw)
        if any(result.fault(part, size, 1) for part in layout):
            continue
        expected = result.cover(layout, size)
        shape = draw.choice([(a, size // a) for a in range(1, size + 1) if size % a == 0])
        assert cover(layout, shape, Equations(10**5)) == expected, (layout, shape)
        seen[expected is None] += 1


def test_one_box_against_elements() -> None:
    """Loops of any steps, that come to elements twice or only seem to, beside single elements."""
    draw, seen = random.Random(2), {True: 0, False: 0}
    while min(seen.values()) < 300:
        walk = [(draw.randint(2, 4), draw.randint(1, 9)) for _ in range(draw.randint(2, 3))]
        layout = [piece(0, *walk)]
        taken = set(result.written(layout[0]).tolist())
        size = max(max(taken) + 1, result.elements(layout[0]))
        free = [k for k in range(size) if k not in taken]
        layout += [piece(k) for k in free[: size - result.elements(layout[0])]]
        expected = result.cover(layout, size)
        assert cover(layout, (size,), Equations(10**5)) == expected, layout
        seen[expected is None] += 1
