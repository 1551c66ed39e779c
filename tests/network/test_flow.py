"""Minimum cuts, best sets and shipments against all of them, by OR-Tools and by SciPy."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.optimize import linprog

from layoutopt.base.errors import SolverError
from layoutopt.network import flow
from layoutopt.network.flow import _augmented, best_set, minimum_cut, ship, shippable
from tests.support import random_problem


@pytest.fixture(params=["installed", "missing"], autouse=True)
def ortools(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let OR-Tools be there, and missing."""
    if request.param == "missing":
        for module in ("ortools", "ortools.graph.python"):
            monkeypatch.setitem(sys.modules, module, None)
    elif "ortools" in sys.modules and sys.modules["ortools"] is None:
        pytest.skip("OR-Tools is missing")


@pytest.mark.parametrize("wide", [1, 2**20, 2**34, 2**53])
def test_minimum_cuts(wide: int) -> None:
    """The flow is the least cut of all, and both sides are the smallest and the largest one."""
    for seed in range(40):
        draw = np.random.default_rng(seed)
        n = int(draw.integers(1, 5))
        tails = draw.integers(0, n + 1, 12)
        heads = (tails + draw.integers(1, n + 2, 12)) % (n + 2)
        inner = (tails != n + 1) & (heads != n)
        capacities = draw.integers(0, 4, 12) * wide + (wide > 1) * draw.integers(0, 2, 12)
        tails, heads, capacities = tails[inner], heads[inner], capacities[inner]
        sides = {}
        for bits in range(2**n):
            side = np.array([*(bits >> k & 1 for k in range(n)), 1, 0], bool)
            sides[bits] = int(capacities[side[tails] & ~side[heads]].sum())
        least = min(sides.values())
        best = [bits for bits, cut in sides.items() if cut == least]
        every = np.array([[bits >> k & 1 for k in range(n)] for bits in best], bool)
        for largest, side in ((False, every.all(axis=0)), (True, every.any(axis=0))):
            value, found = minimum_cut(n, tails, heads, capacities, largest=largest)
            assert (value, found.tolist()) == (least, side.tolist())


def test_capacities_without_end() -> None:
    """Arcs that must not be cut, each of 2^60, do not hinder; SciPy refuses so large a flow."""
    endless = np.array([2**60] * 9 + [3, 4])
    tails, heads = np.array([0] * 9 + [2, 1]), np.array([1] * 9 + [0, 3])
    assert minimum_cut(2, tails, heads, endless)[0] == 3
    with pytest.raises(SolverError):
        _augmented(1, np.array([1, 1, 0]), np.array([0, 0, 2]), endless[:3], largest=False)


@pytest.mark.parametrize("base", [0, 2**53])
def test_best_sets(base: int) -> None:
    """The smallest best set is common to all best ones, the largest holds all of them.

    Floats would not tell numbers just above a base of 2^53 apart.
    """
    ties = 0
    for seed in range(100):
        problem = random_problem(seed, 6, 1)
        n, draw = problem.nodes, np.random.default_rng(seed)
        gain = draw.integers(-3, 4, n)
        gain += base * np.sign(gain)
        weights = problem.weights + base
        u, v = problem.edges.T
        worths = {}
        for bits in range(2**n):
            inside = np.array([bits >> k & 1 == 1 for k in range(n)])
            worths[bits] = int(gain[inside].sum() - weights[inside[u] != inside[v]].sum())
        top = max(worths.values())
        best = [bits for bits, worth in worths.items() if worth == top]
        every = np.array([[bits >> k & 1 == 1 for k in range(n)] for bits in best])
        given = problem.edges, weights, gain
        assert best_set(*given, largest=False).tolist() == every.all(axis=0).tolist()
        if (gain > 0).any() or not (gain < 0).any():  # else nothing is looked for
            assert best_set(*given).tolist() == every.any(axis=0).tolist()
        ties += len(best) > 1
    assert ties > 15


def best_shipment(
    supply: np.ndarray, source: np.ndarray, place: np.ndarray, worth: np.ndarray, room: np.ndarray
) -> int:
    """Return the most worth by the linear programme, which is whole."""
    a_eq = (source == np.arange(len(supply))[:, None]).astype(float)
    a_ub = (place == np.arange(len(room))[:, None]).astype(float)
    answer = linprog(-worth, A_ub=a_ub, b_ub=room, A_eq=a_eq, b_eq=supply)
    assert answer.status == 0
    return round(-answer.fun)


def test_shipments_are_best_and_prices_are_gains() -> None:
    """Everything is shipped at the most worth; a price is what one more unit of room gains."""
    for seed in range(40):
        draw = np.random.default_rng(seed)
        n, m = int(draw.integers(1, 6)), int(draw.integers(1, 5))
        supply, room = draw.integers(0, 6, n), draw.integers(0, 6, m)
        source, place = np.divmod(np.arange(n * m), m)
        worth = draw.integers(-9, 10, n * m)
        room[0] += max(0, int(supply.sum() - room.sum()))
        found = ship(supply, source, place, worth, room)
        assert found is not None
        flows, prices = found
        assert (np.bincount(source, flows, n) == supply).all()
        assert (np.bincount(place, flows, m) <= room).all()
        value = best_shipment(supply, source, place, worth, room)
        assert int(flows @ worth) == value
        for tile in range(m):
            more = room + (np.arange(m) == tile)
            gain = best_shipment(supply, source, place, worth, more) - value
            assert gain == prices[tile]


def test_too_little_room_ships_nothing() -> None:
    """Two units do not fit one place of room 1."""
    one = np.zeros(1, np.int64)
    assert ship(one + 2, one, one, one, one + 1) is None


def test_flows_that_are_not_best_have_no_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two units that swap their places would gain for ever."""
    monkeypatch.setattr(flow, "_shipped", lambda *_: np.array([0, 1, 1, 0]))
    two = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert ship(np.array([1, 1]), *two, np.array([5, 1, 1, 5]), np.array([1, 1])) is None


@pytest.mark.parametrize(("worth", "small"), [(2**40, True), (2**60, False), (-(2**60), False)])
def test_large_worth_is_told(worth: int, small: bool) -> None:
    """Numbers that the solver cannot add up do not fit."""
    assert shippable(np.array([0, worth]), 2, 2) == small
