"""Pairwise costs as integer programmes, and their relaxation."""

from __future__ import annotations

import itertools
import random
from math import inf

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.pairwise import Edge, Message, programme, relax

Costs = list[list[int]]


def random_costs(seed: int) -> tuple[Costs, list[Edge]]:
    """Return two to four nodes of one to three labels, some pairs forbidden, no costs below 0.

    Every other table has one cost on some rows and columns.
    """
    draw = random.Random(seed)
    costs = [[draw.randint(0, 9) for _ in range(draw.randint(1, 3))] for _ in range(4)]
    edges: list[Edge] = []
    for u, v in itertools.combinations(range(draw.randint(2, 4)), 2):
        shape = range(len(costs[u])), range(len(costs[v]))
        if draw.random() < 0.5:
            table = [[draw.choice([0, 2, 5, inf]) for _ in shape[1]] for _ in shape[0]]
        else:
            rows, columns = ([i for i in own if draw.random() < 0.6] for own in shape)
            cost = draw.choice([4, inf])
            table = [
                [cost if i in rows and j in columns else 0 for j in shape[1]] for i in shape[0]
            ]
        edges.append((u, v, table))
    return costs, edges


def worth(costs: Costs, edges: list[Edge], labels: tuple[int, ...]) -> float:
    """Return what a labelling costs."""
    alone = sum(own[i] for own, i in zip(costs, labels, strict=True))
    return alone + sum(table[labels[u]][labels[v]] for u, v, table in edges)


def least(costs: Costs, edges: list[Edge]) -> float:
    """Return the optimum by trying all labellings."""
    every = itertools.product(*(range(len(own)) for own in costs))
    return min(worth(costs, edges, labels) for labels in every)


def promised(costs: Costs, edges: list[Edge], messages: list[Message]) -> float:
    """Return the bound that messages prove: least costs of nodes and edges after moving them."""
    own = [list(map(float, labels)) for labels in costs]
    total = 0.0
    for (u, v, table), (one, two) in zip(edges, messages, strict=True):
        own[u] = [cost + a for cost, a in zip(own[u], one, strict=True)]
        own[v] = [cost + b for cost, b in zip(own[v], two, strict=True)]
        pairs = itertools.product(range(len(one)), range(len(two)))
        total += min(table[i][j] - one[i] - two[j] for i, j in pairs)
    return total + sum(map(min, own))


@pytest.mark.parametrize("seed", range(60))
def test_the_programme_has_the_same_optimum(seed: int) -> None:
    """CP-SAT's point is a labelling that costs what the programme says, the least of all."""
    costs, edges = random_costs(seed)
    given = programme(costs, edges)
    found = cpsat.solve_programme(given.programme, Limits())
    best = least(costs, edges)
    assert found.infeasible == (best == inf)
    if found.values is not None:
        labels = given.labels(found.values)
        assert (
            worth(costs, edges, tuple(labels))
            == best
            == -int(given.programme.objective @ found.values)
        )
        point = given.point(labels)
        assert (point[point >= 0] == found.values[point >= 0]).all()
        assert point.sum() == len(costs) - (point < 0).sum()


@pytest.mark.parametrize("seed", range(60))
def test_messages_prove_the_relaxations_bound(seed: int) -> None:
    """The bound holds, and is the relaxation's value; trees are solved to the optimum."""
    costs, edges = random_costs(seed)
    given = programme(costs, edges)
    relaxed = relax(given, Limits())
    best = least(costs, edges)
    if relaxed is None:
        assert best == inf
        return
    bound = promised(costs, edges, relaxed.messages)
    assert bound <= best + 1e-6
    shares = np.concatenate([np.array(own) for own in relaxed.point])
    assert shares.sum() == pytest.approx(len(costs))
    alone = sum(
        cost * share
        for own, shared in zip(costs, relaxed.point, strict=True)
        for cost, share in zip(own, shared, strict=True)
    )
    assert bound >= alone - 1e-6
    if len(edges) == 1:
        assert bound == pytest.approx(best)


def test_one_cost_on_rows_and_columns_takes_one_row() -> None:
    """An op of three modes that needs a transform in two of them: no variables for pairs."""
    costs = [[0, 0, 0], [0, 5]]
    given = programme(costs, [(0, 1, [[inf, 0], [inf, 0], [0, 0]])])
    assert given.programme.matrix.shape == (3, 5)
    given = programme(costs, [(0, 1, [[4, 0], [4, 0], [0, 0]])])
    assert given.programme.matrix.shape == (3, 6)  # and one for the cost of 4
    given = programme(costs, [(0, 1, [[4, 0], [3, 0], [0, 0]])])
    assert given.programme.matrix.shape == (2 + 3 + 2, 5 + 6)
    assert programme(costs, [(0, 1, [[0, 0]] * 3)]).programme.matrix.shape == (2, 5)


def test_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where HiGHS does not stop in time there is no relaxation."""

    def too_late(*_: object) -> None:
        raise TimeoutError

    given = programme([[0, 1], [2, 0]], [(0, 1, [[0, 3], [2, 0]])])
    assert relax(given, Limits()) is not None
    monkeypatch.setattr(highs, "run_stoppable", too_late)
    assert relax(given, Limits()) is None
