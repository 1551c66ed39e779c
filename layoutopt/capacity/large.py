"""Kinds with too many configurations to list: the exact solver prices them one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from layoutopt.capacity.kinds import Columns
from layoutopt.exact.parts import solve_parts
from layoutopt.integers import unique
from layoutopt.limits import Limits
from layoutopt.problem import IntArray, Labelling, WeightArray, exact_integers


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
    result = solve_parts(asked, replace(limits, tell=None))
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
