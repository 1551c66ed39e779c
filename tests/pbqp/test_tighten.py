"""The relaxation's bound as costs, and what it forbids."""

from __future__ import annotations

import itertools
from math import inf

import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.costs.problem import Problem
from layoutopt.network.costs.solve import forbid, tighten
from layoutopt.network.costs.work import Infeasible, Work, level, normalise_all
from layoutopt.network.solvers.pairwise import programme, relax
from tests.pbqp.cases import left_optimum, opened, optimum, random_problem


def normal(problem: Problem) -> Work | None:
    """Return a problem in normal form, ``None`` if that proves it infeasible."""
    work = opened(problem)
    if work is not None:
        try:
            normalise_all(work)
        except Infeasible:
            return None
        level(work)
    return work


def tightened(work: Work, scale: int) -> Work | None:
    """Return a problem with the messages of its relaxation."""
    labels = [work.labels(u) for u in range(len(work.costs))]
    costs = [[work.costs[u][i] for i in own] for u, own in enumerate(labels)]
    edges = [
        (u, v, [[table[i][j] for j in labels[v]] for i in labels[u]])
        for u, v, table in work.edges()
    ]
    relaxed = relax(programme(costs, edges), Limits())
    return None if relaxed is None else tighten(work, scale, relaxed.messages, labels)


@pytest.mark.parametrize("scale", [1, 60])
def test_messages_change_no_labelling(scale: int) -> None:
    """On 100 random problems every labelling costs what it did, and the bound only rises."""
    raised = 0
    for seed in range(100):
        problem = random_problem(seed, nodes=4, labels=3)
        work = normal(problem)
        tight = None if work is None else tightened(work, scale)
        if work is None or tight is None:
            assert optimum(problem) is None
            continue
        for labels in itertools.product(*(work.labels(u) for u in range(problem.nodes))):
            value = work.value(labels)
            assert tight.value(labels) == (value * scale if value < inf else inf)
        best = left_optimum(tight)
        assert best is None or tight.constant == tight.bound() <= best
        raised += tight.constant > work.constant * scale
    assert raised > 10


def test_what_is_forbidden_costs_more() -> None:
    """On 200 random problems all labellings up to a given cost stay, and many others go."""
    gone = 0
    for seed in range(200):
        problem = random_problem(seed, nodes=4, labels=3)
        work = normal(problem)
        best = optimum(problem)
        if work is None or best is None:
            continue
        whole = work.copy()
        worth = best + seed % 3
        forbid(work, worth)
        for labels in itertools.product(*(whole.labels(u) for u in range(problem.nodes))):
            value = whole.value(labels)
            if value <= worth:
                assert work.value(labels) == value
            gone += value < inf == work.value(labels)
    assert gone > 500


def test_single_pairs_are_forbidden() -> None:
    """A pair that costs 8 goes where there is room for 7, its labels stay."""
    for room, left in ((7, inf), (8, 8)):
        work = Work.of(Problem.of([[0, 0], [0, 0]], [(0, 1, [[0, 8], [8, 0]])]))
        forbid(work, room)
        assert work.near[0][1] == ((0, left), (left, 0))
        assert work.labels(0) == [0, 1]


def test_neighbours_count_at_their_least() -> None:
    """Label 1 costs 1 itself and 2 at each of two neighbours: for 5 it stays, for 4 it goes."""
    table = [[0, 4], [4, 0]]
    for room, left in ((5, [0, 1]), (4, [0])):
        costs = [[0, 1], [0, 2], [0, 2]]
        work = Work.of(Problem.of(costs, [(0, 1, table), (0, 2, table)]))
        forbid(work, room)
        assert work.labels(0) == left
