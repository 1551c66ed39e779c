"""Shared columns: bounds that hold, labellings that come back, and when they step aside."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Result, Stopped
from layoutopt.network import elimination, parts
from layoutopt.network.parts import _restored, share_columns, simple_answer, solve_part
from layoutopt.network.problem import Labelling
from tests.support import Edges, allowed, labelling, optimum, random_problem, worth


def fresh(problem: Labelling) -> np.ndarray:
    """Return the labelling that gives each node its own fresh label."""
    return problem.labels + np.arange(problem.nodes)


def ring(nodes: int, weight: int = 2, reward: int = 3) -> Labelling:
    """Return a ring in which each node has a label of its own."""
    edges = {(u, (u + 1) % nodes): weight for u in range(nodes)}
    return labelling(nodes, nodes, edges, {(u, u): reward + (u % 3) for u in range(nodes)})


def sparse(seed: int, nodes: int) -> Labelling:
    """Return a tree with an edge or two on top, and a label of its own for most nodes."""
    draw = random.Random(seed)
    edges: Edges = {(draw.randrange(v), v): draw.randint(1, 9) for v in range(1, nodes)}
    edges[0, nodes - 1] = draw.randint(1, 9)
    rewards = {(u, draw.choice([u, u, u, 0])): draw.randint(1, 9) for u in range(nodes)}
    return labelling(nodes, nodes, edges, rewards)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let columns be shared however few labels there are, and at small distances."""
    monkeypatch.setattr(parts, "MANY", 1)
    monkeypatch.setattr(parts, "DISTANCES", (0, 1, 2))


@pytest.mark.usefixtures("few_are_many")
class TestSmall:
    """Against all labellings."""

    def test_bounds_hold(self) -> None:
        """The optimum is between the two numbers, and often both."""
        closed = open_ = 0
        for seed in range(60):
            problem = sparse(seed, 5)
            heard: list[Progress] = []
            result = share_columns(problem, Limits(tell=heard.append), fresh(problem))
            assert result is not None
            best = optimum(problem)
            assert result.objective == worth(problem, result.labelling.tolist())
            assert result.objective <= best <= (result.bound or 0)
            assert allowed(problem, result.labelling.tolist())
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
            assert (result.stopped is Stopped.FINISHED) == (result.objective == result.bound)
            closed += result.objective == result.bound
            open_ += result.objective < (result.bound or 0)
        assert closed > 10
        assert open_ > 5

    def test_what_stays_open_is_closed(self) -> None:
        """A part is solved to its optimum all the same."""
        for seed in range(30):
            problem = sparse(seed, 5)
            result = solve_part(problem, Limits(), fresh(problem))
            assert result.objective == result.bound == optimum(problem)

    @pytest.mark.parametrize("idle", [False, True])
    def test_what_stays_open_goes_on_from_there(
        self, monkeypatch: pytest.MonkeyPatch, idle: bool
    ) -> None:
        """Without dynamic programming the rest proves the optimum; idle, it takes nothing back."""
        monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
        shares: list[Result] = []
        count = 0

        def watched(*given: Any) -> Result | None:
            found = share_columns(*given)
            shares.extend([] if found is None or found.objective == found.bound else [found])
            return found

        monkeypatch.setattr(parts, "share_columns", watched)
        if idle:
            monkeypatch.setattr(parts, "_reduced", simple_answer)
        for seed in range(25):
            problem, heard = sparse(seed, 5), list[Progress]()
            best = optimum(problem)
            shares.clear()
            result = solve_part(problem, Limits(tell=heard.append), fresh(problem))
            assert result.objective == worth(problem, result.labelling.tolist())
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
            if not idle or not shares:
                assert (result.objective, result.bound) == (best, best)
                assert result.stopped is Stopped.FINISHED
            else:
                assert shares[0].objective == result.objective <= best
                assert best <= (result.bound or 0) == shares[0].bound
                assert result.stopped is Stopped.SIZE_LIMIT
            count += len(shares)
        assert count > 5

    def test_steps_aside(self) -> None:
        """Negative edges, negative rewards and bans are not for it, nor are wide numbers."""
        aside = 0
        for seed in range(200):
            wide = 10**30 if seed % 4 == 3 else 1
            kinds = {"negative": seed % 4 == 1, "bans": seed % 4 == 2}
            problem = random_problem(seed, wide=wide, **kinds)
            numbers = [*problem.weights.tolist(), *problem.rewards.tolist()]
            odd = len(problem.banned) or min(numbers, default=0) < 0 or max(numbers, default=0) > 99
            if odd:
                assert share_columns(problem, Limits(), fresh(problem)) is None
                aside += 1
        assert aside > 90


def closed(problem: Labelling) -> Result:
    """Return the result of shared columns, which must be a proof."""
    result = share_columns(problem, Limits(), fresh(problem))
    assert result is not None
    assert result.objective == result.bound == problem.value(result.labelling)
    return result


def test_rings_by_hand() -> None:
    """In a ring of edges of 2 and labels worth 3, 4 and 5 all nodes keep their own.

    To give one up costs at least 3 and gains at most 2, or 4 for a whole piece that joins both
    its neighbours, which then lose 3 more.
    """
    result = closed(ring(300))
    assert result.objective == 1200
    assert result.labelling.tolist() == list(range(300))


@pytest.mark.parametrize("rewards", [(1, 5), (5, 1)])
def test_a_piece_takes_its_best_label(rewards: tuple[int, int]) -> None:
    """Of two labels of one column that a piece earns the larger one is taken; the rest is fresh."""
    one, two = rewards
    path = {(0, 1): 1, (1, 2): 1, (2, 3): 1}
    problem = labelling(4, 3, path, {(0, 0): one, (2, 1): two, (3, 2): 9})
    labels = _restored(problem, np.array([0, 0, 1]), np.array([0, 0, 0, 0]))
    assert labels.tolist() == [rewards.index(5)] * 4
    alone = _restored(problem, np.array([0, 0, 1]), np.array([1, 1, 0, 1]))
    assert alone.tolist() == [3, 3, 1, 2]


def test_few_labels_keep_their_shared_columns() -> None:
    """Fewer than 64 labels are left to others."""
    assert share_columns(ring(63), Limits(), fresh(ring(63))) is None


def test_labels_that_are_everywhere_do_not_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where labels meet everywhere, or are too many to compare, the given labelling comes back."""
    dense = {(u, label): 1 + label % 3 for u in range(70) for label in range(70)}
    edges = {(u, u + 1): 5 for u in range(69)} | {(0, 69): 5}
    problem = labelling(70, 70, edges, dense)
    start = fresh(problem)
    monkeypatch.setattr(parts, "CONFLICTS_LIMIT", 10)
    for given in (problem, ring(300)):
        result = share_columns(given, Limits(), fresh(given))
        assert result is not None
        assert result.labelling.tolist() == fresh(given).tolist()
        assert result.bound == given.total()
    monkeypatch.undo()
    result = share_columns(problem, Limits(), start)
    assert result is not None
    assert (result.bound, result.objective) == (problem.total(), 0)


def test_no_time() -> None:
    """Without time the given labelling comes back, with what all numbers add up to."""
    problem = ring(300)
    result = share_columns(problem, Limits(deadline=time.monotonic()), fresh(problem))
    assert result is not None
    assert (result.objective, result.bound) == (0, problem.total())
    assert result.stopped is Stopped.TIME_LIMIT
