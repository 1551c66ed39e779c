"""Labelling problems with capacity: one strategy after another until the answer is proved.

Beside that the value of capacity: optima at several, and the least that costs nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import unique
from layoutopt.network.capacity.answer import CapacityAnswer, Reason, State
from layoutopt.network.capacity.fill import moved, polished, repaired, rounded
from layoutopt.network.capacity.master import solve_master
from layoutopt.network.capacity.pool import Pool, large_column
from layoutopt.network.capacity.problem import CapacityProblem, Columns, joined
from layoutopt.network.capacity.search import exhaust, search
from layoutopt.network.flow import ship, shippable
from layoutopt.network.problem import IntArray, exact_integers

FINER = 2**12  # parts of one unit of worth by which staying at home is told from moving
LARGEST_SCALE = 10**6  # copies of sizes that have so large a common multiple are not shipped


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
    """Share tiles out among whole copies, at the most worth, as ``shares, prices, scale``.

    Columns have one tile or slot each; slots have no tile yet: as all that is to be placed fits in
    all, they fit where the others leave room.  Among what is worth the same, copies stay at home as
    long as they can, and where they cannot, those move first that come first.

    Shares say how often each column is taken, in whole numbers if copies of all kinds are of one
    size; prices are per grain and times ``scale``.  ``None`` if not everything can be placed, or
    sizes are 0 or have no common multiple that is small.
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
    while not shippable(each // step, pool.kinds, pool.tiles + 1):
        step *= 2**8
    worth, finer = _stay(pool, columns, tile, (each // step).astype(np.int64))
    found = ship(supply, columns.kind, tile, worth, units)
    if found is None:
        return None
    flows, prices = found
    whole_prices = np.rint(prices[:-1] / finer).astype(np.int64).astype(object) * step
    return flows * unit / size[columns.kind], whole_prices.tolist(), scale


def _stay(pool: Pool, columns: Columns, tile: IntArray, worth: IntArray) -> tuple[IntArray, int]:
    """Return worths by which kinds would rather stay at home, and how much finer they are."""
    home = pool.home
    if (home < 0).all() or not shippable(worth * FINER, pool.kinds, pool.tiles + 1):
        return worth, 1
    half = FINER // 2
    late = half + (half - 1) * np.arange(pool.kinds) // pool.kinds
    return worth * FINER + np.where(tile == home[columns.kind], late[columns.kind], 0), FINER


ROUNDS = 40  # rounds of prices and new configurations
NEAR = 1e-3  # relative gap from which on prices are not made better by smoothing
FINE = 1e-4  # relative gap from which on whole counts matter more than prices
OPEN_KINDS = 3  # kinds that the linear programme of large problems decides for each tile, at first
POLISH = 20.0  # effort of the search for whole counts near to shares; see `Limits.turn`

DOUBLES = 2**1000
"""What copies can be worth must stay below this for strategies that compute in doubles."""

DENOMINATORS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 24, 30, 60, 120, 840)
"""Prices of small problems often are such fractions."""


def choose_freely(state: State) -> None:
    """Let every copy choose freely; done if that fits."""
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
    paid = whole.use(pool.tiles) @ (np.array(prices, float) / scale)
    counts = rounded(whole, shares, whole.value.astype(float) - paid, pool.copies, state.room)
    if counts is not None:
        state.place(whole, counts)


def find_prices(state: State) -> None:
    """Find prices and configurations in turns; where that stalls, leave more kinds open."""
    pool, open_kinds = state.pool, OPEN_KINDS
    limits = state.limits.within(state.limits.left / 2)
    if not _in_doubles(state):
        return
    for turn in range(ROUNDS):
        start = np.zeros(pool.tiles)
        if state.priced is not None:
            start = state.priced.prices.astype(float) / state.priced.scale
        columns, dual, value = state.columns, state.dual, state.value
        smooth = turn == 0 and not state.near(NEAR)
        master = solve_master(columns, pool.copies, state.room, start, limits, smooth, open_kinds)
        if master is None:
            break
        state.price(*_whole(pool, master.prices))
        reduced = columns.value.astype(float) - columns.use(pool.tiles) @ master.prices
        state.last = columns, master.counts
        counts = rounded(columns, master.counts, reduced, pool.copies, state.room)
        if counts is not None:
            state.place(columns, counts)
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


def pack(state: State) -> None:
    """Place nodes one by one, if nothing has fitted so far."""
    if state.value is None:
        found, impossible = repaired(state.pool, state.room, state.limits)
        if found is not None:
            state.offer(found)
        if impossible:
            state.proved()


def move(state: State) -> None:
    """Make the best placement better by moves of single nodes."""
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
        columns, columns.use(state.pool.tiles), shares, state.pool.copies, state.room, limits
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


STRATEGIES = {
    "free": choose_freely,
    "flow": keep_whole,
    "pack": pack,
    "prices": find_prices,
    "moves": move,
    "exhaust": look_through,
    "polish": polish,
    "search": search,
}
"""In this order; see ``STRATEGIES`` and ``search``."""


def solve_capacity(problem: CapacityProblem, limits: Limits) -> CapacityAnswer:
    """Place all copies of all classes on tiles at the most worth."""
    started = time.perf_counter()
    state = State(Pool(problem), problem.capacity, limits)
    state.seconds["reduce"] = time.perf_counter() - started
    return solve_state(state)


def solve_state(state: State) -> CapacityAnswer:
    """Take one strategy after another until the answer is proved or good enough."""
    need = int((state.pool.node_bytes * state.pool.copies).sum())
    lacking = max(need - int(state.room.sum()), 0)
    if lacking:
        state.infeasible = Reason.BYTES
    for name, strategy in STRATEGIES.items():
        if state.done:
            break
        started = time.perf_counter()
        strategy(state)
        state.seconds[name] = time.perf_counter() - started
        state.limits.report(f"capacity: {name}", state.value, state.bound)
    return state.answer(lacking * state.pool.grain)


def sweep(
    problem: CapacityProblem, capacities: Iterable[IntArray | int], limits: Limits
) -> list[CapacityAnswer]:
    """Solve a problem at several capacities, each begun where the one before ended.

    A capacity stands in place of the problem's own: bytes of each tile, shape ``(labels,)``, or of
    all. Time is shared out evenly.
    """
    pool = Pool(problem)
    found: list[CapacityAnswer] = []
    before: State | None = None
    wanted = list(capacities)
    for turn, capacity in enumerate(wanted):
        share = limits.within(limits.left / (len(wanted) - turn))
        state = State(pool, _capacity(problem, capacity), share, before)
        found.append(solve_state(state))
        before = state
    return found


def smallest_capacity(problem: CapacityProblem, limits: Limits) -> tuple[int, int | None]:
    """Return the smallest uniform capacity that costs nothing, by halving, as ``low, high``.

    No uniform capacity below ``low`` lets all copies have what they have without limits; ``high``
    does. They are equal unless time is up; ``high`` is ``None`` if it is not known.
    """
    pool = Pool(problem)
    if not problem.total_bytes:
        return 0, 0
    grain = pool.grain
    low = -(-problem.total_bytes // (grain * pool.tiles))
    high = problem.total_bytes // grain
    before = State(pool, _capacity(problem, high * grain), limits)
    answer = solve_state(before)
    if answer.objective != answer.bound or answer.bound is None:
        return low * grain, None
    free = answer.bound
    while low < high:
        middle = (low + high) // 2
        state = State(pool, _capacity(problem, middle * grain), limits, before, target=free)
        answer = solve_state(state)
        if answer.objective == free:
            high, before = middle, state
        elif answer.bound is None or answer.bound < free:
            low = middle + 1
        else:
            break
    return low * grain, high * grain


def _capacity(problem: CapacityProblem, capacity: IntArray | int) -> IntArray:
    """Return bytes of each tile, checked."""
    if isinstance(capacity, int):
        capacity = np.full(problem.problem.labels, capacity)
    return replace(problem, capacity=capacity).capacity
