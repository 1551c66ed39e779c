"""Classes taken apart into components, alike ones merged, in tables of equal size.

ClassComponents of one class do not interact, so that each is a class of its own with as many
copies; components with equal tables are one *kind*.  A kind's *own* tiles are those that some
node of it has a reward for; all others are alike to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.capacity.problem import CapacityProblem
from layoutopt.integers import unique
from layoutopt.problem import IntArray, WeightArray


@dataclass(frozen=True, eq=False)
class Columns:
    """Configurations of kinds, ordered by kind.

    Parameters
    ----------
    kind, value
        Shape ``(m,)``: whose it is, and what it is worth.
    starts
        Shape ``(m + 1,)``: where each begins in ``labels`` and ``bytes``.
    labels
        The tile of each node of the kind; ``tiles + j`` is slot ``j``.
    bytes
        The bytes of each of these nodes.
    """

    kind: IntArray
    value: WeightArray
    starts: IntArray
    labels: IntArray
    bytes: IntArray

    @property
    def column(self) -> IntArray:
        """The configuration that each entry of ``labels`` belongs to."""
        return np.repeat(np.arange(len(self.kind)), np.diff(self.starts))

    def chosen(self, which: IntArray) -> Columns:
        """Return some of the configurations, by ascending number."""
        size = np.diff(self.starts)[which]
        starts = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        at = np.repeat(self.starts[which] - starts[:-1], size) + np.arange(starts[-1])
        return Columns(self.kind[which], self.value[which], starts, self.labels[at], self.bytes[at])


def joined(parts: list[Columns]) -> Columns:
    """Put configurations together, ordered by kind, each once."""
    parts = [part for part in parts if len(part.kind)]
    if not parts:
        none = np.zeros(0, np.int64)
        return Columns(none, none, np.zeros(1, np.int64), none, none)
    size = np.concatenate([np.diff(part.starts) for part in parts])
    whole = Columns(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.bytes for part in parts]),
    )
    return whole.chosen(_distinct(whole, size))


def _distinct(columns: Columns, size: IntArray) -> IntArray:
    """Return the numbers of the configurations that differ, ordered by kind."""
    found = []
    for n in unique(size).tolist():
        at = np.flatnonzero(size == n)
        labels = columns.labels[columns.starts[at][:, None] + np.arange(n)]
        order = np.lexsort([*labels.T, columns.kind[at]])
        rows = np.column_stack([columns.kind[at], labels])[order]
        new = np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]
        found.append(at[order[new]])
    every = np.concatenate(found)
    return every[np.argsort(columns.kind[every], kind="stable")]


@dataclass(frozen=True, eq=False)
class ClassComponents:
    """The components of all classes.

    Parameters
    ----------
    of
        Shape ``(nodes,)``: the component of each node.
    nodes, starts
        The nodes by component, ascending in each; those of ``i`` begin at ``starts[i]``.
    """

    of: IntArray
    nodes: IntArray
    starts: IntArray

    @property
    def sizes(self) -> IntArray:
        """How many nodes each component has."""
        return np.diff(self.starts)

    @property
    def place(self) -> IntArray:
        """The place of each node within its component."""
        place = np.empty(len(self.nodes), np.int64)
        place[self.nodes] = np.arange(len(self.nodes)) - self.starts[self.of[self.nodes]]
        return place


@dataclass(frozen=True, eq=False)
class KindGroup:
    """Kinds of ``n`` nodes with ``k`` own tiles each.

    Parameters
    ----------
    copies
        Shape ``(kinds,)``.
    bytes
        Shape ``(kinds, n)``.
    tiles
        Shape ``(kinds, k)``: the own tiles, ascending.
    rewards
        Shape ``(kinds, n, k)``.
    weights
        Shape ``(kinds, n, n)``: nothing on and below the diagonal.
    home
        Shape ``(kinds,)``: the tile that the first node is to take if nothing is lost, or -1.
    components, kind
        The components that are of these kinds, and the kind of each.
    """

    copies: IntArray
    bytes: IntArray
    tiles: IntArray
    rewards: WeightArray
    weights: WeightArray
    home: IntArray
    components: IntArray
    kind: IntArray


def components(problem: CapacityProblem) -> ClassComponents:
    """Return the components of a problem's nodes under its edges."""
    n = problem.problem.nodes
    if not n:
        return ClassComponents(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64))
    ones = np.ones(len(problem.problem.edges), bool)
    matrix = coo_array((ones, tuple(problem.problem.edges.T)), shape=(n, n))
    count, of = connected_components(matrix, directed=False)
    starts = np.searchsorted(np.sort(of), np.arange(count + 1))
    return ClassComponents(of, np.argsort(of, kind="stable"), starts)


def groups(
    problem: CapacityProblem,
    parts: ClassComponents,
    copies: IntArray,
    listed: Callable[[int, int], bool],
) -> Iterator[KindGroup]:
    """Yield the kinds of all components, by number of nodes and of own tiles.

    Parameters
    ----------
    copies
        Shape ``(components,)``.
    listed
        Whether components of so many nodes and own tiles are asked for.
    """
    labelling = problem.problem
    node = labelling.reward_at[:, 0]
    at = parts.of[node] * np.int64(labelling.labels) + labelling.reward_at[:, 1]
    own, column = np.unique(at, return_inverse=True)
    tile_starts = np.searchsorted(own, np.arange(len(parts.sizes) + 1) * labelling.labels)
    column -= tile_starts[parts.of[node]]
    shape = np.column_stack([parts.sizes, np.diff(tile_starts)])
    place = parts.place
    edge_part = parts.of[labelling.edges[:, 0]]
    for n, k in sorted(set(map(tuple, shape.tolist()))):
        if not listed(n, k):
            continue
        chosen = np.flatnonzero((shape == (n, k)).all(axis=1))
        number = np.full(len(parts.sizes), -1)
        number[chosen] = np.arange(len(chosen))
        nodes = parts.nodes[parts.starts[chosen][:, None] + np.arange(n)]
        tiles = own[tile_starts[chosen][:, None] + np.arange(k)] % labelling.labels
        rewards = np.zeros((len(chosen), n, k), labelling.rewards.dtype)
        earns = number[parts.of[node]] >= 0
        rewards[number[parts.of[node]][earns], place[node][earns], column[earns]] = (
            labelling.rewards[earns]
        )
        weights = np.zeros((len(chosen), n, n), labelling.weights.dtype)
        inside = number[edge_part] >= 0
        ends = np.sort(place[labelling.edges[inside]], axis=1)
        weights[number[edge_part[inside]], ends[:, 0], ends[:, 1]] = labelling.weights[inside]
        home = np.full(len(chosen), -1) if problem.home is None else problem.home[nodes[:, 0]]
        yield _merged(chosen, copies[chosen], home, problem.bytes[nodes], tiles, rewards, weights)


def _merged(
    chosen: IntArray,
    copies: IntArray,
    home: IntArray,
    size: IntArray,
    tiles: IntArray,
    rewards: WeightArray,
    weights: WeightArray,
) -> KindGroup:
    """Merge components whose tables are equal; those with one home stand together."""
    many = len(chosen)
    rows = [table.reshape(many, -1) for table in (home, size, tiles, rewards, weights)]
    first, kind = _unique_rows(np.concatenate(rows, axis=1))
    merged = np.zeros(len(first), np.int64)
    np.add.at(merged, kind, copies)
    tables = size[first], tiles[first], rewards[first], weights[first], home[first]
    return KindGroup(merged, *tables, chosen, kind)


def _unique_rows(rows: WeightArray) -> tuple[IntArray, IntArray]:
    """Return the first of each set of equal rows, and the number of each row's set."""
    if rows.dtype != object:
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        return first, inverse.reshape(-1)
    known: dict[tuple[int, ...], int] = {}
    firsts: list[int] = []
    numbers = []
    for i, row in enumerate(map(tuple, rows.tolist())):
        if row not in known:
            known[row] = len(firsts)
            firsts.append(i)
        numbers.append(known[row])
    return np.array(firsts, np.int64), np.array(numbers, np.int64)
