"""The programmes over configurations and over nodes."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.capacity import search, solve
from layoutopt.network.capacity.answer import State
from layoutopt.network.capacity.fill import Row, filled
from layoutopt.network.capacity.pool import Pool
from layoutopt.network.capacity.problem import Columns
from layoutopt.network.capacity.search import add_configurations, programme
from layoutopt.network.solvers.programme import ProgrammeWriter
from tests.network.capacity.cases import optimum, random_case


def test_numbers_too_wide_for_any_programme_are_left_alone() -> None:
    """The search claims nothing where what CP-SAT can hold would not tell two worths apart."""
    left = 0
    for seed in range(0, 210, 7):
        problem = random_case(seed)
        best, state = optimum(problem), State(Pool(problem), problem.capacity, Limits())
        solve.choose_freely(state)
        before = state.bound
        search.search(state)
        assert before is not None
        if best is None:
            assert state.value is None
        else:
            assert state.bound is not None
            assert best <= state.bound <= before
            assert state.value is None or state.value <= best
            left += state.value != state.bound
    assert left


@pytest.mark.parametrize("seed", range(20))
def test_slots_of_a_copy_are_on_different_tiles(seed: int) -> None:
    """Any legal shares of slots are copies whose slots differ, as many on each tile as asked."""
    draw = np.random.default_rng(seed)
    slots, tiles = int(draw.integers(1, 4)), int(draw.integers(4, 7))
    copies = int(draw.integers(1, 12))
    columns = Columns(
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.array([0, slots + 1]),
        np.array([0, *(tiles + np.arange(slots))]),
        np.ones(slots + 1, np.int64),
    )
    to = ProgrammeWriter()
    asked = programme(to, columns, np.array([copies]), tiles, {0: {0}})
    assert asked is not None
    table = np.zeros((slots, tiles), np.int64)
    for _ in range(copies):  # any sum of legal copies is legal
        table[np.arange(slots), 1 + draw.permutation(tiles - 1)[:slots]] += 1
    point = np.concatenate([[copies], table[asked.slot, asked.tile]])
    assert to.finished().holds(point)
    rows: list[Row] = []
    add_configurations(asked, point, rows)
    found = filled(rows)
    again = np.zeros_like(table)
    for row, count in zip(found.columns.labels.reshape(-1, slots + 1), found.counts, strict=True):
        assert row[0] == 0
        assert len(set(row.tolist())) == slots + 1
        again[np.arange(slots), row[1:]] += count
    assert (again == table).all()
    assert found.counts.sum() == copies


def test_slots_that_share_a_tile_too_often_break_a_row() -> None:
    """Two slots of one copy on one tile are no point of the programme."""
    none = np.zeros(1, np.int64)
    columns = Columns(none, none, np.array([0, 2]), np.array([3, 4]), np.ones(2, np.int64))
    to = ProgrammeWriter()
    asked = programme(to, columns, np.array([1]), 3, {0: set()})
    assert asked is not None
    point = np.concatenate([[1], (asked.tile == 2).astype(np.int64)])
    assert not to.finished().holds(point)
