"""Transportation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from layoutopt.network.flow import ship, shippable


def given(seed: int) -> tuple[np.ndarray, ...]:
    """Return supplies, sources, places and worth of all arcs, and room that is enough."""
    draw = np.random.default_rng(seed)
    n, m = int(draw.integers(1, 6)), int(draw.integers(1, 5))
    supply = draw.integers(0, 6, n)
    source, place = (x.reshape(-1) for x in np.meshgrid(np.arange(n), np.arange(m), indexing="ij"))
    worth = draw.integers(-9, 10, n * m)
    room = draw.integers(0, 6, m)
    room[0] += max(0, int(supply.sum() - room.sum()))
    return supply, source, place, worth, room


def best(
    supply: np.ndarray, source: np.ndarray, place: np.ndarray, worth: np.ndarray, room: np.ndarray
) -> int:
    """Return the most worth by the linear programme, which is whole."""
    a_eq = (source == np.arange(len(supply))[:, None]).astype(float)
    a_ub = (place == np.arange(len(room))[:, None]).astype(float)
    answer = linprog(-worth, A_ub=a_ub, b_ub=room, A_eq=a_eq, b_eq=supply)
    assert answer.status == 0
    return round(-answer.fun)


@pytest.mark.parametrize("seed", range(60))
def test_shipments_are_best_and_prices_are_gains(seed: int) -> None:
    """Everything is shipped at the most worth; a price is what one more unit of room gains."""
    supply, source, place, worth, room = given(seed)
    found = ship(supply, source, place, worth, room)
    assert found is not None
    assert (np.bincount(source, found.flows, len(supply)) == supply).all()
    assert (np.bincount(place, found.flows, len(room)) <= room).all()
    value = best(supply, source, place, worth, room)
    assert int(found.flows @ worth) == value
    for tile in range(len(room)):
        more = room + (np.arange(len(room)) == tile)
        assert best(supply, source, place, worth, more) - value == found.prices[tile]


def test_too_little_room_ships_nothing() -> None:
    """Two units do not fit one place of room 1."""
    one = np.zeros(1, np.int64)
    assert ship(one + 2, one, one, one, one + 1) is None


@pytest.mark.parametrize(("worth", "small"), [(2**40, True), (2**60, False), (-(2**60), False)])
def test_large_worth_is_told(worth: int, small: bool) -> None:
    """Numbers that the solver cannot add up do not fit."""
    assert shippable(np.array([0, worth]), 2, 2) == small
