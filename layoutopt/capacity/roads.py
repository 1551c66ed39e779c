"""The roads to a proof, from the cheapest to the dearest; each adds to what is known."""

from __future__ import annotations

import numpy as np

from layoutopt.capacity.columns import Columns, joined
from layoutopt.capacity.exhaust import exhaust
from layoutopt.capacity.fill import rounded
from layoutopt.capacity.master import solve_master, use
from layoutopt.capacity.moves import moved
from layoutopt.capacity.polish import polished
from layoutopt.capacity.pool import Pool
from layoutopt.capacity.repair import repaired
from layoutopt.capacity.singles import at_home, ship_singles, singles
from layoutopt.capacity.state import State
from layoutopt.integers import unique
from layoutopt.problem import IntArray

ROUNDS = 40
"""Rounds of prices and new configurations."""

NEAR = 1e-3
"""Relative gap from which on prices are not made better by smoothing."""

FINE = 1e-4
"""Relative gap from which on whole counts matter more than prices."""

OPEN_KINDS = 3
"""Kinds that the linear programme of large problems decides for each tile, at first."""

POLISH = 20.0
"""Effort of the search for whole counts near to shares; see ``Limits.turn``."""

DOUBLES = 2**1000
"""What copies can be worth must stay below this for roads that compute in doubles."""

DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 24, 30, 60, 120, 840)
"""Prices of small problems often are such fractions."""


def choose_freely(state: State) -> None:
    """Let every copy choose freely; done if that fits."""
    if len(state.given.kind) == state.pool.kinds:
        state.place(state.given, state.pool.copies)
    if not state.closed:
        free = state.price(np.zeros(state.pool.tiles, np.int64), 1)
        state.place(at_home(state.pool, free.columns), state.pool.copies)
        if not state.closed:
            state.place(free.columns, state.pool.copies)


def keep_whole(state: State) -> None:
    """Keep every copy whole."""
    pool = state.pool
    whole = singles(pool)
    state.columns = joined([state.columns, whole])
    found = ship_singles(pool, whole, pool.copies, state.room)
    if found is None:
        return
    shares, prices, scale = found
    state.price(np.array(prices, object), scale)
    if not _in_doubles(state):
        return
    paid = use(whole, pool.tiles) @ (np.array(prices, float) / scale)
    counts = rounded(whole, shares, whole.value.astype(float) - paid, pool.copies, state.room)
    if counts is not None:
        state.place(whole, counts)


def find_prices(state: State) -> None:
    """Find prices and configurations in turns; where that stalls, leave more kinds open."""
    pool, open_kinds = state.pool, OPEN_KINDS
    if not _in_doubles(state):
        return
    for turn in range(ROUNDS):
        start = np.zeros(pool.tiles)
        if state.priced is not None:
            start = state.priced.prices.astype(float) / state.priced.scale
        columns, dual, value = state.columns, state.dual, state.value
        smooth = turn == 0 and not state.near(NEAR)
        master = solve_master(
            columns, pool.copies, state.room, start, state.limits, smooth, open_kinds
        )
        if master is None:
            break
        state.price(*_whole(pool, master.prices))
        reduced = columns.value.astype(float) - use(columns, pool.tiles) @ master.prices
        state.last = columns, master.counts
        _fill(state, columns, master.counts, reduced)
        same = len(state.columns.kind) == len(columns.kind)
        if state.done:
            break
        if same and (state.dual, state.value) == (dual, value):
            if master.complete or state.near(FINE):
                break
            open_kinds *= 4


def _in_doubles(state: State) -> bool:
    """Return whether no worth, and no sum of worths, is too large for doubles."""
    return state.pool.most * max(1, int(state.pool.copies.sum())) < DOUBLES


def _fill(state: State, columns: Columns, shares: IntArray, reduced: IntArray) -> None:
    """Make placements from shares."""
    counts = rounded(columns, shares, reduced, state.pool.copies, state.room)
    if counts is not None:
        state.place(columns, counts)
    if len(unique(state.pool.node_bytes)) == 1:
        _fill_whole(state, columns, shares)


def _fill_whole(state: State, columns: Columns, shares: IntArray) -> None:
    """Keep the whole parts of divided configurations, and ship the other copies whole."""
    begin = columns.starts[:-1]
    least = np.minimum.reduceat(columns.labels, begin)
    single = least == np.maximum.reduceat(columns.labels, begin)
    counts = np.where(single, 0, np.floor(shares + 1e-6)).astype(np.int64)
    left = state.room - counts @ use(columns, state.pool.tiles)
    taken = np.zeros(state.pool.kinds, np.int64)
    np.add.at(taken, columns.kind, counts)
    if (left < 0).any() or (taken > state.pool.copies).any():
        return
    whole = columns.chosen(np.flatnonzero(single))
    found = ship_singles(state.pool, whole, state.pool.copies - taken, left)
    if found is not None:
        counts[single] = np.rint(found[0]).astype(np.int64)
        state.place(columns, counts)
        state.price(np.array(found[1], object), found[2])


def scatter(state: State) -> None:
    """Give each node whatever tile has most room, large ones first, if nothing else fitted."""
    if state.value is None:
        state.place(state.pool.scattered(), state.pool.copies)


def repair(state: State) -> None:
    """Pack the nodes, if nothing else fitted; then make the best placement better."""
    if state.value is None:
        found, impossible = repaired(state.pool, state.room, state.limits)
        if found is not None:
            state.offer(found)
        if impossible:
            state.proved()
    if state.filling is not None:
        state.offer(moved(state.pool, state.filling, state.room, state.limits))


def look_through(state: State) -> None:
    """Look through everything, if that is not much."""
    if state.priced is None:
        return
    done, best = exhaust(state.pool, state.room, state.priced, state.value, state.limits)
    if best is not None:
        state.offer(best)
    if done:
        state.proved()


def polish(state: State) -> None:
    """Search for better whole counts near the last shares."""
    if state.last is None:
        return
    columns, shares = state.last
    limits = state.limits.within(state.limits.left / 3).turn(POLISH)
    counts = polished(
        columns, use(columns, state.pool.tiles), shares, state.pool.copies, state.room, limits
    )
    if counts is not None:
        state.place(columns, counts)


def _whole(pool: Pool, prices: IntArray) -> tuple[IntArray, int]:
    """Return prices as whole numbers over one denominator, exact where a small one is."""
    for scale in DENOMINATORS:
        whole = np.rint(prices * scale)
        if (np.abs(prices * scale - whole) <= 1e-7 + 1e-12 * np.abs(whole)).all():
            return _integers(whole), scale
    scale = 2 ** max(4, min(30, 58 - pool.most.bit_length()))
    return _integers(np.rint(prices * scale)), scale


def _integers(values: IntArray) -> IntArray:
    """Return whole floats as Python integers, whatever their size."""
    found = np.empty(len(values), object)
    found[:] = [int(v) for v in values.tolist()]
    return found
