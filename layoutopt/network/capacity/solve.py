"""Labelling problems with capacity: one strategy after another until the answer is proved."""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import islice

import numpy as np
from scipy.sparse import csr_array

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import unique
from layoutopt.network.capacity.answer import CapacityAnswer, Reason, State
from layoutopt.network.capacity.fill import Filling, Rows, rounded
from layoutopt.network.capacity.master import solve_master, use
from layoutopt.network.capacity.pool import Pool, large_column, one_copy, tables
from layoutopt.network.capacity.problem import CapacityProblem, Columns, joined
from layoutopt.network.capacity.search import exhaust, search
from layoutopt.network.flow import ship, shippable
from layoutopt.network.problem import IntArray, Labelling, exact_integers
from layoutopt.network.solvers import highs
from layoutopt.network.solvers.cpsat import solve_programme
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
    shares = found.flows * unit / size[columns.kind]
    prices = np.rint(found.prices[:-1] / finer).astype(np.int64).astype(object) * step
    return shares, prices.tolist(), scale


def _stay(pool: Pool, columns: Columns, tile: IntArray, worth: IntArray) -> tuple[IntArray, int]:
    """Return worths by which kinds would rather stay at home, and how much finer they are."""
    home = pool.home
    if (home < 0).all() or not shippable(worth * FINER, pool.kinds, pool.tiles + 1):
        return worth, 1
    half = FINER // 2
    late = half + (half - 1) * np.arange(pool.kinds) // pool.kinds
    return worth * FINER + np.where(tile == home[columns.kind], late[columns.kind], 0), FINER


NODES = 300
"""Nodes of all configurations that are moved."""

PASSES = 20  # passes over all nodes


class _Moves:
    """A placement whose nodes move; all copies of a configuration move together."""

    def __init__(self, pool: Pool, filling: Filling, room: IntArray) -> None:
        columns, counts = filling.columns, filling.counts
        self.tiles = pool.tiles
        self.labels: list[int] = columns.labels.tolist()
        self.size: list[int] = (columns.bytes * counts[columns.column]).tolist()
        self.count: list[int] = counts[columns.column].tolist()
        self.left: list[int] = room.tolist()
        for tile, size in zip(self.labels, self.size, strict=True):
            self.left[tile] -= size
        self.earns: list[dict[int, int]] = []
        self.around: list[dict[int, int]] = []
        for i, kind in enumerate(columns.kind.tolist()):
            begin = int(columns.starts[i])
            earns, around = tables(one_copy(pool, kind)[0])
            self.earns += earns
            self.around += [{begin + v: w for v, w in near.items()} for near in around]

    def worth(self, u: int) -> list[int]:
        """Return what a node is worth on each tile, the others where they are."""
        worth = [0] * self.tiles
        for tile, value in self.earns[u].items():
            worth[tile] += value
        for v, weight in self.around[u].items():
            worth[self.labels[v]] += weight
        return [self.count[u] * value for value in worth]

    def at(self, u: int, tile: int) -> int:
        """Return what a node is worth on one tile."""
        near = sum(weight for v, weight in self.around[u].items() if self.labels[v] == tile)
        return self.count[u] * (self.earns[u].get(tile, 0) + near)

    def move(self, u: int, tile: int) -> None:
        """Put a node on another tile."""
        self.left[self.labels[u]] += self.size[u]
        self.left[tile] -= self.size[u]
        self.labels[u] = tile

    def better(self, u: int) -> bool:
        """Move a node to where it is worth more, if there is room; or try an exchange."""
        worth, here = self.worth(u), self.labels[u]
        for tile in sorted(range(self.tiles), key=lambda t: -worth[t]):
            if worth[tile] <= worth[here]:
                break
            if self.left[tile] >= self.size[u]:
                self.move(u, tile)
                return True
        return any(self._exchange(u, v, worth) for v in range(len(self.labels)))

    def _exchange(self, u: int, v: int, worth: list[int]) -> bool:
        """Exchange the tiles of two nodes, if that fits and pays."""
        here, there = self.labels[u], self.labels[v]
        more = self.size[u] - self.size[v]
        if here == there or self.left[there] < more or self.left[here] < -more:
            return False
        gain = worth[there] - worth[here]
        gain += self.at(v, here) - self.at(v, there)
        gain -= 2 * self.count[u] * self.around[u].get(v, 0)  # neither is where the other was
        if gain <= 0:
            return False
        self.move(u, there)
        self.move(v, here)
        return True


def moved(pool: Pool, filling: Filling, room: IntArray, limits: Limits) -> Filling:
    """Return a placement that no such move makes better, unless passes or time run out.

    One of more than :data:`NODES` nodes in all configurations is returned as it is.
    """
    columns = filling.columns
    if len(columns.labels) > NODES:
        return filling
    moves = _Moves(pool, filling, room)
    for _ in range(PASSES):
        better = [moves.better(u) for u in range(len(moves.labels)) if not limits.over]
        if not any(better):
            break
    labels = np.array(moves.labels, np.int64)
    again = Columns(columns.kind, columns.value, columns.starts, labels, columns.bytes)
    return Filling(again, filling.counts)


MARGIN = 2  # copies of each choice that are given free beside those that are not whole
LARGEST = 30_000  # configurations that the search may have


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
    to = ProgrammeWriter()
    every = to.block(asked.value, given[asked.kind])
    kinds, row = np.unique(asked.kind, return_inverse=True)
    to.sparse(row, every, np.ones_like(every), given[kinds], given[kinds])
    used = matrix[chosen].tocoo()
    to.sparse(used.col, used.row, used.data, np.full(len(room), -OPEN), left)
    found = highs.solve(to.finished(), limits)
    if found.values is None:
        return None
    counts[chosen] += found.values
    return counts


EFFORT = 20.0  # of the search, see `Limits.turn`
VARIABLES = 50_000  # sizes times tiles that are searched


def packed(
    sizes: IntArray, numbers: IntArray, room: IntArray, limits: Limits
) -> tuple[IntArray | None, bool]:
    """Share nodes out among tiles so that all fit, or prove that to be impossible.

    ``numbers`` of nodes have each of ``sizes``, which are distinct and 1 or more.  Return how many
    nodes of each size each tile gets, shape ``(sizes, tiles)``, or ``None``, and whether it is
    proved that there is no such table.
    """
    table = best_fit(sizes, numbers, room)
    if table is not None or len(sizes) * len(room) > VARIABLES:
        return table, False
    asked = _programme(sizes, numbers, room)
    if not asked.fits():
        return None, False
    found = solve_programme(asked, limits.within(limits.left / 3).turn(EFFORT))
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


def _programme(sizes: IntArray, numbers: IntArray, room: IntArray) -> Programme:
    to, shape = ProgrammeWriter(), (len(sizes), len(room))
    most = np.minimum(numbers[:, None], room // sizes[:, None])
    taken = to.block(np.zeros(shape, np.int64), most)
    to.family(taken, [1] * len(room), numbers, numbers)
    to.family(taken.T, sizes, high=room)
    return to.finished()


TRIES = 4  # tiles of no worth of their own that a node looks at


def repaired(pool: Pool, room: IntArray, limits: Limits) -> tuple[Filling | None, bool]:
    """Place all nodes one by one, so that they fit, or prove that to be impossible.

    A packing says how many nodes of each size each tile gets.  Copies, those of most worth first,
    then take these places: each node the one that is worth most beside the nodes placed before it.
    """
    shapes = [one_copy(pool, kind) for kind in range(pool.kinds)]
    copies = pool.copies.tolist()
    every = np.concatenate([size for _, size in shapes])
    many = np.repeat(pool.copies, [len(size) for _, size in shapes])
    sizes, inverse = np.unique(every[every > 0], return_inverse=True)
    numbers = np.zeros(len(sizes), np.int64)
    np.add.at(numbers, inverse.reshape(-1), many[every > 0])
    table, impossible = packed(sizes, numbers, room, limits)
    if table is None:
        return None, impossible
    places = _Places(sizes, table)
    rows = Rows()
    for kind in sorted(range(pool.kinds), key=lambda kind: -shapes[kind][0].total()):
        problem, size = shapes[kind]
        still = copies[kind]
        while still:
            labels, taken = _placed(problem, size.tolist(), places, still)
            rows.add(kind, taken, np.array(labels, np.int64), size)
            still -= taken
    return rows.filling(), False


class _Places:
    """Numbers of nodes of each size that each tile still takes."""

    def __init__(self, sizes: IntArray, table: IntArray) -> None:
        self.tiles = table.shape[1]
        self.left: dict[int, dict[int, int]] = {
            size: {tile: many for tile, many in enumerate(row) if many}
            for size, row in zip(sizes.tolist(), table.tolist(), strict=True)
        }

    def takes(self, size: int, tile: int, taken: Counter[tuple[int, int]]) -> bool:
        """Return whether a tile takes one more node of a size, beside those of this copy."""
        return not size or self.left[size].get(tile, 0) > taken[size, tile]

    def some(self, size: int, taken: Counter[tuple[int, int]]) -> list[int]:
        """Return a few tiles that take one more."""
        tiles = self.left[size] if size else range(self.tiles)
        return list(islice((tile for tile in tiles if self.takes(size, tile, taken)), TRIES))

    def take(self, taken: Counter[tuple[int, int]], most: int) -> int:
        """Take places for as many alike copies as there are places for; return how many."""
        holds = (self.left[size][tile] // count for (size, tile), count in taken.items())
        many: int = min([most, *holds])
        for (size, tile), count in taken.items():
            self.left[size][tile] -= many * count
            if not self.left[size][tile]:
                del self.left[size][tile]
        return many


def _placed(
    problem: Labelling, sizes: list[int], places: _Places, most: int
) -> tuple[list[int], int]:
    """Return labels for a copy, and how many copies take them."""
    earns, around = tables(problem)
    taken: Counter[tuple[int, int]] = Counter()
    labels = [-1] * problem.nodes
    for u in _by_stake(earns, around):
        worth = dict.fromkeys(places.some(sizes[u], taken), 0)
        near = [(labels[v], weight) for v, weight in around[u].items() if labels[v] >= 0]
        for tile in {*earns[u], *(tile for tile, _ in near)}:
            if places.takes(sizes[u], tile, taken):
                worth[tile] = 0
        for tile, value in (*earns[u].items(), *near):
            if tile in worth:
                worth[tile] += value
        labels[u] = max(worth, key=lambda tile: worth[tile])
        if sizes[u]:
            taken[sizes[u], labels[u]] += 1
    return labels, places.take(taken, most)


def _by_stake(earns: list[dict[int, int]], around: list[dict[int, int]]) -> list[int]:
    """Return the nodes of a copy, those first that most depends on."""
    stake = [
        sum(map(abs, (*mine.values(), *near.values())))
        for mine, near in zip(earns, around, strict=True)
    ]
    return sorted(range(len(stake)), key=lambda u: -stake[u])


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


STRATEGIES = {
    "free": choose_freely,
    "flow": keep_whole,
    "prices": find_prices,
    "scatter": scatter,
    "repair": repair,
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
