"""Reshapes with sizes left open, and groups of dimensions."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest

from layoutopt.layout.layout import LayoutError
from layoutopt.layout.reshape import regroup, reshape_dims

DIMS = [
    ((2, 3, 4), (6, 4), (6, 4)),
    ((2, 3, 4), (0, 12), (2, 12)),
    ((2, 3, 4), ("match", "fill"), (2, 12)),
    # PlaidML writes through a pointer that the next dimension may have made stale.
    ((2, 3, 4), (-1, 0, 2), (4, 3, 2)),
    ((2, 3, 4), (0, 0, 0), (2, 3, 4)),
    ((2, 3, 4), (-1,), (24,)),
    ((2, 3, 4), ("match", 1, -1, 1), (2, 1, 12, 1)),
    ((2, 3, 4), (24, "fill"), (24, 1)),
    ((), (), ()),
    ((), (-1,), (1,)),
    ((1, 1), (), ()),
    ((0, 3), (3, -1), (3, 0)),
    ((0, 3), (0, 5), (0, 5)),
    ((5, 0), (-1, 0, 3), None),
    (np.array([2, 6]), [np.int64(3), -1], (3, 4)),
]


@pytest.mark.parametrize(("shape", "wanted", "found"), DIMS)
def test_open_sizes(shape, wanted, found) -> None:
    """Sizes that match are the input's, and one is what the others leave."""
    if found is None:
        with pytest.raises(LayoutError, match="without elements"):
            reshape_dims(shape, wanted)
    else:
        assert reshape_dims(shape, wanted) == found


REFUSED = [
    ((2, 3), (-1, "fill"), "reshape: only one size can be filled"),
    # PlaidML rounds 6 / 4 down to 1, and reshapes 6 elements to 4.
    ((2, 3), (4, -1), "reshape of (2, 3) to (4, -1): 6 elements do not fit"),
    ((2, 3), (7,), "reshape of (2, 3) to (7): 6 elements do not fit"),
    ((2, 3), (1, 6, 0), "wanted[2] has nothing to match: the input is (2, 3)"),
    ((2, 3), (1, 6, "match"), "wanted[2] has nothing to match: the input is (2, 3)"),
    # PlaidML divides by zero.
    ((0, 3), (0, -1), "reshape: any size would fill a tensor without elements"),
    ((2, 3), (6, -2), "wanted[1] must be an integer of -1 or more, got -2;"),
    ((2, 3), ("same", 3), "wanted[0] must be an integer of -1 or more, got 'same';"),
    ((2, 3), (2.0, 3), "wanted[0] must be an integer of -1 or more, got 2.0;"),
    ((2, 3), (None, 3), "wanted[0] must be an integer of -1 or more, got None;"),
    ((1, 3), (True, 3), "wanted[0] must be an integer of -1 or more, got True;"),
    ((2, 3), ([6], 1), "wanted[0] must be an integer of -1 or more, got [6];"),
    ((2, 3), "fill", "wanted must be a list of integers, got 'fill';"),
    ((2, 3), 6, "wanted must be a list of integers, got 6;"),
    ((2, -3), (6,), "shape[1] must be an integer of 0 or more, got -3"),
]


@pytest.mark.parametrize(("shape", "wanted", "told"), REFUSED)
def test_refused_sizes(shape, wanted, told: str) -> None:
    """Two sizes to fill, one that does not divide, one out of range and other things: a line."""
    with pytest.raises(LayoutError) as caught:
        reshape_dims(shape, wanted)
    assert str(caught.value).startswith(told)
    assert told.endswith(";") or str(caught.value) == told


GROUPS = [
    ((6, 2), (3, 2, 2), {((0,), (0, 1)), ((1,), (2,))}),
    ((15, 3, 4), (3, 5, 6, 1, 2), {((0,), (0, 1)), ((1, 2), (2, 4)), ((), (3,))}),
    ((1, 2, 1), (2,), {((0,), ()), ((1,), (0,)), ((2,), ())}),
    ((2,), (1, 2, 1), {((), (0,)), ((0,), (1,)), ((), (2,))}),
    # Between groups the last dimensions of 1 pair up; in a group they come and go.
    ((2, 1, 1, 3), (2, 1, 3), {((0,), (0,)), ((1,), ()), ((2,), (1,)), ((3,), (2,))}),
    ((2, 1, 3), (6, 1), {((0, 2), (0,)), ((1,), ()), ((), (1,))}),
    ((2, 0, 3), (2, 0, 3), {((0,), (0,)), ((1,), (1,)), ((2,), (2,))}),
    ((4, 0, 6), (2, 2, 0, 6), {((0,), (0, 1)), ((1,), (2,)), ((2,), (3,))}),
    ((), (), set()),
]


@pytest.mark.parametrize(("old", "new", "groups"), GROUPS)
def test_groups(old: tuple[int, ...], new: tuple[int, ...], groups: set[object]) -> None:
    """Groups are the smallest of equal product, and dimensions of 1 stand alone."""
    assert set(regroup(old, new)) == groups


def test_dimensions_that_stay() -> None:
    """Of two dimensions of 1 the one to stay is kept, wherever it is."""
    assert set(regroup((1, 1), (1,), stay=[0])) == {((0,), (0,)), ((1,), ())}
    assert set(regroup((1, 1), (1,), stay=[1])) == {((0,), ()), ((1,), (0,))}
    assert set(regroup((1, 1), (), stay=[1])) == {((0,), ()), ((1,), ())}


WRONG_GROUPS = [
    ((2, 3), (5,), "(2, 3) has 6 elements, (5,) has 5: no reshape"),
    ((0, 2), (0, 4), "(0, 2) to (0, 4): a dimension of 0 can only be kept"),
    ((2, 0), (0,), "(2, 0) to (0,): a dimension of 0 can only be kept"),
    ((0,), (0, 0), "(0,) to (0, 0): a dimension of 0 can only be kept"),
]


@pytest.mark.parametrize(("old", "new", "told"), WRONG_GROUPS)
def test_no_groups(old: tuple[int, ...], new: tuple[int, ...], told: str) -> None:
    """Other numbers of elements have no groups, nor have dimensions of 0 that are changed."""
    with pytest.raises(LayoutError) as caught:
        regroup(old, new)
    assert str(caught.value) == told


def test_groups_cover_all_dimensions() -> None:
    """Every dimension is in one group, and both sides of a group that has two are equal."""
    shapes = [s for n in range(5) for s in itertools.product((1, 2, 3, 4), repeat=n)]
    same = [(a, b) for a, b in itertools.product(shapes, repeat=2) if prod(a) == prod(b)]
    assert len(same) > 5000
    for old, new in same:
        groups = regroup(old, new)
        for side, shape in enumerate((old, new)):
            axes = [axis for group in groups for axis in group[side]]
            assert sorted(axes) == list(range(len(shape)))
        assert all(prod(old[i] for i in a) == prod(new[j] for j in b) for a, b in groups)
