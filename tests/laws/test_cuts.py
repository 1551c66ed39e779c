"""Minimum cuts against all labellings and all sets of nodes: what they decide, and their limits."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from layoutopt.base.result import Result
from layoutopt.network import CostTable, Domain, Network, cuts
from layoutopt.network.builder import CostRows as Given
from layoutopt.network.costs.work import Infeasible
from layoutopt.network.cuts import best_of_two, cuttable, roof, two_labels
from layoutopt.network.elimination import eliminate
from layoutopt.network.problem import Labelling
from tests.laws.reductions import APART, TRIANGLE, problems
from tests.network.costs.cases import cost, left_optimum, stated
from tests.network.costs.cases import random_problem as random_tables
from tests.network.oracle import best as least
from tests.support import allowed, labelling, optimum, worth


@pytest.mark.parametrize("solve", [best_of_two, eliminate], ids=lambda f: f.__name__)
def test_solvers_by_reduction_are_exact(solve: Callable[[Labelling], Result | None]) -> None:
    """Where they answer at all, objective, bound and labelling are those of the optimum."""
    solved = 0
    for problem in problems(400):
        result = solve(problem)
        if result is None:
            continue
        solved += 1
        best = optimum(problem)
        assert (result.objective, result.bound) == (best, best)
        assert worth(problem, result.labelling.tolist()) == best
        assert allowed(problem, result.labelling.tolist())
    assert solved > 40


def test_what_is_not_for_two_labels() -> None:
    """Three labels, a negative edge, reward or ban, and large sums leave it to others.

    Eight times all numbers must stay below 2^60.  Labels are numbers to look up, also where there
    is nothing to choose.
    """
    assert best_of_two(labelling(3, 3, TRIANGLE, APART)) is None
    rewards = {(0, 0): 2, (1, 1): 1}
    assert best_of_two(labelling(3, 2, TRIANGLE | {(0, 1): -1}, rewards)) is None
    assert best_of_two(labelling(3, 2, TRIANGLE, rewards | {(2, 0): -1})) is None
    assert best_of_two(labelling(3, 2, TRIANGLE, rewards, [(0, 1)])) is None
    for total in (2**57 - 1, 2**57):
        problem = labelling(2, 2, {(0, 1): total - 4}, {(0, 0): 3, (1, 1): 1})
        assert cuttable(problem) == (total < 2**57)
    for size in (2**54, 2**57, 2**70):
        problem = labelling(2, 2, {(0, 1): size}, {(0, 0): 1, (1, 1): size})
        assert cuttable(problem) == (size < 2**56) == (best_of_two(problem) is not None)
    for problem in (labelling(2, 1, {(0, 1): 1}), labelling(2, 2, {(0, 1): 1}, {(1, 1): 1})):
        result = best_of_two(problem)
        assert result is not None
        assert result.labelling.dtype.kind == "i"


SAME: Given = ((0, 1), (1, 0))
DIFFERENT: Given = ((1, 0), (0, 1))


@pytest.mark.parametrize("wide", [1, 2**40])
def test_what_a_cut_decides_is_optimal(wide: int) -> None:
    """On 250 random problems the open rest with the others' cost has the optimum of the whole."""
    decided = nodes = 0
    for seed in range(250):
        problem = random_tables(seed, nodes=8, labels=2, wide=wide)
        best = least(problem)
        try:
            cut = two_labels(problem)
        except Infeasible:
            assert best is None
            continue
        assert cut is not None
        nodes += len(problem)
        decided += int((cut.labels >= 0).sum())
        assert left_optimum(cut.rest) == best
        assert best is None or cut.bound <= best
        if (cut.labels >= 0).all() and best is not None:
            assert cut.bound == cost(problem, cut.labels) == best
    assert 0.5 * nodes < decided < nodes


def submodular(seed: int) -> Network:
    """Return a random problem whose tables favour equal labels, with labels then exchanged."""
    draw = random.Random(seed)
    n = draw.randint(2, 9)
    turned = [draw.random() < 0.5 for _ in range(n)]
    costs: list[list[int | None]] = [[draw.randint(-9, 9), draw.randint(-9, 9)] for _ in range(n)]
    edges: list[tuple[int, int, Given]] = []
    for u in range(n):
        for v in range(n):
            if u != v and draw.random() < 0.5:
                apart: list[int | None] = [draw.randint(0, 9), draw.randint(0, 9)]
                if draw.random() < 0.3:
                    apart[draw.choice([0, 1])] = None
                table = [[0, apart[0]], [apart[1], 0]]
                rows = table[::-1] if turned[u] else table
                edges.append((u, v, [row[::-1] if turned[v] else row for row in rows]))
    return stated(costs, edges)


def test_exchanged_labels_are_seen_through() -> None:
    """Where exchanging labels makes all tables submodular, the cut decides every node."""
    for seed in range(100):
        problem = submodular(seed)
        cut = two_labels(problem)
        assert cut is not None
        assert (cut.labels >= 0).all()
        assert cost(problem, cut.labels) == cut.bound == least(problem)


EQUAL: Given = ((0, None), (None, 0))
RING = [(0, 1, DIFFERENT), (1, 2, DIFFERENT), (2, 0, DIFFERENT)]
FORCING: Given = ((0, None), (None, 3))
FORCED = [(0, 1, FORCING), (2, 1, FORCING)]
NEAR = ((2**54 + 1, 2**54 + 1), (0, 0))


def cut_of(problem: Network) -> Any:
    """Return the labels that a cut decides and its bound; nothing where it cannot cut."""
    try:
        cut = two_labels(problem)
    except Infeasible:
        return "infeasible"
    return cut and (cut.labels.tolist(), cut.bound)


def test_large_grids_are_proved() -> None:
    """On a grid of 150 x 150 nodes the cut's bound is what its labelling costs."""
    draw = np.random.default_rng(0)
    place = np.arange(150 * 150).reshape(150, 150)
    across = np.stack([place[:, 1:].ravel(), place[:, :-1].ravel()], axis=1)
    down = np.stack([place[1:].ravel(), place[:-1].ravel()], axis=1)
    edges = np.concatenate([across, down])
    problem = Network(
        nodes=tuple(map(str, range(place.size))),
        domains=(Domain(2),),
        domain_of=np.zeros(place.size, np.int64),
        cost_at=np.argwhere(np.ones((place.size, 2))),
        costs=draw.integers(-9, 10, 2 * place.size),
        table_edges=edges,
        table_of=draw.integers(0, 5, len(edges)),
        tables=tuple(CostTable(np.array([[0, w], [w, 0]])) for w in range(1, 6)),
    )
    cut = two_labels(problem)
    assert cut is not None
    assert cost(problem, cut.labels) == cut.bound
    assert 0 < cut.labels.mean() < 1


NEVER = cuts.FORBIDDEN

ENTRIES = (0, 3, 8, NEVER)


def test_every_table_of_a_pair() -> None:
    """Two nodes with costs of their own and any table: decided right, or infeasible."""
    costs = np.array([[0, 2], [1, 0]])
    for table in itertools.product(ENTRIES, repeat=4):
        square = np.array(table).reshape(2, 2)
        total = costs[0][:, None] + costs[1] + square
        given = costs, np.array([[0, 1]]), np.zeros(1, np.int64), square[None]
        if total.min() >= NEVER:
            with pytest.raises(Infeasible):
                roof(*given)
        else:
            (first, second), bound = roof(*given)
            assert total[first, second] == total.min() == bound, table


def test_many_equal_edges() -> None:
    """A rule that 256 edges state is as valid as one that a single edge states."""
    equal = np.array([[[0, NEVER], [NEVER, 0]]])
    edges = np.tile([[0, 1]], (256, 1))
    table_of = np.zeros(256, np.int64)
    labels, bound = roof(np.array([[NEVER, 0], [0, 5]]), edges, table_of, equal)
    assert (labels.tolist(), bound) == ([1, 1], 5)
    contrary = np.array([[NEVER, 0], [0, NEVER]])
    with pytest.raises(Infeasible):
        roof(contrary, edges, table_of, equal)
