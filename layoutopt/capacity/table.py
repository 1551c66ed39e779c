"""The optimum where few rooms are possible: dynamic programming over a table of them all.

The room left after some copies is a number in mixed radix, and a copy that takes some labels
subtracts a constant from it, so that one labelling moves all states at once.  A state's *credit*
is its value plus the priced room that is left; prices prove that the rest adds no more than a
constant.  So states and labellings whose credit is too low for anything better than what is known
are dropped: the better that is, the fewer are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from layoutopt.capacity.exhaust import Choice, choices_of, filling_of, rest_of
from layoutopt.capacity.fill import Filling
from layoutopt.capacity.pool import Pool, Priced
from layoutopt.limits import Limits
from layoutopt.problem import IntArray

ROOMS = 2_000_000
"""Rooms that the table may have."""

STEPS = 300_000_000
"""States times labellings that are looked at, and rooms of all tables."""

KEPT = 10_000_000
"""States that are kept for the way back."""

NONE = -(2**62)
"""The credit of what is no state."""


@dataclass(frozen=True, eq=False)
class _Layer:
    """The states after some copies, in ascending order, and the labelling that led to each."""

    states: IntArray
    credit: IntArray
    choice: IntArray


def tabulable(pool: Pool, room: IntArray, priced: Priced) -> bool:
    """Return whether the table is small enough, and its numbers fit 64 bits."""
    copies = int(pool.copies.sum())
    spent = max(priced.prices.tolist(), default=0) * int(room.sum())
    return (
        not pool.large
        and math.prod(space + 1 for space in room.tolist()) <= ROOMS
        and pool.most * copies * priced.scale + spent < 2**60
        and copies <= ROOMS
    )


def tabulate(
    pool: Pool, room: IntArray, priced: Priced, floor: int | None, limits: Limits
) -> tuple[bool, Filling | None]:
    """Look through all placements that may be worth more than ``floor``.

    Parameters
    ----------
    pool, room, priced
        Such that :func:`tabulable`.

    Returns
    -------
    done, filling
        Whether this was complete; then the best placement of more than ``floor``, if there is
        one.
    """
    items = [kind for kind in range(pool.kinds) for _ in range(int(pool.copies[kind]))]
    choices: dict[int, list[Choice]] = {}
    for kind in set(items):
        found = choices_of(pool, kind)
        if found is None:
            return False, None
        choices[kind] = found
    rest = rest_of(priced, items)
    table = _Table(room, priced, limits)
    layers = [table.first()]
    for i, kind in enumerate(items):
        least = NONE if floor is None else floor * priced.scale - rest[i + 1]
        layer = table.step(layers[-1], choices[kind], least)
        if layer is None:
            return False, None
        layers.append(layer)
    if not len(layers[-1].states):
        return True, None
    labels = table.traced(layers, [choices[kind] for kind in items])
    return True, filling_of(pool, items, labels)


class _Table:
    """How states are numbered, and the credit of the best way to each."""

    def __init__(self, room: IntArray, priced: Priced, limits: Limits) -> None:
        self.room, self.prices, self.scale = room, priced.prices.astype(np.int64), priced.scale
        self.radix = np.cumprod(np.r_[1, room[:-1] + 1])
        self.limits, self.steps, self.kept = limits, 0, 0

    def left(self, states: IntArray) -> IntArray:
        """Return the room left in each state, shape ``(states, tiles)``."""
        rooms: IntArray = states[:, None] // self.radix % (self.room + 1)
        return rooms

    def first(self) -> _Layer:
        """Return the state with nothing placed."""
        credit = np.array([self.prices @ self.room])
        return _Layer(np.array([self.room @ self.radix]), credit, np.zeros(1, np.int64))

    def step(self, before: _Layer, choices: list[Choice], least: int) -> _Layer | None:
        """Return the states after one more copy, of credit above ``least``.

        ``None`` if that is too much work.
        """
        order = np.argsort(-before.credit, kind="stable")
        states, credit = before.states[order], before.credit[order]
        left = self.left(states).T.copy()
        best = np.full(math.prod(space + 1 for space in self.room.tolist()), NONE)
        chosen = np.zeros(len(best), np.int16)
        self.steps += len(best)
        for number, choice in enumerate(choices):
            use = np.array(choice.use)
            gain = choice.value * self.scale - int(self.prices @ use)
            many = int(np.searchsorted(-credit, gain - least))
            self.steps += many
            if self.steps > STEPS or self.limits.over:
                return None
            holds = np.ones(many, bool)
            for tile in np.flatnonzero(use).tolist():
                holds &= left[tile, :many] >= use[tile]
            at, new = states[:many][holds] - use @ self.radix, credit[:many][holds] + gain
            better = new > best[at]
            best[at[better]], chosen[at[better]] = new[better], number
        after = np.flatnonzero(best > NONE)
        self.kept += len(after)
        if self.kept > KEPT:
            return None
        return _Layer(after, best[after], chosen[after])

    def traced(self, layers: list[_Layer], choices: list[list[Choice]]) -> list[tuple[int, ...]]:
        """Return the labels of all copies on the way to the best last state."""
        last = layers[-1]
        at = int(last.states[(last.credit - self.left(last.states) @ self.prices).argmax()])
        labels = []
        for layer, offered in zip(layers[:0:-1], choices[::-1], strict=True):
            choice = offered[int(layer.choice[np.searchsorted(layer.states, at)])]
            labels.append(choice.labels)
            at += int(np.array(choice.use) @ self.radix)
        return labels[::-1]
