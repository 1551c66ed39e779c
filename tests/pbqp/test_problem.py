"""Problems as arrays, their costs, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.network.costs.problem import FORBIDDEN, LARGEST, CostAnswer, Given, Problem, cost
from tests.pbqp.cases import optimum, random_network, random_problem
from tests.support import refused

PAIR = Problem.of(
    [[3, None], [0, -2, 5]],
    [(0, 1, [[1, 2, None], [0, 0, 0]]), (1, 0, [[7, 0], [9, 0], [0, 0]])],
)
"""Two edges, one in each direction."""


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((0, 0), 3 + 0 + 1 + 7),
        ((0, 1), 3 - 2 + 2 + 9),
        ((0, 2), None),  # its pair is forbidden
        ((1, 0), None),  # its label is
    ],
)
def test_cost_is_the_sum_of_all_parts(labels: tuple[int, int], expected: int | None) -> None:
    """Labels and both parallel tables add up; what is forbidden has no cost."""
    assert cost(PAIR, np.array(labels)) == expected
    assert optimum(PAIR) == 11


def test_equal_tables_are_kept_once() -> None:
    """Three edges with two different tables have two."""
    one, other = ((0, 1),), ((1, 0),)
    problem = Problem.of([[0], [0, 0]], [(0, 1, one), (0, 1, other), (0, 1, [[0, 1]])])
    assert len(problem.tables) == 2
    assert problem.table_of.tolist() == [0, 1, 0]


def test_no_nodes() -> None:
    """A problem may be empty; its only labelling costs nothing."""
    problem = Problem.of([])
    assert (problem.nodes, problem.total()) == (0, 0)
    assert cost(problem, np.zeros(0, np.int64)) == 0


def test_total_counts_each_edge_once_at_its_most() -> None:
    """The total is 3 and 0, 2, 5 of labels, 2 and 9 of tables; forbidden costs do not count."""
    assert PAIR.total() == 3 + 7 + 2 + 9


def test_total_leaves_out_what_no_edge_uses() -> None:
    """Tables without an edge do not count, nor do those that forbid everything."""
    problem = Problem.of([[0], [2]], [(0, 1, [[5]]), (1, 0, [[None]])])
    assert problem.total() == 2 + 5
    assert replace(problem, tables=(*problem.tables, np.array([[7]]))).total() == 2 + 5


@pytest.mark.parametrize("seed", range(40))
def test_costs_of_networks_are_those_of_their_modes(seed: int) -> None:
    """A network's problem costs as much as its modes say, with the layouts they need there."""
    net = random_network(seed)
    problem = net.problem()
    labels = np.zeros(problem.nodes, np.int64)
    chosen = [seed % len(modes) for modes in net.modes]
    labels[: len(chosen)] = chosen
    read = sorted({t for inputs in net.inputs for t in inputs})
    modes = [own[i] for own, i in zip(net.modes, chosen, strict=True)]
    for k, t in enumerate(read):
        there = {modes[t].makes}
        for inputs, mode in zip(net.inputs, modes, strict=True):
            there |= {w for r, w in zip(inputs, mode.wants, strict=True) if r == t}
        for layout in there:
            labels[len(chosen) + k * net.layouts + layout] = 1
    assert cost(problem, labels) == net.cost(chosen)
    some = next(iter(there))
    labels[len(chosen) + (len(read) - 1) * net.layouts + some] = 0
    assert cost(problem, labels) is None


WRONG: dict[str, tuple[Given, list[tuple[int, int, Given]], str]] = {
    "no labels": ([[0], []], [], "every node needs one label or more"),
    "no such node": ([[0]], [(0, 1, [[0]])], "edges join nodes 0 to 0"),
    "negative node": ([[0], [0]], [(-1, 0, [[0]])], "edges join nodes 0 to 1"),
    "loop": ([[0], [0]], [(0, 1, [[0]]), (1, 1, [[0]])], "edge 1 joins node 1 to itself"),
    "shape": ([[0], [0, 0]], [(0, 1, [[0], [0]])], "table of 2 x 1, its nodes have 1 and 2"),
    "second shape": (
        [[0], [0, 0]],
        [(0, 1, [[0, 0]]), (1, 0, [[0, 0]])],
        "edge 1 has a table of 1 x 2, its nodes have 2 and 1",
    ),
    "ragged": ([[0, 0], [0, 0]], [(0, 1, [[0, 0], [0]])], "rows of a table must be equally long"),
    "empty table": ([[0], [0]], [(0, 1, [])], "rows of a table must be equally long"),
    "fraction": ([[0.5]], [], "costs must be whole numbers"),  # type: ignore[list-item]
    "text": ([["a"]], [], "costs must be whole numbers"),  # type: ignore[list-item]
    "beyond 64 bits": ([[2**70]], [], f"costs must lie within {-LARGEST} and {LARGEST}"),
    "sum": ([[LARGEST - 1], [1]], [], f"add up to {LARGEST}, allowed is less"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_together_is_refused(case: str) -> None:
    """Each mistake is named in a line."""
    costs, edges, reason = WRONG[case]
    with refused(reason):
        Problem.of(costs, edges)


def test_arrays_that_do_not_fit_are_refused() -> None:
    """Starts, numbers of tables and counts are checked, too."""
    with refused("every cost a node"):
        replace(PAIR, starts=np.array([0, 2, 4]))
    with refused("tables are 0 to 1"):
        replace(PAIR, table_of=np.array([0, 2]))
    with refused("2 edges have 1 tables"):
        replace(PAIR, table_of=np.array([0]))


@pytest.mark.parametrize(("labels", "reason"), [([0], "as many labels"), ([0, 3], "larger")])
def test_labels_out_of_range_are_refused(labels: list[int], reason: str) -> None:
    """A labelling has one label for each node, and each exists."""
    with refused(reason):
        cost(PAIR, np.array(labels))


def test_negative_labels_are_refused() -> None:
    """Labels do not count from the end."""
    with refused("negative"):
        cost(PAIR, np.array([0, -1]))


def test_random_problems_are_of_all_sorts() -> None:
    """The random problems of these tests are feasible and infeasible, with both signs."""
    found = [optimum(random_problem(seed)) for seed in range(200)]
    assert 10 < found.count(None) < 100
    assert min(x for x in found if x is not None) < -20
    assert any((random_problem(seed).costs == FORBIDDEN).any() for seed in range(20))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (CostAnswer(objective=3, bound=3), Status.OPTIMAL),
        (CostAnswer(objective=3, bound=2), Status.FEASIBLE),
        (CostAnswer(bound=2), Status.UNKNOWN),
        (CostAnswer(infeasible=True), Status.INFEASIBLE),
    ],
)
def test_status_is_what_is_proved(answer: CostAnswer, status: Status) -> None:
    """Optimal needs equal numbers; without a labelling nothing is known."""
    assert answer.status is status
