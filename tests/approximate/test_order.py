"""Barrier order settled beforehand: what is admitted, and that nothing else is chosen."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from layoutopt.network.heuristics.frame import OrderChoices, choices_of
from layoutopt.network.heuristics.frame import allowed as keeps
from layoutopt.network.problem import Labelling, Precedence, split
from tests.support import allowed, labelling, labellings, random_labels, random_problem


def choices(problem: Labelling) -> OrderChoices:
    """Return the choices of a problem with order rules."""
    assert problem.precedence is not None
    return OrderChoices(problem, problem.precedence, split(replace(problem, precedence=None)))


def test_rules_are_understood() -> None:
    """Whether a labelling keeps to bans and order, against the tests' own reading, 3000 times."""
    kept = 0
    for seed in range(300):
        problem = random_problem(seed, bans=seed % 2 == 0, barriers=seed % 5)
        draw = random.Random(seed)
        for _ in range(10):
            labels = [draw.randrange(problem.labels + problem.nodes) for _ in range(problem.nodes)]
            assert keeps(problem, np.array(labels)) == allowed(problem, labels)
            kept += allowed(problem, labels)
    assert 300 < kept < 2700


def test_what_is_admitted_is_in_order() -> None:
    """Every labelling that makes admitted choices only is in order; a wish in order is admitted."""
    seen = refused = 0
    for seed in range(150):
        problem = random_problem(seed, 4, barriers=3)
        order = problem.precedence
        assert order is not None
        wish = random_labels(problem, seed)
        forbidden = choices(problem).forbidden(wish)
        refused += int(forbidden.sum())
        small = choices(problem).without(forbidden)
        known = {tuple(row) for row in np.argwhere(choices(problem).present).tolist()}
        for labels in labellings(small):
            made = np.array(choices_of(order, np.array(labels))).T
            # Labels that nothing earns any more are not banned: nothing takes them.
            if all(b < 0 or ((b, s) in known and not forbidden[b, s]) for b, s in made.tolist()):
                seen += 1
                assert allowed(problem, labels)
        if allowed(problem, wish.tolist()):
            assert not forbidden[choices_of(order, wish)].any()
    assert seen > 1000
    assert refused > 50


def test_the_first_wish_matters_most() -> None:
    """Of two labellings that exclude each other, the first one's choices are admitted.

    Each of two barriers reads the node that wants the other's label.
    """
    order = Precedence(
        2, np.zeros((0, 2), np.int64), np.array([0, 1]), ((1,), (0,)), np.array([0, 1])
    )
    problem = labelling(2, 2, {}, {(0, 0): 5, (1, 1): 3}, precedence=order)
    one, two, both = np.array([0, 3]), np.array([2, 1]), np.array([0, 1])
    for wishes, refused in [((one, two), (1, 1)), ((two, one), (0, 0)), ((both,), (1, 1))]:
        found = np.argwhere(choices(problem).forbidden(*wishes))
        assert [tuple(pair) for pair in found.tolist()] == [refused]
