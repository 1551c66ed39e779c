"""Looking elements up in arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layoutopt.integers import unique
from layoutopt.problem import IntArray

FEW = 16
"""Up to so many colours are looked up one by one, more by sorting."""


class Places:
    """Position of free elements among the chosen ones."""

    def __init__(self, chosen: IntArray, count: int) -> None:
        self._place = np.zeros(count, np.int64)
        self._place[chosen] = np.arange(len(chosen))

    def __call__(self, elements: IntArray) -> IntArray:
        """Return the positions of chosen elements."""
        return self._place[elements]


def owners(component: IntArray, labels: IntArray) -> IntArray:
    """Return for each node the first node of its component that has its label."""
    order = np.lexsort((np.arange(len(labels)), labels, component))
    c, chosen = component[order], labels[order]
    new = np.r_[True, (c[1:] != c[:-1]) | (chosen[1:] != chosen[:-1])][: len(labels)]
    owner = np.empty(len(labels), np.int64)
    owner[order] = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    return owner


def find(
    table: tuple[IntArray, IntArray, IntArray], component: IntArray, colour: IntArray
) -> IntArray:
    """Look things up by component and colour.

    Parameters
    ----------
    table
        Component, colour and thing; equal component and colour mean equal things.
    component, colour
        What to look up; everything is there.
    """
    owner, kind, thing = table
    wanted = unique(colour)
    found = np.empty(len(component), thing.dtype)
    if len(wanted) <= FEW:
        seen = np.zeros(int(owner.max(initial=0)) + 1, thing.dtype)
        for one in wanted:
            have, want = kind == one, colour == one
            seen[owner[have]] = thing[have]
            found[want] = seen[component[want]]
        return found
    width = np.int64(max(int(kind.max()), int(wanted[-1])) + 1)
    key = owner * width + kind
    order = np.argsort(key)
    at = np.searchsorted(key[order], component * width + colour)
    return thing[order[at]]


def distinct(columns: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the distinct rows of a table, in lexicographic order.

    Parameters
    ----------
    columns
        The table's columns, at least one, all of one length.

    Returns
    -------
    rows, index
        The columns of the distinct rows, stacked, and for each row of the table which it is.
    """
    key, room = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        wide = high - low + 1
        if room * wide >= 2**62:
            key = np.unique(key, return_inverse=True)[1]
            column = np.unique(column, return_inverse=True)[1]
            room, low, wide = len(key), 0, len(key) + 1
        key, room = key * wide + (column - low).astype(np.int64), room * wide
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns]), index
