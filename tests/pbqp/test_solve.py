"""The whole, against all labellings, and what it promises about limits and starts."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from benchmarks.pbqp import FAMILIES, network
from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, limited
from layoutopt.base.result import Status, Stopped
from layoutopt.network.costs import reductions, solve
from layoutopt.network.costs.problem import Given, Problem, cost
from layoutopt.network.costs.solve import FoundLabels, heuristic_pbqp, solve_pbqp
from tests.pbqp.cases import random_network
from tests.support import refused


def test_random_networks_are_solved() -> None:
    """On 300 networks the optimum is that of all choices of modes, counted in their terms."""
    for seed in range(300):
        net = random_network(seed)
        best = min(map(net.cost, itertools.product(*(range(len(own)) for own in net.modes))))
        answer = solve_pbqp(net.problem())
        assert answer.objective == answer.bound == best
        assert answer.labelling is not None
        assert net.cost(answer.labelling[: len(net.modes)].tolist()) == best


@pytest.mark.parametrize("layouts", [2, 4])
@pytest.mark.parametrize("family", FAMILIES)
def test_networks_of_all_families_are_proved(family: str, layouts: int) -> None:
    """Networks of about 150 ops are proved optimal; the modes cost what is said."""
    net = network(family, 150, layouts)
    problem = net.problem()
    answer = solve_pbqp(problem)
    assert answer.status is Status.OPTIMAL
    assert answer.labelling is not None
    assert net.cost(answer.labelling[: len(net.modes)].tolist()) == answer.objective
    heuristic = heuristic_pbqp(problem)
    assert heuristic.objective is not None
    assert heuristic.bound is not None
    assert heuristic.bound <= answer.objective <= heuristic.objective


def test_two_ways_agree_on_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relaxation and search find the optimum that elimination with large tables finds."""
    problem = network("tangle", 120, 4, seed=1).problem()
    narrow = solve_pbqp(problem)
    with monkeypatch.context() as patch:
        patch.setattr(reductions, "NEVER", 0)
        searched = solve_pbqp(problem)
    assert narrow.status is searched.status is Status.OPTIMAL
    assert narrow.objective == searched.objective


def test_nothing_to_choose() -> None:
    """No nodes cost nothing; one label for each is the only labelling."""
    assert solve_pbqp(Problem.of([])).objective == 0
    single = solve_pbqp(Problem.of([[4], [-7]], [(0, 1, [[1]])]))
    assert (single.objective, single.status) == (-2, Status.OPTIMAL)


def test_rings_that_cannot_be_coloured() -> None:
    """Odd rings of two colours and five nodes of four that all differ are proved infeasible."""
    for nodes, colours in ((3, 2), (7, 2), (5, 4)):
        table: Given = [[None if i == j else 0 for j in range(colours)] for i in range(colours)]
        pairs = itertools.combinations(range(nodes), 2)
        ring = ((u, v) for u, v in pairs if colours > 2 or v - u in (1, nodes - 1))
        problem = Problem.of([[0] * colours] * nodes, [(u, v, table) for u, v in ring])
        assert solve_pbqp(problem).status is Status.INFEASIBLE
        assert heuristic_pbqp(problem).objective is None


@pytest.mark.parametrize("layouts", [2, 4])
def test_no_time_leaves_a_labelling_and_a_bound(layouts: int) -> None:
    """At once out of time, or interrupted, there is an allowed labelling, and a bound below."""
    net = network("dense", 150, layouts)
    problem = net.problem()
    best = solve_pbqp(problem).objective
    assert best is not None
    interrupted = Limits()
    interrupted.interrupt.set()
    for limits, why in (
        (Limits(deadline=0.0), Stopped.TIME_LIMIT),
        (interrupted, Stopped.INTERRUPTED),
    ):
        answer = solve_pbqp(problem, limits)
        assert answer.labelling is not None
        assert answer.bound is not None
        assert answer.bound <= best <= (answer.objective or 0) == cost(problem, answer.labelling)
        if answer.status is Status.FEASIBLE:
            assert answer.stopped is why
    assert layouts == 2 or answer.status is Status.FEASIBLE


def test_an_interrupt_ends_a_search() -> None:
    """Interrupted after a moment, a problem too hard for a moment has a labelling and a bound."""
    problem = network("tangle", 600, 8, seed=3).problem()
    limits = Limits()
    threading.Timer(0.5, limits.interrupt.set).start()
    answer = solve_pbqp(problem, limits)
    assert answer.objective is not None
    assert answer.bound is not None
    assert answer.bound <= answer.objective
    assert answer.status is Status.OPTIMAL or answer.stopped is Stopped.INTERRUPTED


def test_a_start_must_be_allowed() -> None:
    """A forbidden start, or one of the wrong length, is refused."""
    problem = Problem.of([[0, None], [0, 0]])
    with refused("labelling to begin with does what is forbidden"):
        solve_pbqp(problem, None, np.array([1, 0]))
    with refused("as many labels"):
        solve_pbqp(problem, None, np.array([0]))


@pytest.mark.parametrize(("nodes", "colours"), [(3, 2), (4, 3)])
def test_nothing_found_in_no_time(nodes: int, colours: int) -> None:
    """Where choices lead into a dead end and there is no time, only a bound is known."""
    table: Given = [[None if i == j else 1 for j in range(colours)] for i in range(colours)]
    pairs = itertools.combinations(range(nodes), 2)
    problem = Problem.of([[0] * colours] * nodes, [(u, v, table) for u, v in pairs])
    answer = solve_pbqp(problem, Limits(deadline=0.0))
    assert (answer.status, answer.stopped) == (Status.UNKNOWN, Stopped.TIME_LIMIT)
    assert answer.bound == nodes * (nodes - 1) // 2
    assert heuristic_pbqp(problem).status in (Status.UNKNOWN, Status.INFEASIBLE)


@pytest.mark.parametrize("labels", [None, [2]])
def test_the_start_is_kept_if_nothing_better_is_found(
    monkeypatch: pytest.MonkeyPatch, labels: list[int] | None
) -> None:
    """A search that comes back with a bound alone, or worse labels, leaves the start."""
    problem = Problem.of([[1, 0, 5]])
    monkeypatch.setattr(solve, "solve_parts", lambda *_: FoundLabels(labels, -3))
    answer = solve_pbqp(problem, None, np.array([0]))
    assert answer.labelling is not None
    assert (answer.objective, answer.bound, answer.labelling.tolist()) == (1, -3, [0])
    assert answer.stopped is Stopped.SIZE_LIMIT
    assert solve_pbqp(problem, limited(100.0)).stopped is Stopped.TIME_LIMIT


def test_a_bound_that_a_labelling_beats_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never told as an answer; nor is it that nothing is allowed, if something is."""
    monkeypatch.setattr(solve, "solve_parts", lambda *_: FoundLabels([1], 1))
    with pytest.raises(InternalError, match="costs 0, less than the bound 1"):
        solve_pbqp(Problem.of([[1, 0, 5]]))
    with pytest.raises(InternalError, match="contradicts infeasibility"):
        monkeypatch.setattr(solve, "cost", lambda *_: 0)
        solve_pbqp(Problem.of([[None]]), None, np.array([0]))


def test_progress_is_told() -> None:
    """What is relaxed and searched is told by name."""
    phases = []
    limits = limited(progress=lambda message: phases.append(message.phase))
    solve_pbqp(network("dense", 400, 4).problem(), limits)
    assert "relaxation" in phases
