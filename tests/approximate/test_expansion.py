"""Alpha-expansion: each step against trying everything, and the guarantee of the whole."""

from __future__ import annotations

from itertools import product

import numpy as np

from layoutopt.base.limits import Limits
from layoutopt.network.heuristics.methods import expand, expansion
from layoutopt.network.problem import Labelling, exact_sum
from tests.approximate.proved import exact
from tests.support import (
    allowed,
    hard_problem,
    labelling,
    optimum,
    random_labels,
    random_problem,
    worth,
)


def best_step(problem: Labelling, labels: list[int], to: int) -> int:
    """Return the best value of all labellings in which some nodes change to a label."""
    values = []
    for changes in product((False, True), repeat=problem.nodes):
        moved = [to if c else own for c, own in zip(changes, labels, strict=True)]
        if allowed(problem, moved):
            values.append(worth(problem, moved))
    return max(values)


def test_steps() -> None:
    """A step is the best of its kind if no edge is negative, and never loses if some are."""
    gained = missed = 0
    for seed in range(300):
        negative = seed % 2 == 0
        problem = random_problem(seed, 6, negative=negative, bans=seed % 3 == 0)
        labels = random_labels(problem, seed)
        for to in range(problem.labels + 1):
            moved = expansion(problem, labels, to)
            assert allowed(problem, moved.tolist())
            assert ((moved == labels) | (moved == to)).all()
            value, best = problem.value(moved), best_step(problem, labels.tolist(), to)
            assert problem.value(labels) <= value <= best
            gained += value > problem.value(labels)
            missed += value < best
            if not (problem.weights < 0).any():
                assert value == best
    assert gained > 300
    assert 0 < missed < 60


def losses(problem: Labelling, seed: int, best: int) -> tuple[int, int]:
    """Return what an answer from a random start loses, and the least possible loss."""
    most = np.zeros(problem.nodes, np.int64)
    np.maximum.at(most, problem.reward_at[:, 0], problem.rewards)
    whole = exact_sum(problem.weights) + exact_sum(most)
    found = problem.value(expand(problem, Limits(), random_labels(problem, seed)))
    return whole - found, whole - best


def test_guarantee() -> None:
    """What is lost is at most twice the least: 200 small problems, and 40 that are not solved."""
    for seed in range(200):
        problem = random_problem(seed, 5, 4)
        lost, least = losses(problem, seed, optimum(problem))
        assert least <= lost <= 2 * least
    worse = 0
    for seed in range(40):
        problem = hard_problem(seed, 150, 12)
        lost, least = losses(problem, seed, exact(problem))
        assert least <= lost <= 2 * least
        worse += lost > least
    assert worse > 0


def test_no_expansion_is_left() -> None:
    """No label's expansion improves the answer, which takes more than one round of all labels."""
    rounds = 0
    for seed in range(30):
        problem = hard_problem(seed, 150, 12)
        labels = random_labels(problem, seed)
        found = expand(problem, Limits(), labels)
        for to in range(problem.labels):
            assert problem.value(expansion(problem, found, to)) == problem.value(found)
            labels = expansion(problem, labels, to)
        rounds += problem.value(labels) < problem.value(found)
    assert rounds > 1


def test_two_labels_are_solved() -> None:
    """From everything fresh the first expansion takes all, the second the best part of it."""
    for seed in range(100):
        problem = random_problem(seed, 6, 2)
        start = problem.labels + np.arange(problem.nodes)
        assert problem.value(expand(problem, Limits(), start)) == optimum(problem)


def test_fresh_labels_are_expanded_where_they_help() -> None:
    """Both nodes want to agree, and may have no named label together."""
    problem = labelling(2, 2, {(0, 1): 9}, {(0, 0): 2, (1, 1): 2}, [(1, 0), (0, 1)])
    assert problem.value(expand(problem, Limits(), np.array([0, 1]))) == 9
    signed = labelling(3, 1, {(0, 1): 9, (1, 2): -9}, {(0, 0): 1, (2, 0): 8})
    assert signed.value(expand(signed, Limits(), np.array([0, 0, 0]))) == 9 + 8
