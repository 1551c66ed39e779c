"""A labelling problem in many copies whose named labels are tiles of limited capacity.

Every class of nodes occurs ``copies[c]`` times.  With ``V_c`` the value of a configuration ``k``
of class ``c`` (labels of its nodes) and ``x_ck`` the number of its copies that take it::

    maximise    sum_ck V_c(k) x_ck
    subject to  sum_k x_ck = copies[c]                                    every class c
                sum_ck (sum_{u: k(u) = t} bytes[u]) x_ck <= capacity[t]   every tile t
                x_ck whole, not negative
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import ranges, unique
from layoutopt.network.components import components
from layoutopt.network.problem import IntArray, Labelling, WeightArray, exact_sum

LARGEST = 2**61  # sums of bytes stay below this


@dataclass(frozen=True, eq=False)
class CapacityProblem:
    """A labelling problem with copies, bytes and capacities; see the module's text.

    Raises ``InputError`` if a sum of bytes or copies does not fit 64 bits.
    """

    problem: Labelling  # label `t` is tile `t`; there are no fresh labels, bans or order rules
    class_of: IntArray  # shape (nodes,): the class of each node. No edge joins two classes
    copies: IntArray  # shape (classes,): how often each class occurs
    bytes: IntArray  # shape (nodes,): what a node of each copy takes on the tile that it chooses
    capacity: IntArray  # shape (labels,): the bytes that each tile holds
    # shape (nodes,): the tile that a node is to take where nothing is lost by it, so that
    # neighbours stay together; -1 for none. `None` where that does not matter
    home: IntArray | None = None

    def __post_init__(self) -> None:
        sums = {
            "bytes": self.total_bytes,
            "capacity": self.total_capacity,
            "copies": exact_sum(self.copies[self.class_of].astype(object)),
        }
        for name, total in sums.items():
            if total >= LARGEST:
                raise InputError(f"{name}: {total} in all, where less than 2**61 is allowed")

    @property
    def class_bytes(self) -> IntArray:
        """The bytes of all copies of each class, shape ``(classes,)``, Python integers."""
        one = np.zeros(len(self.copies), object)
        np.add.at(one, self.class_of, self.bytes.astype(object))
        whole: IntArray = one * self.copies.astype(object)
        return whole

    @property
    def total_bytes(self) -> int:
        """The bytes of all copies of all classes."""
        return exact_sum(self.class_bytes)

    @property
    def total_capacity(self) -> int:
        """The bytes that all tiles hold."""
        return sum(self.capacity.tolist())


@dataclass(frozen=True, eq=False)
class Columns:
    """Configurations of kinds, ordered by kind."""

    kind: IntArray  # shape (m,): whose it is
    value: WeightArray  # shape (m,): what it is worth
    starts: IntArray  # shape (m + 1,): where each begins in `labels` and `bytes`
    labels: IntArray  # the tile of each node of the kind; `tiles + j` is slot `j`
    bytes: IntArray  # the bytes of each of these nodes

    @property
    def column(self) -> IntArray:
        """The configuration that each entry of ``labels`` belongs to."""
        return np.repeat(np.arange(len(self.kind)), np.diff(self.starts))

    @property
    def first(self) -> IntArray:
        """The first configuration of each kind that has one."""
        return np.flatnonzero(np.diff(self.kind, prepend=-1))

    def use(self, tiles: int) -> csr_array:
        """Return the grains that configurations take on tiles, shape ``(columns, tiles)``."""
        named = self.labels < tiles
        at = self.column[named], self.labels[named]
        return csr_array((self.bytes[named].astype(np.int64), at), shape=(len(self.kind), tiles))

    def chosen(self, which: IntArray) -> Columns:
        """Return some of the configurations, by ascending number."""
        size = np.diff(self.starts)[which]
        at, starts = ranges(self.starts[which], size), starts_of(size)
        return Columns(self.kind[which], self.value[which], starts, self.labels[at], self.bytes[at])


def starts_of(sizes: IntArray | Sequence[int]) -> IntArray:
    """Return where each of some parts in a row begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def concatenated(parts: Sequence[Columns]) -> Columns:
    """Return configurations one after the other."""
    return Columns(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.value for part in parts]),
        starts_of(np.concatenate([np.diff(part.starts) for part in parts])),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.bytes for part in parts]),
    )


def joined(parts: list[Columns]) -> Columns:
    """Put configurations together, ordered by kind, each once."""
    parts = [part for part in parts if len(part.kind)]
    if not parts:
        none = np.zeros(0, np.int64)
        return Columns(none, none, np.zeros(1, np.int64), none, none)
    whole = concatenated(parts)
    size, found = np.diff(whole.starts), []
    for n in unique(size).tolist():
        at = np.flatnonzero(size == n)
        labels = whole.labels[whole.starts[at][:, None] + np.arange(n)]
        order = np.lexsort([*labels.T, whole.kind[at]])
        rows = np.column_stack([whole.kind[at], labels])[order]
        new = np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]
        found.append(at[order[new]])
    every = np.concatenate(found)
    return whole.chosen(every[np.argsort(whole.kind[every], kind="stable")])


@dataclass(frozen=True, eq=False)
class ClassComponents:
    """The components of all classes."""

    of: IntArray  # shape (nodes,): the component of each node
    nodes: IntArray  # the nodes by component, ascending in each
    starts: IntArray  # where those of each component begin

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
    """Kinds of ``n`` nodes with ``k`` own tiles each."""

    copies: IntArray  # shape (kinds,)
    bytes: IntArray  # shape (kinds, n)
    tiles: IntArray  # shape (kinds, k): the own tiles, ascending
    rewards: WeightArray  # shape (kinds, n, k)
    weights: WeightArray  # shape (kinds, n, n): nothing on and below the diagonal
    # shape (kinds,): the tile that the first node is to take if nothing is lost, or -1
    home: IntArray
    components: IntArray  # the components that are of these kinds
    kind: IntArray  # the kind of each of these components


def class_components(problem: CapacityProblem) -> ClassComponents:
    """Return the components of a problem's nodes under its edges."""
    count, of = components(problem.problem.nodes, *problem.problem.edges.T)
    starts = np.searchsorted(np.sort(of), np.arange(count + 1))
    return ClassComponents(of, np.argsort(of, kind="stable"), starts)


def groups(
    problem: CapacityProblem,
    parts: ClassComponents,
    copies: IntArray,
    listed: Callable[[int, int], bool],
) -> Iterator[KindGroup]:
    """Yield the kinds of all components, by number of nodes and of own tiles.

    ``copies`` are those of each component; ``listed`` says whether components of so many nodes and
    own tiles are asked for.
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
    each = [table.reshape(many, -1) for table in (home, size, tiles, rewards, weights)]
    rows = np.concatenate(each, axis=1)
    if rows.dtype == object:  # NumPy sorts no rows of these: their places in columns stand for them
        rows = np.stack([np.unique(own, return_inverse=True)[1] for own in rows.T], axis=1)
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)
    merged = np.zeros(len(first), np.int64)
    np.add.at(merged, kind, copies)
    tables = size[first], tiles[first], rewards[first], weights[first], home[first]
    return KindGroup(merged, *tables, chosen, kind)
