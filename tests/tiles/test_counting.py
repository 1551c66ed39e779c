"""Elements of walks counted by tile, beside going through them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.result import outer_sum
from layoutopt.tiles import counting
from layoutopt.tiles.blocks import Array, Steps, TileMap, even_steps
from layoutopt.tiles.counting import on_both, on_each, together


def random_map(draw: random.Random, shape: list[int]) -> TileMap:
    """Return a map with up to three steps along each axis."""
    steps = []
    for n in shape:
        inner = sorted(draw.sample(range(1, n), draw.randint(0, min(n - 1, 2))))
        values = [draw.randint(0, 3) for _ in range(len(inner) + 1)]
        steps.append(Steps(np.array([0, *inner]), np.array(values)))
    return TileMap(tuple(shape), tuple(steps))


Walk = tuple[TileMap, int, tuple[int, ...]]
"""A tile map, a first element, and a step for each loop."""


def random_walk(draw: random.Random, extents: list[int]) -> tuple[Walk, Array]:
    """Return a walk that stays inside a tensor, and the flat elements that it comes to."""
    tiles = random_map(draw, [draw.randint(1, 6) for _ in range(draw.randint(1, 3))])
    for _ in range(50):
        steps = [0, 1, -1, 2, 3, *tiles.strides, -tiles.strides[0]]
        chosen = tuple(draw.choice(steps) for _ in extents)
        start = draw.randrange(tiles.size)
        flat = outer_sum([np.arange(n) * s for n, s in zip(extents, chosen, strict=True)], start)
        if flat.min() >= 0 and flat.max() < tiles.size:
            return (tiles, start, chosen), flat
    return (tiles, 0, (0,) * len(extents)), np.zeros(int(np.prod(extents)), np.int64)


@pytest.mark.parametrize("block", range(8))
def test_random_walks(block: int) -> None:
    """Counts are those of the tiles of all elements, for walks that carry and that do not."""
    for seed in range(250 * block, 250 * (block + 1)):
        draw = random.Random(seed)
        extents = [draw.choice([1, 2, 3, 4, 5, 6, 8, 12]) for _ in range(draw.randint(0, 3))]
        (a, here), (b, there) = (random_walk(draw, extents) for _ in range(2))
        mine, other = a[0].tiles()[here], b[0].tiles()[there]
        tiles, counts = np.unique(mine, return_counts=True)
        found = on_each(a[0], a[1], list(zip(extents, a[2], strict=True)))
        assert [x.tolist() for x in found] == [tiles.tolist(), counts.tolist()], seed
        both = (
            (a[0], b[0]),
            (a[1], b[1]),
            list(zip(extents, zip(a[2], b[2], strict=True), strict=True)),
        )
        assert together(*both) == np.count_nonzero(mine == other), seed
        shared = np.unique(mine[mine == other], return_counts=True)
        assert [x.tolist() for x in on_both(*both)] == [x.tolist() for x in shared], seed


def test_huge_walks() -> None:
    """A matrix of 2^40 elements in blocks of rows, beside blocks of columns of its transpose."""
    n, parts = 2**20, 16
    rows = TileMap((n, n), (even_steps(n, n // parts), even_steps(n, n)))
    columns = TileMap((n, n), (even_steps(n, n), even_steps(n, n // parts)))
    assert on_each(rows, 0, [(n, n), (n, 1)])[1].tolist() == [n * n // parts] * parts
    maps = rows, columns
    assert together(maps, (0, 0), [(n, (n, 1)), (n, (1, n))]) == n * n
    assert together(maps, (0, 0), [(n, (n, n)), (n, (1, 1))]) == n * n // parts


def test_what_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that carry into each other are gone through, up to a limit."""
    monkeypatch.setattr(counting, "LIMIT", 20)
    tiles = TileMap((7, 5), (even_steps(7, 2), even_steps(5, 2)))
    with pytest.raises(SizeError, match="25 elements would have to be looked up one by one"):
        on_each(tiles, 0, [(5, 6), (5, 1)])
