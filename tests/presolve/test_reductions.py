"""Every reduction against all labellings, and its twins: where it fires, where it must not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np
import pytest

from layoutopt.base.result import Result
from layoutopt.network import contraction as contract_module
from layoutopt.network.contraction import contract
from layoutopt.network.cuts import best_of_two, cuttable, fix, isolating_cuts
from layoutopt.network.elimination import eliminate
from layoutopt.network.problem import Labelling, Reduction, fresh_needed, reward_table, split, take
from tests.support import (
    Edges,
    allowed,
    labelling,
    optimum,
    random_labels,
    random_problem,
    worth,
)

TRIANGLE: Edges = {(0, 1): 1, (1, 2): 1, (0, 2): 1}
APART: Edges = {(0, 0): 1, (1, 1): 1, (2, 2): 1}
"""Each node of the triangle wants a label of its own, too little for any rule."""


def problems(count: int) -> Iterator[Labelling]:
    """Yield random problems with all mixtures of negative numbers, bans and wide numbers."""
    for seed in range(count):
        wide = 10**30 if seed % 7 == 0 else 1
        yield random_problem(seed, negative=seed % 2 == 0, bans=seed % 3 == 0, wide=wide)


def sound(reduced: Reduction, labellings: int = 4) -> None:
    """Check a reduction's promises: equal optima, and no labelling loses by coming back."""
    whole, small = reduced.whole, reduced.problem
    assert reduced.constant + optimum(small) == optimum(whole)
    for seed in range(labellings):
        labels = random_labels(small, seed)
        back = reduced.restore(labels)
        assert allowed(whole, back.tolist())
        assert whole.value(back) >= reduced.constant + small.value(labels)
        assert reduced.project(None) is None
        projected = reduced.project(random_labels(whole, seed))
        assert projected is not None
        assert allowed(small, projected.tolist())


@pytest.fixture
def no_strong_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rule of strong sets step aside, for the rules that it would overtake."""
    monkeypatch.setattr(contract_module, "losses", lambda *_: ())


def rewards_of(problem: Labelling) -> Edges:
    """Return ``{(node, label): reward}``."""
    at = map(tuple, problem.reward_at.tolist())
    return dict(zip(at, problem.rewards.tolist(), strict=True))


@pytest.mark.parametrize("reduce", [contract, isolating_cuts], ids=lambda f: f.__name__)
def test_reductions_keep_the_optimum(reduce: Callable[[Labelling], Reduction]) -> None:
    """On 400 random problems the optimum stays, and every labelling comes back as good."""
    shrunk = 0
    for problem in problems(400):
        reduced = reduce(problem)
        sound(reduced)
        shrunk += reduced.problem.nodes < problem.nodes
    assert shrunk > 80


def test_chained_reductions_keep_the_optimum() -> None:
    """Contraction after cuts after contraction is still exact, restored step by step."""
    for problem in problems(300):
        one = contract(problem)
        two = isolating_cuts(one.problem)
        three = contract(two.problem)
        constants = one.constant + two.constant + three.constant
        assert constants + optimum(three.problem) == optimum(problem)
        result = Result(bound=7, labelling=random_labels(three.problem, 0))
        for step in (three, two, one):
            result = step.restore_result(result)
        assert result.bound == 7 + constants
        assert result.objective == problem.value(result.labelling)


@pytest.mark.parametrize("solve", [best_of_two, eliminate], ids=lambda f: f.__name__)
def test_solvers_by_reduction_are_exact(solve: Callable[[Labelling], Result | None]) -> None:
    """Where they answer at all, objective, bound and labelling are those of the optimum."""
    solved = 0
    for problem in problems(400):
        result = solve(problem)
        if result is None:
            continue
        solved += 1
        best = optimum(problem)
        assert (result.objective, result.bound) == (best, best)
        assert worth(problem, result.labelling.tolist()) == best
        assert allowed(problem, result.labelling.tolist())
    assert solved > 40


@pytest.mark.usefixtures("no_strong_sets")
class TestHeavyLabel:
    """``r(l) >= T + r(m)`` decides a node, whatever its neighbours do."""

    def test_fires(self) -> None:
        """A reward of 2 weighs up two edges of 1; then everything else follows."""
        problem = labelling(3, 3, TRIANGLE, APART | {(0, 0): 2})
        reduced = contract(problem)
        assert reduced.problem.nodes == 0
        sound(reduced)

    def test_too_light(self) -> None:
        """A reward of 1 does not, nor does one of 2 with a second best of 1."""
        for rewards in (APART, APART | {(0, 0): 2, (0, 1): 1}):
            reduced = contract(labelling(3, 3, TRIANGLE, rewards))
            assert reduced.problem.nodes == 3
            sound(reduced)

    def test_negative_edges_count_in_full(self) -> None:
        """An edge of -1 can cost as much as one of 1 can earn."""
        signed = TRIANGLE | {(0, 1): -1, (0, 2): -1}
        assert contract(labelling(3, 3, signed, APART)).problem.nodes == 3
        heavy = contract(labelling(3, 3, signed, APART | {(0, 0): 2}))
        assert heavy.problem.nodes == 0
        sound(heavy)

    def test_banned_labels_weigh_nothing(self) -> None:
        """A reward for a banned label neither decides a node nor competes."""
        rewards = APART | {(0, 0): 9}
        reduced = contract(labelling(3, 3, TRIANGLE, rewards, [(0, 0)]))
        assert (0, 0) not in set(map(tuple, reduced.problem.reward_at.tolist()))
        sound(reduced)
        freed = contract(labelling(3, 3, TRIANGLE, APART | {(0, 0): 2, (0, 1): 1}, [(0, 1)]))
        assert freed.problem.nodes == 0
        sound(freed)


@pytest.mark.usefixtures("no_strong_sets")
class TestHeavyEdge:
    """``2 w - T >= max r - min r`` ties a node to a neighbour."""

    rewards: ClassVar[Edges] = {(0, 0): 2, (1, 1): 2, (2, 2): 1}

    def test_fires(self) -> None:
        """With w = 3 and T = 4 node 0 gains at least 2 by following node 1."""
        problem = labelling(3, 3, TRIANGLE | {(0, 1): 3}, self.rewards)
        reduced = contract(problem)
        assert reduced.problem.nodes < 3
        sound(reduced)

    def test_too_light(self) -> None:
        """With w = 2 and T = 3 it gains 1, less than the 2 it may lose."""
        reduced = contract(labelling(3, 3, TRIANGLE | {(0, 1): 2}, self.rewards))
        assert reduced.problem.nodes == 3
        sound(reduced)

    def test_negative_rewards_widen_the_spread(self) -> None:
        """A reward of -1 for following is a loss of 3 against 2, so the rule steps aside."""
        rewards = self.rewards | {(0, 1): -1, (1, 0): -1}
        reduced = contract(labelling(3, 3, TRIANGLE | {(0, 1): 3}, rewards))
        assert reduced.problem.nodes == 3
        sound(reduced)

    def test_bans_must_be_shared(self) -> None:
        """A node cannot follow where it must not go; if its neighbour must not either, it can."""
        edges = TRIANGLE | {(0, 1): 3}
        apart = contract(labelling(3, 3, edges, self.rewards, [(0, 2), (1, 0)]))
        assert apart.problem.nodes == 3
        sound(apart)
        shared = contract(labelling(3, 3, edges, self.rewards, [(0, 2), (1, 2)]))
        assert shared.problem.nodes < 3
        sound(shared)

    def test_negative_edges_never_tie(self) -> None:
        """However heavy, an edge of negative weight is no reason to follow."""
        reduced = contract(labelling(3, 3, TRIANGLE | {(0, 1): -9}, self.rewards))
        assert reduced.problem.nodes == 3
        sound(reduced)


@pytest.mark.usefixtures("no_strong_sets")
class TestLeaf:
    """A node with one edge becomes a part of its neighbour's rewards."""

    def test_trees_disappear(self) -> None:
        """Paths and stars with any signs and bans are solved altogether."""
        for signs in ((1, 1, 1), (-1, 1, -1), (-1, -1, -1)):
            star = {(0, k + 1): 2 * s for k, s in enumerate(signs)}
            rewards = {(k, k % 3): 1 for k in range(4)} | {(k, 2): -1 for k in range(2)}
            for bans in ([], [(0, 0), (2, 2), (3, 1)]):
                reduced = contract(labelling(4, 3, star, rewards, bans))
                assert reduced.problem.nodes == 0
                sound(reduced)

    def test_replies_by_hand(self) -> None:
        """A leaf of weight 2 with rewards 5 and 4 earns 7 next to a 0, 6 next to a 1, else 5.

        Its neighbour is in a triangle that stays, and earns what is above 5.
        """
        triangle = APART | {(2, 2): 3}
        rewards = triangle | {(3, 0): 5, (3, 1): 4}
        reduced = contract(labelling(4, 3, TRIANGLE | {(2, 3): 2}, rewards))
        assert (reduced.problem.nodes, reduced.constant) == (3, 5)
        assert rewards_of(reduced.problem) == triangle | {(2, 0): 2, (2, 1): 1}
        sound(reduced)

    def test_negative_replies_by_hand(self) -> None:
        """With weight -2 it takes its 4 next to a 0, and loses nothing otherwise."""
        rewards = APART | {(3, 0): 5, (3, 1): 4}
        reduced = contract(labelling(4, 3, TRIANGLE | {(2, 3): -2}, rewards))
        assert (reduced.problem.nodes, reduced.constant) == (3, 5)
        assert rewards_of(reduced.problem) == APART | {(2, 0): -1}
        sound(reduced)

    def test_rings_stay(self) -> None:
        """A ring has no leaf."""
        reduced = contract(labelling(3, 3, TRIANGLE, APART))
        assert reduced.problem.nodes == 3


@pytest.mark.usefixtures("no_strong_sets")
class TestDominatedLabel:
    """A label nowhere worth more than another need not be earned."""

    def labels_of(self, problem: Labelling) -> set[int]:
        """Return the labels that contraction leaves rewards for."""
        reduced = contract(problem)
        sound(reduced)
        return set(reduced.problem.reward_at[:, 1].tolist())

    def test_fires(self) -> None:
        """Label 3 earns at node 0 what label 0 earns there: one of the two goes."""
        problem = labelling(3, 4, TRIANGLE, APART | {(0, 3): 1})
        assert len(self.labels_of(problem)) == 3

    def test_elsewhere_better(self) -> None:
        """If each of the two earns somewhere else, too, both stay, and replace the others."""
        problem = labelling(3, 4, TRIANGLE, APART | {(2, 0): 1, (0, 3): 1, (1, 3): 1})
        assert self.labels_of(problem) == {0, 3}

    def test_negative_rewards_of_the_other(self) -> None:
        """Label 0 is worth -1 at node 2, where label 3 is worth nothing: both stay."""
        problem = labelling(3, 4, TRIANGLE, APART | {(0, 3): 1, (2, 0): -1, (1, 3): -1})
        assert {0, 3} <= self.labels_of(problem)

    def test_never_worth_anything(self) -> None:
        """A label with no reward above 0 is as good as a fresh one."""
        problem = labelling(3, 4, TRIANGLE, APART | {(0, 3): -1})
        assert 3 not in self.labels_of(problem)

    def test_negative_edges_need_variety(self) -> None:
        """Two nodes that must differ want both of two equal labels: the rule steps aside."""
        signed = TRIANGLE | {(0, 1): -3}
        rewards = {(0, 0): 1, (0, 3): 1, (1, 0): 1, (1, 3): 1, (2, 2): 1}
        problem = labelling(3, 4, signed, rewards)
        assert {0, 3} <= self.labels_of(problem)
        assert optimum(problem) == 3

    def test_bans_of_the_other(self) -> None:
        """A label that is banned somewhere cannot stand in for one that is not."""
        rewards = APART | {(0, 0): 1, (0, 3): 1}
        assert len(self.labels_of(labelling(3, 4, TRIANGLE, rewards, [(1, 0), (2, 3)]))) == 4
        assert len(self.labels_of(labelling(3, 4, TRIANGLE, rewards, [(1, 0)]))) == 3

    def test_a_retired_label_stays_apart(self) -> None:
        """A label without rewards that is used all the same keeps to itself when restored.

        Label 3 goes because it is never worth anything.  In the signed triangle, node 0 with
        label 3 and node 1 with node 0's fresh label disagree, and must go on to.
        """
        signed = {(0, 1): -1, (1, 2): -1, (0, 2): -1}
        other = {(u + 3, v + 3): w for (u, v), w in TRIANGLE.items()}
        rewards = {(u + 3, label): r for (u, label), r in APART.items()} | {(3, 3): -1}
        reduced = contract(labelling(6, 4, signed | other, rewards))
        assert reduced.problem.nodes == 6
        labels = np.array([3, 4 + 0, 4 + 2, 4 + 3, 4 + 4, 4 + 5])
        assert reduced.whole.value(reduced.restore(labels)) >= reduced.problem.value(labels) == 0


class TestTwoLabels:
    """Minimum cut is for two alternatives and no negative edges."""

    def test_fires(self) -> None:
        """A triangle between two labels, decided by the larger side: 3 edges and two rewards."""
        problem = labelling(3, 2, TRIANGLE, {(0, 0): 1, (1, 1): 1, (2, 1): 3})
        result = best_of_two(problem)
        assert result is not None
        assert (result.objective, result.bound) == (7, 7)
        assert result.labelling.tolist() == [1, 1, 1]

    def test_twins(self) -> None:
        """Three labels, a negative edge or a negative reward leave it to others."""
        assert best_of_two(labelling(3, 3, TRIANGLE, APART)) is None
        rewards = {(0, 0): 2, (1, 1): 1}
        assert best_of_two(labelling(3, 2, TRIANGLE | {(0, 1): -1}, rewards)) is None
        assert best_of_two(labelling(3, 2, TRIANGLE, rewards | {(2, 0): -1})) is None
        assert best_of_two(labelling(3, 2, TRIANGLE, rewards, [(0, 1)])) is None

    def test_fresh_as_the_second(self) -> None:
        """One label, unwanted or banned somewhere, against a fresh one."""
        result = best_of_two(labelling(2, 1, {(0, 1): 1}, {(0, 0): 3, (1, 0): -2}))
        assert result is not None
        assert result.objective == 3
        assert result.labelling.tolist() == [0, 1]
        result = best_of_two(labelling(2, 1, {(0, 1): 5}, {(0, 0): 3}, [(1, 0)]))
        assert result is not None
        assert result.objective == 5
        assert result.labelling.tolist() == [1, 1]

    def test_nothing_to_choose(self) -> None:
        """No label, and one that is welcome everywhere."""
        for problem, best in [
            (labelling(2, 0, {(0, 1): 4}), 4),
            (labelling(2, 1, {(0, 1): 4}, {(0, 0): 1}), 5),
            (labelling(0, 0), 0),
        ]:
            result = best_of_two(problem)
            assert result is not None
            assert result.objective == best

    def test_numbers_that_do_not_fit(self) -> None:
        """Flows are of 64 bits: larger sums are left to others."""
        for size in (2**54, 2**57, 2**70):
            problem = labelling(2, 2, {(0, 1): size}, {(0, 0): 1, (1, 1): size})
            assert cuttable(problem) == (size < 2**56)
            assert (best_of_two(problem) is None) == (size >= 2**56)


class TestIsolatingCuts:
    """What a label keeps although every edge around it is cut."""

    def test_fires(self) -> None:
        """A reward of 3 against two edges of 1 is kept, and so is a tie; one of 1 is not."""
        others = {(1, 1): 2, (1, 2): 1, (2, 2): 2, (2, 1): 1}
        for reward, nodes, constant in [(3, 2, 3), (2, 2, 2), (1, 3, 0)]:
            reduced = isolating_cuts(labelling(3, 3, TRIANGLE, others | {(0, 0): reward}))
            assert (reduced.problem.nodes, reduced.constant) == (nodes, constant)
            sound(reduced)

    def test_sets_of_nodes(self) -> None:
        """Two nodes together keep a label that neither would keep alone: 3 + 3 against 2 + 2."""
        edges = {(0, 1): 9, (0, 2): 2, (1, 3): 2, (2, 3): 9}
        rewards = {(0, 0): 3, (1, 0): 3, (2, 1): 3, (3, 2): 3}
        reduced = isolating_cuts(labelling(4, 3, edges, rewards))
        assert reduced.problem.nodes == 2
        assert reduced.kept.tolist() == [2, 3]
        sound(reduced)
        light = isolating_cuts(labelling(4, 3, edges, rewards | {(0, 0): 1, (1, 0): 1}))
        assert light.problem.nodes == 4

    def test_alternatives_count(self) -> None:
        """A second best label at a node counts against the first."""
        rewards = APART | {(0, 0): 2, (0, 1): 1}
        assert isolating_cuts(labelling(3, 3, TRIANGLE, rewards)).problem.nodes == 3

    def test_steps_aside(self) -> None:
        """With a negative edge, or numbers too large for flows, nothing is decided."""
        rewards = APART | {(0, 0): 9}
        for problem in (
            labelling(3, 3, TRIANGLE | {(1, 2): -1}, rewards),
            labelling(3, 3, TRIANGLE, rewards | {(0, 0): 2**60}),
        ):
            assert isolating_cuts(problem).problem.nodes == 3


class TestComponents:
    """Parts that no edge joins."""

    def test_by_hand(self) -> None:
        """Two pairs of nodes with a label each: labels are renumbered, bans kept where used."""
        edges = {(0, 2): 3, (1, 3): 4}
        rewards = {(2, 1): 5, (3, 4): 6, (1, 2): -7}
        problem = labelling(4, 5, edges, rewards, [(0, 1), (0, 4), (1, 4)])
        parts = split(problem)
        assert [part.nodes for part in parts.parts] == [2, 2]
        assert [nodes.tolist() for nodes in parts.nodes] == [[0, 2], [1, 3]]
        assert [labels.tolist() for labels in parts.labels] == [[1], [2, 4]]
        one, two = parts.parts
        assert one.reward_at.tolist() == [[1, 0]]
        assert one.banned.tolist() == [[0, 0]]
        assert two.banned.tolist() == [[0, 1]]
        joined = parts.join([np.array([1, 0]), np.array([3, 1])])
        assert joined.tolist() == [5 + 0, 5 + 3, 1, 4]

    def test_one_edge_joins(self) -> None:
        """The same with one more edge is a single part, also if it is negative."""
        problem = labelling(4, 1, {(0, 2): 3, (1, 3): 4, (2, 3): -1})
        assert [part.nodes for part in split(problem).parts] == [4]

    def test_optima_add_up(self) -> None:
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

    def test_foreign_labels_become_fresh(self) -> None:
        """A label that a part does not know is a fresh one there, agreements kept."""
        problem = labelling(4, 2, {(0, 1): 1, (2, 3): 1}, {(0, 0): 1, (2, 1): 1})
        first, second = split(problem).cut(np.array([1, 1, 1, 4]))
        assert first.tolist() == [1, 1]
        assert second.tolist() == [0, 2]

    def test_take(self) -> None:
        """Some components alone, labels as they were."""
        problem = labelling(4, 2, {(0, 2): 3, (1, 3): 4}, {(2, 1): 5, (3, 0): 6}, [(1, 1), (0, 0)])
        part = take(problem, np.array([1, 3]))
        assert (part.nodes, part.labels) == (2, 2)
        assert part.edges.tolist() == [[0, 1]]
        assert part.reward_at.tolist() == [[1, 0]]
        assert part.banned.tolist() == [[0, 1]]

    def test_nothing(self) -> None:
        """A problem without nodes has no parts."""
        parts = split(labelling(0, 3))
        assert parts.parts == ()
        assert parts.join([]).tolist() == []


class TestElimination:
    """Dynamic programming where tables stay small."""

    def test_fires(self) -> None:
        """A ring of 40 nodes with signed weights is solved although it is no tree.

        Each node loses 1 by agreeing with the next; 40 is even, so two labels in turn lose
        nothing and earn every reward of 1.
        """
        ring = {(i, (i + 1) % 40): -1 for i in range(39)} | {(0, 39): -1}
        rewards = {(i, i % 2): 1 for i in range(40)}
        result = eliminate(labelling(40, 2, ring, rewards))
        assert result is not None
        assert (result.objective, result.bound) == (40, 40)

    def test_too_large(self) -> None:
        """A clique of 12 nodes and 8 labels needs 8^12 entries."""
        clique = {(u, v): 1 for u in range(12) for v in range(u)}
        rewards = {(u, u % 8): 1 for u in range(12)}
        assert eliminate(labelling(12, 8, clique, rewards)) is None


class TestFix:
    """Decided nodes become rewards of the others."""

    def test_values_are_kept(self) -> None:
        """For any decision and any labels of the rest, both problems agree on the value."""
        for seed, problem in enumerate(problems(300)):
            whole = random_labels(problem, seed)
            keep = np.random.default_rng(seed).random(problem.nodes) < 0.5
            reduced = fix(problem, np.where(keep, -1, whole))
            labels = random_labels(reduced.problem, seed + 1)
            back = reduced.restore(labels)
            assert (back[~keep] == whole[~keep]).all()
            expected = problem.value(back)
            fresh_met = set((back[~keep]).tolist()) & set((back[keep]).tolist())
            if all(label < problem.labels for label in fresh_met):
                assert reduced.constant + reduced.problem.value(labels) == expected

    def test_all_and_nothing(self) -> None:
        """Everything decided leaves a constant; nothing decided leaves everything."""
        problem = labelling(3, 3, TRIANGLE, APART)
        done = fix(problem, np.array([0, 0, 2]))
        assert (done.problem.nodes, done.constant) == (0, 3)
        assert done.restore(np.zeros(0, np.int64)).tolist() == [0, 0, 2]
        same = fix(problem, np.full(3, -1))
        assert (same.problem.nodes, same.constant) == (3, 0)


class TestProblem:
    """The labelling problem's own arithmetic."""

    def test_value(self) -> None:
        """The array arithmetic agrees with the definition, whatever the numbers' size."""
        for seed, problem in enumerate(problems(200)):
            labels = random_labels(problem, seed)
            assert problem.value(labels) == worth(problem, labels.tolist())
            assert abs(problem.value(labels)) <= problem.total()

    def test_fresh_labels_that_suffice(self) -> None:
        """With no more fresh labels than promised the optimum is still reached."""
        for problem in problems(300):
            table = reward_table(problem, fresh_needed(problem))
            banned = set(map(tuple, problem.banned.tolist()))
            some = _with_labels(problem.nodes, table.shape[1], banned)
            assert max(worth(problem, labels) for labels in some) == optimum(problem)

    def test_fresh_needed_by_hand(self) -> None:
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

    def test_banned_is_never_worth_it(self) -> None:
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
