"""Sets of integers as sorted arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.base.numbers import union, unique, without

VALUES = st.lists(st.integers(-5, 5), max_size=12)


@given(VALUES, VALUES)
def test_sets_of_integers(one: list[int], two: list[int]) -> None:
    """Results are those of Python's sets, in ascending order."""
    a, b = np.array(one, np.int64), np.array(two, np.int64)
    assert unique(a).tolist() == sorted(set(one))
    assert union(a, b).tolist() == sorted(set(one) | set(two))
    assert without(a, np.sort(b)).tolist() == sorted(set(one) - set(two))


def test_shape_and_type_are_kept() -> None:
    """Arrays of any shape are flattened, and small integers stay small."""
    found = unique(np.array([[3, 1], [1, 2]], np.int8))
    assert (found.tolist(), found.dtype) == ([1, 2, 3], np.int8)
