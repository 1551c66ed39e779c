"""Complete searches: integer programmes over whole placements, and all placements of small ones.

Programmes choose configurations of some kinds, and single nodes of others; what is small is looked
through copy by copy, by dynamic programming over the room that is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from operator import mul, sub
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from layoutopt.base.numbers import unique
from layoutopt.network.capacity.answer import State
from layoutopt.network.capacity.fill import Row, filled
from layoutopt.network.capacity.pool import Pool, one_copy, worth
from layoutopt.network.capacity.problem import Columns
from layoutopt.network.problem import IntArray, Labelling
from layoutopt.network.solvers.cpsat import solve_programme
from layoutopt.network.solvers.programme import LARGEST, OPEN, ProgrammeWriter, coarse

VARIABLES = 200_000  # variables that the programme may have


_Taking: TypeAlias = tuple[IntArray, IntArray, IntArray]
"""What takes room: tiles, variables, and the grains that each takes there."""


@dataclass(frozen=True, eq=False)
class PlacementProgramme:
    """A part of an integer programme, and what its variables mean: ``x`` first, then ``z``."""

    columns: Columns  # the configurations; `x` is how often each is taken
    column: IntArray  # shape (z,): the configuration that each `z` speaks of
    slot: IntArray  # its slot, counted over all configurations
    tile: IntArray
    taking: _Taking


def programme(
    to: ProgrammeWriter, columns: Columns, copies: IntArray, tiles: int, own: dict[int, set[int]]
) -> PlacementProgramme | None:
    """Write the programme down, all but the limits of tiles; ``None`` if it is too large."""
    m = len(columns.kind)
    slotted = columns.labels >= tiles
    key = np.column_stack([columns.column[slotted], columns.labels[slotted]])
    pairs, inverse = np.unique(key, axis=0, return_inverse=True)
    if m + len(pairs) * tiles > VARIABLES:
        return None
    size = np.zeros(len(pairs), np.int64)
    np.add.at(size, inverse.reshape(-1), columns.bytes[slotted])
    allowed = np.ones((len(pairs), tiles), bool)
    for i, kind in enumerate(columns.kind[pairs[:, 0]].tolist()):
        allowed[i, list(own[kind])] = False
    slot, tile = np.nonzero(allowed)
    column = pairs[slot, 0]
    x = to.block(columns.value, copies[columns.kind])
    z = to.block(np.zeros(len(slot), np.int64), copies[columns.kind[column]])
    to.sparse(columns.kind, x, np.ones_like(x), copies, copies)
    _sums(to, slot, z, x[pairs[:, 0]], 0)
    several = np.flatnonzero(np.bincount(pairs[:, 0], minlength=m) > 1)
    crowd = np.flatnonzero(np.isin(column, several))
    meets, row = np.unique(column[crowd] * tiles + tile[crowd], return_inverse=True)
    _sums(to, row, z[crowd], x[meets // tiles], -OPEN)
    named = columns.use(tiles).tocoo()
    taking = (
        np.concatenate([named.col, tile]),
        np.concatenate([x[named.row], z]),
        np.concatenate([named.data, size[slot]]),
    )
    return PlacementProgramme(columns, column, slot, tile, taking)


def _sums(to: ProgrammeWriter, row: IntArray, terms: IntArray, of: IntArray, low: int) -> None:
    """Write that terms, by row, add up to no more than a variable each; or to just that."""
    to.sparse(
        np.concatenate([row, np.arange(len(of))]),
        np.concatenate([terms, of]),
        np.repeat([1, -1], [len(terms), len(of)]),
        np.full(len(of), low),
        np.zeros(len(of), np.int64),
    )


def add_configurations(given: PlacementProgramme, values: IntArray, rows: list[Row]) -> None:
    """Add the configurations, all nodes on tiles, that a point of a programme stands for."""
    columns = given.columns
    m = len(columns.kind)
    counts, z = values[:m], values[m : m + len(given.tile)]
    tiles = int(given.tile.max(initial=-1)) + 1
    by_column = np.argsort(given.column, kind="stable")
    bounds = np.searchsorted(given.column[by_column], np.arange(m + 1))
    for k in np.flatnonzero(counts).tolist():
        part = slice(int(columns.starts[k]), int(columns.starts[k + 1]))
        mine = by_column[bounds[k] : bounds[k + 1]]
        slots = unique(given.slot[mine])
        table = np.zeros((len(slots), tiles), np.int64)
        table[np.searchsorted(slots, given.slot[mine]), given.tile[mine]] = z[mine]
        for places, many in _coloured(table, int(counts[k])):
            named = columns.labels[part].copy()
            names = unique(named).tolist()
            for name, tile in zip(names[len(names) - len(places) :], places, strict=True):
                named[columns.labels[part] == name] = tile
            rows.append((int(columns.kind[k]), many, named, columns.bytes[part]))


def _coloured(table: IntArray, copies: int) -> list[tuple[list[int], int]]:
    """Cut a table of slots by tiles into copies that use every slot once, no tile twice.

    Each step takes a matching that meets all tiles in as many copies as are left, as often as
    that stays possible.
    """
    if not len(table):
        return [([], copies)]
    found = []
    while copies:
        full = table.sum(axis=0) == copies
        gain = np.where(table > 0, 1 + full * len(table), -1 - len(table) ** 2)
        slots, tiles = linear_sum_assignment(gain, maximize=True)
        other = np.ones(table.shape[1], bool)
        other[tiles] = False
        idle = copies - table.sum(axis=0)[other]
        many = int(min(table[slots, tiles].min(), idle.min(initial=copies)))
        found.append((tiles.tolist(), many))
        table[slots, tiles] -= many
        copies -= many
    return found


def variables(pool: Pool) -> IntArray:
    """Return how many variables all copies of each kind have, Python integers."""
    one = [
        group.bytes.shape[1] + np.count_nonzero(group.weights, axis=(1, 2)) for group in pool.groups
    ]
    alone = [large.problem.nodes + len(large.problem.edges) for large in pool.large]
    each = np.concatenate([*one, np.array(alone, np.int64)]).astype(object)
    size: IntArray = each * pool.copies * pool.tiles
    return size


@dataclass(frozen=True, eq=False)
class NodeProgramme:
    """A part of an integer programme over nodes, and what its variables mean."""

    kinds: list[int]  # the kind of each copy
    # for each copy its problem and the grains of its nodes
    copies: list[tuple[Labelling, IntArray]]
    first: list[int]  # where the variables of each copy begin, `x` node by node and then `y`
    taking: _Taking


def node_programme(to: ProgrammeWriter, pool: Pool, kinds: list[int]) -> NodeProgramme:
    """Write the programme for all copies of some kinds down, all but the limits of tiles."""
    shapes = {kind: one_copy(pool, kind) for kind in kinds}
    order = sorted(kinds, key=lambda kind: -shapes[kind][0].nodes)
    each = [kind for kind in order for _ in range(int(pool.copies[kind]))]
    copies = [shapes[kind] for kind in each]
    first, at = [], []
    for problem, _ in copies:
        first.append(to.variables)
        table = np.zeros((problem.nodes, pool.tiles), object)
        table[tuple(problem.reward_at.T)] = problem.rewards
        at.append(to.agreement(table, problem.edges, problem.weights))
    tile = np.arange(pool.tiles)
    for c, (kind, after) in enumerate(pairwise(each)):
        if kind == after:
            to.family(np.concatenate([at[c][0], at[c + 1][0]])[None], np.r_[tile, -tile], high=0)
    x, grains = np.concatenate(at), np.concatenate([weight for _, weight in copies])
    taking = np.tile(tile, len(x)), x.reshape(-1), np.repeat(grains, pool.tiles)
    return NodeProgramme(each, copies, first, taking)


def add_nodes(given: NodeProgramme, values: IntArray, rows: list[Row]) -> None:
    """Add the configurations that a point of a programme over nodes stands for."""
    for kind, begin, (problem, size) in zip(given.kinds, given.first, given.copies, strict=True):
        x = values[begin : begin + problem.nodes * problem.labels].reshape(problem.nodes, -1)
        rows.append((kind, 1, x.argmax(axis=1), size))


NODE_VARIABLES = 20_000
"""Variables that the programme over single nodes may have.

Measured on trees with 5% of room to spare, 15 seconds: 500 are proved in 4 seconds, 1,400 to 4,000
are left with gaps of 0.5 to 3%, 20,000 with half of the objective.
"""


def search(state: State) -> None:
    """Search among all placements that may be better than the best one known.

    A kind takes part with the configurations that prices do not rule out, or node by node,
    whichever has fewer variables; large kinds always node by node.
    """
    if state.priced is None or state.dual is None or not state.pool.kinds:
        return
    core = state.pool.core(state.priced, state.dual, state.value)
    alone = _node_by_node(state, core)
    if alone is None:
        return
    to, listed, nodes = ProgrammeWriter(), None, None
    if core is not None and not alone.all():
        kept = core.chosen(np.flatnonzero(~alone[core.kind]))
        copies = np.where(alone, 0, state.pool.copies)
        listed = programme(to, kept, copies, state.pool.tiles, state.pool.own)
        if listed is None:
            return
    if alone.any():
        nodes = node_programme(to, state.pool, np.flatnonzero(alone).tolist())
    _solve(state, to, listed, nodes)


def _node_by_node(state: State, core: Columns | None) -> IntArray | None:
    """Return which kinds are searched node by node; ``None`` where that is too large.

    ``core`` is ``None`` if the configurations are too many.
    """
    pool = state.pool
    size = variables(pool)
    large = np.arange(pool.kinds) >= pool.first[-1]
    choices = [large]
    if core is None:
        choices = [np.ones(pool.kinds, bool)]
    elif len(core.kind):
        slots = np.maximum.reduceat(core.labels, core.starts[:-1]) - pool.tiles + 1
        listed = np.zeros(pool.kinds, np.int64)
        np.add.at(listed, core.kind, 1 + np.maximum(slots, 0) * pool.tiles)
        choices = [large | (size < listed), large]
    for alone in choices:
        if size[alone].sum() <= NODE_VARIABLES:
            return alone
    return None


def _solve(
    state: State,
    to: ProgrammeWriter,
    listed: PlacementProgramme | None,
    nodes: NodeProgramme | None,
) -> None:
    """Solve both parts together, and note what that finds and proves."""
    taking = [part.taking for part in (listed, nodes) if part is not None]
    tile, variable, grains = map(np.concatenate, zip(*taking, strict=True))
    to.sparse(tile, variable, grains, np.full(len(state.room), -OPEN), state.room)
    asked = to.finished()
    small, unit = coarse(asked)
    if not small.fits():
        return
    exact = not (asked.objective % unit).any()
    most = state.bound // unit if exact and state.bound is not None else None
    if most is not None and abs(most) >= LARGEST:
        most = None  # more than a programme that fits can be worth
    found = solve_programme(small, state.limits, most=most)
    if found.values is not None:
        rows: list[Row] = []
        if listed is not None:
            add_configurations(listed, found.values, rows)
        if nodes is not None:
            add_nodes(nodes, found.values, rows)
        state.offer(filled(rows))
    if found.infeasible:
        state.proved()
    elif found.bound is not None and state.value is not None and state.bound is not None:
        state.bound = min(state.bound, max(state.value, found.bound * unit))


LABELLINGS = 5_000  # labellings of one kind that are listed
STATES = 100_000  # states that are kept at a time
STEPS = 50_000  # steps in all, and labellings of all kinds

Room = tuple[int, ...]
"""The grains that are left, or used, on each tile."""

States = dict[Room, tuple[int, Room, tuple[int, ...]]]
"""By the room that is left: the best worth, the room before the last copy, and its labels."""


def exhaust(state: State) -> None:
    """Look through all placements that may be better than the best one known, if few enough.

    A state is the room left after some copies; only its best value counts, and it is dropped where
    prices prove that the rest does not lift it above the best placement's.
    """
    pool, priced, floor = state.pool, state.priced, state.value
    if priced is None or pool.large or int(pool.copies.sum()) > STATES:
        return
    sizes = [one_copy(pool, kind)[1] for kind in range(pool.kinds)]
    many = [pool.tiles ** len(size) for size in sizes]
    if max(many, default=0) > LABELLINGS or sum(many) > STEPS:
        return
    listed = [_choices(pool, kind, size) for kind, size in enumerate(sizes)]
    items = [kind for kind in range(pool.kinds) for _ in range(int(pool.copies[kind]))]
    rest = [*accumulate((int(priced.best[kind]) for kind in reversed(items)), initial=0)][::-1]
    prices, scale = priced.prices.tolist(), priced.scale
    layers: list[States] = [{tuple(state.room.tolist()): (0, (), ())}]
    steps = 0
    for kind, after_it in zip(items, rest[1:], strict=True):
        states: States = {}
        for before, (value, _, _) in layers[-1].items():
            steps += len(listed[kind])
            if steps > STEPS or state.limits.over:
                return
            for taken, (more, labels) in listed[kind].items():
                after, total = tuple(map(sub, before, taken)), value + more
                if min(after, default=0) < 0 or (after in states and states[after][0] >= total):
                    continue
                top = after_it + sum(map(mul, prices, after))
                if floor is None or total * scale + top > floor * scale:
                    states[after] = (total, before, labels)
        if len(states) > STATES:
            return
        layers.append(states)
    if layers[-1]:
        rows: list[Row] = []
        at = max(layers[-1], key=lambda room: layers[-1][room][0])
        for kind, states in zip(reversed(items), layers[:0:-1], strict=True):
            _, at, labels = states[at]
            rows.append((kind, 1, np.array(labels, np.int64), sizes[kind]))
        state.offer(filled(rows))
    state.proved()


def _choices(pool: Pool, kind: int, size: IntArray) -> dict[Room, tuple[int, tuple[int, ...]]]:
    """Return by its use of tiles the best labelling of a kind, and what it is worth."""
    rows = np.array(list(product(range(pool.tiles), repeat=len(size))), np.int64)
    many = len(rows)
    starts = np.arange(many + 1) * len(size)
    kinds = np.full(many, kind)
    columns = Columns(kinds, kinds, starts, rows.reshape(-1), np.tile(size, many))
    used = np.zeros((many, pool.tiles), np.int64)
    np.add.at(used, (columns.column, columns.labels), columns.bytes)
    each = zip(map(tuple, used.tolist()), worth(pool, columns).tolist(), rows.tolist(), strict=True)
    best: dict[Room, tuple[int, tuple[int, ...]]] = {}
    for taken, value, labels in each:
        if taken not in best or best[taken][0] < value:
            best[taken] = int(value), tuple(labels)
    return best
