"""The search node by node, against tables of all labellings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.base.result import Status
from layoutopt.network.capacity import pool, search, solve
from layoutopt.network.capacity.answer import CapacityAnswer, Reason, State, worth
from layoutopt.network.capacity.fill import Rows
from layoutopt.network.capacity.pool import Pool, one_copy
from layoutopt.network.capacity.problem import CapacityProblem
from layoutopt.network.capacity.search import (
    node_filling,
    node_programme,
    node_start,
)
from layoutopt.network.capacity.solve import solve_capacity
from layoutopt.network.solvers.programme import ProgrammeWriter
from tests.capacity.cases import (
    all_labellings,
    assert_sound,
    large_case,
    optimum,
    random_case,
)

BLOCK = 10


def assert_as_tabulated(problem: CapacityProblem, answer: CapacityAnswer) -> bool:
    """Check a proved answer against the table; return whether anything fits."""
    best = all_labellings(problem)
    if best is None:
        assert answer.status is Status.INFEASIBLE
        assert (answer.infeasible is Reason.BYTES) == (answer.lacking > 0)
        assert answer.placement is None
        return False
    assert (answer.objective, answer.bound) == (best, best)
    assert_sound(problem, answer)
    return True


def twin(problem: CapacityProblem) -> CapacityProblem:
    """Move one byte of room from the first tile that has some to the next."""
    room = problem.capacity.copy()
    tile = int(np.flatnonzero(room)[0])
    room[tile] -= 1
    room[(tile + 1) % len(room)] += 1
    return replace(problem, capacity=room)


@pytest.mark.parametrize("block", range(4))
def test_components_of_many_nodes_are_proved(block: int) -> None:
    """Components of 9 to 12 nodes are proved optimal where not a byte is to spare."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        problem = large_case(seed)
        assert assert_as_tabulated(problem, solve_capacity(problem, Limits()))


@pytest.mark.parametrize("strategies", [tuple(solve.STRATEGIES), ("free", "search")])
@pytest.mark.parametrize("block", range(4))
def test_a_byte_elsewhere_may_leave_nothing_that_fits(
    monkeypatch: pytest.MonkeyPatch, block: int, strategies: tuple[str, ...]
) -> None:
    """Twins with a byte of room elsewhere are proved optimal, or not to fit, as tables say.

    So they are by the search alone, without packing, moves and a start.
    """
    monkeypatch.setattr(solve, "STRATEGIES", {name: solve.STRATEGIES[name] for name in strategies})
    fits = []
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        problem = twin(large_case(seed))
        fits.append(assert_as_tabulated(problem, solve_capacity(problem, Limits())))
    assert 0 < sum(fits) < BLOCK


@pytest.mark.parametrize("block", range(12))
def test_configurations_and_nodes_make_one_search(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Large kinds beside listed ones are proved as trying everything finds."""
    monkeypatch.setattr(pool, "NODES", 1)
    monkeypatch.setattr(
        solve, "STRATEGIES", {name: solve.STRATEGIES[name] for name in ("free", "search")}
    )
    mixed = []
    both = search._solve  # noqa: SLF001

    def watched(
        state: State, to: ProgrammeWriter, listed: object, nodes: object, *more: Any
    ) -> None:
        mixed.append(listed is not None and nodes is not None)
        both(state, to, listed, nodes, *more)

    monkeypatch.setattr(search, "_solve", watched)
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        problem = random_case(seed)
        if seed % 7:
            best, answer = optimum(problem), solve_capacity(problem, Limits())
            assert answer.objective == best
            assert answer.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert any(mixed)


@pytest.mark.parametrize("block", range(4))
def test_a_placement_is_a_point_to_start_from(block: int) -> None:
    """Any placement, tiles and copies renamed, is a point of the programme of equal worth."""
    alike = 0
    for seed in range(block * 25, (block + 1) * 25):
        problem = random_case(seed)
        given = problem.problem
        if seed % 2:  # without rewards tiles of equal room are alike
            given = replace(given, reward_at=given.reward_at[:0], rewards=given.rewards[:0])
        tiles = given.labels
        room = np.full(tiles, problem.total_bytes)
        kinds = Pool(replace(problem, problem=given, capacity=room))
        to = ProgrammeWriter()
        asked = node_programme(to, kinds, list(range(kinds.kinds)), room)
        alike += bool(asked.alike)
        draw = np.random.default_rng(seed)
        rows = Rows()
        for kind, copies in enumerate(kinds.copies.tolist()):
            copy, size = one_copy(kinds, kind)
            for _ in range(copies):
                rows.add(kind, 1, draw.integers(0, tiles, copy.nodes), size)
        value = sum(worth(kinds, rows.filling().columns).tolist())
        point = node_start(asked, rows.filling())
        assert to.finished().holds(point)
        assert to.finished().objective @ point == value
        assert sum(worth(kinds, node_filling(asked, point).columns).tolist()) == value
    assert alike > 5


def begun(problem: CapacityProblem, limits: Limits | None = None) -> State:
    """Return a state with prices, if there is room for all bytes."""
    state = State(Pool(problem), problem.capacity, limits or Limits())
    solve.choose_freely(state)
    return state


def test_numbers_too_wide_for_any_programme_are_left_alone() -> None:
    """The search claims nothing where what CP-SAT can hold would not tell two worths apart."""
    left = 0
    for seed in range(0, 210, 7):
        problem = random_case(seed)
        best, state = optimum(problem), begun(problem)
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
