"""All heuristics on the same problems: what they must never do, and what they promise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from threading import Event

import numpy as np
import pytest

from benchmarks.traps import TRAPS
from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Result, Status, Stopped
from layoutopt.network.methods import APPROXIMATE, Method
from layoutopt.network.problem import Labelling, Precedence, exact_integers, split
from layoutopt.unwinding import unwind
from tests.support import (
    Edges,
    allowed,
    hard_problem,
    labelling,
    optimum,
    proved,
    random_labels,
    random_problem,
    worth,
)

methods = pytest.mark.parametrize("solve", APPROXIMATE.values(), ids=APPROXIMATE)

IMPROVING = ("refined", "alpha-expansion")
"""Those whose answer is worth at least as much as their start."""


def problems(count: int) -> Iterator[Labelling]:
    """Yield random problems with all mixtures of rules and numbers."""
    return map(mixture, range(count))


def mixture(seed: int) -> Labelling:
    """Return a random problem; of 24 in a row each mixture of signs and rules is one."""
    return random_problem(
        seed,
        5,
        negative=seed % 2 == 0,
        bans=seed % 3 == 0,
        barriers=(0, 2, 3, 4)[seed // 2 % 4],
        wide=10**30 if seed % 7 == 0 else 1,
    )


@cache
def best_of_mixture(seed: int) -> int:
    """Return the best value of that problem, which every heuristic is held against."""
    return optimum(mixture(seed))


def sound(problem: Labelling, result: Result) -> int:
    """Return the value of a result, after checking that it is a labelling without a bound."""
    labels = result.labelling.tolist()
    assert allowed(problem, labels)
    assert result.objective == worth(problem, labels)
    assert result.bound is None
    assert result.status is Status.FEASIBLE
    return int(result.objective or 0)


@methods
def test_random_problems(solve: Method) -> None:
    """On 96 problems answers keep to all rules, often reach the optimum, and never exceed it."""
    reached = ordered = 0
    for seed, problem in enumerate(problems(96)):
        best = best_of_mixture(seed)
        for start in (None, random_labels(problem, seed)):
            value = sound(problem, solve(problem, Limits(), start))
            assert 0 <= value <= best or (seed % 2 == 0 and value <= best)
            reached += value == best
            ordered += problem.precedence is not None and value == best
    assert reached > 110
    assert ordered > 77


@pytest.mark.parametrize("name", IMPROVING)
def test_never_worse_than_the_start(name: str) -> None:
    """If the start keeps to all rules, the answer is worth at least as much, without time, too."""
    better = kept = 0
    for seed, problem in enumerate(problems(168)):
        start = random_labels(problem, seed)
        if not allowed(problem, start.tolist()):
            continue
        kept += problem.precedence is not None
        for deadline in (float("inf"), time.monotonic()):
            value = sound(problem, APPROXIMATE[name](problem, Limits(deadline), start))
            assert value >= worth(problem, start.tolist())
            better += value > worth(problem, start.tolist())
    assert better > 84
    assert kept > 28


@methods
def test_equal_seeds_give_equal_answers(solve: Method) -> None:
    """Two runs agree; where chance has a say in every answer, another seed does not."""
    answers = set()
    for seed in range(6):
        problem = hard_problem(1, 40, 5, negative=True)
        one, two = (solve(problem, Limits(seed=seed), None) for _ in range(2))
        assert one.labelling.tolist() == two.labelling.tolist()
        answers.add(tuple(one.labelling.tolist()))
    chance = {APPROXIMATE["rounded"], APPROXIMATE["random-greedy"]}
    assert (len(answers) > 1) == (solve in chance)


@methods
def test_no_time(solve: Method) -> None:
    """Without time there is still a labelling that keeps to all rules, and it says why."""
    for problem in problems(48):
        result = solve(problem, Limits(deadline=time.monotonic()), None)
        sound(problem, result)
        assert result.stopped is Stopped.TIME_LIMIT


class Later(Event):
    """An interrupt that comes after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def is_set(self) -> bool:
        """Return whether there were so many looks."""
        self.looks -= 1
        return self.looks < 0


@methods
@pytest.mark.parametrize("looks", [0, 1, 3, 10])
def test_interrupt(solve: Method, looks: int) -> None:
    """Interrupted at any time, there is an answer, and no more than a few looks are taken."""
    interrupt = Later(looks)
    problem = hard_problem(2, 60, 12, negative=True)
    result = solve(problem, Limits(interrupt=interrupt), None)
    sound(problem, result)
    assert result.stopped is Stopped.INTERRUPTED
    assert interrupt.looks > -20


@methods
def test_wide_numbers_change_nothing(solve: Method) -> None:
    """A common factor beyond 64 bits leaves every label where it is."""
    for seed in range(24):
        problem = random_problem(seed, 7, negative=seed % 2 == 0, barriers=seed % 3)
        wide = Labelling(
            problem.nodes,
            problem.labels,
            problem.edges,
            exact_integers([w * 10**30 for w in problem.weights.tolist()]),
            problem.reward_at,
            exact_integers([r * 10**30 for r in problem.rewards.tolist()]),
            problem.banned,
            problem.precedence,
        )
        one, two = (solve(p, Limits(), None) for p in (problem, wide))
        assert one.labelling.tolist() == two.labelling.tolist()
        assert two.objective == int(one.objective or 0) * 10**30


@methods
def test_sizes_apart(solve: Method) -> None:
    """Of two components the small one counts, however large the other's numbers are: 3 and 4.

    In the large one 1 beside its other numbers may be lost, but comes with them.
    """
    edges: Edges = {(0, 1): 10**17, (2, 3): 3}
    wishes: Edges = {(0, 0): 10**17, (1, 0): 1, (2, 1): 2, (3, 2): 4}
    result = solve(labelling(4, 3, edges, wishes), Limits(), None)
    assert result.objective == 2 * 10**17 + 1 + 3 + 4


@methods
def test_labels_are_known_where_they_are_used(solve: Method) -> None:
    """A component uses labels that earn it something, and fresh ones of its own nodes."""
    fresh = 0
    for seed, problem in enumerate(problems(48)):
        labels = solve(problem, Limits(), random_labels(problem, seed)).labelling
        if problem.precedence is not None:
            problem = Labelling(
                *(problem.nodes, problem.labels, problem.edges, problem.weights),
                *(problem.reward_at, problem.rewards, problem.banned),
            )
        parts = split(problem)
        for nodes, known in zip(parts.nodes, parts.labels, strict=True):
            own = {*known.tolist(), *(problem.labels + nodes).tolist()}
            assert set(labels[nodes].tolist()) <= own
        fresh += bool((labels >= problem.labels).any())
    assert fresh > 12


@methods
def test_nothing_to_choose(solve: Method) -> None:
    """Problems without nodes, labels or edges."""
    assert solve(labelling(0, 0), Limits(), None).objective == 0
    assert solve(labelling(0, 3), Limits(), None).objective == 0
    assert solve(labelling(3, 0), Limits(), None).objective == 0
    assert solve(labelling(2, 0, {(0, 1): 5}), Limits(), None).objective == 5
    assert solve(labelling(2, 0, {(0, 1): -5}), Limits(), None).objective == 0
    assert solve(labelling(1, 2, {}, {(0, 1): 7}), Limits(), None).objective == 7
    assert solve(labelling(1, 2, {}, {(0, 1): -7}), Limits(), None).objective == 0
    assert solve(labelling(1, 2, {}, {(0, 1): 7}, [(0, 1)]), Limits(), None).objective == 0


def rule(
    barriers: int, arcs: list[tuple[int, int]], offered: list[int], readers: list[tuple[int, ...]]
) -> Precedence:
    """Return an order rule: the barrier of each label, and the barriers that read each node."""
    sets = list(dict.fromkeys([(), *readers]))
    return Precedence(
        barriers,
        np.array(arcs, np.int64).reshape(-1, 2),
        np.array(offered, np.int64),
        tuple(sets),
        np.array([sets.index(read) for read in readers], np.int64),
    )


class TestOrder:
    """Barrier order, by hand."""

    @methods
    def test_the_cheapest_wish_of_a_ring_is_given_up(self, solve: Method) -> None:
        """Barrier i reads node i, which wants a label of barrier i + 1: all but the 3 of 25."""
        values = [4, 6, 3, 7, 5]
        wishes = {(i, i): value for i, value in enumerate(values)}
        order = rule(5, [], [1, 2, 3, 4, 0], [(i,) for i in range(5)])
        assert (
            sound(labelling(5, 5, {}, wishes), solve(labelling(5, 5, {}, wishes), Limits())) == 25
        )
        ordered = labelling(5, 5, {}, wishes, precedence=order)
        assert sound(ordered, solve(ordered, Limits(), None)) == 22

    @methods
    def test_what_stands_is_kept_to(self, solve: Method) -> None:
        """A chain that stands, 0 → 1 → 2 → 3, lets only forward wishes through: 2 and 8."""
        wishes = {(0, 0): 1, (1, 1): 2, (2, 2): 4, (3, 3): 8}
        readers = [(0,), (3,), (1,), (2,)]
        order = rule(4, [(0, 1), (1, 2), (2, 3)], [3, 0, 2, 1], readers)
        problem = labelling(4, 4, {}, wishes, precedence=order)
        assert sound(problem, solve(problem, Limits(), None)) == 10

    @methods
    def test_agreement_is_under_the_rule(self, solve: Method) -> None:
        """Node 0, which barrier 0 reads, cannot follow node 1 to barrier 0's label: 13, not 14.

        They agree for 10; node 1 wants label 0 of barrier 0 for 4, node 0 label 1 for 3.
        """
        edges: Edges = {(0, 1): 10}
        wishes: Edges = {(1, 0): 4, (0, 1): 3}
        order = rule(1, [], [0, -1], [(0,), ()])
        problem = labelling(2, 2, edges, wishes, precedence=order)
        assert sound(problem, solve(problem, Limits(), None)) == 13

    @pytest.mark.parametrize("name", IMPROVING)
    def test_a_label_that_only_the_start_has(self, name: str) -> None:
        """Nodes 1 and 2 may have barrier 0's label, but node 0, tied to them, must not follow.

        Only node 0 would earn by that label, which it can never have.
        """
        order = rule(1, [], [0], [(0,), (), ()])
        problem = labelling(3, 1, {(0, 1): 3, (1, 2): 5}, {(0, 0): 5}, precedence=order)
        assert sound(problem, APPROXIMATE[name](problem, Limits(), np.array([1, 0, 0]))) == 8

    @pytest.mark.parametrize("name", IMPROVING)
    def test_a_start_is_improved_in_its_own_order(self, name: str) -> None:
        """A wish of 6 excludes two of 5, which the start has; beside them 1 can be had.

        What would be chosen without order admits the 6 first, as it is the largest.
        """
        wishes: Edges = {(0, 0): 6, (1, 1): 5, (2, 2): 5, (3, 3): 1}
        order = rule(3, [], [0, 1, 2, -1], [(1, 2), (0,), (0,), ()])
        problem = labelling(4, 4, {}, wishes, precedence=order)
        solve = APPROXIMATE[name]
        assert sound(problem, solve(problem, Limits(), None)) == 7
        assert sound(problem, solve(problem, Limits(), np.array([4, 1, 2, 7]))) == 11

    @pytest.mark.parametrize("name", IMPROVING)
    def test_a_start_in_order_decides_the_order(self, name: str) -> None:
        """Two wishes of 5 exclude each other; whichever the start has is kept.

        Node 2 is tied to node 1 and wants more: an order that gave the start up would gain.
        """
        wishes: Edges = {(0, 0): 5, (1, 1): 5}
        order = rule(2, [], [0, 1], [(1,), (0,)])
        problem = labelling(2, 2, {}, wishes, precedence=order)
        for start in ([0, 3], [2, 1]):
            result = APPROXIMATE[name](problem, Limits(), np.array(start))
            assert result.labelling.tolist() == start


class TestMessages:
    """What a listener is told."""

    @methods
    def test_objectives_are_reached(self, solve: Method) -> None:
        """No message promises more than what comes out in the end."""
        for seed in range(24):
            problem = random_problem(seed, 8, 4, negative=seed % 2 == 0, barriers=seed % 4)
            heard: list[Progress] = []
            value = sound(problem, solve(problem, Limits(tell=heard.append), None))
            assert all(m.objective is None or m.objective <= value for m in heard)
            assert all(m.bound is None for m in heard)

    @methods
    def test_what_breaks_order_is_not_told(self, solve: Method) -> None:
        """Two wishes of 5 and 3 exclude each other: nobody hears of 8."""
        order = rule(2, [], [0, 1], [(1,), (0,)])
        problem = labelling(2, 2, {}, {(0, 0): 5, (1, 1): 3}, precedence=order)
        heard: list[Progress] = []
        assert sound(problem, solve(problem, Limits(tell=heard.append), None)) == 5
        assert all(m.objective is None or m.objective <= 5 for m in heard)


@methods
@pytest.mark.parametrize("trap", TRAPS)
def test_traps_of_greedy0(solve: Method, trap: str) -> None:
    """Every heuristic solves every trap: a labelling problem adds up what greedy0 does not."""
    graph = TRAPS[trap]()
    name = next(name for name, own in APPROXIMATE.items() if own is solve)
    found = unwind(graph, name)
    greedy = unwind(graph, "greedy0")
    assert found.score == proved(graph).score
    assert (found.score or Decimal(0)) > (greedy.score or Decimal(0))


def test_a_new_heuristic_is_tested() -> None:
    """The tests above run over the dictionary, whose members are what they should be."""
    names = {"refined", "isolating-cuts", "alpha-expansion", "rounded", "random-greedy"}
    assert names <= set(APPROXIMATE)
    assert all(isinstance(solve, Callable) for solve in APPROXIMATE.values())
