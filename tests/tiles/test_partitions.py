"""Loops cut into parts, and operands spread, beside trying everything."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.tiles import partitions
from layoutopt.tiles.partitions import (
    Contraction,
    OperandAxis,
    TileThroughput,
    partition,
    splits,
    spread,
)
from tests.support import refused


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
    monkeypatch.setattr(partitions, "MOST_SPLITS", most)
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
