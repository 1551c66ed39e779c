"""Sets of integers as sorted arrays.

:func:`numpy.unique` without counts or indices goes through a hash table since NumPy 2.3, which
for arrays of integers takes many times as long as sorting them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unique(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values of an array of any shape, ascending."""
    found = np.sort(values, axis=None)
    kept: NDArray[Any] = found[np.r_[True, found[1:] != found[:-1]][: len(found)]]
    return kept


def union(one: NDArray[Any], two: NDArray[Any]) -> NDArray[Any]:
    """Return the values of either array, ascending."""
    return unique(np.concatenate([one, two]))


def without(values: NDArray[Any], known: NDArray[Any]) -> NDArray[Any]:
    """Return the different values of an array that are not known ones, ascending.

    Parameters
    ----------
    known
        Ascending.
    """
    found = unique(values)
    if not len(known):
        return found
    at = np.minimum(np.searchsorted(known, found), len(known) - 1)
    new: NDArray[Any] = found[known[at] != found]
    return new
