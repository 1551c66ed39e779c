"""Linear spreads and grids, beside slow loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map
from tests.support import refused

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


@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=3),
    st.integers(0, 3),
)
def test_grid(dims: list[tuple[int, int]], first: int) -> None:
    """Blocks are even but for the last, and numbered in row-major order from the first tile."""
    shape, blocks = tuple(n for n, _ in dims), tuple(count for _, count in dims)
    memory = TileMemory(first + math.prod(blocks), 1024)
    found = tile_map(shape, memory, {"kind": "grid", "blocks": list(blocks), "first": first})
    assert found.tiles().tolist() == slow_grid(shape, blocks, first)
    assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "linear", "grain": 0}, "rule 'linear': grain must be an integer of 1 or more"),
    ({"kind": "linear", "grain": 1.5}, "grain must be an integer of 1 or more, got 1.5"),
    (
        {"kind": "linear", "min_elements_per_tile": -3},
        "min_elements_per_tile must be an integer of 1 or more, got -3",
    ),
    ({"kind": "linear", "boxes": 1}, "boxes must be true or false, got 1"),
    ({"kind": "grid"}, "rule 'grid': parameter 'blocks' is missing"),
    ({"kind": "grid", "blocks": 4}, "blocks must be a list of integers, got 4"),
    ({"kind": "grid", "blocks": "22"}, "blocks must be a list of integers, got '22'"),
    ({"kind": "grid", "blocks": [2, 0]}, "blocks[1] must be an integer of 1 or more, got 0"),
    ({"kind": "grid", "blocks": [2]}, "blocks has 1 entries for 2 dimensions"),
    ({"kind": "grid", "blocks": [3, 3]}, "9 blocks from tile 0 on need more than the 8 tiles"),
    (
        {"kind": "grid", "blocks": [2, 3], "first": 3},
        "6 blocks from tile 3 on need more than the 8 tiles",
    ),
    ({"kind": "grid", "blocks": [1, 1], "first": -1}, "first must be an integer of 0 or more"),
]


@pytest.mark.parametrize(("rule", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_bad_parameters(rule: dict[str, Any], reason: str) -> None:
    """A wrong parameter is refused in one line, which says what is allowed."""
    with refused(reason):
        tile_map((4, 6), TileMemory(8, 1024), rule)
