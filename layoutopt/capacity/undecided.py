"""Which kinds are decided at prices, and what is left to decide.

At good prices most kinds have one choice that is clearly best, and at most as many as
there are tiles are divided by the linear programme (a basis has no more rows).  The first are
set; the others, and some more whose second choice is nearly as good, stay open, with the room
that is left.  (For knapsacks this is the *core*: Balas and Zemel, Oper. Res. 28, 1980.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from layoutopt.capacity.columns import Columns
from layoutopt.problem import IntArray

LEAST = 1_000
"""Fewer kinds are not worth choosing from."""


@dataclass(frozen=True, eq=False)
class Undecided:
    """The open part of a problem.

    Parameters
    ----------
    chosen
        The columns of open kinds, by number.
    counts
        Shape ``(columns,)``: what is decided; 0 for open kinds.
    room
        Shape ``(tiles,)``: the grains left for open kinds.
    """

    chosen: IntArray
    counts: IntArray
    room: IntArray


def undecided(
    columns: Columns,
    matrix: csr_array,
    reduced: IntArray,
    copies: IntArray,
    room: IntArray,
    per_tile: int,
) -> Undecided:
    """Return what prices leave open: everything, if the rest does not fit.

    Parameters
    ----------
    columns
        Ordered by kind, at least one for each.
    matrix
        Shape ``(columns, tiles)``: grains used.
    reduced
        Shape ``(columns,)``: worth less prices.
    copies, room
        Per kind, and in grains per tile.
    per_tile
        Kinds to leave open for each tile.
    """
    first = np.flatnonzero(np.r_[True, np.diff(columns.kind) != 0])
    best = np.maximum.reduceat(reduced, first)[columns.kind]
    order = np.lexsort((-reduced, columns.kind))
    leads = np.zeros(len(reduced), bool)
    leads[order[first]] = True
    regret = np.minimum.reduceat(np.where(leads, np.inf, best - reduced), first)
    rank = np.argsort(regret, kind="stable")
    count = max(LEAST, per_tile * len(room))
    while count < len(first):
        still = np.zeros(len(first), bool)
        still[rank[:count]] = True
        counts = np.where(leads & ~still[columns.kind], copies[columns.kind], 0)
        left = room - counts @ matrix
        if (left >= 0).all():
            return Undecided(np.flatnonzero(still[columns.kind]), counts, left)
        count *= 2
    return Undecided(np.arange(len(reduced)), np.zeros(len(reduced), np.int64), room)
