"""Whole counts near to the shares of a linear programme, by search among what is not whole."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array, vstack

from layoutopt.capacity.columns import Columns
from layoutopt.limits import Limits
from layoutopt.problem import IntArray
from layoutopt.solvers import integer

MARGIN = 2
"""Copies of each choice that are given free beside those that are not whole."""

LARGEST = 30_000
"""Configurations that the search may have."""


def polished(
    columns: Columns,
    matrix: csr_array,
    shares: IntArray,
    copies: IntArray,
    room: IntArray,
    limits: Limits,
) -> IntArray | None:
    """Return whole counts that fit the own tiles of kinds, or ``None`` if none were found.

    Kinds of whole shares keep them; of the others all but the last few copies keep theirs, and
    HiGHS places these anew, with the room that is left.  Slots are left out.

    Parameters
    ----------
    matrix
        Shape ``(columns, tiles)``: grains used.
    shares
        Shape ``(columns,)``: copies, not whole.
    copies, room
        Per kind, and in grains per tile.
    """
    near = np.rint(shares).astype(np.int64)
    parted = np.zeros(len(copies), bool)
    parted[columns.kind[np.abs(shares - near) > 1e-6]] = True
    loose = parted[columns.kind]
    counts = np.where(loose, np.maximum(np.floor(shares).astype(np.int64) - MARGIN, 0), near)
    left = room - counts @ matrix
    chosen = np.flatnonzero(loose)
    if not 0 < len(chosen) <= LARGEST or (left < 0).any():
        return None
    asked = columns.chosen(chosen)
    given = copies.copy()
    np.subtract.at(given, columns.kind, counts)
    kinds, row = np.unique(asked.kind, return_inverse=True)
    many = len(chosen)
    once = coo_array((np.ones(many, np.int64), (row, np.arange(many))), shape=(len(kinds), many))
    problem = integer.Integer(
        asked.value,
        given[asked.kind],
        csr_array(vstack([once, matrix[chosen].T], format="csr")),
        np.concatenate([given[kinds], np.full(len(room), -integer.OPEN)]),
        np.concatenate([given[kinds], left]),
    )
    found = integer.highs(problem, limits)
    if found.values is None:
        return None
    counts[chosen] += found.values
    return counts
