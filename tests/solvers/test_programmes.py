"""The integer programme, and CP-SAT and HiGHS on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise, product

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Result, Stopped
from layoutopt.network.components import reachable
from layoutopt.network.problem import IntArray, Labelling
from layoutopt.network.solvers.formulation import by_cpsat, by_highs, indicators
from tests.support import (
    Edges,
    hard_problem,
    labelling,
    optimum,
    random_problem,
)

Solver = Callable[[Labelling, Limits, IntArray | None], Result]

SOLVERS: dict[str, Solver] = {"cpsat": by_cpsat, "mip": by_highs}

solvers = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)

PAIR: Edges = {(0, 1): 4}
TRIANGLE: Edges = {(0, 1): 1, (1, 2): 1, (0, 2): 1}


def problems(count: int) -> Iterator[Labelling]:
    """Yield small random problems, some with order rules."""
    for seed in range(count):
        yield random_problem(
            seed,
            4,
            negative=seed % 2 == 0,
            bans=seed % 3 == 0,
            barriers=seed % 4 and 2 + seed % 2,
        )


def now() -> Limits:
    """Return limits that are over."""
    return Limits(deadline=time.monotonic())


class TestProgramme:
    """The programme as arrays."""

    def test_by_hand(self) -> None:
        """Two nodes, two labels that both may take, no fresh one: 4 indicators, 2 matches."""
        given = indicators(labelling(2, 3, PAIR, {(0, 2): 5, (1, 0): 6}))
        assert given.node.tolist() == [0, 0, 1, 1]
        assert given.label.tolist() == [0, 2, 0, 2]
        assert given.rewards.tolist() == [0, 5, 6, 0]
        assert given.match.tolist() == [[0, 2], [1, 3]]
        assert given.weights.tolist() == [4, 4]
        assert given.point(np.array([2, 0])).tolist() == [0, 1, 1, 0, 0, 0]
        assert given.labelling(np.array([0, 3])).tolist() == [0, 2]

    def test_only_useful_columns(self) -> None:
        """Fresh labels come with bans, negative numbers and readers; bans take indicators away."""
        rewards = {(0, 0): 5, (1, 0): 6}
        counts = {
            "plain": len(indicators(labelling(2, 1, PAIR, rewards)).node),
            "no label": len(indicators(labelling(2, 0, PAIR)).node),
            "banned": len(indicators(labelling(2, 1, PAIR, rewards, [(0, 0)])).node),
            "negative reward": len(indicators(labelling(2, 1, PAIR, {(0, 0): -5})).node),
            "negative edge": len(indicators(labelling(2, 1, {(0, 1): -4}, rewards)).node),
        }
        assert counts == {
            "plain": 2,
            "no label": 2,
            "banned": 3,
            "negative reward": 4,
            "negative edge": 6,
        }

    def test_states_the_problem(self) -> None:
        """The best choice of one indicator per node is the problem's optimum."""
        for problem in problems(250):
            given = indicators(problem)
            bounds = np.searchsorted(given.node, np.arange(problem.nodes + 1)).tolist()
            gates: dict[int, list[tuple[int, int]]] = {}
            for indicator, arc in given.gates.tolist():
                gates.setdefault(indicator, []).append(tuple(given.arcs[arc].tolist()))
            static = [tuple(arc) for arc in given.static.tolist()]
            best = None
            for chosen in product(*(range(a, b) for a, b in pairwise(bounds))):
                arcs = [*static, *(arc for i in chosen for arc in gates.get(i, ()))]
                if _cyclic(arcs):
                    continue
                both = np.isin(given.match, chosen).all(axis=1)
                value = int(given.rewards[list(chosen)].sum()) + int(given.weights[both].sum())
                best = value if best is None else max(best, value)
                labels = given.labelling(np.array(chosen))
                assert value == problem.value(labels)
            assert best == optimum(problem)

    def test_reachable(self) -> None:
        """Arcs lead on, in any order, and every barrier leads to itself."""
        table = reachable(4, np.array([(2, 3), (0, 2)]))
        assert np.argwhere(table).tolist() == [
            *([0, 0], [0, 2], [0, 3], [1, 1]),
            *([2, 2], [2, 3], [3, 3]),
        ]


def _cyclic(arcs: list[tuple[int, int]]) -> bool:
    rest = set(arcs)
    while rest:
        heads = {b for _, b in rest}
        kept = {(a, b) for a, b in rest if a in heads}
        if kept == rest:
            return True
        rest = kept
    return False


class TestSolvers:
    """Both solvers on the programme."""

    def test_too_large_for_cpsat(self) -> None:
        """Beyond 2^55 CP-SAT says what there is to earn, rather than something wrong."""
        for size, known in [(2**55 - 8, True), (2**55, False), (2**80, False)]:
            result = by_cpsat(labelling(2, 1, {(0, 1): size}, {(0, 0): 3}), Limits(), None)
            assert (result.objective == size + 3) == known
            if not known:
                assert result.bound == size + 3
                assert result.labelling is None
                assert result.stopped is Stopped.SIZE_LIMIT

    def test_too_large_for_doubles(self) -> None:
        """HiGHS takes multiples of a large unit, but nothing that doubles cannot hold."""
        edges, rewards = {(0, 1): 10**30}, {(0, 0): 3 * 10**30}
        result = by_highs(labelling(2, 1, edges, rewards), Limits(), None)
        assert result.objective == result.bound == 4 * 10**30
        result = by_highs(labelling(2, 1, edges, {(0, 0): 3}), Limits(), None)
        assert (result.bound, result.stopped) == (10**30 + 3, Stopped.SIZE_LIMIT)

    def test_bounds_of_doubles_are_raised(self) -> None:
        """HiGHS may not call a rounded sum optimal: near 2^50 its bound keeps a distance."""
        result = by_highs(labelling(2, 1, {(0, 1): 2**49}, {(0, 0): 3}), Limits(), None)
        assert result.objective == 2**49 + 3
        assert result.bound is not None
        assert result.bound >= result.objective

    def test_messages_of_cpsat(self) -> None:
        """Every message of a run holds the optimum between its two numbers."""
        heard: list[Progress] = []
        problem = hard_problem(2, 40, 4)
        result = by_cpsat(problem, Limits(tell=heard.append), None)
        assert heard
        for message in heard:
            assert message.objective is not None
            assert message.bound is not None
            assert message.objective <= (result.objective or 0) <= message.bound

    def test_time_limit_of_highs(self) -> None:
        """A model that takes HiGHS minutes is given up soon after the limit."""
        begun = time.monotonic()
        result = by_highs(hard_problem(1, 2000, 8), Limits(deadline=begun + 1), None)
        assert time.monotonic() - begun < 30
        assert result.stopped is Stopped.TIME_LIMIT
