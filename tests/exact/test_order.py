"""Barrier order: tournaments, wide numbers, and the decomposition that solves it."""

from __future__ import annotations

import random
import time
from itertools import permutations

import numpy as np
import pytest

from layoutopt.base.entries import Takes, load
from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Status, Stopped
from layoutopt.network import elimination
from layoutopt.network.order import solve as auto
from layoutopt.network.problem import Labelling, Method, Precedence
from tests.support import (
    EXACT,
    allowed,
    hard_problem,
    labelling,
    optimum,
    random_problem,
    worth,
)

methods = pytest.mark.parametrize("name", EXACT)


def proved(solve: Method, problem: Labelling, limits: Limits | None = None) -> int:
    """Return the optimum, after checking that the method proves it."""
    result = solve(problem, limits or Limits(), None)
    best = optimum(problem)
    assert (result.objective, result.bound) == (best, best)
    assert result.status is Status.OPTIMAL
    assert worth(problem, result.labelling.tolist()) == best
    assert allowed(problem, result.labelling.tolist())
    return best


def rule(
    barriers: int, arcs: list[tuple[int, int]], offered: list[int], readers: list[tuple[int, ...]]
) -> Precedence:
    """Return an order rule: the barrier of each label, and the barriers that read each node."""
    sets = list(dict.fromkeys([(), *readers]))
    return Precedence(
        barriers,
        np.array(arcs, np.int64).reshape(-1, 2),
        np.array(offered, np.int64),
        tuple(sets),
        np.array([sets.index(read) for read in readers], np.int64),
    )


@pytest.mark.cpsat
def test_wide_numbers_with_order() -> None:
    """Numbers beyond 64 bits: nearly all are exact, and a rounded bound is only a bound."""
    rounded = 0
    for seed in range(80):
        problem = random_problem(seed, negative=seed % 2 == 0, barriers=3, wide=10**30)
        result = auto(problem, Limits(), None)
        best = optimum(problem)
        assert result.bound is not None
        assert result.objective == worth(problem, result.labelling.tolist()) == best
        assert best <= result.bound <= best + problem.total() // 10**12
        if result.bound > best:
            rounded += 1
            assert result.stopped is Stopped.SIZE_LIMIT
    assert rounded < 10


def tournament(values: dict[tuple[int, int], int]) -> Labelling:
    """Return a problem in which barrier b's coming before c earns ``values[b, c]``."""
    wishes = {(i, i): value for i, value in enumerate(values.values())}
    offered, readers = [b for b, _ in values], [(c,) for _, c in values]
    barriers = 1 + max(offered)
    order = rule(barriers, [], offered, readers)
    return labelling(len(values), len(values), {}, wishes, precedence=order)


def beside(one: Labelling, two: Labelling) -> Labelling:
    """Return two problems side by side, the second without order rules."""
    order = one.precedence
    assert order is not None
    return Labelling(
        one.nodes + two.nodes,
        one.labels + two.labels,
        np.concatenate([one.edges, two.edges + one.nodes]),
        np.concatenate([one.weights, two.weights]),
        np.concatenate([one.reward_at, two.reward_at + (one.nodes, one.labels)]),
        np.concatenate([one.rewards, two.rewards]),
        precedence=Precedence(
            order.barriers,
            order.arcs,
            np.concatenate([order.label_barrier, np.full(two.labels, -1)]),
            order.reader_sets,
            np.concatenate([order.node_readers, np.full(two.nodes, order.reader_sets.index(()))]),
        ),
    )


def random_tournament(seed: int, barriers: int = 5) -> tuple[Labelling, int]:
    """Return a tournament with random values, and the best that any order earns."""
    draw = random.Random(seed)
    values = {pair: draw.randint(1, 9) for pair in permutations(range(barriers), 2)}
    ranks = permutations(range(barriers))
    best = max(sum(v for (b, c), v in values.items() if r[b] < r[c]) for r in ranks)
    return tournament(values), best


@pytest.mark.parametrize("name", ["auto", "cpsat"])
def test_long_chain_in_many_orders(name: str) -> None:
    """A tournament of eight barriers: an order decides all 28 pairs.

    Barrier b < c earns 2 for coming first, c > b earns 1.  In ascending order everybody's 2 is
    earned: 56.  Nothing is better, as no pair can earn both.
    """
    values = {(b, c): 2 if b < c else 1 for b, c in permutations(range(8), 2)}
    result = load(name, Takes.LABELLING)(tournament(values), Limits(), None)
    assert (result.objective, result.bound) == (56, 56)


@methods
def test_tournaments(name: str) -> None:
    """Random tournaments, against all orders of their barriers."""
    for seed in range(6):
        problem, best = random_tournament(seed, 4)
        result = load(name, Takes.LABELLING)(problem, Limits(), None)
        assert (result.objective, result.bound) == (best, best)
        assert problem.value(result.labelling) == best


class TestAuto:
    """The decomposition by barrier order."""

    @pytest.fixture(params=[False, True], ids=["tables", "search"])
    def solve(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Method:
        """Return the method, with and without dynamic programming for its parts."""
        if request.param:
            monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
        return auto

    def test_messages(self, solve: Method) -> None:
        """Messages speak of the whole: parts that order couples, and parts that it does not."""
        count = 0
        for seed in range(60):
            problem = random_problem(seed, 6, negative=seed % 2 == 0, barriers=3)
            heard: list[Progress] = []
            best = proved(solve, problem, Limits(tell=heard.append))
            count += len(heard)
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        assert count > 0

    def test_no_time(self, solve: Method) -> None:
        """Without time there is a legal labelling, and a bound that holds."""
        for seed in range(80):
            problem = random_problem(seed, 6, negative=seed % 2 == 0, barriers=3)
            result = solve(problem, Limits(deadline=time.monotonic()), None)
            assert allowed(problem, result.labelling.tolist())
            assert result.objective == worth(problem, result.labelling.tolist())
            assert result.bound is not None
            assert result.objective <= optimum(problem) <= result.bound

    def test_gap(self, solve: Method) -> None:
        """With a gap allowed the answer is within it, and says why it stopped."""
        stopped = 0
        for seed in range(20):
            problem, best = random_tournament(seed)
            result = solve(problem, Limits(gap=1.1), None)
            assert allowed(problem, result.labelling.tolist())
            assert result.objective is not None
            assert result.bound is not None
            assert result.objective <= best <= result.bound
            assert result.bound - result.objective <= 1.1 * result.objective
            if result.bound > result.objective:
                stopped += 1
                assert result.stopped is Stopped.GAP_LIMIT
        assert stopped > 5

    def test_progress_of_the_order(self, solve: Method) -> None:
        """While an order is looked for, messages hold the optimum between their numbers."""
        for seed in range(10):
            problem, best = random_tournament(seed)
            heard: list[Progress] = []
            result = solve(problem, Limits(tell=heard.append), None)
            assert result.objective == result.bound == best
            assert {message.phase for message in heard} == {"barrier order"}
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)

    def test_progress_of_both(self, solve: Method) -> None:
        """Beside an order there are parts that it does not touch; messages add both up."""
        phases = set()
        for seed in range(6):
            problem, best = random_tournament(seed)
            other = hard_problem(seed, 14, 4, negative=True)
            both = beside(problem, other)
            best += int(solve(other, Limits(), None).objective or 0)
            heard: list[Progress] = []
            result = solve(both, Limits(tell=heard.append), None)
            assert result.objective == result.bound == best
            assert both.value(result.labelling) == best
            phases |= {message.phase for message in heard}
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        assert "barrier order" in phases
        assert "message passing" in phases
