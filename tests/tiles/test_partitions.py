"""Partitions and spreads over tiles, and how elements are counted."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.base.errors import SizeError
from layoutopt.base.result import outer_sum
from layoutopt.tiles import contractions, counting
from layoutopt.tiles.blocks import Array, Steps, TileMap, even_steps
from layoutopt.tiles.contractions import (
    Contraction,
    OperandAxis,
    TileThroughput,
    partition,
    splits,
    spread,
)
from layoutopt.tiles.counting import on_both, on_each, together
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map
from tests.support import refused

# Loops cut into parts, and operands spread, beside trying everything


def product(*loops: int) -> Contraction:
    """Return the work of a batch of matrix products."""
    b, m, k, n = (OperandAxis(extent, loop) for loop, extent in enumerate(loops))
    return Contraction(loops, ((b, m, k), (b, k, n), (b, m, n)))


def slow_cost(work: Contraction, speed: TileThroughput, parts: tuple[int, ...]) -> int:
    """Return the cycles of the largest part by the stated formula."""
    macs = work.inner
    for extent, count in zip(work.loops, parts, strict=True):
        macs *= math.ceil(extent / count)
    received = added = 0
    for axes in work.operands:
        block = needed = sharers = 1
        for axis in axes:
            count = 1 if axis.loop is None else parts[axis.loop]
            own = math.ceil(axis.extent / count)
            block *= own
            needed *= min(own + axis.halo, axis.extent) if count > 1 else own
        for loop, count in enumerate(parts):
            if all(axis.loop != loop for axis in axes):
                sharers *= count
        added = needed - block // sharers
        received += added
    exchanged = Fraction(received * speed.element_bytes, speed.bytes_per_cycle)
    return math.ceil(Fraction(macs + added, speed.macs_per_cycle)) + math.ceil(exchanged)


def slow_partition(work: Contraction, speed: TileThroughput) -> tuple[int, ...]:
    """Return the best partition by trying every one."""
    ranges = [range(1, min(extent, speed.tiles) + 1) for extent in work.loops]
    every = [parts for parts in itertools.product(*ranges) if math.prod(parts) <= speed.tiles]
    return min(every, key=lambda p: (slow_cost(work, speed, p), math.prod(p), p))


SPEEDS = st.builds(
    TileThroughput,
    tiles=st.integers(1, 24),
    macs_per_cycle=st.sampled_from([1, 2, 16]),
    element_bytes=st.sampled_from([1, 2, 4]),
    bytes_per_cycle=st.sampled_from([1, 4, 8]),
)


@settings(max_examples=60)
@given(st.tuples(*[st.integers(1, 9)] * 4), SPEEDS)
def test_best_partition_of_a_product(loops: tuple[int, ...], speed: TileThroughput) -> None:
    """No partition costs less; of equally cheap ones it is the first of fewest tiles."""
    assert partition(product(*loops), speed) == slow_partition(product(*loops), speed)


@settings(max_examples=60)
@given(st.tuples(*[st.integers(1, 7)] * 3), st.integers(0, 3), SPEEDS)
def test_best_partition_with_halo(loops: tuple[int, ...], halo: int, speed: TileThroughput) -> None:
    """What a part reads beyond its block counts where the axis is cut."""
    x, out, read = loops
    operands = (
        (OperandAxis(read, 2), OperandAxis(x + 2, 0, halo)),
        (OperandAxis(out, 1), OperandAxis(read, 2), OperandAxis(halo + 1, None)),
        (OperandAxis(out, 1), OperandAxis(x, 0)),
    )
    work = Contraction(loops, operands, halo + 1)
    assert partition(work, speed) == slow_partition(work, speed)


@pytest.mark.parametrize("most", [1, 5, 40, 300])
def test_thinned_splits(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Where too many ways would have to be compared, some of them are, the uncut one too."""
    every = {tuple(row) for row in splits([30, 20, 2, 10], 300).tolist()}
    monkeypatch.setattr(contractions, "MOST_SPLITS", most)
    found = {tuple(row) for row in splits([30, 20, 2, 10], 300).tolist()}
    assert (1, 1, 1, 1) in found
    assert found < every
    assert len(found) <= most


AXES = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 2, 3, None])),
    min_size=1,
    max_size=3,
    unique_by=lambda pair: (pair[1] is None, pair[1]),
)


@given(AXES, st.tuples(*[st.integers(1, 4)] * 4))
def test_elements_lie_where_they_are_used(
    dims: list[tuple[int, int | None]], parts: tuple[int, ...]
) -> None:
    """An element's tile is a part that needs it: its blocks are those of the formula."""
    axes = tuple(OperandAxis(*pair) for pair in dims)
    found = spread(axes, parts)
    assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()
    indices = np.ndindex(*found.shape)
    for index, tile in zip(indices, found.tiles().tolist(), strict=True):
        part = np.unravel_index(tile, parts)
        for i, axis in zip(index, axes, strict=True):
            if axis.loop is not None:
                assert part[axis.loop] == i * parts[axis.loop] // axis.extent


@given(st.tuples(*[st.integers(1, 12)] * 2), st.integers(1, 4), st.integers(1, 12))
def test_pieces_are_as_even_as_two_cuts_allow(
    shape: tuple[int, int], cut: int, sharers: int
) -> None:
    """The fullest tile holds no more than with the best numbers of pieces along both axes."""
    rows, columns = shape
    found = spread((OperandAxis(rows, 0), OperandAxis(columns, None)), (cut, sharers))
    block = math.ceil(rows / cut)
    best = min(
        math.ceil(block / a) * math.ceil(columns / b)
        for a in range(1, sharers + 1)
        for b in range(1, sharers // a + 1)
    )
    assert np.bincount(found.tiles()).max() <= best


@pytest.mark.parametrize(
    ("axes", "parts", "loads"),
    [
        (((12, 0), (8, 2)), (3, 2, 4), {4}),
        (((12, 1), (10, 2)), (5, 3, 2), {4}),
        (((4, None), (15, None)), (3, 5), {4}),
        (((2, 0), (6, 1), (6, 3)), (2, 3, 4, 3), {1}),
        (((8, None), (8, None)), (8, 5), {0, 2}),
        (((3, 1), (8, None), (8, None)), (8, 3, 5), {1, 2}),
        (((7, 0), (5, None)), (2, 3), {3, 4, 6, 8}),
    ],
)
def test_tiles_are_used_evenly(
    axes: tuple[tuple[int, int | None], ...], parts: tuple[int, ...], loads: set[int]
) -> None:
    """Tiles hold equally much where extents divide; else the fullest holds as little as can be.

    64 elements on 40 tiles need 2 on one; blocks of 4 x 5 and 3 x 5 for 3 tiles are best cut
    into 2 + 2 + 1 columns; a block of 8 x 8 for 8 times 5 tiles into 8 x 5 pieces, not 8 x 4,
    whose tiles are no sum of steps.
    """
    found = spread(tuple(OperandAxis(*pair) for pair in axes), parts)
    assert set(np.bincount(found.tiles(), minlength=math.prod(parts)).tolist()) == loads


def test_loops_beyond_64_bits() -> None:
    """Up to 2^62 steps are cut; of more, arithmetic would not be exact."""
    speed = TileThroughput(4, 1, 4, 4)
    assert partition(Contraction((2**62,), ((OperandAxis(2**62, 0),),)), speed) == (4,)
    with refused("2^62 are the most"):
        partition(Contraction((2**62 + 1,), ((OperandAxis(2**62 + 1, 0),),)), speed)


# Linear spreads and grids, beside slow loops


SHAPES = st.lists(st.integers(0, 7), max_size=3).map(tuple)


def slow_linear(shape: tuple[int, ...], tiles: int, fewest: int, grain: int) -> list[int]:
    """Return each element's tile by filling tiles one after the other."""
    size = math.prod(shape)
    chunk = grain
    while chunk < fewest or math.ceil(size / chunk) > tiles:
        chunk += grain
    return [f // chunk for f in range(size)]


@given(SHAPES, st.integers(1, 9), st.integers(1, 20), st.integers(1, 5))
def test_linear(shape: tuple[int, ...], tiles: int, fewest: int, grain: int) -> None:
    """Tiles get the smallest whole number of grains that is enough for both limits."""
    memory = TileMemory(tiles, 1024)
    rule = {"kind": "linear", "min_elements_per_tile": fewest, "grain": grain}
    found = tile_map(shape, memory, rule)
    assert found.tiles().tolist() == slow_linear(shape, tiles, fewest, grain)
    assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()


def slow_boxes(shape: tuple[int, ...], tiles: int) -> list[int]:
    """Return each element's tile if tiles get boxes of whole inner dimensions."""
    sizes: list[int] = []
    outer = 1
    for extent in shape:
        if sizes and sizes[-1] > 1:
            sizes.append(extent)
        elif outer * extent <= tiles:
            sizes.append(1)
            outer *= extent
        else:
            sizes.append(math.ceil(extent / (tiles // outer)))
    boxes = [tuple(i // n for i, n in zip(x, sizes, strict=True)) for x in np.ndindex(*shape)]
    numbers = {box: tile for tile, box in enumerate(sorted(set(boxes)))}
    return [numbers[box] for box in boxes]


@given(SHAPES, st.integers(1, 12))
def test_boxes_by_default(shape: tuple[int, ...], tiles: int) -> None:
    """Without a rule every tile gets a box, in row-major order."""
    found = tile_map(shape, TileMemory(tiles, 1024))
    assert found.tiles().tolist() == slow_boxes(shape, tiles)
    assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()


@given(SHAPES, st.integers(1, 12), st.integers(1, 20), st.integers(1, 5))
def test_boxes_of_grains(shape: tuple[int, ...], tiles: int, fewest: int, grain: int) -> None:
    """Boxes keep grains together, fill tiles from 0 on in order, and leave none out."""
    rule = {"kind": "linear", "boxes": True, "min_elements_per_tile": fewest, "grain": grain}
    found = tile_map(shape, TileMemory(tiles, 1024), rule).tiles()
    assert (found == found[np.arange(len(found)) // grain * grain]).all()
    assert set(np.diff(found).tolist()) <= {0, 1}
    assert not len(found) or found[0] == 0


def slow_grid(shape: tuple[int, ...], blocks: tuple[int, ...], first: int) -> list[int]:
    """Return each element's tile by its block's index."""
    found = []
    for index in np.ndindex(*shape):
        block = [
            i // math.ceil(n / count) for i, n, count in zip(index, shape, blocks, strict=True)
        ]
        found.append(first + (int(np.ravel_multi_index(block, blocks)) if blocks else 0))
    return found


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=3), st.integers(0, 3))
def test_grid(dims: list[tuple[int, int]], first: int) -> None:
    """Blocks are even but for the last, and numbered in row-major order from the first tile."""
    shape, blocks = tuple(n for n, _ in dims), tuple(count for _, count in dims)
    memory = TileMemory(first + math.prod(blocks), 1024)
    found = tile_map(shape, memory, {"kind": "grid", "blocks": list(blocks), "first": first})
    assert found.tiles().tolist() == slow_grid(shape, blocks, first)
    assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()


# Elements of walks counted by tile, beside going through them


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


@pytest.mark.parametrize("block", range(4))
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
