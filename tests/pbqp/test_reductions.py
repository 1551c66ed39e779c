"""Every reduction against all labellings, and its twins: where it fires, where it must not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network.costs import reductions
from layoutopt.network.costs.problem import Given, Problem, cost
from layoutopt.network.costs.reductions import (
    RULES,
    alone,
    between,
    dominate,
    follow,
    leaf,
    reduce,
    settle,
    tidy,
)
from layoutopt.network.costs.solve import split
from layoutopt.network.costs.work import Infeasible, Work, level, normalise, normalise_all
from tests.pbqp.cases import left_optimum, opened, optimum, random_problem


def work_on(costs: Given, edges: list[tuple[int, int, Given]]) -> Work:
    """Write a problem down to work on."""
    return Work.of(Problem.of(costs, edges))


def restored(problem: Problem, work: Work) -> None:
    """Check that labellings of what is left come back, and cost what was promised or less."""
    left = work.left()
    spaces = [work.labels(u) for u in left]
    for chosen in itertools.islice(itertools.product(*spaces), 0, None, 7):
        labels = [0] * problem.nodes
        for u, label in zip(left, chosen, strict=True):
            labels[u] = label
        value = work.value(labels)
        if value < inf:
            work.restore(labels)
            back = cost(problem, np.array(labels))
            assert back is not None
            assert back <= value


def one_normalised(work: Work, u: int) -> list[int] | None:
    """Bring a node's edges to normal form."""
    before = [list(own) for own in work.costs]
    for v in list(work.near[u]):
        normalise(work, u, v)
    return [u] if before != work.costs else None


def one_dominated(work: Work, u: int) -> list[int] | None:
    """Take dominated labels from a node."""
    return dominate(work, [u]) or None


EACH = [rule for rules in RULES for rule in rules if rule is not tidy]


@pytest.mark.parametrize(
    "rule", [*EACH, one_normalised, one_dominated], ids=lambda rule: rule.__name__
)
def test_rules_keep_the_optimum(rule: Callable[[Work, int], list[int] | None]) -> None:
    """On 400 random problems, half of them in normal form, the optimum stays and comes back."""
    fired = 0
    for seed in range(400):
        problem = random_problem(seed, nodes=5, labels=3)
        best, work = optimum(problem), opened(problem)
        if work is None:
            assert best is None
            continue
        try:
            if seed % 2:
                normalise_all(work)
            for u in range(problem.nodes):
                if not work.gone[u]:
                    fired += rule(work, u) is not None
        except Infeasible:
            assert best is None
            continue
        assert left_optimum(work) == best
        restored(problem, work)
    assert fired > 50


def test_all_rules_together_keep_the_optimum() -> None:
    """On 400 random problems of up to seven nodes reductions alone find most optima."""
    solved = 0
    for seed in range(400):
        problem = random_problem(seed)
        best, work = optimum(problem), opened(problem)
        try:
            if work is None:
                raise Infeasible
            reduce(work, Limits())
        except Infeasible:
            assert best is None
            continue
        assert left_optimum(work) == best
        assert best is None or work.bound() <= best
        for _, _, table in work.edges():
            assert all(min(line) == 0 for line in (*table, *zip(*table, strict=True)))
        restored(problem, work)
        solved += not work.left()
    assert solved > 200


class TestNormalForm:
    """What moves from tables to labels."""

    def test_rows_and_columns(self) -> None:
        """Rows give 3 and 1, then columns 0 and 2; one pair keeps a cost."""
        work = work_on([[0, 0], [0, 10]], [(0, 1, [[3, 5], [1, 9]])])
        assert not normalise(work, 0, 1)
        assert work.costs == [[3, 1], [0, 12]]
        assert work.near[0][1] == ((0, 0), (0, 6))
        assert work.near[1][0] == ((0, 0), (0, 6))

    def test_sums_vanish(self) -> None:
        """A table of a row's part plus a column's part leaves no edge."""
        work = work_on([[0, 0], [0, 0]], [(0, 1, [[3, 5], [1, 3]])])
        assert normalise(work, 0, 1)
        assert (work.costs, work.near) == ([[3, 1], [0, 2]], [{}, {}])

    def test_what_is_all_forbidden(self) -> None:
        """A label whose row is forbidden is out of the question, and its edges are looked at."""
        work = work_on([[0, 0], [0, 0]], [(0, 1, [[None, None], [0, 4]])])
        assert normalise(work, 0, 1)
        assert work.costs == [[inf, 0], [0, 4]]
        assert work.shrunk == {0}

    def test_dead_labels_do_not_count(self) -> None:
        """The 1 stands in the column of a forbidden label: the least of the row is the 5."""
        work = work_on([[0, 0], [0, None, 0]], [(0, 1, [[5, 1, 7], [0, 0, 0]])])
        assert not normalise(work, 0, 1)
        assert work.costs == [[5, 0], [0, inf, 0]]
        assert work.near[0][1] == ((0, 0, 2), (0, 0, 0))

    def test_nothing_left(self) -> None:
        """A table that forbids everything proves that there is no labelling."""
        work = work_on([[0], [0, 0]], [(0, 1, [[None, None]])])
        with pytest.raises(Infeasible):
            normalise(work, 0, 1)

    def test_shared_tables(self) -> None:
        """Tables in normal form are left alone, others and those of dead labels are not."""
        normal, other = [[0, 1], [2, 0]], [[1, 1], [2, 0]]
        work = work_on([[0, 0], [0, 0], [0, None]], [(0, 1, normal), (0, 2, normal)])
        before = work.near[0][1]
        normalise_all(work)
        assert work.near[0][1] is before
        assert (work.near[0].get(2), work.costs[0]) == (None, [0, 2])
        work = work_on([[0, None], [0, None]], [(0, 1, normal)])
        normalise_all(work)
        assert work.near == [{}, {}]
        work = work_on([[0, 0], [0, 0]], [(0, 1, other)])
        normalise_all(work)
        assert work.costs == [[1, 0], [0, 0]]

    def test_level(self) -> None:
        """Least costs move to the constant; dead labels stay dead."""
        work = work_on([[3, None, 4], [-2, 0]], [])
        level(work)
        assert (work.constant, work.costs) == (1, [[0, inf, 1], [0, 2]])


class TestLeaving:
    """Nodes of one label, and of few neighbours."""

    def test_one_label(self) -> None:
        """Its row becomes the neighbour's costs; what it forbids is forbidden."""
        work = work_on([[None, 4], [1, 2, 3]], [(0, 1, [[0, 0, 0], [5, None, 7]])])
        assert settle(work, 0) == [1]
        assert (work.constant, work.costs[1], work.order) == (4, [6, inf, 10], [0])
        assert settle(work, 1) is None

    def test_one_label_that_forbids_all(self) -> None:
        """A row that is all forbidden proves that there is no labelling."""
        with pytest.raises(Infeasible):
            settle(work_on([[4], [1]], [(0, 1, [[None]])]), 0)

    def test_none(self) -> None:
        """Without neighbours the least cost is paid; with one it is not."""
        work = work_on([[3, -1], [0, 0], [0, 0]], [(1, 2, [[0, 1], [1, 0]])])
        assert alone(work, 0) == []
        assert work.constant == -1
        assert alone(work, 1) is None

    def test_one_neighbour(self) -> None:
        """Best replies cost min(3+0, 1+5) and min(3+9, 1+2)."""
        work = work_on([[3, 1], [0, 0]], [(0, 1, [[0, 9], [5, 2]])])
        assert leaf(work, 0) == [1]
        assert work.costs[1] == [3, 3]
        labels = [0, 1]
        work.restore(labels)
        assert labels == [1, 1]

    def test_one_neighbour_without_reply(self) -> None:
        """A neighbour's label without any reply is out of the question; all of them are no way."""
        work = work_on([[3, 1], [0, 0]], [(0, 1, [[0, None], [5, None]])])
        assert leaf(work, 0) == [1]
        assert work.costs[1] == [3, inf]
        with pytest.raises(Infeasible):
            leaf(work_on([[3], [0, 0]], [(0, 1, [[None, None]])]), 0)

    def test_two_neighbours(self) -> None:
        """Replies cost 2, and 1 more where the neighbours differ; the 2 moves to one of these."""
        differ = [[0, 1], [1, 0]]
        work = work_on([[2, 2], [0, 0], [0, 0]], [(0, 1, differ), (0, 2, differ)])
        assert between(work, 0) == [1, 2]
        assert work.near[1] == {2: ((0, 1), (1, 0))}
        assert work.costs[1:] == [[2, 2], [0, 0]]
        assert between(work, 1) is None

    def test_large_tables_stay(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Three nodes of two labels make 8 steps; a limit of 7 lets the middle one stay."""
        differ = [[0, 1], [1, 0]]
        work = work_on([[0, 0]] * 3, [(0, 1, differ), (0, 2, differ)])
        monkeypatch.setattr(reductions, "LARGEST", 7)
        assert between(work, 0) is None
        monkeypatch.setattr(reductions, "LARGEST", 8)
        assert between(work, 0) is not None


class TestFollowers:
    """Nodes without a choice of their own."""

    EQUAL: Given = ((0, None, None), (None, 4, None), (None, None, 0))

    def test_equal_labels(self) -> None:
        """A node that must choose as its neighbour does hands over costs and edges."""
        turned = [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        work = work_on([[1, 2, 3], [10, 20, 30], [0, 0, 0]], [(0, 1, self.EQUAL), (0, 2, turned)])
        assert follow(work, 0) == [1, 2]
        assert work.order == [0]
        assert work.costs[1:] == [[11, 26 + 3, 33 + 6], [0, 1, 2]]
        labels = [0, 2, 0]
        work.restore(labels)
        assert labels[0] == 2

    def test_more_than_one_reply(self) -> None:
        """With a choice left for one of the neighbour's labels it is no follower."""
        choice = (*self.EQUAL[:2], (0, None, 0))
        work = work_on([[0] * 3, [0] * 3], [(0, 1, choice)])
        assert follow(work, 0) is None
        assert follow(work, 1) is None

    def test_forbidden_labels_do_not_count(self) -> None:
        """One of the node is no choice, and one of its leader needs no reply."""
        choice = ((0, None, 0), (None, 4, None), (None, None, 0))
        assert follow(work_on([[0, 0, None], [0, 0, None]], [(1, 0, choice)]), 0) == [1]
        free = (*self.EQUAL[:2], (0, 0, 0))
        assert follow(work_on([[0, 0, 0], [0, 0, None]], [(1, 0, free)]), 0) == [1]
        assert follow(work_on([[0, 0, 0], [0, 0, 0]], [(1, 0, free)]), 0) is None

    def test_two_to_one(self) -> None:
        """A node that two labels of its neighbour leave no choice follows, not the other way."""
        work = work_on([[0, 0], [0, 0, 0]], [(0, 1, [[0, 0, None], [None, None, 0]])])
        assert follow(work, 1) is None
        assert follow(work, 0) == [1]

    def test_many_neighbours(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nodes of very many neighbours are not looked at."""
        work = work_on([[0] * 3, [0] * 3], [(0, 1, self.EQUAL)])
        monkeypatch.setattr(reductions, "MANY", 0)
        assert follow(work, 0) is None


class TestDominance:
    """Labels that others stand in for."""

    NEEDS: Given = ((0, 0), (None, 0))
    """Label 1 of the first needs label 1 of the second."""

    def test_alone(self) -> None:
        """Costs of 4 more are too much where the table saves 3 at most, not where it saves 4."""
        for saving, left in ((3, [0]), (4, [0]), (5, [0, 1])):
            work = work_on([[0, 4], [0, 0, 0]], [(0, 1, [[saving, 0, 0], [0, 0, 1]])])
            dominate(work, [0])
            assert work.labels(0) == left

    def test_with_an_answer(self) -> None:
        """A mode that costs 6 more goes if the other one needs a transform of 6 or less."""
        for transform, left in ((7, [0, 1]), (6, [1])):
            work = work_on([[6, 0], [0, transform]], [(0, 1, self.NEEDS)])
            dominate(work, [0])
            assert work.labels(0) == left

    def test_the_answer_must_suit_others(self) -> None:
        """The transform's other reader would lose 2 by it: 5 + 2 is more than 6."""
        for loss, left in ((2, [0, 1]), (1, [1])):
            others = [(0, 1, self.NEEDS), (1, 2, [[0, 0], [0, loss]])]
            work = work_on([[6, 0], [0, 5], [0, 0]], others)
            dominate(work, [0])
            assert work.labels(0) == left

    def test_neighbours_of_each_other_answer(self) -> None:
        """Two transforms cost 1 each, and reckon with 3 each if the other is there: worth 8."""
        table = [[0, 0], [0, 3]]
        for saved, left in ((7, [0, 1]), (8, [1])):
            both = [(0, 1, self.NEEDS), (0, 2, self.NEEDS), (1, 2, table)]
            work = work_on([[saved, 0], [0, 1], [0, 1]], both)
            dominate(work, [0])
            assert work.labels(0) == left

    def test_neighbours_that_exclude_each_other(self) -> None:
        """Two transforms that exclude each other cannot both answer."""
        both = [(0, 1, self.NEEDS), (0, 2, self.NEEDS), (1, 2, [[0, 0], [0, None]])]
        work = work_on([[9, 0], [0, 1], [0, 1]], both)
        dominate(work, [0])
        assert work.labels(0) == [0, 1]

    def test_reduction_uses_it(self) -> None:
        """Four nodes that all know each other have too many neighbours for any other rule."""
        table = [[0, 1], [1, 0]]
        pairs = [(u, v, table) for u, v in itertools.combinations(range(4), 2)]
        work = work_on([[0, 4], [0, 1], [0, 1], [0, 0]], pairs)
        reduce(work, Limits())
        assert work.left() == []

    def test_equals(self) -> None:
        """Of three labels that are all the same one remains."""
        work = work_on([[1, 1, 1], [0, 0]], [(0, 1, [[0, 3]] * 3)])
        assert dominate(work, [0, 1]) == [0, 1]
        assert [len(work.labels(u)) for u in (0, 1)] == [1, 1]


def test_tidying_follows_a_lost_label() -> None:
    """Once label 0 is gone, the table says only what label 1 costs, and the edge vanishes."""
    work = work_on([[0, 0], [0, 0]], [(0, 1, [[0, 5], [3, 0]])])
    assert tidy(work, 0) is None
    work.forbid(0, 0)
    assert tidy(work, 0) == [0, 1]
    assert (work.costs, work.near) == ([[inf, 0], [3, 0]], [{}, {}])


def test_the_last_label_is_not_taken() -> None:
    """Forbidding it proves that there is no labelling."""
    work = work_on([[0, None]], [])
    with pytest.raises(Infeasible):
        work.forbid(0, 0)
    with pytest.raises(Infeasible):
        work_on([[None, None]], [])


def test_parts_are_components() -> None:
    """A path of three, a pair and a node alone are three parts; their optima add up."""
    table = [[0, 2], [1, -1]]
    problem = Problem.of([[u, 1] for u in range(6)], [(0, 4, table), (4, 2, table), (5, 1, table)])
    work = Work.of(problem)
    parts = split(work)
    assert [sorted(nodes) for _, nodes in parts] == [[0, 2, 4], [1, 5], [3]]
    assert sum(left_optimum(part) or 0 for part, _ in parts) == optimum(problem)
    work.leave(4)
    assert [nodes for _, nodes in split(work)] == [[0], [1, 5], [2], [3]]


def test_parts_keep_costs_and_tables() -> None:
    """On 200 random problems each node of a part has its costs, and its neighbours' tables."""
    several = 0
    for seed in range(200):
        work = opened(random_problem(seed))
        if work is None:
            continue
        parts = split(work)
        assert sorted(u for _, nodes in parts for u in nodes) == work.left()
        for part, nodes in parts:
            assert part.costs == [work.costs[u] for u in nodes]
            tables = [{nodes[k]: table for k, table in near.items()} for near in part.near]
            assert tables == [work.near[u] for u in nodes]
        several += len(parts) > 1
    assert several > 50


def test_without_time_nothing_is_reduced() -> None:
    """Time is looked at before the first rule; the problem stays whole, and normal."""
    work = work_on([[3, 1], [0, 0]], [(0, 1, [[1, 9], [5, 2]])])
    reduce(work, Limits(deadline=0.0))
    assert work.left() == [0, 1]
    assert work.near[0][1] == ((0, 8), (3, 0))
