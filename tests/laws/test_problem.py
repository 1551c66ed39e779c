"""Labelling problems: values, fresh labels, connected components and parts, by definition."""

from __future__ import annotations

from collections.abc import Iterator

import networkx
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layoutopt.base.result import Result, Stopped
from layoutopt.network import components as module
from layoutopt.network.components import components, strong_components
from layoutopt.network.problem import (
    Labelling,
    Reduction,
    fresh_needed,
    restored_names,
    reward_table,
    split,
    take,
)
from tests.laws.reductions import APART, TRIANGLE, problems, rewards_of
from tests.support import allowed, labelling, optimum, random_labels, worth


def test_value() -> None:
    """The array arithmetic agrees with the definition, whatever the numbers' size."""
    for seed, problem in enumerate(problems(200)):
        labels = random_labels(problem, seed)
        assert problem.value(labels) == worth(problem, labels.tolist())
        assert abs(problem.value(labels)) <= problem.total()


def test_fresh_labels_that_suffice() -> None:
    """With no more fresh labels than promised the optimum is still reached."""
    for problem in problems(300):
        table = reward_table(problem, fresh_needed(problem))
        banned = set(map(tuple, problem.banned.tolist()))
        some = _with_labels(problem.nodes, table.shape[1], banned)
        assert max(worth(problem, labels) for labels in some) == optimum(problem)


def test_fresh_needed_by_hand() -> None:
    """None, one, and as many as m negative edges can keep apart: f (f - 1) / 2 <= m."""
    assert fresh_needed(labelling(3, 2, TRIANGLE, APART | {(2, 0): 1})) == 0
    assert fresh_needed(labelling(3, 0, TRIANGLE)) == 1
    assert fresh_needed(labelling(3, 2, TRIANGLE, {}, [(0, 0)])) == 1
    assert fresh_needed(labelling(3, 2, TRIANGLE, {(0, 0): -1})) == 1
    for negative, fresh in [(1, 2), (2, 2), (3, 3), (5, 3), (6, 4)]:
        edges = {(u, v): -1 for v in range(5) for u in range(v)}
        some = dict(list(edges.items())[:negative])
        assert fresh_needed(labelling(5, 1, some)) == fresh
    assert fresh_needed(labelling(2, 1, {(0, 1): -1})) == 2


def test_banned_is_never_worth_it() -> None:
    """In the table, a banned entry is worse than all else together."""
    for problem in problems(100):
        table = reward_table(problem, 1)
        for node, label in problem.banned.tolist():
            assert table[node, label] + problem.total() < -problem.total()


def _with_labels(nodes: int, labels: int, banned: set[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield every labelling with so many labels."""
    chosen: list[int] = []

    def choose() -> Iterator[list[int]]:
        if len(chosen) == nodes:
            yield chosen
            return
        for label in range(labels):
            if (len(chosen), label) not in banned:
                chosen.append(label)
                yield from choose()
                chosen.pop()

    return choose()


def test_optima_of_parts_add_up() -> None:
    """Parts' optima add up to the whole's, and joined labellings to their sum."""
    for seed, problem in enumerate(problems(300)):
        parts = split(problem)
        assert sum(optimum(part) for part in parts.parts) == optimum(problem)
        chosen = [random_labels(part, seed) for part in parts.parts]
        joined = parts.join(chosen)
        assert allowed(problem, joined.tolist())
        values = zip(parts.parts, chosen, strict=True)
        assert problem.value(joined) == sum(part.value(own) for part, own in values)
        again = zip(parts.parts, parts.cut(joined), strict=True)
        assert problem.value(joined) == sum(part.value(own) for part, own in again)


def test_foreign_labels_become_fresh() -> None:
    """A label that a part does not know is a fresh one there, agreements kept."""
    problem = labelling(4, 2, {(0, 1): 1, (2, 3): 1}, {(0, 0): 1, (2, 1): 1})
    first, second = split(problem).cut(np.array([1, 1, 1, 4]))
    assert first.tolist() == [1, 1]
    assert second.tolist() == [0, 2]


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


@pytest.mark.parametrize(("bound", "expected"), [(None, None), (2, 4), (0, 2)])
def test_bounds_and_reasons_are_handed_on(bound: int | None, expected: int | None) -> None:
    """An unknown bound stays unknown, a known one grows by the constant; the reason stays.

    Nodes 0 and 1 of the triangle take label 0, which earns 1 + 1; node 2 takes its own.
    """
    whole = labelling(3, 3, TRIANGLE, APART)
    kept = np.array([2])
    reduced = Reduction(whole, take(whole, kept), 2, kept, lambda own: np.append([0, 0], own))
    given = Result(objective=1, bound=bound, labelling=np.array([2]), stopped=Stopped.TIME_LIMIT)
    result = reduced.restore_result(given)
    assert (result.objective, result.bound, result.stopped) == (3, expected, Stopped.TIME_LIMIT)
    assert result.labelling.tolist() == [0, 0, 2]


def test_projected_labels_agree_where_they_did() -> None:
    """Named labels stay; nodes that share a fresh one share one still, and no others do.

    Of three named labels, 3 is the fresh one of the first node that was kept, node 1.
    """
    shared = apart = 0
    for seed, problem in enumerate(problems(300)):
        kept = np.flatnonzero(np.random.default_rng(seed).random(problem.nodes) < 0.7)
        reduced = Reduction(problem, take(problem, kept), 0, kept, lambda own: own)
        labels = random_labels(problem, seed)
        projected = reduced.project(labels)
        assert projected is not None
        own, named = labels[kept], labels[kept] < problem.labels
        assert (projected[named] == own[named]).all()
        assert (projected[~named] >= problem.labels).all()
        same = own[:, None] == own
        assert ((projected[:, None] == projected) == same).all()
        shared += bool(np.triu(same[~named][:, ~named], 1).any())
        apart += not same[~named][:, ~named].all()
    assert shared > 30
    assert apart > 30
    kept = np.array([1, 5, 6, 9])
    assert restored_names(np.array([0, 3, 4, 2]), kept, 3).tolist() == [0, 3 + 1, 3 + 5, 2]


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


@pytest.mark.parametrize("few", [0, 10**6])
def test_components(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Both ways number components as SciPy does, links repeated and to a node itself too."""
    monkeypatch.setattr(module, "FEW", few)
    random = np.random.default_rng(0)
    for n in [1, 2, 5, 30, 30, 100]:
        ends = random.integers(n, size=(2, n // 2))
        matrix = coo_array((np.ones(n // 2, bool), tuple(ends)), shape=(n, n))
        count, of = connected_components(matrix, directed=False)
        found, own = components(n, *ends)
        assert (found, own.tolist()) == (count, of.tolist())
        assert own.dtype == of.dtype


def test_of_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    assert components(0, nothing, nothing)[0] == 0
    assert len(strong_components(0, nothing.reshape(0, 2))) == 0


@pytest.mark.parametrize("few", [0, 2**62])
def test_strong_components(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Small graphs go by their table, large ones by SciPy: both find the same."""
    monkeypatch.setattr(module, "FEW", few)
    random = np.random.default_rng(0)
    for n in [2, 3, 8, 30, 100]:
        arcs = random.integers(n, size=(int(1.3 * n), 2))
        graph = networkx.DiGraph(arcs.tolist())
        graph.add_nodes_from(range(n))
        found = strong_components(n, arcs)
        parts = [np.flatnonzero(found == k).tolist() for k in np.unique(found)]
        expected = networkx.strongly_connected_components(graph)
        assert sorted(parts) == sorted(map(sorted, expected))
