"""Patterns of kinds, and prices from configurations."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.capacity import solve
from layoutopt.network.capacity.problem import Columns


def given(kinds: int = 6, tiles: int = 4) -> tuple[Columns, np.ndarray, np.ndarray]:
    """Return two configurations of one node for each kind, their copies and room."""
    draw = np.random.default_rng(0)
    many = 2 * kinds
    columns = Columns(
        np.repeat(np.arange(kinds), 2),
        draw.integers(1, 20, many),
        np.arange(many + 1),
        draw.integers(0, tiles, many),
        draw.integers(1, 4, many),
    )
    return columns, draw.integers(1, 9, kinds), draw.integers(5, 15, tiles)


def test_slopes_of_the_smooth_dual_are_differences() -> None:
    """Central differences of the value agree with the slope, in every direction."""
    columns, copies, room = given()
    value = columns.value / 20.0
    smooth = solve.SmoothDual(columns, columns.use(len(room)), value, copies, room, Limits())
    smooth.heat = 0.3
    at, step = np.array([0.2, 0.1, 0.5, 0.3]), 1e-6
    _, slope = smooth.dual(at)
    for t in range(len(at)):
        move = step * (np.arange(len(at)) == t)
        difference = (smooth.dual(at + move)[0] - smooth.dual(at - move)[0]) / (2 * step)
        assert abs(difference - slope[t]) < 1e-7


def test_what_is_decided_takes_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds that lose most by their second choice are set, and leave the rest of the room."""
    kind = np.repeat(np.arange(3), 2)
    tile = np.array([0, 1, 0, 1, 1, 0])
    columns = Columns(kind, np.zeros(6, np.int64), np.arange(7), tile, np.full(6, 2))
    reduced = np.array([9.0, 0.0, 5.0, 4.0, 3.0, 8.0])
    copies, matrix = np.array([3, 4, 5]), columns.use(2)
    monkeypatch.setattr(solve, "LEAST", 1)
    chosen, counts, left = solve.undecided(columns, matrix, reduced, copies, np.array([20, 20]), 0)
    tight, _, less = solve.undecided(columns, matrix, reduced, copies, np.array([12, 20]), 0)
    assert chosen.tolist() == [2, 3]
    assert counts.tolist() == [3, 0, 0, 0, 0, 5]
    assert left.tolist() == [20 - 2 * 8, 20]
    # With room for 6 on tile 0 the third kind stays open, too.
    assert tight.tolist() == [2, 3, 4, 5]
    assert less.tolist() == [6, 20]
