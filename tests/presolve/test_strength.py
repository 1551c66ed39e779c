"""Strong sets against all partitions, and the twins that must not be tied together."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from typing import ClassVar

import pytest

from layoutopt.base.limits import Limits
from layoutopt.network import contraction
from layoutopt.network.contraction import contract, losses, strong_sets
from layoutopt.network.problem import Labelling
from tests.presolve.test_reductions import TRIANGLE, sound
from tests.support import Edges, labelling, random_problem

Near = list[dict[int, int]]


def graph_of(nodes: int, edges: Edges) -> Near:
    """Return each node's neighbours with the weights of the edges to them."""
    near: Near = [{} for _ in range(nodes)]
    for (u, v), w in edges.items():
        near[u][v] = near[v][u] = w
    return near


def random_graph(seed: int, wide: int = 1) -> tuple[Near, int]:
    """Return a random graph of up to 7 nodes, and a loss."""
    draw = random.Random(seed)
    n, density = draw.randint(2, 7), draw.choice([0.4, 0.7, 1.0])
    pairs = [(u, v) for u in range(n) for v in range(u + 1, n) if draw.random() < density]
    near = graph_of(n, {pair: draw.randint(1, 4) * wide for pair in pairs})
    return near, draw.randint(0, 6) * wide


def partitions(nodes: list[int]) -> Iterator[list[list[int]]]:
    """Yield every partition of some nodes."""
    if not nodes:
        yield []
        return
    first, *rest = nodes
    for parts in partitions(rest):
        yield [[first], *parts]
        for k in range(len(parts)):
            yield [*parts[:k], [first, *parts[k]], *parts[k + 1 :]]


def gain(near: Near, parts: list[list[int]], loss: int) -> int:
    """Return what is kept within parts, less a loss for each node that is not the first of one."""
    kept = sum(near[u].get(v, 0) for part in parts for u in part for v in part if u < v)
    return kept - loss * sum(len(part) - 1 for part in parts)


@pytest.mark.parametrize("wide", [1, 2**40, 2**53 + 1])
def test_sets_are_those_of_the_best_partition(wide: int) -> None:
    """The sets found, and all else alone, are the best of all partitions, and the coarsest."""
    tied = 0
    for seed in range(150):
        near, loss = random_graph(seed, wide)
        nodes = list(range(len(near)))
        sets = strong_sets(near, nodes, loss, Limits())
        inside = [u for own in sets for u in own]
        assert len(set(inside)) == len(inside)
        found = [*sets, *([u] for u in nodes if u not in inside)]
        every = list(partitions(nodes))
        best = max(gain(near, parts, loss) for parts in every)
        fewest = min(len(parts) for parts in every if gain(near, parts, loss) == best)
        if loss:
            assert (gain(near, found, loss), len(found)) == (best, fewest)
        for own in sets:  # and each of them is strong by the definition
            whole = gain(near, [own], loss)
            assert all(gain(near, parts, loss) <= whole for parts in partitions(own))
        tied += any(len(own) > 2 for own in sets)
    assert tied > 30


@pytest.mark.parametrize("wide", [1, 2**53 + 1])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_ties_are_strong(order: tuple[int, ...], wide: int) -> None:
    """Edges of 3 3 3 and 1 1 1 hold four nodes against 4 for each: 12, and against no more.

    No three of them are strong, so the last to come, whichever it is, must get a cut right in
    which one node counts 9 - 8 and two count 5 - 8.
    """
    a, *others = order
    edges = {(a, v): 3 * wide for v in others} | dict.fromkeys(
        itertools.combinations(others, 2), wide
    )
    near = graph_of(4, edges)
    found = strong_sets(near, [0, 1, 2, 3], 4 * wide, Limits())
    assert [sorted(own) for own in found] == [[0, 1, 2, 3]]
    assert strong_sets(near, [0, 1, 2, 3], 4 * wide + 1, Limits()) == []


def test_without_cuts_the_sets_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no work left, no time, or numbers beyond 64 bits only heavy edges join nodes.

    A triangle of weight 2 is strong for 3: three parts cut 6, two cut 4.
    """
    near = graph_of(4, {(0, 1): 2, (1, 2): 2, (0, 2): 2, (2, 3): 3})
    nodes = [0, 1, 2, 3]
    assert [sorted(own) for own in strong_sets(near, nodes, 3, Limits())] == [[0, 1, 2, 3]]
    late = Limits(deadline=time.monotonic())
    assert [sorted(own) for own in strong_sets(near, nodes, 3, late)] == [[2, 3]]
    huge = [{v: w * 2**60 for v, w in around.items()} for around in near]
    assert [sorted(own) for own in strong_sets(huge, nodes, 3 * 2**60, Limits())] == [[2, 3]]
    monkeypatch.setattr(contraction, "WORK", -1)
    assert [sorted(own) for own in strong_sets(near, nodes, 3, Limits())] == [[2, 3]]


def heavy_closure(near: Near, loss: int) -> set[frozenset[int]]:
    """Return the sets that come of joining any two that edges of the loss or more join."""
    sets = [frozenset([u]) for u in range(len(near))]
    while True:
        for one, other in itertools.combinations(sets, 2):
            if 0 < sum(near[u].get(v, 0) for u in one for v in other) >= loss:
                sets = [own for own in sets if own not in (one, other)] + [one | other]
                break
        else:
            return {own for own in sets if len(own) > 1}


def test_without_cuts_heavy_edges_join_all_they_can() -> None:
    """On 300 random graphs without time the sets are those that joining one by one ends with."""
    late, large = Limits(deadline=0.0), 0
    for seed in range(300):
        near, loss = random_graph(seed)
        found = strong_sets(near, list(range(len(near))), loss, late)
        assert set(map(frozenset, found)) == heavy_closure(near, loss)
        large += any(len(own) > 2 for own in found)
    assert large > 50


def test_numbers_up_to_the_limit() -> None:
    """All edges, seen from both sides, and the loss may add up to less than 2^61."""
    x = 2**61 // 15  # a triangle of 2 x is strong for 3 x; 15 x is 2^61 - 2
    for more, sets in ((0, [[0, 1, 2]]), (1, [])):
        near = graph_of(3, {(0, 1): 2 * x + more, (1, 2): 2 * x, (0, 2): 2 * x})
        assert [sorted(own) for own in strong_sets(near, [0, 1, 2], 3 * x, Limits())] == sets


def test_nodes_after_one_that_was_tied_early() -> None:
    """A triangle that becomes heavy enough for a fourth node is tied, and then another one."""
    triangles = {(u + k, v + k): 2 for u, v in TRIANGLE for k in (0, 4)}
    near = graph_of(7, triangles | {(0, 3): 1, (1, 3): 1, (2, 3): 1})
    found = strong_sets(near, list(range(7)), 3, Limits())
    assert sorted(map(sorted, found)) == [[0, 1, 2, 3], [4, 5, 6]]


def test_nodes_may_have_any_numbers() -> None:
    """A triangle of weight 2 is strong for 3 also as nodes 10, 20 and 30 of many."""
    near = graph_of(31, {(10, 20): 2, (20, 30): 2, (10, 30): 2})
    found = strong_sets(near, [10, 20, 30], 3, Limits())
    assert [sorted(own) for own in found] == [[10, 20, 30]]


def owned(weight: int, rewards: Edges, bans: list[tuple[int, int]] | None = None) -> Labelling:
    """Return a triangle of equal weights with some rewards."""
    return labelling(3, 3, dict.fromkeys(TRIANGLE, weight), rewards, bans or [])


class TestStrongSets:
    """What classes can lose at most, against what holds a set together."""

    private: ClassVar[Edges] = {(0, 0): 3, (1, 1): 3, (2, 2): 3}

    def test_fires(self) -> None:
        """Triangles of weight 2 hold against 3 for each label that is lost: 6 + 3."""
        reduced = contract(owned(2, self.private))
        assert (reduced.problem.nodes, reduced.constant) == (0, 9)
        sound(reduced)

    def test_too_weak(self) -> None:
        """Of weight 1 they do not, nor of weight 2 against 4."""
        for weight, reward in ((1, 3), (2, 4)):
            problem = owned(weight, dict.fromkeys(self.private, reward))
            assert not list(strong(problem))
            sound(contract(problem))

    def test_the_largest_sum_does_not_count(self) -> None:
        """The label that can earn most is kept, so that only the second counts."""
        [(nodes, loss)] = strong(owned(2, self.private | {(0, 0): 3, (1, 0): 9}), sets=False)
        assert (sorted(nodes), loss) == ([0, 1, 2], 3)
        sound(contract(owned(2, self.private | {(1, 0): 9})))

    def test_labels_of_several_nodes_count_in_full(self) -> None:
        """Two labels that both earn 3 at two nodes can lose 6."""
        rewards = {(0, 0): 3, (1, 0): 3, (1, 1): 3, (2, 1): 3}
        [(_, loss)] = strong(owned(2, rewards), sets=False)
        assert loss == 6
        sound(contract(owned(2, rewards)))

    def test_steps_aside(self) -> None:
        """A negative edge, a negative reward or a ban anywhere in the component rules it out."""
        for problem in (
            labelling(3, 3, {(0, 1): 9, (1, 2): 9, (0, 2): -1}, self.private),
            owned(9, self.private | {(0, 1): -1}),
            owned(9, self.private, [(0, 1)]),
        ):
            assert not list(strong(problem))
            sound(contract(problem))

    def test_random_problems(self) -> None:
        """On 400 random problems that hold together the optimum stays; the rule fires often."""
        fired = 0
        for seed in range(400):
            wide = {0: 10**30, 1: 2**55}.get(seed % 5, 1)
            kinds = {"negative": seed % 4 == 0, "bans": seed % 3 == 0}
            problem = random_problem(seed, 6, 4, wide=wide, **kinds)
            sound(contract(problem), 2)
            fired += any(True for _ in strong(problem))
        assert fired > 100


def lists(problem: Labelling) -> tuple[Near, Near, list[set[int]]]:
    """Return each node's neighbours with weights, its labels with rewards, and its bans."""
    near: Near = [{} for _ in range(problem.nodes)]
    earns: Near = [{} for _ in range(problem.nodes)]
    bans: list[set[int]] = [set() for _ in range(problem.nodes)]
    for (u, v), w in zip(problem.edges.tolist(), problem.weights.tolist(), strict=True):
        near[u][v] = near[v][u] = w
    for (u, label), r in zip(problem.reward_at.tolist(), problem.rewards.tolist(), strict=True):
        earns[u][label] = r
    for u, label in problem.banned.tolist():
        bans[u].add(label)
    return near, earns, bans


def strong(problem: Labelling, sets: bool = True) -> Iterator[tuple[list[int], int]]:
    """Yield the components that the rule looks at, only those with a strong set by default."""
    near, earns, bans = lists(problem)
    for component, loss in losses(near, earns, bans):
        if not sets or strong_sets(near, component, loss, Limits()):
            yield component, loss
