"""Whether nodes of given sizes fit at all: bin packing with a whole number of each size.

What nodes are worth plays no part, so that all nodes of one size are alike, and the programme
is as small as there are sizes and tiles: with ``z[s,t]`` nodes of size ``s`` on tile ``t``::

    sum_t z[s,t] = numbers[s],   sum_s sizes[s] z[s,t] <= room[t],   z whole, not negative
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from layoutopt.limits import Limits
from layoutopt.problem import IntArray
from layoutopt.solvers import integer

EFFORT = 20.0
"""Of the search, see ``Limits.turn``."""

VARIABLES = 50_000
"""Sizes times tiles that are searched."""


def packed(
    sizes: IntArray, numbers: IntArray, room: IntArray, limits: Limits
) -> tuple[IntArray | None, bool]:
    """Share nodes out among tiles so that all fit.

    Parameters
    ----------
    sizes, numbers
        Shape ``(s,)``: distinct sizes of 1 or more, and how many nodes have each.
    room
        Shape ``(tiles,)``.

    Returns
    -------
    table, impossible
        Shape ``(s, tiles)``: how many nodes of each size each tile gets, or ``None`` if none
        was found; and whether it is proved that there is none.
    """
    table = best_fit(sizes, numbers, room)
    if table is not None or len(sizes) * len(room) > VARIABLES:
        return table, False
    asked = _programme(sizes, numbers, room)
    if not integer.fits(asked):
        return None, False
    found = integer.cpsat(asked, limits.within(limits.left / 3).turn(EFFORT))
    if found.values is None:
        return None, found.infeasible
    return found.values.reshape(len(sizes), len(room)), False


def best_fit(sizes: IntArray, numbers: IntArray, room: IntArray) -> IntArray | None:
    """Put large nodes first, each on the fullest tile that has room; ``None`` if that fails."""
    left = room.copy()
    table = np.zeros((len(sizes), len(room)), np.int64)
    for s in np.argsort(-sizes, kind="stable").tolist():
        order = np.argsort(left, kind="stable")
        holds = left[order] // sizes[s]
        before = np.cumsum(holds) - holds
        table[s, order] = np.clip(int(numbers[s]) - before, 0, holds)
        if int(table[s].sum()) < int(numbers[s]):
            return None
        left -= table[s] * sizes[s]
    return table


def _programme(sizes: IntArray, numbers: IntArray, room: IntArray) -> integer.Integer:
    s, tiles = len(sizes), len(room)
    size, tile = np.divmod(np.arange(s * tiles), tiles)
    every = np.arange(s * tiles)
    rows = np.concatenate([size, s + tile])
    data = np.concatenate([np.ones(s * tiles, np.int64), sizes[size]])
    matrix = coo_array((data, (rows, np.concatenate([every, every]))), shape=(s + tiles, s * tiles))
    return integer.Integer(
        np.zeros(s * tiles, np.int64),
        np.minimum(numbers[size], room[tile] // sizes[size]),
        matrix.tocsr(),
        np.concatenate([numbers, np.full(tiles, -integer.OPEN)]),
        np.concatenate([numbers, room]),
    )
