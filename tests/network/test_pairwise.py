"""Pairwise costs as integer programmes, and their relaxation."""

from __future__ import annotations

import itertools
import random
from math import inf

import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.solvers import cpsat, highs
from layoutopt.network.solvers.pairwise import Edge, programme, relax

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


def test_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where HiGHS does not stop in time there is no relaxation."""

    def too_late(*_: object) -> None:
        raise TimeoutError

    given = programme([[0, 1], [2, 0]], [(0, 1, [[0, 3], [2, 0]])])
    assert relax(given, Limits()) is not None
    monkeypatch.setattr(highs, "run_stoppable", too_late)
    assert relax(given, Limits()) is None
