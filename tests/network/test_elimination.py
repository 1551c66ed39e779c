"""Elimination against all labellings, and its limits."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Unlimited
from layoutopt.network import elimination
from layoutopt.network.costs import reductions
from layoutopt.network.costs.reductions import NEVER, eliminate
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.elimination import branch_and_bound, shrink
from tests.network.costs.cases import opened, random_problem, stated, work_on
from tests.network.oracle import best as optimum
from tests.support import labelling
from tests.support import optimum as best_of


@pytest.mark.parametrize("wide", [1, 2**40])
def test_elimination_is_exact(wide: int) -> None:
    """On 250 random problems it finds the optimum, or proves that there is none."""
    feasible = 0
    for seed in range(250):
        problem = random_problem(seed, wide=wide)
        best, work = optimum(problem), opened(problem)
        try:
            found = None if work is None else eliminate(work, Limits())
        except Infeasible:
            assert best is None
            continue
        if work is not None:
            assert found is not None
            assert work.value(found) == best
            feasible += 1
    assert feasible > 150


def ring(nodes: int, labels: int) -> Work:
    """Return nodes in a ring, each of which wants another label than the next one."""
    table = [[int(i == j) for j in range(labels)] for i in range(labels)]
    costs: list[list[int | None]] = [[0] * labels for _ in range(nodes)]
    return work_on(stated(costs, [(u, (u + 1) % nodes, table) for u in range(nodes)]))


@pytest.mark.parametrize(("table", "total"), [(27, 120), (26, 120), (27, 119)])
def test_tables_have_limits(table: int, total: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six nodes of three labels in a ring: four tables of 27 entries, one of 9, one of 3."""
    monkeypatch.setattr(reductions, "TABLE_LIMIT", table)
    monkeypatch.setattr(reductions, "WORK_LIMIT", total)
    assert (eliminate(ring(6, 3), Limits()) is not None) == (table + total == 147)


def test_limits_are_exact_for_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A triangle takes tables of k^3, k^2 and k entries, a banned label makes a fresh one k."""
    for banned, k in (([], 3), ([(0, 1)], 4)):
        triangle = {(0, 1): 1, (1, 2): 1, (0, 2): 1}
        problem = labelling(3, 3, triangle, {(u, u): 1 for u in range(3)}, banned)
        work = k**3 + k**2 + k
        for table, total in ((k**3, work), (k**3 - 1, work), (k**3, work - 1)):
            monkeypatch.setattr(elimination, "TABLE_LIMIT", table)
            monkeypatch.setattr(elimination, "WORK_LIMIT", total)
            result = elimination.eliminate(problem)
            assert (result is not None) == (table + total == k**3 + work)
            assert result is None or result.objective == result.bound == best_of(problem)


def test_what_could_not_leave_is_left() -> None:
    """Of four nodes that all know each other none can leave with tables of 8, its leaf can."""
    near = {0: {1, 2, 3, 4}, 1: {0, 2, 3}, 2: {0, 1, 3}, 3: {0, 1, 2}, 4: {0}}
    assert shrink(near, dict.fromkeys(range(5), 2), 8, 1000, Unlimited()) == [(4, {0})]
    assert near == {0: {1, 2, 3}, 1: {0, 2, 3}, 2: {0, 1, 3}, 3: {0, 1, 2}}


def test_without_time_nothing_leaves() -> None:
    """Then a search knows no labelling, and no better bound than that costs are 0 or more."""
    late, near = Limits(deadline=0.0), {0: {1}, 1: {0}}
    assert shrink(near, {0: 2, 1: 2}, 8, 1000, late) == []
    costs = np.array([[3, 4], [5, 6]])
    assert branch_and_bound({0: 2, 1: 2}, [((0, 1), costs)], 9, late, 100) == (None, 0, False)
    assert branch_and_bound({0: 2, 1: 2}, [((0, 1), costs)], 9, Limits(), 100).bound == 3


def test_numbers_that_do_not_fit_are_left_to_others() -> None:
    """Where sums might reach what stands for forbidden, nothing is claimed."""
    work = ring(4, 2)
    work.costs[0][0] = NEVER // 2 - 4
    assert eliminate(work, Limits()) is None
    work.costs[0][0] = NEVER // 2 - 5
    assert eliminate(work, Limits()) is not None


def test_no_time() -> None:
    """Without time it ends without an answer."""
    assert eliminate(ring(4, 2), Limits(deadline=0.0)) is None


def test_costs_that_floats_do_not_tell_apart() -> None:
    """Label 1 costs 2^54 by itself, label 0 that and 1 more at the neighbour."""
    table = [[2**54 + 1, 2**54 + 1], [0, 0]]
    for edge in ((0, 1, table), (1, 0, [list(row) for row in zip(*table, strict=True)])):
        work = work_on(stated([[0, 2**54], [0, 0]], [edge]))
        found = eliminate(work, Limits())
        assert found is not None
        assert found[0] == 1
