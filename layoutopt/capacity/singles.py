"""Configurations that keep a whole copy on one tile, and the best share of tiles among them."""

from __future__ import annotations

import math

import numpy as np

from layoutopt.capacity.columns import Columns, joined
from layoutopt.capacity.large import large_column
from layoutopt.capacity.pool import Pool
from layoutopt.integers import unique
from layoutopt.problem import IntArray, exact_integers
from layoutopt.solvers import transport

FINER = 2**12
"""Parts of one unit of worth by which staying at home is told from moving."""

LARGEST_SCALE = 10**6
"""Copies of sizes that have so large a common multiple are not shipped."""


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
        own_tiles = unique(large.problem.reward_at[:, 1]).tolist()
        for tile in own_tiles + [pool.tiles] * (len(own_tiles) < pool.tiles):
            labels = np.full(large.problem.nodes, tile)
            parts.append(large_column(large, labels, pool.first[-1] + j))
    return joined(parts)


def at_home(pool: Pool, columns: Columns) -> Columns:
    """Return configurations, one of each kind, with those at home where these are worth as much."""
    home = pool.home
    if (home < 0).all():
        return columns
    whole = singles(pool)
    stays = whole.labels[whole.starts[:-1]] == home[whole.kind]
    stays &= whole.value == columns.value[whole.kind]
    others = np.ones(pool.kinds, bool)
    others[whole.kind[stays]] = False
    return joined([whole.chosen(np.flatnonzero(stays)), columns.chosen(np.flatnonzero(others))])


def ship_singles(
    pool: Pool, columns: Columns, copies: IntArray, room: IntArray
) -> tuple[IntArray, list[int], int] | None:
    """Share tiles out among whole copies, at the most worth.

    Slots have no tile yet: as all that is to be placed fits in all, they fit where the
    others leave room.  Among what is worth the same, copies stay at home as long as they can,
    and where they cannot, those move first that come first.

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
    shares, prices, scale
        How often each column is taken, whole numbers if copies of all kinds are of one size;
        prices per grain, times ``scale``.  ``None`` if not everything can be placed, or sizes are
        0 or have no common multiple that is small.
    """
    size = pool.node_bytes
    unit = int(np.gcd.reduce(size[copies > 0], initial=0)) or 1
    scale = math.lcm(*unique(size).tolist())
    if not 0 < scale <= LARGEST_SCALE:  # sizes of 0 need no room
        return None
    tile = np.minimum(columns.labels[columns.starts[:-1]], pool.tiles)
    supply = copies * (size // unit)
    whole = int(supply.sum())
    units = np.append(room // unit, whole)
    if int(units[:-1].sum()) < whole:
        return None
    each = exact_integers((columns.value * (scale // size[columns.kind]).astype(object)).tolist())
    step = 1
    while not transport.fits(each // step, pool.kinds, pool.tiles + 1):
        step *= 2**8
    worth, finer = _stay(pool, columns, tile, (each // step).astype(np.int64))
    found = transport.ship(supply, columns.kind, tile, worth, units)
    if found is None:
        return None
    shares = found.flows * unit / size[columns.kind]
    prices = np.rint(found.prices[:-1] / finer).astype(np.int64).astype(object) * step
    return shares, prices.tolist(), scale


def _stay(pool: Pool, columns: Columns, tile: IntArray, worth: IntArray) -> tuple[IntArray, int]:
    """Return worths by which kinds would rather stay at home, and how much finer they are."""
    home = pool.home
    if (home < 0).all() or not transport.fits(worth * FINER, pool.kinds, pool.tiles + 1):
        return worth, 1
    half = FINER // 2
    late = half + (half - 1) * np.arange(pool.kinds) // pool.kinds
    return worth * FINER + np.where(tile == home[columns.kind], late[columns.kind], 0), FINER
