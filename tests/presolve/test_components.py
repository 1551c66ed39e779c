"""Parts of problems, against the sets of nodes, edges and bans that they stand for."""

from __future__ import annotations

import numpy as np

from layoutopt.network.problem import Labelling, split, take
from tests.presolve.test_reductions import problems, rewards_of
from tests.support import labelling, optimum, random_labels


def weights_of(problem: Labelling, names: list[int]) -> dict[frozenset[int], int]:
    """Return each edge's weight by the names of its ends."""
    edges = zip(problem.edges.tolist(), problem.weights.tolist(), strict=True)
    return {frozenset((names[u], names[v])): w for (u, v), w in edges}


def test_what_is_taken() -> None:
    """Some components and all others share out nodes, edges, rewards, bans and the value."""
    both = 0
    for seed, problem in enumerate(problems(200)):
        parts = split(problem)
        chosen = np.zeros(problem.nodes, bool)
        for nodes in parts.nodes[seed % 2 :: 2]:
            chosen[nodes] = True
        sides = [np.flatnonzero(chosen), np.flatnonzero(~chosen)]
        halves = [take(problem, nodes) for nodes in sides]
        weights: dict[frozenset[int], int] = {}
        rewards: dict[tuple[int, int], int] = {}
        bans: list[tuple[int, int]] = []
        for nodes, half in zip(sides, halves, strict=True):
            names = nodes.tolist()
            assert (half.nodes, half.labels) == (len(names), problem.labels)
            weights |= weights_of(half, names)
            rewards |= {(names[u], label): r for (u, label), r in rewards_of(half).items()}
            bans += [(names[u], label) for u, label in half.banned.tolist()]
        assert weights == weights_of(problem, list(range(problem.nodes)))
        assert rewards == rewards_of(problem)
        assert sorted(bans) == sorted(map(tuple, problem.banned.tolist()))
        assert sum(map(optimum, halves)) == optimum(problem)
        labels = random_labels(problem, seed)
        values = [half.value(labels[nodes]) for half, nodes in zip(halves, sides, strict=True)]
        assert sum(values) == problem.value(labels)
        both += all(half.nodes for half in halves)
    assert both > 40


def test_nodes_keep_their_order() -> None:
    """Three interleaved chains of 40 nodes: each part's nodes and labels ascend."""
    chains = {(u, u + 3): 1 for u in range(117)}
    problem = labelling(120, 9, chains, {(u, u * 7 % 9): 1 for u in range(120)})
    parts = split(problem)
    assert [nodes.tolist() for nodes in parts.nodes] == [list(range(k, 120, 3)) for k in range(3)]
    assert [labels.tolist() for labels in parts.labels] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    for part in parts.parts:
        assert part.edges.tolist() == [[u, u + 1] for u in range(39)]
        assert part.reward_at[:, 0].tolist() == list(range(40))


def test_labels_are_integers() -> None:
    """Labels are numbers to look up, in the whole and in the parts."""
    parts = split(labelling(3, 2, {(0, 1): 1}, {(0, 0): 1}))
    joined = parts.join([np.array([0, 0]), np.array([0])])
    assert joined.tolist() == [0, 0, 2 + 2]
    assert [own.dtype.kind for own in (joined, *parts.cut(joined))] == ["i"] * 3
