"""Minimum cuts on nodes of two labels, against all labellings."""

from __future__ import annotations

import random

import numpy as np
import pytest

from layoutopt.network.costs.problem import Given, Problem, cost
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.cuts import cut_part, two_labels
from tests.pbqp.cases import opened, optimum, random_problem

SAME: Given = ((0, 1), (1, 0))
DIFFERENT: Given = ((1, 0), (0, 1))


@pytest.mark.parametrize("wide", [1, 2**40])
def test_what_a_cut_decides_is_optimal(wide: int) -> None:
    """On 500 random problems the open rest with the others' cost has the optimum of the whole."""
    decided = nodes = 0
    for seed in range(500):
        problem = random_problem(seed, nodes=8, labels=2, wide=wide)
        best = optimum(problem)
        try:
            cut = two_labels(problem)
        except Infeasible:
            assert best is None
            continue
        assert cut is not None
        nodes += problem.nodes
        decided += int((cut.labels >= 0).sum())
        rest = optimum(cut.rest)
        assert (None if rest is None else cut.constant + rest) == best
        assert best is None or cut.bound <= best
        if (cut.labels >= 0).all() and best is not None:
            assert cut.bound == cost(problem, cut.labels) == best
    assert 0.5 * nodes < decided < nodes


def submodular(seed: int) -> Problem:
    """Return a random problem whose tables favour equal labels, with labels then exchanged."""
    draw = random.Random(seed)
    n = draw.randint(2, 9)
    turned = [draw.random() < 0.5 for _ in range(n)]
    costs: list[list[int | None]] = [[draw.randint(-9, 9), draw.randint(-9, 9)] for _ in range(n)]
    edges: list[tuple[int, int, Given]] = []
    for u in range(n):
        for v in range(n):
            if u != v and draw.random() < 0.5:
                apart: list[int | None] = [draw.randint(0, 9), draw.randint(0, 9)]
                if draw.random() < 0.3:
                    apart[draw.choice([0, 1])] = None
                table = [[0, apart[0]], [apart[1], 0]]
                rows = table[::-1] if turned[u] else table
                edges.append((u, v, [row[::-1] if turned[v] else row for row in rows]))
    return Problem.of(costs, edges)


@pytest.mark.parametrize("seed", range(100))
def test_exchanged_labels_are_seen_through(seed: int) -> None:
    """Where exchanging labels makes all tables submodular, the cut decides every node."""
    problem = submodular(seed)
    cut = two_labels(problem)
    assert cut is not None
    assert (cut.labels >= 0).all()
    assert cost(problem, cut.labels) == cut.bound == optimum(problem)


def test_frustration_stays_open() -> None:
    """Three nodes that all want to differ: one pair cannot; the relaxation pays nothing."""
    ring = [(0, 1, DIFFERENT), (1, 2, DIFFERENT), (2, 0, DIFFERENT)]
    cut = two_labels(Problem.of([[0, 0]] * 3, ring))
    assert cut is not None
    assert (cut.labels.tolist(), cut.bound, cut.constant) == ([-1, -1, -1], 0, 0)
    assert optimum(cut.rest) == 1


def test_costs_that_floats_do_not_tell_apart() -> None:
    """Label 1 costs 2^54 by itself, label 0 that and 1 more at the neighbour."""
    table: Given = ((2**54 + 1, 2**54 + 1), (0, 0))
    cut = two_labels(Problem.of([[0, 2**54], [0, 1]], [(0, 1, table)]))
    assert cut is not None
    assert (cut.labels.tolist(), cut.bound) == ([1, 0], 2**54)


def test_a_forced_label_decides_the_rest() -> None:
    """One node's only label forces its neighbours, one after the other."""
    equal: Given = ((0, None), (None, 3))
    cut = two_labels(Problem.of([[None, 1], [0, 0], [-5, 2]], [(0, 1, equal), (2, 1, equal)]))
    assert cut is not None
    assert (cut.labels.tolist(), cut.bound, cut.constant) == ([1, 1, 1], 9, 9)


def test_contradictions_are_found() -> None:
    """Two nodes forced to differ that must be equal; and a label of each forbidden."""
    equal: Given = ((0, None), (None, 0))
    with pytest.raises(Infeasible):
        two_labels(Problem.of([[None, 1], [0, None]], [(0, 1, equal)]))
    with pytest.raises(Infeasible):
        two_labels(Problem.of([[None, None]], []))
    with pytest.raises(Infeasible):
        two_labels(Problem.of([[0, 0], [0, 0]], [(0, 1, [[None, None], [None, None]])]))


def test_three_labels_are_not_for_cuts() -> None:
    """Nor are no nodes at all."""
    assert two_labels(Problem.of([[0, 0, 0]])) is None
    assert two_labels(Problem.of([])) is None


def test_large_grids_are_proved() -> None:
    """On a grid of 150 x 150 nodes the cut's bound is what its labelling costs."""
    draw = np.random.default_rng(0)
    place = np.arange(150 * 150).reshape(150, 150)
    across = np.stack([place[:, 1:].ravel(), place[:, :-1].ravel()], axis=1)
    down = np.stack([place[1:].ravel(), place[:-1].ravel()], axis=1)
    edges = np.concatenate([across, down])
    tables = tuple(np.array([[0, w], [w, 0]]) for w in range(1, 6))
    costs, starts = draw.integers(-9, 10, 2 * place.size), 2 * np.arange(place.size + 1)
    problem = Problem(costs, starts, edges, draw.integers(0, 5, len(edges)), tables)
    cut = two_labels(problem)
    assert cut is not None
    assert cost(problem, cut.labels) == cut.bound
    assert 0 < cut.labels.mean() < 1


def test_parts_of_two_labels_are_cut() -> None:
    """On 200 random problems with labels forbidden a cut's labelling, if any, is optimal."""
    found = 0
    for seed in range(200):
        problem = random_problem(seed, labels=3)
        best, work = optimum(problem), opened(problem)
        if work is None:
            continue
        try:
            labels = cut_part(work)
        except Infeasible:
            assert best is None
            continue
        if labels is not None and best is not None:
            assert work.value(labels) == best
            found += 1
    assert found > 20


def test_parts_that_do_not_fit_are_not_cut() -> None:
    """Sums beyond the limit of problems, and nodes of three labels, are left to others."""
    work = Work.of(Problem.of([[0, 2], [1, 2]], [(0, 1, SAME)]))
    assert cut_part(work) == [0, 0]
    work.costs[0][1] = 2**57 - 4  # with 2 and 1 half of the limit, less 1
    assert cut_part(work) == [0, 0]
    work.costs[0][1] += 1
    assert cut_part(work) is None
    assert cut_part(Work.of(Problem.of([[0, 0, 0]]))) is None
    assert cut_part(Work([])) is None


def test_parts_with_open_nodes_are_not_cut() -> None:
    """Where the cut leaves nodes open it decides nothing."""
    ring = [(0, 1, DIFFERENT), (1, 2, DIFFERENT), (2, 0, DIFFERENT)]
    assert cut_part(Work.of(Problem.of([[0, 0]] * 3, ring))) is None
