"""The integer programme over configurations, with tiles for their slots.

``x[k]`` copies take configuration ``k``; ``z[k,j,t]`` of them have slot ``j`` on tile ``t``, which
is not an own tile of the kind::

    sum_{k of kind} x[k] = copies,  sum_t z[k,j,t] = x[k],  sum_j z[k,j,t] <= x[k]
    sum_k use[k,t] x[k] + sum_kj size[k,j] z[k,j,t] <= capacity[t]

The third family makes the slots of each copy different tiles: slots and tiles with
``z`` as multiplicities form a bipartite graph of degree at most ``x[k]``, whose edges have a
colouring with as many colours (Kőnig, 1916); every colour is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array

from layoutopt.capacity.columns import Columns
from layoutopt.capacity.fill import Filling
from layoutopt.capacity.master import use
from layoutopt.integers import unique
from layoutopt.problem import IntArray
from layoutopt.solvers.integer import OPEN, Integer

VARIABLES = 200_000
"""Variables that the programme may have."""


@dataclass(frozen=True, eq=False)
class Programme:
    """An integer programme, and what its variables mean.

    Parameters
    ----------
    integer
        The numbers: ``x`` first, then ``z``.
    columns
        The configurations.
    column, slot, tile
        Shape ``(z,)``: what each ``z`` speaks of; ``slot`` counts over all configurations.
    """

    integer: Integer
    columns: Columns
    column: IntArray
    slot: IntArray
    tile: IntArray


def programme(
    columns: Columns, copies: IntArray, room: IntArray, own: dict[int, set[int]]
) -> Programme | None:
    """State the programme, or return ``None`` if it is too large.

    Parameters
    ----------
    own
        The own tiles of each kind.
    """
    tiles, m = len(room), len(columns.kind)
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
    z = m + np.arange(len(slot))
    several = np.flatnonzero(np.bincount(pairs[:, 0], minlength=m) > 1)
    crowd = np.flatnonzero(np.isin(column, several))
    meets, row = np.unique(column[crowd] * tiles + tile[crowd], return_inverse=True)
    named = use(columns, tiles).tocoo()
    kinds, p = len(copies), len(pairs)
    a, b, c = kinds, kinds + p, kinds + p + len(meets)
    entries = [
        (columns.kind, np.arange(m), np.ones(m)),
        (a + slot, z, np.ones(len(z))),
        (a + np.arange(p), pairs[:, 0], -np.ones(p)),
        (b + row.reshape(-1), z[crowd], np.ones(len(crowd))),
        (b + np.arange(len(meets)), meets // tiles, -np.ones(len(meets))),
        (c + named.col, named.row, named.data),
        (c + tile, z, size[slot]),
    ]
    rows, cols, data = (
        np.concatenate(each).astype(np.int64) for each in zip(*entries, strict=True)
    )
    shape = (c + tiles, m + len(z))
    none = np.zeros(p + len(meets), np.int64)
    low = np.concatenate([copies, none[:p], np.full(len(meets) + tiles, -OPEN)])
    return Programme(
        Integer(
            np.concatenate([columns.value, np.zeros(len(z), np.int64)]),
            np.concatenate([copies[columns.kind], copies[columns.kind[column]]]),
            coo_array((data, (rows, cols)), shape=shape).tocsr(),
            low,
            np.concatenate([copies, none, room]),
        ),
        columns,
        column,
        slot,
        tile,
    )


def filling(given: Programme, values: IntArray) -> Filling:
    """Return the configurations, all nodes on tiles, that a point of a programme stands for."""
    columns = given.columns
    m = len(columns.kind)
    counts, z = values[:m], values[m:]
    tiles = int(given.tile.max(initial=-1)) + 1
    kind: list[int] = []
    count: list[int] = []
    labels: list[IntArray] = []
    weights: list[IntArray] = []
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
            kind.append(int(columns.kind[k]))
            count.append(many)
            labels.append(named)
            weights.append(columns.bytes[part])
    size = [len(row) for row in labels]
    none = np.zeros(0, np.int64)
    return Filling(
        Columns(
            np.array(kind, np.int64),
            np.zeros(len(kind), np.int64),
            np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
            np.concatenate([*labels, none]).astype(np.int64),
            np.concatenate([*weights, none]).astype(np.int64),
        ),
        np.array(count, np.int64),
    )


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
