"""What contraction leaves, when it stops, and what it says of its problem."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from layoutopt.base.limits import Limits
from layoutopt.network import contraction as contract_module
from layoutopt.network.contraction import contract, dominated_labels
from layoutopt.network.problem import Labelling
from tests.presolve.test_reductions import APART, TRIANGLE, sound
from tests.presolve.test_strength import lists, strong
from tests.support import Edges, labelling, random_problem


def dense_problems() -> Iterator[Labelling]:
    """Yield random problems of which something is left more often than not."""
    for seed in range(900):
        wide = 10**30 if seed % 7 == 0 else 1
        kinds = {"negative": seed % 2 == 0, "bans": seed % 3 == 0}
        yield random_problem(seed, 8, 5, wide=wide, **kinds)


def test_no_rule_fits_what_is_left() -> None:
    """On 900 random problems neither a node, an edge nor a class is left that a rule would take."""
    left = 0
    for problem in dense_problems():
        small = contract(problem).problem
        near, earns, bans = lists(small)
        for u, around in enumerate(near):
            assert len(around) > 1  # neither alone nor a leaf
            assert not bans[u] & earns[u].keys()
            total = sum(map(abs, around.values()))
            second, first = sorted([0, 0, *earns[u].values()])[-2:]
            assert first == 0 or first - second < total
            spread = first - min(0, *earns[u].values(), 0)
            ties = [v for v, w in around.items() if 2 * w - total >= spread]
            assert not any(bans[u] <= bans[v] for v in ties)
        assert dominated_labels(near, earns, bans) == {}
        assert not list(strong(small))
        left += small.nodes > 0
    assert left > 150


PATH: Edges = {(u, u + 1): 1 for u in range(5)}


@pytest.mark.parametrize(("visits", "nodes"), [(1, 6), (2, 5), (6, 1), (7, 0), (1000, 0)])
def test_time_is_looked_at_now_and_then(
    monkeypatch: pytest.MonkeyPatch, visits: int, nodes: int
) -> None:
    """A path whose nodes leave one after the other stays where time ran out at a look."""
    monkeypatch.setattr(contract_module, "VISITS", visits)
    problem = labelling(6, 2, PATH, {(0, 0): 2, (5, 1): 2})
    reduced = contract(problem, Limits(deadline=0.0))
    assert reduced.problem.nodes == nodes
    sound(reduced)


def test_without_time_classes_are_not_looked_at() -> None:
    """Neither a dominated label goes nor is a strong triangle tied; with time both happen."""
    equal = labelling(3, 4, TRIANGLE, APART | {(0, 3): 1})
    tied = labelling(3, 3, dict.fromkeys(TRIANGLE, 2), dict.fromkeys(APART, 3))
    for problem, rewards in ((equal, 4), (tied, 3)):
        late = contract(problem, Limits(deadline=0.0))
        assert (late.problem.nodes, len(late.problem.rewards)) == (3, rewards)
        assert contract(problem).problem.nodes == 0


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_strong_sets_without_an_edge_between_the_first_two(order: tuple[int, ...]) -> None:
    """A ring of edges of 3 holds four nodes against 4 for each label lost, however numbered.

    It earns its 12 and the 4 of one label.
    """
    ring = {(order[k - 1], order[k]): 3 for k in range(4)}
    reduced = contract(labelling(4, 4, ring, {(u, u): 4 for u in range(4)}))
    assert (reduced.problem.nodes, reduced.constant) == (0, 16)
    sound(reduced)


@pytest.mark.parametrize(("loss", "nodes"), [(5, 0), (7, 0), (8, 3)])
def test_the_worst_reward_may_rise(monkeypatch: pytest.MonkeyPatch, loss: int, nodes: int) -> None:
    """A leaf that adds 5 to a node's worst reward of -5 or -7 lets a heavy edge tie it, of -8 not.

    The edge of 3 against one of 1 gains 2, and the node loses 0, 2 or 3 at most by following.
    """
    monkeypatch.setattr(contract_module, "losses", lambda *_: ())
    edges = {(0, 1): 3, (0, 2): 1, (1, 2): 1, (0, 3): 6}
    rewards = {(0, 0): -loss, (1, 1): 3, (1, 0): 1, (2, 2): 1, (3, 0): 5}
    reduced = contract(labelling(4, 3, edges, rewards))
    assert reduced.problem.nodes == nodes
    sound(reduced)
