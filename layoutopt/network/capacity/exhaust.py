"""The optimum of small problems, copy by copy: dynamic programming over the room that is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.capacity.answer import worth
from layoutopt.network.capacity.fill import Filling, Rows
from layoutopt.network.capacity.pool import Pool, Priced
from layoutopt.network.capacity.problem import Columns
from layoutopt.network.problem import IntArray

LABELLINGS = 5_000
"""Labellings of one kind that are listed."""

STATES = 100_000
"""States that are kept at a time."""

STEPS = 500_000
"""Steps in all."""

Room = tuple[int, ...]


@dataclass(frozen=True)
class Choice:
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
        choices = choices_of(pool, kind)
        if choices is None:
            return False, None
        listed.append(choices)
    items = [kind for kind in range(pool.kinds) for _ in range(int(pool.copies[kind]))]
    rest = rest_of(priced, items)
    prices, scale = priced.prices.tolist(), priced.scale
    layers: list[dict[Room, tuple[int, Room, Choice | None]]]
    layers = [{tuple(room.tolist()): (0, (), None)}]
    steps = 0
    for i, kind in enumerate(items):
        states: dict[Room, tuple[int, Room, Choice | None]] = {}
        for before, (value, _, _) in layers[-1].items():
            steps += len(listed[kind])
            if steps > STEPS or limits.over:
                return False, None
            for after, choice in _moves(before, listed[kind]):
                total = value + choice.value
                if after in states and states[after][0] >= total:
                    continue
                top = rest[i + 1] + sum(p * r for p, r in zip(prices, after, strict=True))
                if floor is None or total * scale + top > floor * scale:
                    states[after] = (total, before, choice)
        if len(states) > STATES:
            return False, None
        layers.append(states)
    return True, _traced(pool, layers, items)


def choices_of(pool: Pool, kind: int) -> list[Choice] | None:
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
    best: dict[Room, Choice] = {}
    for labels, value in zip(rows.tolist(), worth(pool, columns).tolist(), strict=True):
        grains = [0] * pool.tiles
        for label, weight in zip(labels, size.tolist(), strict=True):
            grains[label] += weight
        use = tuple(grains)
        if use not in best or best[use].value < value:
            best[use] = Choice(tuple(labels), int(value), use)
    return list(best.values())


def rest_of(priced: Priced, items: list[int]) -> list[int]:
    """Return the priced worth of all copies from each one on, times the scale."""
    rest = [0]
    for kind in reversed(items):
        rest.append(rest[-1] + int(priced.best[kind]))
    return rest[::-1]


def _moves(before: Room, choices: list[Choice]) -> Iterator[tuple[Room, Choice]]:
    for choice in choices:
        after = tuple(a - b for a, b in zip(before, choice.use, strict=True))
        if min(after, default=0) >= 0:
            yield after, choice


def _traced(
    pool: Pool,
    layers: list[dict[Room, tuple[int, Room, Choice | None]]],
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
    return filling_of(pool, items, labels[::-1])


def filling_of(pool: Pool, items: list[int], labels: list[tuple[int, ...]]) -> Filling:
    """Return copies of kinds with their labels as a placement."""
    rows = Rows()
    for kind, mine in zip(items, labels, strict=True):
        number = int(np.searchsorted(pool.first, kind, side="right")) - 1
        size = pool.groups[number].bytes[kind - pool.first[number]]
        rows.add(kind, 1, np.array(mine, np.int64), size)
    return rows.filling()
