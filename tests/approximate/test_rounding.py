"""Rounding: the relaxation against a linear programme, projections, and the guarantee."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from layoutopt.base.entries import Takes, load
from layoutopt.base.limits import Limits
from layoutopt.base.result import Stopped
from layoutopt.network.heuristics import methods
from layoutopt.network.heuristics.methods import on_simplex, relax, round_off
from layoutopt.network.problem import Labelling, split
from layoutopt.network.solvers.formulation import Indicators, indicators
from tests.approximate.proved import exact
from tests.support import hard_problem, labelling, optimum, random_problem


def linear_optimum(given: Indicators) -> float:
    """Return the optimum of the relaxation by HiGHS, row by row as it is written."""
    x, y = len(given.node), len(given.match)
    rows, limits = [], []
    for e, ((a, b), w) in enumerate(zip(given.match.tolist(), given.weights.tolist(), strict=True)):
        for signs, limit in (
            [(((a, -1),), 0), (((b, -1),), 0)] if w > 0 else [(((a, 1), (b, 1)), 1)]
        ):
            row = np.zeros(x + y)
            row[x + e] = 1 if w > 0 else -1
            for place, sign in signs:
                row[place] = sign
            rows.append(row)
            limits.append(limit)
    sums = np.zeros((given.nodes, x + y))
    sums[given.node, np.arange(x)] = 1
    found = linprog(
        -np.concatenate([given.rewards, given.weights]).astype(float),
        np.array(rows).reshape(-1, x + y) if rows else None,
        limits or None,
        sums,
        np.ones(given.nodes),
        bounds=(0, 1),
    )
    assert found.status == 0
    return float(-found.fun)


def value_of(given: Indicators, fractions: np.ndarray) -> float:
    """Return what fractions are worth."""
    a, b = fractions[given.match.T]
    earned = np.where(given.weights > 0, np.minimum(a, b), np.maximum(a + b - 1, 0))
    return float(given.rewards @ fractions + given.weights @ earned)


def check_relaxed(problem: Labelling) -> None:
    """Check that fractions are fractions, and near the optimum from below."""
    given = indicators(problem)
    fractions = relax(given, Limits())
    assert (fractions >= 0).all()
    assert np.allclose(np.bincount(given.node, fractions), 1)
    best, found = linear_optimum(given), value_of(given, fractions)
    assert best - 0.01 * (1 + abs(best)) <= found <= best + 1e-6 * (1 + abs(best))


def test_relaxation() -> None:
    """On 120 small and 4 larger problems the fractions come within a hundredth of the optimum."""
    for seed in range(120):
        check_relaxed(random_problem(seed, 6, negative=seed % 2 == 0, bans=seed % 3 == 0))
    for seed in range(4):
        check_relaxed(hard_problem(seed, 25, 4, negative=seed % 2 == 0))


def test_projection() -> None:
    """The nearest point by trying how many of the largest numbers stay above 0."""
    draw = np.random.default_rng(0)
    for _ in range(200):
        sizes = draw.integers(1, 6, 4)
        node = np.repeat(np.arange(4), sizes)
        values = draw.normal(0, 2, len(node)) * 10.0 ** draw.integers(0, 6)
        found = on_simplex(values, node, np.searchsorted(node, np.arange(4)))
        for u in range(4):
            own = np.sort(values[node == u])[::-1]
            excess = [(own[:k].sum() - 1) / k for k in range(1, len(own) + 1)]
            k = max(k for k in range(1, len(own) + 1) if own[k - 1] > excess[k - 1])
            expected = np.maximum(values[node == u] - excess[k - 1], 0)
            assert np.allclose(found[node == u], expected)


def test_guarantee() -> None:
    """What is cut is at most 3/2 - 1/k times the least, in components of k labels.

    All components of 100 small problems, and 20 larger problems.  It is an expectation; the best
    of all thresholds keeps to it.
    """
    several = 0
    small = [part for seed in range(100) for part in split(random_problem(seed, 5, 4)).parts]
    for part in [*small, *(hard_problem(seed, 30, 5) for seed in range(20))]:
        labels = round_off(part, Limits(), np.zeros(part.nodes, np.int64))
        best = optimum(part) if part.nodes < 6 else exact(part)
        cut, least = part.total() - part.value(labels), part.total() - best
        assert least <= cut <= (Fraction(3, 2) - Fraction(1, max(part.labels, 2))) * least
        several += part.labels > 2
    assert several > 50


def test_thresholds_decide_fractions() -> None:
    """Where the relaxation is all halves, thresholds find an optimum.

    Three nodes, tied by 1 each, want two of three labels for 3 each, so that any two have one label
    in common.  Halves earn 9 and half of each edge; one edge and 9 is the most that labels earn.
    """
    wishes = {(u, label): 3 for u in range(3) for label in range(3) if u != label}
    edges = {(0, 1): 1, (0, 2): 1, (1, 2): 1}
    problem = labelling(3, 3, edges, wishes)
    given = indicators(problem)
    fractions = relax(given, Limits())
    assert value_of(given, fractions) == pytest.approx(10.5, abs=0.05)
    assert sorted(fractions.tolist()) == pytest.approx([0] * 3 + [0.5] * 6, abs=0.01)
    assert optimum(problem) == 10
    assert problem.value(round_off(problem, Limits(), np.zeros(3, np.int64))) == 10


def test_threshold_and_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes 0 and 1, near either label, agree at some threshold; 2 and 3 keep their own labels.

    Taking the largest fractions parts 0 and 1, which costs 5; taking the first label whatever
    the threshold costs a wish of 10.
    """
    edges = {(0, 1): 5, (1, 2): 1, (2, 3): 1}
    wishes = {(0, 0): 1, (1, 1): 1, (2, 1): 10, (3, 0): 10}
    problem = labelling(4, 2, edges, wishes)
    fractions = np.array([0.6, 0.4, 0.4, 0.6, 0.01, 0.99, 0.99, 0.01])
    monkeypatch.setattr(methods, "relax", lambda *_: fractions)
    labels = round_off(problem, Limits(), np.zeros(4, np.int64))
    assert labels.tolist() == [1, 1, 1, 0]


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relaxation that is too large is not begun, and the result says so."""
    problem = hard_problem(1, 30, 4)
    monkeypatch.setattr(methods, "CELLS_LIMIT", 30)
    result = load("rounded", Takes.LABELLING)(problem, Limits(), None)
    assert (result.labelling, result.objective, result.bound) == (None, None, None)
    assert result.stopped is Stopped.SIZE_LIMIT
