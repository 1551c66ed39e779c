"""Dominated labels against Goldstein's condition on every pair of labels."""

from __future__ import annotations

from math import inf

import pytest

from layoutopt.network.costs.problem import Given, Problem
from layoutopt.network.costs.reductions import dominate
from layoutopt.network.costs.work import Infeasible, Work, normalise_all
from tests.pbqp.cases import opened, random_problem


def worst(work: Work, u: int, i: int, j: int) -> float:
    """Return the most that label ``j`` instead of ``i`` costs if no neighbour answers."""
    total = work.costs[u][j] - work.costs[u][i]
    for v, table in work.near[u].items():
        pairs = [(table[i][m], table[j][m]) for m in work.labels(v)]
        changes = [after - before for before, after in pairs if before < inf]
        total += max(changes, default=-inf)
    return total


def test_what_goldstein_takes_is_taken() -> None:
    """On 300 random problems no label is left whose change costs nothing, whatever is chosen.

    One that costs less by itself is not looked at.
    """
    taken = 0
    for seed in range(300):
        work = opened(random_problem(seed, nodes=6, labels=3))
        try:
            if work is None:
                continue
            normalise_all(work)
        except Infeasible:
            continue
        for u in work.left():
            before = len(work.labels(u))
            found = dominate(work, [u])
            taken += len(work.labels(u)) < before
            assert found == ([u, *work.near[u]] if len(work.labels(u)) < before else [])
            own = work.costs[u]
            for i in work.labels(u):
                rivals = [j for j in work.labels(u) if j != i and own[j] <= own[i]]
                assert all(worst(work, u, i, j) > 0 for j in rivals)
    assert taken > 100


Edge = tuple[int, int, Given]
NEEDS: Given = ((0, 0), (None, 0))
EXCLUDES: Given = ((0, 0), (None, 0), (0, None))
"""Label 1 needs the other's label 1, and label 2 cannot be with it."""

ANSWERS: dict[str, tuple[Given, list[Edge], list[int]]] = {
    # The other's change costs 5 and saves 5 whatever is chosen here: 3 + 5 is less than 9.
    "a change that pays here": ([[3, 0], [0, 9]], [(0, 1, ((5, 0), (9, 0)))], [0, 1]),
    # Label 2 rules the answer out, which must not make it cheaper: 7 is more than 6.
    "ruled out, too dear": ([[6, 0, 99], [0, 7]], [(0, 1, EXCLUDES)], [0, 1]),
    "ruled out, as dear": ([[6, 0, 99], [0, 6]], [(0, 1, EXCLUDES)], [1]),
    # Without answers both neighbours lose 1, and the label costs only 1 less.
    "answers to small losses": (
        [[1, 0], [0, 0], [0, 0]],
        [(0, 1, ((0, 0), (1, 0))), (0, 2, ((0, 0), (1, 0)))],
        [1],
    ),
    # A forbidden label of a third node would lose 9 by the answer.
    "forbidden labels do not count": (
        [[6, 0], [0, 5], [0, None]],
        [(0, 1, NEEDS), (1, 2, ((0, 0), (0, 9)))],
        [1],
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_by_hand(case: str) -> None:
    """What a neighbour's answer costs is what it costs there, apart from the node that asks."""
    costs, edges, left = ANSWERS[case]
    work = Work.of(Problem.of(costs, edges))
    dominate(work, [0])
    assert work.labels(0) == left
