"""Configurations that keep a whole copy on one tile, and the best share of tiles among them."""

from __future__ import annotations

import numpy as np

from layoutopt.capacity.columns import Columns, joined
from layoutopt.capacity.large import large_column
from layoutopt.capacity.pool import Pool
from layoutopt.problem import IntArray, exact_integers
from layoutopt.solvers import transport


def singles(pool: Pool) -> Columns:
    """Return for each kind the configurations of one own tile, and the one of one slot."""
    parts = []
    for number, group in enumerate(pool.groups):
        kinds, n, own = group.rewards.shape
        slots = min(1, pool.tiles - own)
        rows = np.repeat(np.arange(own + slots)[:, None], n, axis=1)
        each = np.repeat(np.arange(kinds), len(rows))
        parts.append(pool.columns(number, each, np.tile(rows, (kinds, 1))))
    for j, large in enumerate(pool.large):
        own_tiles = np.unique(large.problem.reward_at[:, 1]).tolist()
        for tile in own_tiles + [pool.tiles] * (len(own_tiles) < pool.tiles):
            labels = np.full(large.problem.nodes, tile)
            parts.append(large_column(large, labels, pool.first[-1] + j))
    return joined(parts)


def equal_size(pool: Pool) -> int:
    """Return the grains of a copy of every kind, if they are alike for all; else 0."""
    sizes = np.unique(pool.node_bytes)
    return int(sizes[0]) if len(sizes) == 1 else 0


def ship_singles(
    pool: Pool, columns: Columns, copies: IntArray, room: IntArray
) -> tuple[IntArray, list[int], int] | None:
    """Share tiles out among whole copies of equal size, at the most worth.

    Slots have no tile yet: as all that is to be placed fits in all, they fit where the
    others leave room.

    Parameters
    ----------
    columns
        Of one tile or slot each.
    copies
        Shape ``(kinds,)``: how many to place.
    room
        Shape ``(tiles,)``: in grains.

    Returns
    -------
    counts, prices, scale
        How often each column is taken; prices per grain, times ``scale``.  ``None`` if not
        everything can be placed.
    """
    size = equal_size(pool)
    tile = np.minimum(columns.labels[columns.starts[:-1]], pool.tiles)
    whole = int(copies.sum())
    units = np.append(room // size, whole)
    worth, unit = columns.value, 1
    while not transport.fits(worth, pool.kinds, pool.tiles + 1):
        unit *= 2**8
        worth = exact_integers([v // unit for v in columns.value.tolist()])
    if int(units[:-1].sum()) < whole:
        return None
    found = transport.ship(copies, columns.kind, tile, worth.astype(np.int64), units)
    if found is None:
        return None
    prices = found.prices[:-1].astype(object) * unit
    return found.flows, prices.tolist(), size
