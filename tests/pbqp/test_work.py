"""What a problem to work on tells of itself, and its copies."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.costs.problem import FORBIDDEN, Problem, cost
from layoutopt.network.costs.reductions import reduce
from layoutopt.network.costs.work import Infeasible, Work, level, normalise_all
from tests.pbqp.cases import opened, random_problem


def state(work: Work) -> tuple[Any, ...]:
    """Return all that a problem holds, as it is now."""
    near = [dict(tables) for tables in work.near]
    costs = [list(own) for own in work.costs]
    marks = (list(work.gone), list(work.order), set(work.shrunk))
    return costs, near, work.constant, *marks


def started(seed: int) -> Work | None:
    """Return a random problem on which there was some work, ``None`` if it is infeasible."""
    work = opened(random_problem(seed))
    if work is not None:
        try:
            normalise_all(work)
            level(work)
            for u in work.left()[: seed % 3]:
                work.leave(u)
            for u in work.left()[:2]:
                if len(work.labels(u)) > 1:
                    work.forbid(u, work.labels(u)[0])
        except Infeasible:
            return None
    return work


def test_copies_are_equal_and_independent() -> None:
    """Whatever is done to a copy, the original stays; 200 random problems."""
    some = 0
    for seed in range(200):
        work = started(seed)
        if work is None:
            continue
        before, twin = state(work), work.copy()
        assert state(twin) == before
        try:
            reduce(twin, Limits())
            for u in twin.left():
                twin.near[u].clear()
                twin.costs[u][0] = -1
        except Infeasible:
            pass
        twin.constant += 1
        twin.gone[0], twin.shrunk = not twin.gone[0], twin.shrunk ^ {0}
        twin.order.append(0)
        assert state(work) == before
        some += bool(work.order and work.shrunk)
    assert some > 50


def test_values_are_the_costs_of_the_problem() -> None:
    """On 100 random problems a labelling costs what the problem says, or is forbidden there."""
    allowed = 0
    for seed in range(100):
        problem = random_problem(seed, nodes=4, labels=3)
        work = opened(problem)
        if work is None:
            continue
        for labels in itertools.product(*map(range, problem.widths.tolist())):
            value = work.value(labels)
            expected = cost(problem, problem.widths * 0 + labels)
            assert value == (inf if expected is None else expected)
            allowed += value < inf
        assert work.left() == list(range(problem.nodes))
    assert allowed > 400


TABLE = [[1, -4], [2, None]]


def pair() -> Work:
    """Return two nodes, of which one can only take its first label, and a third one."""
    costs = [[3, None], [-7, 2], [0, 0]]
    return Work.of(Problem.of(costs, [(0, 1, TABLE), (2, 1, TABLE)]))


def test_size_counts_the_largest_of_each_node_and_edge() -> None:
    """Of nodes 3, 7 and 0, of two edges of one table 4 each; nodes that left do not count."""
    work = pair()
    assert work.size() == 3 + 7 + 0 + 2 * 4
    work.leave(0)
    assert work.size() == 7 + 0 + 4
    assert Work.of(Problem.of([[0]])).size() == 0
    forbidden = Problem.of([[0, 0], [0, 0]], [(0, 1, [[None, None], [0, 0]])])
    assert Work.of(forbidden).size() == 0


def test_bound_is_the_sum_of_least_costs() -> None:
    """Least costs of 3, -7 and 0 and a constant of 5; nodes that left do not count."""
    work = pair()
    work.constant = 5
    assert work.bound() == 5 + 3 - 7
    work.leave(1)
    assert work.bound() == 5 + 3


def test_what_is_forbidden_costs_infinity() -> None:
    """In costs and in tables; labels keep their numbers."""
    work = pair()
    assert work.costs == [[3, inf], [-7, 2], [0, 0]]
    assert [work.labels(u) for u in range(3)] == [[0], [0, 1], [0, 1]]
    assert work.near[0] == {1: ((1, -4), (2, inf))}
    assert work.near[1] == {0: ((1, 2), (-4, inf)), 2: ((1, 2), (-4, inf))}
    assert sorted((u, v) for u, v, _ in work.edges()) == [(0, 1), (1, 2)]
    assert (work.constant, work.order, work.shrunk) == (0, [], set())
    with pytest.raises(Infeasible):
        Work.of(Problem.of([[0], [None, None]]))
    assert FORBIDDEN not in work.costs[0]


def test_replies_are_the_best_to_last_neighbours() -> None:
    """Node 0 left before node 1: it replies to both others, and 1 only to the one that stayed."""
    table = [[0, 5], [5, 0]]
    work = Work.of(Problem.of([[1, 0]] * 3, [(0, 1, table), (0, 2, table), (1, 2, table)]))
    work.leave(0)
    work.leave(1)
    assert work.near[0].keys() == {1, 2}
    assert work.near[1].keys() == {2}
    for last in (0, 1):
        labels = [9, 9, last]
        work.restore(labels)
        assert labels == [last, last, last]
