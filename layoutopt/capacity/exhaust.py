"""The optimum of small problems, copy by copy: dynamic programming over the room that is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from layoutopt.capacity.columns import Columns
from layoutopt.capacity.expand import worth
from layoutopt.capacity.fill import Filling
from layoutopt.capacity.pool import Pool, Priced
from layoutopt.limits import Limits
from layoutopt.problem import IntArray

LABELLINGS = 5_000
"""Labellings of one kind that are listed."""

STATES = 100_000
"""States that are kept at a time."""

STEPS = 3_000_000
"""Steps in all."""

Room = tuple[int, ...]


@dataclass(frozen=True)
class _Choice:
    """A labelling, what it is worth, and the grains that it takes on each tile."""

    labels: tuple[int, ...]
    value: int
    use: Room


def exhaust(
    pool: Pool, room: IntArray, priced: Priced, floor: int | None, limits: Limits
) -> tuple[bool, Filling | None]:
    """Look through all placements that may be worth more than ``floor``.

    A state is the room left after some copies; only its best value counts, and it is dropped
    where prices prove that the rest does not lift it above the floor.

    Parameters
    ----------
    priced
        Prices and what they prove.

    Returns
    -------
    done, filling
        Whether the search was complete; then the best placement of more than ``floor``, if there
        is one.
    """
    if pool.large or int(pool.copies.sum()) > STATES:
        return False, None
    listed = []
    for kind in range(pool.kinds):
        choices = _choices(pool, kind)
        if choices is None:
            return False, None
        listed.append(choices)
    items = [kind for kind in range(pool.kinds) for _ in range(int(pool.copies[kind]))]
    rest = _rest(priced, items)
    prices, scale = priced.prices.tolist(), priced.scale
    layers: list[dict[Room, tuple[int, Room, _Choice | None]]]
    layers = [{tuple(room.tolist()): (0, (), None)}]
    steps = 0
    for i, kind in enumerate(items):
        states: dict[Room, tuple[int, Room, _Choice | None]] = {}
        for before, (value, _, _) in layers[-1].items():
            steps += len(listed[kind])
            for after, choice in _moves(before, listed[kind]):
                total = value + choice.value
                if after in states and states[after][0] >= total:
                    continue
                top = rest[i + 1] + sum(p * r for p, r in zip(prices, after, strict=True))
                if floor is None or total * scale + top > floor * scale:
                    states[after] = (total, before, choice)
        if len(states) > STATES or steps > STEPS or limits.over:
            return False, None
        layers.append(states)
    return True, _traced(pool, layers, items)


def _choices(pool: Pool, kind: int) -> list[_Choice] | None:
    """Return the labellings of a kind, of those of equal use the best one."""
    number = int(np.searchsorted(pool.first, kind, side="right")) - 1
    group = pool.groups[number]
    size = group.bytes[kind - pool.first[number]]
    if pool.tiles ** len(size) > LABELLINGS:
        return None
    rows = np.array(list(product(range(pool.tiles), repeat=len(size))), np.int64)
    many = len(rows)
    starts = np.arange(many + 1) * len(size)
    kinds = np.full(many, kind)
    columns = Columns(kinds, kinds, starts, rows.reshape(-1), np.tile(size, many))
    best: dict[Room, _Choice] = {}
    for labels, value in zip(rows.tolist(), worth(pool, columns).tolist(), strict=True):
        grains = [0] * pool.tiles
        for label, weight in zip(labels, size.tolist(), strict=True):
            grains[label] += weight
        use = tuple(grains)
        if use not in best or best[use].value < value:
            best[use] = _Choice(tuple(labels), int(value), use)
    return list(best.values())


def _rest(priced: Priced, items: list[int]) -> list[int]:
    """Return the priced worth of all copies from each one on, times the scale."""
    rest = [0]
    for kind in reversed(items):
        rest.append(rest[-1] + int(priced.best[kind]))
    return rest[::-1]


def _moves(before: Room, choices: list[_Choice]) -> Iterator[tuple[Room, _Choice]]:
    for choice in choices:
        after = tuple(a - b for a, b in zip(before, choice.use, strict=True))
        if min(after, default=0) >= 0:
            yield after, choice


def _traced(
    pool: Pool,
    layers: list[dict[Room, tuple[int, Room, _Choice | None]]],
    items: list[int],
) -> Filling | None:
    """Return the way to the best last state."""
    if not layers[-1]:
        return None
    at = max(layers[-1], key=lambda room: layers[-1][room][0])
    labels: list[tuple[int, ...]] = []
    for states in layers[:0:-1]:
        _, before, choice = states[at]
        labels.append(choice.labels if choice else ())
        at = before
    labels.reverse()
    size = [len(row) for row in labels]
    weights = []
    for kind in items:
        number = int(np.searchsorted(pool.first, kind, side="right")) - 1
        weights.append(pool.groups[number].bytes[kind - pool.first[number]])
    none = np.zeros(0, np.int64)
    columns = Columns(
        np.array(items, np.int64),
        np.zeros(len(items), np.int64),
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.concatenate([*map(np.array, labels), none]).astype(np.int64),
        np.concatenate([*weights, none]).astype(np.int64),
    )
    return Filling(columns, np.ones(len(items), np.int64))
