"""A framework's transpose, in the permutation or in the bytes."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from layoutopt.layout.descriptor import Descriptor, transpose_by_copy, transpose_by_permutation
from layoutopt.layout.layout import LayoutError
from layoutopt.layout.permutations import Permutation


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


def test_example_of_the_rfc() -> None:
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


CASES = [
    (Descriptor.from_tag((2, 5, 3, 4), "acdb"), (0, 3, 1, 2)),
    (Descriptor.from_tag((2, 5, 3, 1), "aBcd4b"), (0, 3, 1, 2)),
    (Descriptor.from_tag((3, 5, 2), "BAc2a4b"), (2, 0, 1)),
    (Descriptor((3, 4), (6, 1)), (1, 0)),
    (Descriptor((2, 3), (1, 3), (3, 3)), (0, 1)),
    (Descriptor((1, 3, 1), (3, 1, 1)), (2, 0, 1)),
    (Descriptor((), ()), ()),
]


@pytest.mark.parametrize(("descriptor", "permutation"), CASES)
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


@pytest.mark.parametrize(
    ("permutation", "axes"), [((0, 1, 2), (0, 1)), ((0, 1), (0, 0)), ((0, 2), (0, 1)), ((0,), (0,))]
)
def test_wrong_transposes(permutation: Permutation, axes: Permutation) -> None:
    """Other ranks and no permutations are refused by both."""
    d = Descriptor.from_tag((2, 3), "ab")
    for transpose in (transpose_by_permutation, transpose_by_copy):
        with pytest.raises(LayoutError, match="permutation"):
            transpose(d, permutation, axes)
