"""Meanings of axes that travel along, and uses that do not fit them."""

from __future__ import annotations

import itertools
import random
from math import prod

import numpy as np
import pytest

from layoutopt.layout.descriptor import Descriptor
from layoutopt.layout.layout import LayoutError
from layoutopt.layout.permutations import (
    parse_permutation,
    required_permutation,
)
from layoutopt.layout.semantics import SemanticAxes, consumed_as

DATA_AS_WEIGHTS = (
    "a convolution's data (N, C, H, W) consumed as a convolution's weights (O, I, H, W): "
    "N is read as O, C is read as I"
)


def test_output_fed_as_weights() -> None:
    """What nobody catches: a convolution's output as another one's weights is named."""
    output = SemanticAxes.named("NCHW", (2, 5, 3, 4))
    assert consumed_as(output, "OIHW") == DATA_AS_WEIGHTS
    assert consumed_as("NCHW", "OIHW") == DATA_AS_WEIGHTS
    assert consumed_as(output, "NCHW") is None


def test_example_of_the_rfc() -> None:
    """Data (2, 5, 3, 4) that is permuted to weights (5, 4, 2, 3) still is data, and told so."""
    descriptor = Descriptor.from_tag((2, 5, 3, 4), "aBcd16b")
    axes = SemanticAxes.named("NCHW", descriptor.dims)
    perm = required_permutation(parse_permutation("0312"), parse_permutation("3201"))
    weights, meaning = descriptor.permute_axes(perm), axes.permute_axes(perm)
    assert weights.dims == meaning.dims == (5, 4, 2, 3)
    assert meaning.names == ("C", "W", "N", "H")
    told = consumed_as(meaning, "OIHW")
    assert told is not None
    # The table of the RFC: batch is height, height is width, width is input channels.
    for line in ("C is read as O", "W is read as I", "N is read as H", "H is read as W"):
        assert line in told


CASES = [
    ("NCHW", "NCHW", None),
    ("OIHW", "OIHW", None),
    ("NHWC", "HWIO", "N is read as H, H is read as W, W is read as I, C is read as O"),
    ("OIHW", "NCHW", "O is read as N, I is read as C"),
    ("NCHW", "NHWC", "C is read as H, H is read as W, W is read as C"),
    (("N", "C", "HW"), "NCW", "HW is read as W"),
    (("1", "C", "H", "1"), "NCHW", None),
    ("NCW", "OIHW", "3 axes, not 4"),
    ("KCHW", "NCHW", "K is read as N"),
    ("AB", "NC", "A is read as N, B is read as C"),
    ("", "", None),
]


@pytest.mark.parametrize(("axes", "wanted", "told"), CASES)
def test_consumed(axes: str, wanted: str, told: str | None) -> None:
    """Axes that are read as others are listed in one line; one of size 1 may mean anything."""
    found = consumed_as(axes, wanted)
    assert found is None if told is None else found is not None and found.endswith(f": {told}")
    assert "\n" not in (found or "")


def test_whose_axes() -> None:
    """Data, weights and other tensors are called so."""
    for axes, name in {
        "NCHW": "a convolution's data (N, C, H, W)",
        "NHWC": "a convolution's data (N, H, W, C)",
        "NC": "a convolution's data (N, C)",
        "NHW": "a tensor (N, H, W)",
        "GOIHW": "a convolution's weights (G, O, I, H, W)",
        "HWCK": "a convolution's weights (H, W, C, K)",
        "AB": "a tensor (A, B)",
    }.items():
        assert str(consumed_as(axes, "X")).startswith(f"{name} consumed as a tensor (X): ")


NAMES = [
    ((2, 12, 4, 6), (2, 12, 24), ("N", "C", "HW")),
    ((2, 12, 4, 6), (24, 24), ("NC", "HW")),
    ((2, 12, 4, 6), (2, 3, 4, 4, 6), ("N", "C/4", "C%4", "H", "W")),
    ((2, 12, 4, 6), (2, 2, 3, 2, 4, 6), ("N", "C/6", "C/2%3", "C%2", "H", "W")),
    ((2, 12, 4, 6), (2, 12, 2, 12), ("N", "C", "H/2", "H%2W")),
    ((2, 12, 4, 6), (2, 12, 3, 8), ("N", "C", "HW/8", "HW%8")),
    ((2, 12, 4, 6), (1, 2, 12, 4, 6, 1), ("1", "N", "C", "H", "W", "1")),
    ((1, 12, 4, 1), (12, 4), ("C", "H")),
    ((1, 12, 4, 1), (1, 48, 1), ("N", "CH", "W")),
    ((0, 12, 4, 6), (0, 12, 24), ("N", "C", "HW")),
]


@pytest.mark.parametrize(("dims", "new", "names"), NAMES)
def test_reshaped(dims: tuple[int, ...], new: tuple[int, ...], names: tuple[str, ...]) -> None:
    """Joined axes mean all of theirs, split ones quotient and remainder."""
    after = SemanticAxes.named("NCHW", dims).reshape(new)
    assert after.dims == new
    assert after.names == names


def test_split_and_joined_again() -> None:
    """Axes that are split and joined again, or joined and split again, are what they were."""
    axes = SemanticAxes.named("NCHW", (2, 12, 4, 6))
    for between in [(2, 3, 4, 4, 6), (24, 4, 6), (2, 12, 24), (576,), (8, 3, 2, 12)]:
        assert axes.reshape(between).reshape(axes.dims) == axes
    mixed = axes.reshape((2, 12, 3, 8)).reshape((2, 12, 4, 6))
    assert mixed.names == ("N", "C", "HW/6", "HW%6")
    assert consumed_as(mixed, "NCHW") is not None


def index_of(part: object, values: dict[str, int]) -> int:
    """Evaluate the name of an axis."""
    name, _, rest = str(part).partition("/")
    name, _, first = name.partition("%")
    step, _, size = rest.partition("%")
    found = values[name] // int(step or 1)
    return found % int(size or first) if size or first else found


def test_meanings_along_random_chains() -> None:
    """Along permutations and splits, each element's index is what the parts of the axes say."""
    draw, checked = random.Random(4), 0
    for _ in range(200):
        dims = tuple(draw.choice([1, 2, 4, 6]) for _ in range(3))
        numbers = np.arange(prod(dims)).reshape(dims)
        axes = SemanticAxes.named("NCH", dims)
        for _ in range(4):
            if draw.random() < 0.5:
                source = draw.sample(range(numbers.ndim), numbers.ndim)
                numbers = numbers.transpose(source)
                axes = axes.permute_axes([source.index(axis) for axis in range(numbers.ndim)])
            else:
                cut = [
                    [2, n // 2] if n % 2 == 0 and draw.random() < 0.5 else [n]
                    for n in numbers.shape
                ]
                flat = [*itertools.chain(*cut)]
                if len(flat) > 1 and draw.random() < 0.5:
                    at = draw.randrange(len(flat) - 1)
                    flat[at : at + 2] = [flat[at] * flat[at + 1]]
                numbers, axes = numbers.reshape(flat), axes.reshape(flat)
        assert axes.dims == numbers.shape
        if any(len(part.name) > 1 for parts in axes.parts for part in parts):
            continue
        checked += 1
        for place, number in np.ndenumerate(numbers):
            values = dict(zip("NCH", map(int, np.unravel_index(number, dims)), strict=True))
            for i, parts in zip(place, axes.parts, strict=True):
                sizes = [part.size for part in parts]
                digits = np.unravel_index(i, sizes) if sizes else ()
                assert [index_of(part, values) for part in parts] == [*map(int, digits)]
    assert checked > 150


def test_refused() -> None:
    """Wrong names, sizes, permutations and reshapes are refused."""
    axes = SemanticAxes.named("NCHW", (2, 12, 4, 6))
    with pytest.raises(LayoutError, match="dims has 3 entries, 4 are needed"):
        SemanticAxes.named("NCHW", (1, 2, 3))
    with pytest.raises(LayoutError, match="axes N, C, C must have different names"):
        SemanticAxes.named("NCC", (1, 2, 3))
    with pytest.raises(LayoutError, match="1 is there twice"):
        axes.permute_axes((0, 1, 1, 2))
    with pytest.raises(LayoutError, match="no reshape"):
        axes.reshape((2, 12, 4))
