"""What a reduction hands on of results and labellings."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.base.result import Result, Stopped
from layoutopt.network.cuts import fix
from layoutopt.network.problem import restored_names
from tests.presolve.test_reductions import APART, TRIANGLE, problems
from tests.support import labelling, random_labels


@pytest.mark.parametrize(("bound", "expected"), [(None, None), (2, 4), (0, 2)])
def test_bounds_and_reasons_are_handed_on(bound: int | None, expected: int | None) -> None:
    """An unknown bound stays unknown, a known one grows by the constant; the reason stays.

    Nodes 0 and 1 of the triangle take label 0, which earns 1 + 1; node 2 takes its own.
    """
    reduced = fix(labelling(3, 3, TRIANGLE, APART), np.array([0, 0, -1]))
    given = Result(objective=1, bound=bound, labelling=np.array([2]), stopped=Stopped.TIME_LIMIT)
    result = reduced.restore_result(given)
    assert (result.objective, result.bound, result.stopped) == (3, expected, Stopped.TIME_LIMIT)
    assert result.labelling.tolist() == [0, 0, 2]


def test_projected_labels_agree_where_they_did() -> None:
    """Named labels stay; nodes that share a fresh one share one still, and no others do."""
    shared = apart = 0
    for seed, problem in enumerate(problems(300)):
        keep = np.random.default_rng(seed).random(problem.nodes) < 0.7
        reduced = fix(problem, np.where(keep, -1, 0))
        labels = random_labels(problem, seed)
        projected = reduced.project(labels)
        assert projected is not None
        own, named = labels[reduced.kept], labels[reduced.kept] < problem.labels
        assert (projected[named] == own[named]).all()
        assert (projected[~named] >= problem.labels).all()
        same = own[:, None] == own
        assert ((projected[:, None] == projected) == same).all()
        shared += bool(np.triu(same[~named][:, ~named], 1).any())
        apart += not same[~named][:, ~named].all()
    assert shared > 30
    assert apart > 30


def test_fresh_labels_are_named_by_the_node_they_come_from() -> None:
    """Of three named labels, 3 is the fresh one of the first node that was kept, node 1."""
    kept = np.array([1, 5, 6, 9])
    assert restored_names(np.array([0, 3, 4, 2]), kept, 3).tolist() == [0, 3 + 1, 3 + 5, 2]
