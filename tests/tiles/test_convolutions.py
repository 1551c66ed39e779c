"""Data, filter and result of convolutions on the tiles that use them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutopt.tiles.convolutions import _conv
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.partitions import TileThroughput, partition
from layoutopt.tiles.rules import tile_map
from tests.support import refused


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
def test_an_element_is_on_a_tile_that_uses_it(sizes: dict[str, Any], tiles: int) -> None:
    """A tile's part has the element's blocks of batch, groups, channels and positions."""
    memory = TileMemory(tiles, 1024)
    arguments = [sizes[key] for key in ("batch", "in_channels", "out_channels", "size", "kernel")]
    work = _conv(*arguments, sizes["groups"], sizes["out_size"]).work
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


@pytest.mark.parametrize(("groups", "tiles"), [(1, 64), (8, 64), (1, 1472)])
def test_operands_use_the_tiles_evenly(groups: int, tiles: int) -> None:
    """The fullest tile holds little more than if all elements were shared out evenly."""
    sizes: dict[str, Any] = {"batch": 8, "in_channels": 64, "out_channels": 64, "groups": groups}
    sizes |= {"size": [32, 32], "kernel": [3, 3], "out_size": [32, 32]}
    for kind, shape in shapes_of(sizes).items():
        loads = np.bincount(
            tile_map(shape, TileMemory(tiles, 2**20), {"kind": kind, **sizes}).tiles()
        )
        assert loads.max() <= math.ceil(1.5 * math.prod(shape) / tiles)


SIZES = {"batch": 1, "in_channels": 2, "out_channels": 4, "size": [5], "kernel": [3]}

BAD: list[tuple[dict[str, Any], str]] = [
    ({"in_channels": 3}, "rule 'conv_data': shape [1, 2, 5] does not fit; [1, 3, 5] is needed"),
    ({"groups": 4}, "groups 4 must divide in_channels 2, out_channels 4"),
    ({"groups": 0}, "groups must be an integer of 1 or more, got 0"),
    ({"size": 5}, "size must be a list of integers, got 5"),
    ({"size": [5.0]}, "size[0] must be an integer of 0 or more, got 5.0"),
    ({"kernel": [3, 3]}, "kernel has 2 entries, 1 are needed"),
    ({"out_size": []}, "out_size has 0 entries, 1 are needed"),
    ({"batch": None}, "batch must be an integer of 0 or more, got None"),
    ({"macs_per_cycle": -1}, "macs_per_cycle must be an integer of 1 or more, got -1"),
    ({"stride": 2}, "unknown parameter 'stride'; allowed: batch, in_channels"),
]


@pytest.mark.parametrize(("changed", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_bad_parameters(changed: dict[str, Any], reason: str) -> None:
    """A wrong number or shape is refused in one line, which says what is needed."""
    with refused(reason):
        tile_map((1, 2, 5), TileMemory(8, 64), {"kind": "conv_data", **SIZES, **changed})
