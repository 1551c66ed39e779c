"""All kinds of a problem, their best configurations at prices, and the bound that these prove."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.base.numbers import ranges, unique, without
from layoutopt.network.capacity.problem import (
    CapacityProblem,
    ClassComponents,
    Columns,
    KindGroup,
    class_components,
    groups,
    joined,
)
from layoutopt.network.parts import solve_parts
from layoutopt.network.problem import IntArray, Labelling, WeightArray, exact_integers, take


@dataclass(frozen=True, eq=False)
class Large:
    """A kind of too many patterns to list; its tiles are the problem's."""

    problem: Labelling
    bytes: IntArray
    copies: int
    component: int


def price_large(
    large: Large, prices: WeightArray, scale: int, number: int, limits: Limits
) -> tuple[int, Columns]:
    """Return a bound on the priced worth of a large kind, and a configuration."""
    given = large.problem
    own = unique(given.reward_at[:, 1])
    table = np.zeros((given.nodes, len(own)), object)
    column = np.searchsorted(own, given.reward_at[:, 1])
    table[given.reward_at[:, 0], column] = given.rewards.astype(object) * scale
    table -= large.bytes.astype(object)[:, None] * prices[own].astype(object)[None, :]
    node, column = np.nonzero(table)
    asked = replace(
        given,
        weights=exact_integers([w * scale for w in given.weights.tolist()]),
        reward_at=np.column_stack([node, own[column]]),
        rewards=exact_integers(table[node, column].tolist()),
    )
    result = solve_parts(asked, limits.silent())
    labels = slots_in_order(large, result.labelling)
    return int(result.bound or 0), large_column(large, labels, number)


def large_column(large: Large, labels: IntArray, number: int) -> Columns:
    """Return a configuration of a large kind as columns."""
    value = exact_integers([large.problem.value(labels)])
    starts = np.array([0, len(labels)])
    return Columns(np.array([number]), value, starts, labels, large.bytes)


def slots_in_order(large: Large, labels: IntArray) -> IntArray:
    """Number all labels that are not own tiles of a kind in the order of their first nodes."""
    tiles = large.problem.labels
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    names = labels[first].copy()
    foreign = ~np.isin(names, large.problem.reward_at[:, 1])
    names[foreign] = tiles + np.argsort(np.argsort(first[foreign]))
    named: IntArray = names[inverse.reshape(-1)]
    return named


CHUNK = 2 * 10**6  # values of patterns that are held at a time


def pattern_count(nodes: int, own: int, slots: int) -> int:
    """Return the number of patterns of ``nodes`` nodes with so many own tiles and slots."""
    ways = {0: 1}
    for _ in range(nodes):
        after: dict[int, int] = {}
        for used, many in ways.items():
            after[used] = after.get(used, 0) + many * (own + used)
            if used < slots:
                after[used + 1] = after.get(used + 1, 0) + many
        ways = after
    return sum(ways.values())


@lru_cache(maxsize=64)
def patterns(nodes: int, own: int, slots: int) -> IntArray:
    """Return all patterns, shape ``(pattern_count(...), nodes)``."""
    rows = np.zeros((1, 0), np.int64)
    for _ in range(nodes):
        used = np.maximum(rows.max(axis=1, initial=-1) + 1 - own, 0)
        width = own + np.minimum(used + 1, slots)
        rows = np.column_stack([np.repeat(rows, width, axis=0), ranges(0, width)])
    rows.flags.writeable = False
    return rows


def slots_of(group: KindGroup, tiles: int) -> int:
    """Return how many slots the kinds of a group may use at once."""
    nodes, own = group.rewards.shape[1:]
    return int(min(nodes, tiles - own))


def values(rewards: WeightArray, weights: WeightArray, rows: IntArray, slots: int) -> WeightArray:
    """Return what patterns are worth, shape ``(kinds, patterns)``."""
    kinds, nodes, _ = rewards.shape
    wide = np.concatenate([rewards, np.zeros((kinds, nodes, slots), rewards.dtype)], axis=2)
    total = wide[:, 0, rows[:, 0]]
    for u in range(1, nodes):
        total = total + wide[:, u, rows[:, u]]
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if weights[:, u, v].any():
                total = total + weights[:, u, v, None] * (rows[:, u] == rows[:, v])
    return total


def priced_patterns(
    group: KindGroup, rows: IntArray, slots: int, prices: WeightArray, scale: int
) -> Iterator[tuple[int, WeightArray]]:
    """Yield the patterns' values times ``scale`` less prices, a chunk of kinds at a time.

    Prices, shape ``(tiles,)``, are per byte and times ``scale``, whole; Python integers if the
    result may not fit 64 bits.
    """
    step = max(1, CHUNK // len(rows))
    for first in range(0, len(group.copies), step):
        part = slice(first, first + step)
        cost = group.bytes[part, :, None] * prices[group.tiles[part]][:, None, :]
        rewards, weights = group.rewards[part], group.weights[part]
        if prices.dtype == object:
            rewards, weights = rewards.astype(object), weights.astype(object)
        yield first, values(rewards * scale - cost, weights * scale, rows, slots)


PATTERNS = 20_000  # kinds with more patterns are priced by the exact solver, one by one
CORE = 100_000  # configurations that a search is asked about

NODES = 8
"""Kinds with more nodes, too."""


@dataclass(frozen=True, eq=False)
class Priced:
    """Best configurations at given prices."""

    prices: WeightArray  # per grain and times `scale`
    scale: int
    best: list[int]  # what a copy of each kind is worth at most, less prices, times `scale`
    columns: Columns  # for each kind a configuration, the best one if it could be found
    copies: IntArray  # of each kind

    def bound(self, capacity: IntArray) -> Fraction:
        """Return the proved bound for capacities in grains."""
        total = sum(map(operator.mul, self.prices.tolist(), capacity.tolist()))
        total += sum(map(operator.mul, self.best, self.copies.tolist()))
        return Fraction(total, self.scale)


class Pool:
    """The kinds of a problem: those of each group, then the large ones.

    Capacities play no part here: a pool serves them all.
    """

    def __init__(self, problem: CapacityProblem) -> None:
        self.problem = problem
        self.tiles = problem.problem.labels
        self.grain = math.gcd(*problem.bytes.tolist()) or 1
        whole = replace(problem, bytes=problem.bytes // self.grain)
        self.parts: ClassComponents = class_components(problem)
        copies = problem.copies[problem.class_of[self.parts.nodes[self.parts.starts[:-1]]]]
        self.part_copies: IntArray = copies
        self.groups: list[KindGroup] = []
        self.large: list[Large] = []
        self.groups.extend(groups(whole, self.parts, copies, self._listed))
        of_groups = [group.components for group in self.groups]
        listed = np.sort(np.concatenate([np.zeros(0, np.int64), *of_groups]))
        alone = without(np.arange(len(copies)), listed)
        for i in alone.tolist():
            nodes = self.parts.nodes[self.parts.starts[i] : self.parts.starts[i + 1]]
            own = take(problem.problem, nodes)
            self.large.append(Large(own, whole.bytes[nodes], int(copies[i]), i))
        first = np.cumsum([0, *(len(group.copies) for group in self.groups)])
        self.first: list[int] = first.tolist()
        self.kinds = self.first[-1] + len(self.large)
        alone = np.array([large.copies for large in self.large], np.int64)
        self.copies: IntArray = np.concatenate([*(group.copies for group in self.groups), alone])
        labelling = problem.problem
        every = [*labelling.weights.tolist(), *labelling.rewards.tolist()]
        self.unit = math.gcd(*every) or 1
        self.most = _most(labelling, self.parts)
        self.kind_of = np.zeros(len(copies), np.int64)
        for start, group in zip(self.first, self.groups, strict=False):
            self.kind_of[group.components] = start + group.kind
        for j, large in enumerate(self.large):
            self.kind_of[large.component] = self.first[-1] + j

    def _listed(self, nodes: int, own: int) -> bool:
        """Return whether all patterns of such kinds are to be listed."""
        slots = min(nodes, self.tiles - own)
        return nodes <= NODES and pattern_count(nodes, own, slots) <= PATTERNS

    @cached_property
    def own(self) -> dict[int, set[int]]:
        """For each kind its own tiles."""
        own = {}
        for number, group in enumerate(self.groups):
            for kind, tiles in enumerate(group.tiles.tolist(), self.first[number]):
                own[kind] = set(tiles)
        for j, large in enumerate(self.large):
            own[self.first[-1] + j] = set(large.problem.reward_at[:, 1].tolist())
        return own

    @property
    def node_bytes(self) -> IntArray:
        """The bytes of one copy of each kind, in grains."""
        sums = [group.bytes.sum(axis=1) for group in self.groups]
        return np.concatenate([*sums, np.array([x.bytes.sum() for x in self.large], np.int64)])

    @property
    def home(self) -> IntArray:
        """The tile that each kind is to take where nothing is lost by it, or -1."""
        first = self.parts.nodes[self.parts.starts[[kind.component for kind in self.large]]]
        home = self.problem.home
        alone = np.full(len(first), -1) if home is None else home[first]
        return np.concatenate([*(group.home for group in self.groups), alone])

    def rows(self, group: KindGroup) -> tuple[IntArray, int]:
        """Return the patterns of a group, and how many slots they may use."""
        slots = slots_of(group, self.tiles)
        return patterns(*group.rewards.shape[1:], slots), slots

    def columns(self, number: int, kinds: IntArray, rows: IntArray) -> Columns:
        """Return the configurations of kinds of a group in patterns.

        Kinds have shape ``(m,)``, patterns ``(m, n)``.
        """
        group = self.groups[number]
        slots = slots_of(group, self.tiles)
        extra = np.broadcast_to(self.tiles + np.arange(slots), (len(kinds), slots))
        table = np.concatenate([group.tiles[kinds], extra], axis=1)
        labels = np.take_along_axis(table, rows, axis=1)
        return Columns(
            self.first[number] + kinds,
            _worth(group, kinds, labels),
            np.arange(len(kinds) + 1) * rows.shape[1],
            labels.reshape(-1),
            group.bytes[kinds].reshape(-1),
        )

    def core(self, priced: Priced, dual: Fraction, floor: int | None) -> Columns | None:
        """Return all configurations that may be part of a placement of more than ``floor``.

        Any placement is worth at most the dual bound less what one of its configurations
        lacks, at the same prices, to the best one of its kind.  ``None`` if they are too many.
        """
        parts = []
        count, base = 0, 0
        for number, group in enumerate(self.groups):
            rows, slots = self.rows(group)
            for first, worth in priced_patterns(group, rows, slots, priced.prices, priced.scale):
                best = np.array(priced.best[base : base + len(worth)], worth.dtype)
                base += len(worth)
                keep = np.ones(worth.shape, bool)
                if floor is not None:
                    slack = math.floor((dual - floor - self.unit) * priced.scale)
                    keep = best[:, None] - worth <= slack
                kinds, at = np.nonzero(keep)
                count += len(kinds)
                if count > CORE:
                    return None
                parts.append(self.columns(number, first + kinds, rows[at]))
        return joined(parts)

    def price(self, prices: IntArray, scale: int, limits: Limits) -> Priced:
        """Return each kind's best configuration, exactly.

        Prices are per grain and times ``scale``.
        """
        prices = self._fitting(prices, scale)
        best: list[int] = []
        parts = []
        for number, group in enumerate(self.groups):
            rows, slots = self.rows(group)
            at = np.zeros(len(group.copies), np.int64)
            for first, worth in priced_patterns(group, rows, slots, prices, scale):
                chosen = worth.argmax(axis=1)
                at[first : first + len(worth)] = chosen
                best += worth[np.arange(len(worth)), chosen].tolist()
            parts.append(self.columns(number, np.arange(len(at)), rows[at]))
        for j, large in enumerate(self.large):
            worth_of_one, column = price_large(large, prices, scale, self.first[-1] + j, limits)
            best.append(worth_of_one)
            parts.append(column)
        return Priced(prices, scale, best, joined(parts), self.copies)

    def _fitting(self, prices: IntArray, scale: int) -> WeightArray:
        """Return prices as 64 bits if all sums of one kind fit, else as Python integers."""
        dearest = max(prices.tolist(), default=0)
        if self.most * scale + dearest * int(self.node_bytes.max(initial=0)) < 2**61:
            return prices.astype(np.int64)
        return prices.astype(object)


def _worth(group: KindGroup, kinds: IntArray, labels: IntArray) -> WeightArray:
    """Return what kinds of a group are worth with labels, shape ``(m, n)``, of their nodes."""
    total = np.zeros(len(kinds), np.result_type(group.rewards, group.weights))
    for j, tiles in enumerate(group.tiles[kinds].T):
        total += (group.rewards[kinds, :, j] * (labels == tiles[:, None])).sum(axis=1)
    for u, v in combinations(range(labels.shape[1]), 2):
        total += group.weights[kinds, u, v] * (labels[:, u] == labels[:, v])
    return total


def worth(pool: Pool, columns: Columns) -> WeightArray:
    """Return what configurations are worth, exactly, shape ``(columns,)``."""
    total = np.zeros(len(columns.kind), object)
    for number, group in enumerate(pool.groups):
        low, high = pool.first[number], pool.first[number + 1]
        at = np.flatnonzero((columns.kind >= low) & (columns.kind < high))
        labels = columns.labels[columns.starts[at][:, None] + np.arange(group.bytes.shape[1])]
        total[at] = _worth(group, columns.kind[at] - low, labels)
    for i in np.flatnonzero(columns.kind >= pool.first[-1]).tolist():
        large = pool.large[int(columns.kind[i]) - pool.first[-1]]
        total[i] = large.problem.value(columns.labels[columns.starts[i] : columns.starts[i + 1]])
    return total


def _most(labelling: Labelling, parts: ClassComponents) -> int:
    """Return the largest sum of absolute weights and rewards of a component."""
    total = np.zeros(len(parts.sizes), object)
    np.add.at(total, parts.of[labelling.edges[:, 0]], np.abs(labelling.weights).astype(object))
    np.add.at(total, parts.of[labelling.reward_at[:, 0]], np.abs(labelling.rewards).astype(object))
    return max(total.tolist(), default=0)


def one_copy(pool: Pool, kind: int) -> tuple[Labelling, IntArray]:
    """Return the problem of one copy of a kind, and the grains of its nodes.

    Labels are the tiles of the whole; the nodes are in the order of configurations.
    """
    if kind >= pool.first[-1]:
        large = pool.large[kind - pool.first[-1]]
        return large.problem, large.bytes
    number = int(np.searchsorted(pool.first, kind, side="right")) - 1
    group, i = pool.groups[number], kind - pool.first[number]
    u, v = np.nonzero(group.weights[i])
    node, j = np.nonzero(group.rewards[i])
    problem = Labelling(
        group.bytes.shape[1],
        pool.tiles,
        np.column_stack([u, v]),
        group.weights[i][u, v],
        np.column_stack([node, group.tiles[i][j]]),
        group.rewards[i][node, j],
    )
    return problem, group.bytes[i]


def tables(problem: Labelling) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
    """Return for each node what it earns on which tile, and its weight with which node."""
    earns: list[dict[int, int]] = [{} for _ in range(problem.nodes)]
    around: list[dict[int, int]] = [{} for _ in range(problem.nodes)]
    for (u, tile), value in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        earns[u][tile] = value
    for (u, v), weight in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        around[u][v] = around[v][u] = weight
    return earns, around
