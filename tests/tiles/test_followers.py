"""Tiles of operands that are broadcast, and of results of reductions and poolings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.tiles import rules
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map
from tests.support import refused

MEMORY = TileMemory(64, 1024)

OTHERS: dict[str, Any] = {
    "boxes": None,
    "linear": {"kind": "linear"},
    "grid": {"kind": "grid", "blocks": [2, 3, 2], "first": 5},
    "product": {"kind": "matmul_out", "m": 6, "k": 8, "n": 5, "batch": 4, "macs_per_cycle": 1},
}
"""Rules for a tensor of shape (4, 6, 5)."""

WHOLE = (4, 6, 5)


def tiles_of(rule: Any) -> np.ndarray:
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
    check(shape, rule, tiles_of(OTHERS[other])[picked])


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
    whole = tiles_of(OTHERS[other])
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
        tile_map((6,), MEMORY, {"kind": "bias", "of": [4, 6], "rule": {"kind": "linear"}})
    grid = {"kind": "grid", "blocks": [2, 3]}
    check((6,), {"kind": "bias", "of": [4, 6], "rule": grid}, np.array([0, 0, 1, 1, 2, 2]))


BAD: list[tuple[tuple[int, ...], dict[str, Any], str]] = [
    ((4,), {"kind": "bias", "of": [4, 6]}, "shape [4] from dimension 1 on does not broadcast"),
    ((4, 6), {"kind": "bias", "of": [6]}, "shape [4, 6] from dimension -1 on does not"),
    ((6,), {"kind": "bias", "of": [4, 6], "axis": 2}, "shape [6] from dimension 2 on does not"),
    ((6,), {"kind": "bias", "of": [4, 6], "axis": -1}, "axis must be an integer of 0 or more"),
    ((6,), {"kind": "bias"}, "rule 'bias': parameter 'of' is missing"),
    ((6,), {"kind": "bias", "of": 6}, "of must be a list of integers, got 6"),
    (
        (6,),
        {"kind": "bias", "of": [6], "rule": {"kind": "grid", "blocks": [1, 1]}},
        "rule 'bias': rule 'grid': blocks has 2 entries for 1 dimensions",
    ),
    ((6,), {"kind": "bias", "of": [6], "rule": {"kind": "?"}}, "unknown rule '?'; known: linear"),
    ((4,), {"kind": "reduction", "of": [4, 6], "axes": [2]}, "axes: 2 is no dimension of [4, 6]"),
    (
        (6,),
        {"kind": "reduction", "of": [4, 6], "axes": [1]},
        "shape [6] does not fit; [4] or [4, 1] is needed",
    ),
    ((4,), {"kind": "reduction", "of": [4, 0], "axes": [1]}, "of [4, 0] nothing is reduced"),
    ((4, 3), {"kind": "pooling", "of": [4], "strides": [2]}, "shape [4, 3] does not fit windows"),
    ((3, 3), {"kind": "pooling", "of": [4, 6], "strides": [2]}, "does not fit windows over the"),
    ((4,), {"kind": "pooling", "of": [6], "strides": [2]}, "dimension 0: a window lies behind"),
    ((4,), {"kind": "pooling", "of": [6], "strides": [0]}, "strides[0] must be an integer of 1"),
    (
        (3,),
        {"kind": "pooling", "of": [6], "strides": [2], "padding": [0, 0]},
        "padding has 2 entries, 1 are needed",
    ),
]


@pytest.mark.parametrize(("shape", "rule", "reason"), BAD, ids=[row[2] for row in BAD])
def test_bad_parameters(shape: tuple[int, ...], rule: dict[str, Any], reason: str) -> None:
    """A wrong number or shape is refused in one line, which says what is needed."""
    with refused(reason):
        tile_map(shape, MEMORY, rule)
