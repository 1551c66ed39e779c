"""Where products, convolutions and what follows them lie, by hand and by counting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.tiles import rules
from layoutopt.tiles.contractions import (
    MACS_PER_CYCLE,
    TileThroughput,
    _convolution,
    _cut,
    _product,
    partition,
)
from layoutopt.tiles.memory import PRESETS, TileMemory
from layoutopt.tiles.rules import tile_map
from tests.support import refused

# Operands of matrix products on the tiles that use them


KINDS = {"matmul_lhs": ("m", "k"), "matmul_rhs": ("k", "n"), "matmul_out": ("m", "n")}
LOOPS = ("batch", "m", "k", "n")


def product_parts(
    memory: TileMemory, m: int, k: int, n: int, batch: int = 1, macs_per_cycle: int = MACS_PER_CYCLE
) -> tuple[int, ...]:
    """Return into how many parts each loop of a product is cut."""
    return _cut(memory, _product(m, k, n, batch), macs_per_cycle)


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


def as_its_matrix(kind: str, shape: tuple[int, ...], sizes: dict[str, int]) -> bool:
    """Return whether a shape that reads in row-major order as a matrix lies as that does."""
    memory = PRESETS["ipu-mk2"]
    matrix = tuple(sizes[axis] for axis in KINDS[kind])
    full = matrix if math.prod(shape) == math.prod(matrix) else (sizes["batch"], *matrix)
    rule = {"kind": kind, **sizes, "macs_per_cycle": 1}
    found = tile_map(shape, memory, rule).tiles()
    assert len(found) == math.prod(shape)
    return np.array_equal(found, tile_map(full, memory, rule).tiles())


# Data, filter and result of convolutions on the tiles that use them


def shapes_of(sizes: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a convolution's tensors, by rule."""
    read = sizes["in_channels"] // sizes["groups"]
    return {
        "conv_data": (sizes["batch"], sizes["in_channels"], *sizes["size"]),
        "conv_filter": (sizes["out_channels"], read, *sizes["kernel"]),
        "conv_out": (sizes["batch"], sizes["out_channels"], *sizes["out_size"]),
    }


@st.composite
def convolutions(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the sizes of a convolution of one or two dimensions."""
    groups, rank = draw(st.integers(1, 3)), draw(st.integers(1, 2))

    def extents(most: int) -> list[int]:
        return draw(st.lists(st.integers(1, most), min_size=rank, max_size=rank))

    return {
        "batch": draw(st.integers(1, 3)),
        "in_channels": groups * draw(st.integers(1, 4)),
        "out_channels": groups * draw(st.integers(1, 4)),
        "groups": groups,
        "size": extents(6),
        "kernel": extents(3),
        "out_size": extents(6),
        "macs_per_cycle": 1,
    }


@settings(max_examples=60, deadline=None)
@given(convolutions(), st.integers(1, 30))
def test_an_element_is_on_a_tile_that_uses_it_of_convolutions(
    sizes: dict[str, Any], tiles: int
) -> None:
    """A tile's part has the element's blocks of batch, groups, channels and positions."""
    memory = TileMemory(tiles, 1024)
    arguments = [sizes[key] for key in ("batch", "in_channels", "out_channels", "size", "kernel")]
    work, _ = _convolution(*arguments, sizes["groups"], sizes["out_size"])
    parts = partition(work, TileThroughput(tiles, 1, 4, 4))
    read, made = (sizes[f"{side}_channels"] // sizes["groups"] for side in ("in", "out"))
    for kind, shape in shapes_of(sizes).items():
        found = tile_map(shape, memory, {"kind": kind, **sizes})
        assert found.at(np.arange(found.size)).tolist() == found.tiles().tolist()
        for index, tile in zip(np.ndindex(*shape), found.tiles().tolist(), strict=True):
            part = np.unravel_index(tile, parts)
            group, inner = divmod(index[1], read if kind == "conv_data" else made)
            blocks = {0: (index[0], sizes["batch"]), 1: (group, sizes["groups"])}
            if kind == "conv_filter":
                group, inner = divmod(index[0], made)
                blocks = {1: (group, sizes["groups"]), 2: (inner, made), 3: (index[1], read)}
            else:
                blocks[3 if kind == "conv_data" else 2] = (
                    inner,
                    read if kind == "conv_data" else made,
                )
                blocks |= {4 + d: (index[2 + d], n) for d, n in enumerate(shape[2:])}
            for loop, (i, extent) in blocks.items():
                assert part[loop] == i * parts[loop] // extent


def test_a_small_convolution_by_hand() -> None:
    """With one tile for each output channel and row, all is where it is used.

    The loops over 2 output channels and 4 rows are cut, so a part is tile ``4 m + row``.  The two
    channels of tiles that need row ``h`` share it: the input channel decides.
    """
    sizes = {"batch": 1, "in_channels": 2, "out_channels": 2, "groups": 1, "macs_per_cycle": 1}
    sizes |= {"size": [4, 1], "kernel": [1, 1], "out_size": [4, 1]}
    memory = TileMemory(8, 1024, {"default": 1}, 1, 64)
    maps = {
        kind: tile_map(shape, memory, {"kind": kind, **sizes}).tiles().tolist()
        for kind, shape in shapes_of(sizes).items()
    }
    assert maps["conv_out"] == [4 * m + h for m in range(2) for h in range(4)]
    assert maps["conv_data"] == [4 * c + h for c in range(2) for h in range(4)]
    assert maps["conv_filter"] == [4 * m + c for m in range(2) for c in range(2)]


def test_a_larger_kernel_is_more_work() -> None:
    """The multiply-accumulates of all of the kernel's positions count: more work is cut finer."""
    used = []
    for kernel in (1, 5):
        rule = {"kind": "conv_out", "batch": 1, "in_channels": 1, "out_channels": 16}
        rule |= {"size": [1], "kernel": [kernel], "macs_per_cycle": 4}
        found = tile_map((1, 16, 1), TileMemory(16, 1024, {"default": 4}, 1, 1), rule)
        used.append(len(set(found.tiles().tolist())))
    assert used == [1, 16]


PLANES: dict[str, Any] = {"batch": 8, "in_channels": 64, "out_channels": 64}
PLANES |= {"size": [32, 32], "kernel": [3, 3], "out_size": [32, 32]}

BALANCED: list[tuple[int, dict[str, Any], float]] = [
    (16, {"m": 4, "k": 8, "n": 4, "macs_per_cycle": 1}, 1),
    (64, {"m": 64, "k": 64, "n": 64, "macs_per_cycle": 1}, 1),
    (8, {"m": 16, "k": 4, "n": 32, "batch": 4}, 1),
    (1472, {"m": 1024, "k": 736, "n": 2048}, 1.25),
    (1216, {"m": 1000, "k": 768, "n": 3000}, 1.25),
    (1472, {"m": 128, "k": 64, "n": 128, "batch": 96}, 1.25),
    *((tiles, PLANES | {"groups": n}, 1.5) for n, tiles in [(1, 64), (8, 64), (1, 1472)]),
]


@pytest.mark.parametrize(("tiles", "sizes", "slack"), BALANCED)
def test_operands_use_the_tiles_evenly(tiles: int, sizes: dict[str, Any], slack: float) -> None:
    """The fullest tile holds little more than if all elements were shared out evenly."""
    batch = sizes.get("batch", 1)
    products = {kind: (batch, *map(sizes.get, axes)) for kind, axes in KINDS.items()}
    for kind, shape in (products if "m" in sizes else shapes_of(sizes)).items():
        found = tile_map(shape, TileMemory(tiles, 2**20), {"kind": kind, **sizes})
        assert np.bincount(found.tiles()).max() < slack * math.prod(shape) / tiles + 1


# Tiles of operands that are broadcast, and of results of reductions and poolings


MEMORY = TileMemory(64, 1024)

OTHERS: dict[str, Any] = {
    "boxes": None,
    "linear": {"kind": "linear"},
    "grid": {"kind": "grid", "blocks": [2, 3, 2], "first": 5},
    "product": {"kind": "matmul_out", "m": 6, "k": 8, "n": 5, "batch": 4, "macs_per_cycle": 1},
}
"""Rules for a tensor of shape (4, 6, 5)."""

WHOLE = (4, 6, 5)


def tiles_of_other(rule: Any) -> np.ndarray:
    """Return the tiles of the whole tensor, element by element."""
    return tile_map(WHOLE, MEMORY, rule).tiles().reshape(WHOLE)


def check(shape: tuple[int, ...], rule: dict[str, Any], expected: np.ndarray) -> None:
    """Compare a map with an array of tiles."""
    found = tile_map(shape, MEMORY, rule)
    assert found.tiles().tolist() == expected.reshape(-1).tolist()
    assert found.at(np.arange(found.size)).tolist() == expected.reshape(-1).tolist()


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    ("axes", "shape", "picked"),
    [
        ([0], (6, 5), np.s_[0]),
        ([1], (4, 5), np.s_[:, 0]),
        ([2], (4, 6), np.s_[:, :, 0]),
        ([2], (4, 6, 1), np.s_[:, :, :1]),
        ([0, 2], (1, 6, 1), np.s_[:1, :, :1]),
        ([2, 0], (6,), np.s_[0, :, 0]),
        ([0, 1, 2], (), np.s_[0, 0, 0]),
        ([], WHOLE, np.s_[:]),
    ],
)
def test_reduction(other: str, axes: list[int], shape: tuple[int, ...], picked: Any) -> None:
    """A reduced range's result is where the range's first element is."""
    rule = {"kind": "reduction", "of": list(WHOLE), "axes": axes, "rule": OTHERS[other]}
    check(shape, rule, tiles_of_other(OTHERS[other])[picked])


@given(
    st.sampled_from(sorted(OTHERS)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
)
def test_pooling(other: str, strides: tuple[int, int], padding: tuple[int, int]) -> None:
    """A window's result is where the first element is that the window covers."""
    dims = zip(WHOLE[1:], strides, padding, strict=True)
    shape = (4, *((n + before - 1) // stride + 1 for n, stride, before in dims))
    rule = {"kind": "pooling", "of": WHOLE, "strides": strides, "padding": padding}
    whole = tiles_of_other(OTHERS[other])
    expected = np.zeros(shape, int)
    for b, x, y in np.ndindex(*shape):
        first = [o * s - p for o, s, p in zip((x, y), strides, padding, strict=True)]
        expected[b, x, y] = whole[b, max(first[0], 0), max(first[1], 0)]
    check(shape, rule | {"rule": OTHERS[other]}, expected)


def test_empty_tensors() -> None:
    """What has no elements has no tiles."""
    check((0,), {"kind": "bias", "of": [3, 0]}, np.zeros(0, int))
    check((0, 3), {"kind": "reduction", "of": [0, 3], "axes": []}, np.zeros(0, int))
    grid = {"kind": "grid", "blocks": [1, 2]}
    check((0, 1), {"kind": "bias", "of": [0, 4], "rule": grid}, np.zeros(0, int))


def test_too_many_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements are looked at one by one only up to a number, and not at all where axes fit."""
    monkeypatch.setattr(rules, "MOST_ELEMENTS", 5)
    with refused("the other tensor's tiles do not follow its dimensions, and 6 elements"):
        rule = {"kind": "reduction", "of": [2, 4, 3], "axes": [1], "rule": {"kind": "linear"}}
        tile_map((2, 3), MEMORY, rule)
    grid = {"kind": "grid", "blocks": [2, 3]}
    check((6,), {"kind": "bias", "of": [4, 6], "rule": grid}, np.array([0, 0, 1, 1, 2, 2]))


@pytest.mark.parametrize("other", [None, {"kind": "linear"}])
@pytest.mark.parametrize(
    "rule",
    [
        {"kind": "bias", "of": [2, 10**12]},
        {"kind": "reduction", "of": [10**12, 7], "axes": [1]},
        {"kind": "pooling", "of": [2 * 10**12], "strides": [2]},
    ],
)
def test_large_axes_are_not_listed(rule: dict[str, Any], other: Any) -> None:
    """Whole axes, first elements and windows keep the steps of the other tensor's tiles."""
    found = tile_map((10**12,), MEMORY, rule | {"rule": other})
    assert sum(len(steps.starts) for steps in found.steps) < 100
    assert found.at(np.array([0, 10**12 - 1])).tolist() == [0, 31 if rule["kind"] == "bias" else 63]


def test_the_halo_counts() -> None:
    """What a cut row reads beyond its block decides against cutting it.

    On 4 tiles, 4 channels make 6 + 6 cycles.  2 channels and 2 halves of the row make 6 for
    arithmetic, 3 for the filter and 4 - 2 for the data, or 4 with their halo of 2.
    """
    rule = {"kind": "conv_out", "batch": 1, "in_channels": 1, "out_channels": 4}
    rule |= {"size": [8], "kernel": [3], "macs_per_cycle": 4}
    found = tile_map((1, 4, 8), TileMemory(4, 1024), rule)
    assert found.tiles().tolist() == [m for m in range(4) for _ in range(8)]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    ("shape", "axis", "picked"),
    [
        ((5,), None, np.s_[0, 0, :]),
        ((6, 5), None, np.s_[0, :, :]),
        ((6, 1), None, np.s_[0, :, :1]),
        ((6,), 1, np.s_[0, :, 0]),
        ((4,), 0, np.s_[:, 0, 0]),
        ((4, 1, 5), None, np.s_[:, :1, :]),
        ((4, 6), 0, np.s_[:, :, 0]),
        ((), None, np.s_[0, 0, 0]),
        ((1, 1, 1), None, np.s_[0, 0, 0]),
        (WHOLE, None, np.s_[:]),
    ],
)
def test_bias(other: str, shape: tuple[int, ...], axis: int | None, picked: Any) -> None:
    """A broadcast operand is where the first element is that it is broadcast to."""
    rule = {"kind": "bias", "of": list(WHOLE), "rule": OTHERS[other], "axis": axis}
    check(shape, rule, tiles_of_other(OTHERS[other])[picked])
