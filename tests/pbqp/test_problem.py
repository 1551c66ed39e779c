"""Problems as arrays, their costs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.network.costs.problem import FORBIDDEN, CostAnswer, Problem, cost
from tests.pbqp.cases import optimum, random_network, random_problem


def test_equal_tables_are_kept_once() -> None:
    """Three edges with two different tables have two."""
    one, other = ((0, 1),), ((1, 0),)
    problem = Problem.of([[0], [0, 0]], [(0, 1, one), (0, 1, other), (0, 1, [[0, 1]])])
    assert len(problem.tables) == 2
    assert problem.table_of.tolist() == [0, 1, 0]


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
