"""Labelling problems with capacity: one strategy after another until the answer is proved.

Beside that the value of capacity: optima at several, and the least that costs nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, vstack

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import unique
from layoutopt.network.capacity.answer import CapacityAnswer, Reason, State
from layoutopt.network.capacity.fill import moved, regrets, repaired, rounded
from layoutopt.network.capacity.pool import Pool, large_column
from layoutopt.network.capacity.problem import CapacityProblem, Columns, joined
from layoutopt.network.capacity.search import exhaust, search
from layoutopt.network.flow import ship, shippable
from layoutopt.network.problem import IntArray, exact_integers
from layoutopt.network.solvers import highs
from layoutopt.network.solvers.programme import OPEN, Programme, ProgrammeWriter

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


LEAST = 1_000
"""Fewer kinds are not worth choosing from."""


def undecided(
    columns: Columns,
    matrix: csr_array,
    reduced: IntArray,
    copies: IntArray,
    room: IntArray,
    per_tile: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return what prices leave open: everything, if the rest does not fit.

    These are the columns of open kinds, by number, the counts of all columns, 0 for open kinds, and
    the grains that are left on tiles.
    ``columns`` has at least one of each kind, ``matrix`` the grains that they use on tiles, and
    ``reduced`` their worths, prices taken off; at least ``per_tile`` kinds are open for each tile.
    """
    first, order = columns.first, np.lexsort((-reduced, columns.kind))
    leads = np.zeros(len(reduced), bool)
    leads[order[first]] = True
    rank = np.argsort(regrets(reduced[order], first), kind="stable")
    count = max(LEAST, per_tile * len(room))
    while count < len(first):
        still = np.zeros(len(first), bool)
        still[rank[:count]] = True
        counts = np.where(leads & ~still[columns.kind], copies[columns.kind], 0)
        left = room - counts @ matrix
        if (left >= 0).all():
            return np.flatnonzero(still[columns.kind]), counts, left
        count *= 2
    return np.arange(len(reduced)), np.zeros(len(reduced), np.int64), room


LINEAR = 30_000  # configurations that the linear programme may have
CORE = 60_000  # configurations of undecided kinds that it may have

TEMPERATURES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
"""Smoothing, relative to the mean spread of a kind's values."""

STEPS = 80  # steps of L-BFGS at each temperature


@dataclass(frozen=True, eq=False)
class Master:
    """Prices, and what share of copies goes where."""

    prices: IntArray  # shape (tiles,): per grain, 0 or more
    counts: IntArray  # shape (columns,): copies, not whole, that take each configuration
    complete: bool  # whether all kinds were open


def solve_master(
    columns: Columns,
    copies: IntArray,
    capacity: IntArray,
    start: IntArray,
    limits: Limits,
    smooth: bool,
    per_tile: int,
) -> Master | None:
    """Return prices for some configurations, or ``None`` if they do not fit or time is up.

    With configurations ``k`` of worth ``v_k`` and use ``a_tk`` of tiles the dual is::

        minimise  sum_t c_t p_t + sum_kinds n max_k (v_k - sum_t a_tk p_t)   over p >= 0

    Small ones go to HiGHS.  Large ones are solved with the maximum replaced by
    ``m log sum_k exp(. / m)``, for smaller and smaller ``m``, by L-BFGS (Byrd, Lu, Nocedal and Zhu,
    SIAM J. Sci. Comput. 16, 1995); the weights of the exponentials are shares of copies
    (Nesterov, *Smooth minimization of non-smooth functions*, Math. Programming 103, 2005).  Both
    are rounded: what prices prove is computed elsewhere, exactly.

    ``columns`` has at least one of each kind, ``start`` a price for each tile.  Of many
    configurations only those of ``per_tile`` kinds for each tile are open; the others are decided
    at these prices, or at better ones if it is to be ``smooth``.
    """
    value = columns.value.astype(float)
    scale = float(np.abs(value).max(initial=0)) or 1.0
    matrix = columns.use(len(capacity))
    value = value / scale
    found: Master | None = None
    if len(value) <= LINEAR:
        found = _linear(columns.kind, value, matrix, copies, capacity, limits)
    else:
        if smooth:
            found = SmoothDual(columns, matrix, value, copies, capacity, limits).run(start / scale)
        prices = start / scale if found is None else found.prices
        reduced = value - matrix @ prices
        at, decided, left = undecided(columns, matrix, reduced, copies, capacity, per_tile)
        if len(at) <= CORE and not limits.over:
            core = _linear(columns.kind[at], value[at], matrix[at], copies, left, limits)
            if core is not None:
                counts = decided.astype(float)
                counts[at] = core.counts
                found = Master(core.prices, counts, len(at) == len(value))
    return None if found is None else Master(found.prices * scale, found.counts, found.complete)


def _linear(
    kind: IntArray,
    value: IntArray,
    matrix: csr_array,
    copies: IntArray,
    capacity: IntArray,
    limits: Limits,
) -> Master | None:
    """Solve the linear programme over configurations by HiGHS."""
    many = len(value)
    kinds, row = np.unique(kind, return_inverse=True)
    once = csr_array((np.ones(many), (row, np.arange(many))), shape=(len(kinds), many))
    rows = csr_array(vstack([once, matrix.T], format="csr"))
    given = Programme(
        value,
        copies[kind],
        *(rows.indptr, rows.indices, rows.data),
        np.concatenate([copies[kinds], np.full(len(capacity), -OPEN)]),
        np.concatenate([copies[kinds], capacity]),
        np.ones(many, bool),
    )
    found = highs.relax(given, limits, "highs")
    if found is None:
        return None
    return Master(np.maximum(found.prices[len(kinds) :], 0.0), found.values, complete=True)


class SmoothDual:
    """The smoothed dual of all configurations; ``heat`` is its temperature."""

    def __init__(
        self,
        columns: Columns,
        matrix: csr_array,
        value: IntArray,
        copies: IntArray,
        capacity: IntArray,
        limits: Limits,
    ) -> None:
        self.kind, self.value, self.limits = columns.kind, value, limits
        self.copies, self.capacity = copies.astype(float), capacity.astype(float)
        self.use = matrix.astype(float)
        self.first = columns.first
        self.back = self.use.T.tocsr()
        self.heat = 1.0
        low = np.minimum.reduceat(value, self.first)
        high = np.maximum.reduceat(value, self.first)
        self.spread = float(np.average(high - low, weights=self.copies + 1e-9)) or 1.0
        size = np.bincount(columns.column, columns.bytes.astype(float), minlength=len(value))
        # Prices per mean copy, and the objective per copy, are near 1.
        self.size = float(size.mean()) or 1.0
        self.whole = float(self.copies.sum()) or 1.0

    def shares(self, prices: IntArray) -> tuple[float, IntArray]:
        """Return the smoothed dual without capacities, and how many copies go where."""
        worth = self.value - self.use @ prices
        best = np.maximum.reduceat(worth, self.first)
        worth = np.exp((worth - best[self.kind]) / self.heat)
        total = np.add.reduceat(worth, self.first)
        shares = worth * (self.copies / total)[self.kind]
        return float(self.copies @ (best + self.heat * np.log(total))), shares

    def dual(self, scaled: IntArray) -> tuple[float, IntArray]:
        """Return value and slope at prices of a mean copy, both for a mean copy."""
        prices = scaled * self.spread / self.size
        worth, shares = self.shares(prices)
        unit = self.whole * self.spread
        slope = (self.capacity - self.back @ shares) * (self.spread / self.size)
        return (worth + float(self.capacity @ prices)) / unit, slope / unit

    def run(self, start: IntArray) -> Master:
        """Return prices at the lowest temperature that time allows."""
        at = np.maximum(start, 0.0) * self.size / self.spread
        for heat in TEMPERATURES:
            self.heat = heat * self.spread
            if self.limits.over:
                break
            answer: Any = minimize(  # type: ignore[call-overload]  # nor functions with slopes
                self.dual,
                at,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * len(at),
                options={"maxiter": STEPS, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-12},
                callback=self._watch,
            )
            at = answer.x
        prices = at * self.spread / self.size
        return Master(prices, self.shares(prices)[1], complete=False)

    def _watch(self, _at: IntArray) -> None:
        if self.limits.over:
            raise StopIteration


ROUNDS = 40  # rounds of prices and new configurations
NEAR = 1e-3  # relative gap from which on prices are not made better by smoothing
FINE = 1e-4  # relative gap from which on whole counts matter more than prices
OPEN_KINDS = 3  # kinds that the linear programme of large problems decides for each tile, at first
POLISH = 20.0  # effort of the search for whole counts near to shares; see `Limits.turn`
MARGIN = 2  # copies of each choice that are given free there beside those that are not whole
LARGEST = 30_000  # configurations that this search may have

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


def polish(state: State) -> None:
    """Search for better whole counts near the last shares.

    Kinds of whole shares keep them; of the others all but the last few copies keep theirs, and
    HiGHS places these anew, with the room that is left.  Slots are left out.
    """
    if state.last is None:
        return
    (columns, shares), copies = state.last, state.pool.copies
    matrix, near = columns.use(state.pool.tiles), np.rint(shares).astype(np.int64)
    parted = np.zeros(len(copies), bool)
    parted[columns.kind[np.abs(shares - near) > 1e-6]] = True
    loose = parted[columns.kind]
    counts = np.where(loose, np.maximum(np.floor(shares).astype(np.int64) - MARGIN, 0), near)
    left = state.room - counts @ matrix
    chosen = np.flatnonzero(loose)
    if not 0 < len(chosen) <= LARGEST or (left < 0).any():
        return
    asked = columns.chosen(chosen)
    given = copies.copy()
    np.subtract.at(given, columns.kind, counts)
    to = ProgrammeWriter()
    every = to.block(asked.value, given[asked.kind])
    kinds, row = np.unique(asked.kind, return_inverse=True)
    to.sparse(row, every, np.ones_like(every), given[kinds], given[kinds])
    used = matrix[chosen].tocoo()
    to.sparse(used.col, used.row, used.data, np.full(len(left), -OPEN), left)
    found = highs.solve(to.finished(), state.limits.within(state.limits.left / 3).turn(POLISH))
    if found.values is not None:
        counts[chosen] += found.values
        state.place(columns, counts)


def _whole(pool: Pool, prices: IntArray) -> tuple[IntArray, int]:
    """Return prices as whole numbers over one denominator, exact where a small one is."""
    for scale in DENOMINATORS:
        whole = np.rint(prices * scale)
        if (np.abs(prices * scale - whole) <= 1e-7 + 1e-12 * np.abs(whole)).all():
            break
    else:
        scale = 2 ** max(4, min(30, 58 - pool.most.bit_length()))
        whole = np.rint(prices * scale)
    return np.array([int(price) for price in whole.tolist()], object), scale


STRATEGIES = {
    "free": choose_freely,
    "flow": keep_whole,
    "pack": pack,
    "prices": find_prices,
    "moves": move,
    "exhaust": exhaust,
    "polish": polish,
    "search": search,
}
"""What is tried, in this order."""


def solve_capacity(problem: CapacityProblem, limits: Limits) -> CapacityAnswer:
    """Place all copies of all classes on tiles at the most worth."""
    started = time.perf_counter()
    state = State(Pool(problem), problem.capacity, limits)
    state.seconds["reduce"] = time.perf_counter() - started
    return solve_state(state)


def solve_state(state: State) -> CapacityAnswer:
    """Take one strategy after another until the answer is proved or good enough."""
    if (state.pool.node_bytes * state.pool.copies).sum() > state.room.sum():
        state.infeasible = Reason.BYTES
    for name, strategy in STRATEGIES.items():
        if state.done:
            break
        started = time.perf_counter()
        strategy(state)
        state.seconds[name] = time.perf_counter() - started
        state.limits.report(f"capacity: {name}", state.value, state.bound)
    return state.answer()


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
