"""Permutations of axes: what is composed, required, kept by name, and never copied."""

from __future__ import annotations

import itertools
import random
from math import prod

import numpy as np
import pytest

from layoutopt.layout.descriptor import Descriptor, transpose_by_copy, transpose_by_permutation
from layoutopt.layout.permutations import (
    Permutation,
    library_shape,
    parse_permutation,
    required_permutation,
)
from layoutopt.layout.semantics import SemanticAxes, consumed_as

# Permutations, and the one that a consumer of a tensor requires


def test_example_of_the_rfc() -> None:
    """Data (2, 5, 3, 4) read as weights: 0312 and 3201 require 2031, and dims (5, 4, 2, 3)."""
    perm = required_permutation(parse_permutation("0312"), parse_permutation("3201"))
    assert perm == parse_permutation("2031")
    dims = [0] * 4
    for axis, size in enumerate((2, 5, 3, 4)):
        dims[perm[axis]] = size
    assert dims == [5, 4, 2, 3]
    # The framework's shape (2, 3, 4, 5), read as HWIO: O is 5, I is 4, H is 2, W is 3.
    assert library_shape((2, 3, 4, 5), parse_permutation("3201")) == (5, 4, 2, 3)


# Meanings of axes that travel along, and uses that do not fit them


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


def test_example_of_the_rfc_of_semantics() -> None:
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


def test_split_and_joined_again() -> None:
    """Axes that are split and joined again, or joined and split again, are what they were."""
    axes = SemanticAxes.named("NCHW", (2, 12, 4, 6))
    for between in [(2, 3, 4, 4, 6), (24, 4, 6), (2, 12, 24), (576,), (8, 3, 2, 12)]:
        assert axes.reshape(between).reshape(axes.dims) == axes
    mixed = axes.reshape((2, 12, 3, 8)).reshape((2, 12, 4, 6))
    assert mixed.names == ("N", "C", "HW/6", "HW%6")
    assert consumed_as(mixed, "NCHW") is not None


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
        if len(axes.known) > 3:
            continue  # axes that were joined and then split elsewhere
        checked += 1
        for place, number in np.ndenumerate(numbers):
            values = np.unravel_index(number, dims)
            for i, factors in zip(place, axes.form, strict=True):
                digits = np.unravel_index(i, [f.size for f in factors]) if factors else ()
                assert [values[f.axis] // f.stride % f.size for f in factors] == [*digits]
    assert checked > 150


# A framework's transpose, in the permutation or in the bytes


def seen(descriptor: Descriptor, permutation: Permutation, memory: np.ndarray) -> np.ndarray:
    """Return the array that a framework sees, element by element."""
    at = descriptor.offsets()
    shape = [0] * descriptor.rank
    for axis, where in enumerate(permutation):
        shape[where] = descriptor.dims[axis]
    found = np.empty(shape, memory.dtype)
    for index in np.ndindex(*shape):
        found[index] = memory[at[tuple(index[where] for where in permutation)]]
    return found


def test_example_of_the_rfc_of_transposes() -> None:
    """The RFC's buf2 of shape (3, 2), whose library dims are (2, 3) in ab with permutation 10."""
    d = Descriptor.from_tag((2, 3), "ab")
    memory = np.arange(6)
    assert seen(d, (1, 0), memory).tolist() == [[0, 3], [1, 4], [2, 5]]

    free = transpose_by_permutation(d, (1, 0), (1, 0))
    assert (free.permutation, free.descriptor, free.shape) == ((0, 1), d, (2, 3))
    assert not free.moves_bytes
    assert seen(free.descriptor, free.permutation, memory).tolist() == [[0, 1, 2], [3, 4, 5]]

    copy = transpose_by_copy(d, (1, 0), (1, 0))
    assert (copy.permutation, copy.shape, copy.moves_bytes) == ((1, 0), (2, 3), True)
    assert copy.descriptor == Descriptor.from_tag((3, 2), "ab")


def test_mistake_of_the_rfc() -> None:
    """The RFC's first option changes the format as well, which would mix up the elements."""
    memory = np.arange(6)
    wrong = Descriptor.from_tag((2, 3), "ba")
    assert seen(wrong, (0, 1), memory).tolist() != [[0, 1, 2], [3, 4, 5]]


CASES_TRANSPOSES = [
    (Descriptor.from_tag((2, 5, 3, 4), "acdb"), (0, 3, 1, 2)),
    (Descriptor.from_tag((2, 5, 3, 1), "aBcd4b"), (0, 3, 1, 2)),
    (Descriptor.from_tag((3, 5, 2), "BAc2a4b"), (2, 0, 1)),
    (Descriptor((3, 4), (6, 1)), (1, 0)),
    (Descriptor((2, 3), (1, 3), (3, 3)), (0, 1)),
    (Descriptor((1, 3, 1), (3, 1, 1)), (2, 0, 1)),
    (Descriptor((), ()), ()),
]


@pytest.mark.parametrize(("descriptor", "permutation"), CASES_TRANSPOSES)
def test_both_ways(descriptor: Descriptor, permutation: Permutation) -> None:
    """For all axes, the framework sees NumPy's transpose, and bytes move just if told so."""
    memory = np.array(random.Random(3).sample(range(1000), max(descriptor.size, 1)))
    before = seen(descriptor, permutation, memory)
    for axes in itertools.permutations(range(descriptor.rank)):
        wanted = before.transpose(axes)
        free = transpose_by_permutation(descriptor, permutation, axes)
        assert free.descriptor is descriptor
        assert free.shape == wanted.shape
        assert np.array_equal(seen(free.descriptor, free.permutation, memory), wanted)

        copy = transpose_by_copy(descriptor, permutation, axes)
        assert copy.permutation == permutation
        assert copy.shape == wanted.shape
        filled = np.zeros(copy.descriptor.size, memory.dtype)
        filled[copy.descriptor.offsets()] = wanted.transpose(permutation)
        assert np.array_equal(seen(copy.descriptor, copy.permutation, filled), wanted)
        places = seen(descriptor, permutation, np.arange(len(memory))).transpose(axes)
        stays = np.array_equal(places.transpose(permutation), copy.descriptor.offsets())
        assert copy.moves_bytes is not stays
