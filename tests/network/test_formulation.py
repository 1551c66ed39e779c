"""Labelling problems as integer programmes, and CP-SAT and HiGHS on them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise, product

import networkx as nx
import numpy as np

from layoutopt.base.limits import Limits, Progress, Stopped
from layoutopt.network.components import reachable
from layoutopt.network.problem import Labelling
from layoutopt.network.solvers.formulation import by_cpsat, by_highs, indicators
from tests.support import Edges, hard_problem, labelling, optimum, random_problem

PAIR: Edges = {(0, 1): 4}


def problems(count: int) -> Iterator[Labelling]:
    """Yield small random problems, some with order rules."""
    for seed in range(count):
        yield random_problem(
            seed, 4, negative=seed % 2 == 0, bans=seed % 3 == 0, barriers=seed % 4 and 2 + seed % 2
        )


def test_by_hand() -> None:
    """Two nodes, two labels that both may take, no fresh one: 4 indicators, 2 matches.

    Fresh labels come with bans, negative numbers and readers; bans take indicators away.
    """
    given = indicators(labelling(2, 3, PAIR, {(0, 2): 5, (1, 0): 6}))
    assert given.node.tolist() == [0, 0, 1, 1]
    assert given.label.tolist() == [0, 2, 0, 2]
    assert given.rewards.tolist() == [0, 5, 6, 0]
    assert given.match.tolist() == [[0, 2], [1, 3]]
    assert given.weights.tolist() == [4, 4]
    assert given.point(np.array([2, 0])).tolist() == [0, 1, 1, 0, 0, 0]
    assert given.labelling(np.array([0, 3])).tolist() == [0, 2]
    rewards = {(0, 0): 5, (1, 0): 6}
    for count, problem in [
        (2, labelling(2, 1, PAIR, rewards)),
        (2, labelling(2, 0, PAIR)),
        (3, labelling(2, 1, PAIR, rewards, [(0, 0)])),
        (4, labelling(2, 1, PAIR, {(0, 0): -5})),
        (6, labelling(2, 1, {(0, 1): -4}, rewards)),
    ]:
        assert len(indicators(problem).node) == count
    table = reachable(4, np.array([(2, 3), (0, 2)]))
    reached = [[0, 0], [0, 2], [0, 3], [1, 1], [2, 2], [2, 3], [3, 3]]
    assert np.argwhere(table).tolist() == reached


def test_states_the_problem() -> None:
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
            if not nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
                continue
            both = np.isin(given.match, chosen).all(axis=1)
            value = int(given.rewards[list(chosen)].sum()) + int(given.weights[both].sum())
            best = value if best is None else max(best, value)
            assert value == problem.value(given.labelling(np.array(chosen)))
        assert best == optimum(problem)


def test_too_large_for_cpsat() -> None:
    """Beyond 2^55 CP-SAT says what there is to earn, rather than something wrong."""
    for size, known in [(2**55 - 8, True), (2**55, False), (2**80, False)]:
        result = by_cpsat(labelling(2, 1, {(0, 1): size}, {(0, 0): 3}), Limits(), None)
        assert (result.objective == size + 3) == known
        if not known:
            assert (result.bound, result.labelling) == (size + 3, None)
            assert result.stopped is Stopped.SIZE_LIMIT


def test_too_large_for_doubles() -> None:
    """HiGHS takes multiples of a large unit, but nothing that doubles cannot hold.

    It may not call a rounded sum optimal: near 2^50 its bound keeps a distance.
    """
    edges, rewards = {(0, 1): 10**30}, {(0, 0): 3 * 10**30}
    result = by_highs(labelling(2, 1, edges, rewards), Limits(), None)
    assert result.objective == result.bound == 4 * 10**30
    result = by_highs(labelling(2, 1, edges, {(0, 0): 3}), Limits(), None)
    assert (result.bound, result.stopped) == (10**30 + 3, Stopped.SIZE_LIMIT)
    result = by_highs(labelling(2, 1, {(0, 1): 2**49}, {(0, 0): 3}), Limits(), None)
    assert result.objective == 2**49 + 3 <= (result.bound or 0)


def test_messages_of_cpsat_and_time_of_highs() -> None:
    """Every message of CP-SAT holds the optimum between its two numbers; HiGHS ends in time."""
    heard: list[Progress] = []
    result = by_cpsat(hard_problem(2, 24, 4), Limits(tell=heard.append), None)
    assert heard
    best = result.objective or 0
    assert any(m.objective is not None for m in heard)
    assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
    begun = time.monotonic()
    late = by_highs(hard_problem(1, 2000, 8), Limits(deadline=begun + 1), None)
    assert time.monotonic() - begun < 30
    assert late.stopped is Stopped.TIME_LIMIT
