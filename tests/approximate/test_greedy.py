"""The randomised greedy0: its first start against a literal one, and what more starts find."""

from __future__ import annotations

import random

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.heuristics.methods import grow
from layoutopt.network.problem import Labelling
from tests.approximate.proved import exact
from tests.support import Edges, labelling


def literal(problem: Labelling) -> list[int]:
    """Grow a labelling by the dearest tie between what is known and what is not."""
    labels = [-1] * problem.nodes
    while True:
        ties = [
            (r, u, label)
            for (u, label), r in zip(
                problem.reward_at.tolist(), problem.rewards.tolist(), strict=True
            )
            if labels[u] < 0
        ]
        for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
            for near, far in ((u, v), (v, u)):
                if labels[near] < 0 <= labels[far]:
                    ties.append((w, near, labels[far]))
        if not ties:
            return labels
        _, u, label = max(ties)
        labels[u] = label


def distinct(seed: int) -> Labelling:
    """Return a random problem no two numbers of which are equal."""
    draw = random.Random(seed)
    n, k = draw.randint(1, 9), draw.randint(1, 4)
    numbers = iter(draw.sample(range(1, 1000), 200))
    edges: Edges = {
        (u, v): next(numbers) for u in range(n) for v in range(u + 1, n) if draw.random() < 0.4
    }
    wishes: Edges = {
        (u, label): next(numbers) for u in range(n) for label in range(k) if draw.random() < 0.3
    }
    return labelling(n, k, edges, wishes)


def test_first_start() -> None:
    """Without chance the spanning tree gives what growing tie by tie gives, on 300 problems."""
    for seed in range(300):
        problem = distinct(seed)
        found = grow(problem, Limits(), np.zeros(problem.nodes, np.int64), starts=1)
        expected = literal(problem)
        for own, other in zip(found.tolist(), expected, strict=True):
            assert own == other or (other < 0 and own >= problem.labels)


def test_more_starts() -> None:
    """More starts are never worse, and reach the optimum where the first does not."""
    better = 0
    for seed in range(100):
        problem = distinct(seed)
        start = np.zeros(problem.nodes, np.int64)
        values = [problem.value(grow(problem, Limits(), start, starts=n)) for n in (1, 40)]
        assert values[0] <= values[1] <= exact(problem)
        better += values[0] < values[1] == exact(problem)
    assert better > 10


def test_what_costs_is_not_followed() -> None:
    """A neighbour that agreeing with costs, and a label that costs, draw nobody."""
    problem = labelling(2, 1, {(0, 1): -9}, {(0, 0): 3, (1, 0): -1})
    assert grow(problem, Limits(), np.zeros(2, np.int64), starts=1).tolist() == [0, 2]


def test_less_than_nothing() -> None:
    """Both nodes follow their wishes of 2, at which agreeing costs 9: fresh labels are better."""
    problem = labelling(2, 1, {(0, 1): -9}, {(0, 0): 2, (1, 0): 2})
    assert grow(problem, Limits(), np.zeros(2, np.int64), starts=1).tolist() == [1, 2]


def test_bans_are_grown_around() -> None:
    """A node that must not follow its dearest neighbour is decided by what is left.

    Nodes 0, 1 and 2 in a row, dearly tied; 1 must not have 0's label 0, but wants label 1, and 2
    follows 1 or 0 through it.
    """
    edges: Edges = {(0, 1): 9, (1, 2): 8}
    problem = labelling(3, 2, edges, {(0, 0): 10, (1, 1): 2}, [(1, 0)])
    found = grow(problem, Limits(), np.zeros(3, np.int64), starts=1)
    assert found.tolist() == [0, 1, 0]
    alone = labelling(3, 2, edges, {(0, 0): 10}, [(1, 0), (1, 1)])
    assert grow(alone, Limits(), np.zeros(3, np.int64), starts=1).tolist() == [0, 3, 0]
