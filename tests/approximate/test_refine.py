"""Local search: each move by hand, and that none is left over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.heuristics.methods import refine, tidy
from layoutopt.network.problem import IntArray, Labelling
from tests.support import Edges, allowed, labelling, random_labels, random_problem, worth


def moves(problem: Labelling, labels: list[int]) -> Iterator[list[int]]:
    """Yield what every single move makes of a labelling, by the definition."""
    every = range(problem.labels + problem.nodes)
    for group in groups(problem, labels):
        for label in every:
            yield [label if u in group else own for u, own in enumerate(labels)]
    for u in range(problem.nodes):
        for label in every:
            yield [*labels[:u], label, *labels[u + 1 :]]
    for u, v in problem.edges.tolist():
        swapped = list(labels)
        swapped[u], swapped[v] = labels[v], labels[u]
        yield swapped


def groups(problem: Labelling, labels: list[int]) -> list[set[int]]:
    """Return the sets of nodes that agree along edges of positive weight."""
    found = [{u} for u in range(problem.nodes)]
    for (u, v), weight in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        if labels[u] == labels[v] and weight > 0:
            one = next(group for group in found if u in group)
            two = next(group for group in found if v in group)
            if one is not two:
                found.remove(two)
                one |= two
    return found


def test_no_move_is_left() -> None:
    """On 250 random problems no move of a node, a pair or a group improves the answer."""
    tried = 0
    for seed in range(250):
        problem = random_problem(seed, 7, negative=seed % 2 == 0, bans=seed % 3 == 0)
        parts = labels_within(problem, seed)
        labels = refine(problem, Limits(), parts).tolist()
        value = worth(problem, labels)
        for moved in moves(problem, labels):
            if allowed(problem, moved):
                tried += 1
                assert worth(problem, moved) <= value, (seed, labels, moved)
    assert tried > 8_000


def labels_within(problem: Labelling, seed: int) -> IntArray:
    """Return random labels: only such that somebody wants, and fresh ones."""
    labels = random_labels(problem, seed)
    known = np.isin(labels, problem.reward_at[:, 1]) | (labels >= problem.labels)
    return np.where(known, labels, problem.labels + np.arange(problem.nodes))


TIED: Edges = {(0, 1): 10}


@pytest.mark.parametrize(
    ("edges", "wishes", "start", "found"),
    [
        # One node has a better label.
        ({}, {(0, 0): 1, (0, 1): 2}, [0], [1]),
        # A neighbour's label is better, though it earns nothing itself.
        ({(0, 1): 5}, {(0, 0): 1, (1, 1): 3}, [0, 1], [1, 1]),
        # Only both together can move: each alone loses 10.
        (TIED, {(0, 0): 3, (1, 0): 3, (0, 1): 4, (1, 1): 4}, [0, 0], [1, 1]),
        # Only a swap helps: alone each would meet the other for -10.
        ({(0, 1): -10}, {(0, 0): 1, (0, 1): 5, (1, 1): 1, (1, 0): 5}, [0, 1], [1, 0]),
        # Two groups swap, for the same reason.
        (
            {(0, 1): 10, (2, 3): 10, (1, 2): -10},
            {(0, 0): 1, (0, 1): 5, (3, 1): 1, (3, 0): 5},
            [0, 0, 1, 1],
            [1, 1, 0, 0],
        ),
        # A label that nobody has is better than one that costs.
        ({}, {(0, 0): -1}, [0], [1]),
        # A fresh label is left by the one that it is named after.
        ({(0, 1): -3, (1, 2): 4}, {}, [0, 0, 0], [0, 1, 1]),
    ],
)
def test_each_move(edges: Edges, wishes: Edges, start: list[int], found: list[int]) -> None:
    """What a single kind of move leads to; named labels first, then fresh ones."""
    named = 1 + max((label for _, label in wishes), default=-1)
    problem = labelling(len(start), named, edges, wishes)
    labels = refine(problem, Limits(), np.array(start))
    assert labels.tolist() == found


def test_neighbours_do_not_move_at_once() -> None:
    """Two neighbours that want each other's label end with one of them, not swapped for ever."""
    problem = labelling(2, 2, {(0, 1): 5}, {(0, 0): 1, (1, 1): 1})
    labels = refine(problem, Limits(), np.array([0, 1]))
    assert problem.value(labels) == 6


def test_fresh_labels_are_named_after_their_first_nodes() -> None:
    """What agrees still agrees, and what differs still differs."""
    labels = np.array([7, 1, 9, 7, 3, 9])
    assert tidy(labels, 3).tolist() == [3, 1, 5, 3, 7, 5]
