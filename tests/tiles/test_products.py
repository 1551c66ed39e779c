"""Operands of matrix products on the tiles that use them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.tiles.memory import PRESETS, TileMemory
from layoutopt.tiles.products import product_parts
from layoutopt.tiles.rules import tile_map
from tests.support import refused

KINDS = {"matmul_lhs": ("m", "k"), "matmul_rhs": ("k", "n"), "matmul_out": ("m", "n")}
LOOPS = ("batch", "m", "k", "n")


def tiles_of(kind: str, sizes: dict[str, int], memory: TileMemory, batched: bool) -> np.ndarray:
    """Return the tiles of an operand, of shape ``(batch or 1, rows, columns)``."""
    matrix = tuple(sizes[axis] for axis in KINDS[kind])
    shape = (sizes["batch"], *matrix) if batched else matrix
    found = tile_map(shape, memory, {"kind": kind, **sizes})
    assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()
    return found.tiles().reshape(-1, *matrix)


@settings(max_examples=60)
@given(
    st.fixed_dictionaries({axis: st.integers(1, 9) for axis in LOOPS}),
    st.integers(1, 30),
    st.booleans(),
)
def test_an_element_is_on_a_tile_that_uses_it(
    sizes: dict[str, int], tiles: int, batched: bool
) -> None:
    """A tile's part has the element's blocks of the operand's loops; all rules share one cut."""
    sizes |= {"macs_per_cycle": 1}
    memory = TileMemory(tiles, 1024)
    parts = dict(zip(LOOPS, product_parts(memory, **sizes), strict=True))
    for kind, axes in KINDS.items():
        found = tiles_of(kind, sizes, memory, batched)
        for index in np.ndindex(*found.shape):
            part = np.unravel_index(found[index], tuple(parts.values()))
            where = dict(zip(LOOPS, part, strict=True))
            looked = zip(axes, index[1:], strict=True)
            expected = {axis: i * parts[axis] // sizes[axis] for axis, i in looked}
            if batched:
                expected["batch"] = index[0] * parts["batch"] // sizes["batch"]
            assert {axis: where[axis] for axis in expected} == expected


def test_a_small_product_by_hand() -> None:
    """A product cut into 2 x 2 x 4 parts has the tiles that the formulas give.

    Part ``(i, j, c)`` is tile ``8 i + 4 j + c``.  A block of the left operand, 2 x 4 elements, is
    shared by 4 tiles, 2 x 2 pieces; one of the right operand, 4 x 1, by 2; one of the result,
    2 x 1, by 2.
    """
    sizes = {"m": 4, "k": 8, "n": 4, "batch": 1, "macs_per_cycle": 1}
    memory = TileMemory(16, 1024)
    assert product_parts(memory, **sizes) == (1, 2, 2, 4)
    lhs = [
        [8 * (x // 2) + 4 * (y // 4) + 2 * (x % 2) + y % 4 // 2 for y in range(8)] for x in range(4)
    ]
    assert tiles_of("matmul_lhs", sizes, memory, True)[0].tolist() == lhs
    rhs = [[8 * (y % 4 // 2) + 4 * (y // 4) + z for z in range(4)] for y in range(8)]
    assert tiles_of("matmul_rhs", sizes, memory, True)[0].tolist() == rhs
    out = [[8 * (x // 2) + 4 * (x % 2) + z for z in range(4)] for x in range(4)]
    assert tiles_of("matmul_out", sizes, memory, True)[0].tolist() == out


BALANCED = [
    (16, {"m": 4, "k": 8, "n": 4, "macs_per_cycle": 1}, 1),
    (64, {"m": 64, "k": 64, "n": 64, "macs_per_cycle": 1}, 1),
    (8, {"m": 16, "k": 4, "n": 32, "batch": 4}, 1),
    (1472, {"m": 1024, "k": 736, "n": 2048}, 1.25),
    (1216, {"m": 1000, "k": 768, "n": 3000}, 1.25),
    (1472, {"m": 128, "k": 64, "n": 128, "batch": 96}, 1.25),
]


@pytest.mark.parametrize(("tiles", "sizes", "slack"), BALANCED)
def test_operands_use_the_tiles_evenly(tiles: int, sizes: dict[str, int], slack: float) -> None:
    """The fullest tile holds little more than if all elements were shared out evenly."""
    memory = TileMemory(tiles, 2**20)
    for kind, axes in KINDS.items():
        shape = (sizes.get("batch", 1), *(sizes[axis] for axis in axes))
        loads = np.bincount(tile_map(shape, memory, {"kind": kind, **sizes}).tiles())
        assert loads.max() <= slack * math.prod(shape) / tiles


def test_a_slow_exchange_keeps_more_together() -> None:
    """With a slower exchange, or faster arithmetic, less is cut; a single cycle is not cut."""
    sizes = {"m": 64, "k": 64, "n": 64}
    fast, slow = TileMemory(64, 1024, {}, 1, 64), TileMemory(64, 1024, {}, 1, 1)
    used = [
        math.prod(product_parts(memory, **sizes, macs_per_cycle=macs))
        for memory, macs in [(fast, 1), (slow, 64), (slow, 10**6)]
    ]
    assert used == sorted(used, reverse=True)
    assert used[0] == 64
    assert used[-1] == 1


def test_memories_without_a_bandwidth() -> None:
    """A memory that does not tell its bandwidth is taken to have 4 bytes per cycle."""
    silent, told = TileMemory(1472, 1024), TileMemory(1472, 1024, {}, 1, 4)
    other = TileMemory(1472, 1024, {}, 1, 64)
    parts = [product_parts(memory, 200, 200, 200) for memory in (silent, told, other)]
    assert parts[0] == parts[1] != parts[2]


SIZES = {"m": 6, "k": 4, "n": 8}

FITTING: list[tuple[str, tuple[int, ...], dict[str, int]]] = [
    ("matmul_lhs", (6, 4), SIZES),
    ("matmul_lhs", (2, 3, 4), SIZES),
    ("matmul_lhs", (1, 6, 4), SIZES),
    ("matmul_lhs", (5, 6, 4), SIZES | {"batch": 5}),
    ("matmul_lhs", (2, 3, 6, 4), SIZES | {"batch": 6}),
    ("matmul_rhs", (4, 8), SIZES | {"batch": 5}),
    ("matmul_lhs", (4,), SIZES | {"m": 1}),
    ("matmul_rhs", (4,), SIZES | {"n": 1}),
    ("matmul_out", (6,), SIZES | {"n": 1}),
    ("matmul_out", (), SIZES | {"m": 1, "n": 1}),
    ("matmul_lhs", (0, 4), SIZES | {"m": 0}),
    ("matmul_out", (6, 8), SIZES | {"k": 0}),
]


@pytest.mark.parametrize(("kind", "shape", "sizes"), FITTING)
def test_shapes_that_fit(kind: str, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Shapes that read in row-major order as the matrices are taken, and lie as these do."""
    memory = PRESETS["ipu-mk2"]
    matrix = tuple(sizes[axis] for axis in KINDS[kind])
    full = matrix if math.prod(shape) == math.prod(matrix) else (sizes["batch"], *matrix)
    rule = {"kind": kind, **sizes, "macs_per_cycle": 1}
    found = tile_map(shape, memory, rule).tiles()
    assert found.tolist() == tile_map(full, memory, rule).tiles().tolist()
    assert len(found) == math.prod(shape)


BAD: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((4, 6), SIZES, "rule 'matmul_lhs': shape [4, 6] does not fit; [6, 4] or [1, 6, 4] is needed"),
    ((24,), SIZES, "shape [24] does not fit"),
    ((3, 8), SIZES, "shape [3, 8] does not fit"),
    ((2, 6, 4), SIZES | {"batch": 3}, "[6, 4] or [3, 6, 4] is needed"),
    ((6, 4), {"m": 6, "k": 4}, "parameter 'n' is missing"),
    ((6, 4), SIZES | {"m": 6.0}, "m must be an integer of 0 or more, got 6.0"),
    ((6, 4), SIZES | {"n": -1}, "n must be an integer of 0 or more, got -1"),
    ((6, 4), SIZES | {"batch": "2"}, "batch must be an integer of 0 or more, got '2'"),
    ((6, 4), SIZES | {"macs_per_cycle": 0}, "macs_per_cycle must be an integer of 1 or more"),
    ((6, 4), SIZES | {"l": 3}, "unknown parameter 'l'; allowed: m, k, n, batch, macs_per_cycle"),
]


@pytest.mark.parametrize(("shape", "sizes", "reason"), BAD, ids=[row[2] for row in BAD])
def test_bad_parameters(shape: tuple[int, ...], sizes: dict[str, Any], reason: str) -> None:
    """A wrong number or shape is refused in one line, which says what is needed."""
    with refused(reason):
        tile_map(shape, TileMemory(8, 1024), {"kind": "matmul_lhs", **sizes})
