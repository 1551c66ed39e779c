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
    """Return two to four nodes of one to six labels, some pairs forbidden, no costs below 0.

    A third of the tables have one cost on some rows and columns, and a third are sums of costs of
    labels but for some entries.
    """
    draw = random.Random(seed)
    costs = [[draw.randint(0, 9) for _ in range(draw.choice([1, 2, 3, 6]))] for _ in range(4)]
    edges: list[Edge] = []
    for u, v in itertools.combinations(range(draw.randint(2, 4)), 2):
        shape = range(len(costs[u])), range(len(costs[v]))
        kind = draw.randrange(3)
        if kind == 0:
            table = [[draw.choice([0, 2, 5, inf]) for _ in shape[1]] for _ in shape[0]]
        elif kind == 1:
            one, two = ([draw.choice([3, 4, 9]) for _ in own] for own in shape)
            more = [draw.choice([-3, 5, inf]), *[0] * draw.choice([4, 9])]
            table = [[i + j + draw.choice(more) for j in two] for i in one]
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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_programme_has_the_same_optimum(seed: int, sparse: bool) -> None:
    """CP-SAT's point is a labelling that costs what the programme says, the least of all."""
    costs, edges = random_costs(seed)
    given = programme(costs, edges, sparse=sparse)
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
