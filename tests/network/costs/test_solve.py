"""Costs of labels and pairs are solved: every stage alone, limits, starts, and labels by hand."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from benchmarks.pbqp import FAMILIES, network
from layoutopt.base.errors import InternalError
from layoutopt.base.limits import Limits, Progress, Stopped, limited
from layoutopt.base.result import Status
from layoutopt.network import Network, ascent
from layoutopt.network.builder import CostRows
from layoutopt.network.costs import reductions, solve
from layoutopt.network.costs.reductions import renormalise
from layoutopt.network.costs.solve import (
    FoundLabels,
    construct,
    heuristic_pbqp,
    solve_parts,
    solve_pbqp,
)
from layoutopt.network.costs.work import Infeasible, Work
from layoutopt.network.network import CostAnswer
from layoutopt.network.problem import IntArray
from layoutopt.network.solvers import cpsat
from layoutopt.network.solvers.programme import ProgrammeResult
from tests.network.costs.cases import (
    cost,
    opened,
    random_network,
    random_problem,
    registers,
    stated,
    work_on,
)
from tests.network.oracle import best as optimum
from tests.support import refused


def coloured(nodes: int, colours: int, price: int = 0) -> Network:
    """Return nodes that must all differ in colour; to differ costs a price."""
    table: CostRows = [[None if i == j else price for j in range(colours)] for i in range(colours)]
    pairs = itertools.combinations(range(nodes), 2)
    return stated([[0] * colours] * nodes, [(u, v, table) for u, v in pairs])


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
    """Networks of about 100 ops are proved optimal; the modes cost what is said."""
    net = network(family, 100, layouts)
    answer = solve_pbqp(net.problem())
    assert answer.status is Status.OPTIMAL
    assert answer.labelling is not None
    assert net.cost(answer.labelling[: len(net.modes)].tolist()) == answer.objective
    heuristic = heuristic_pbqp(net.problem())
    assert (heuristic.bound or inf) <= (answer.objective or 0) <= (heuristic.objective or 0)


def test_two_ways_agree_on_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relaxation and search find the optimum that elimination with large tables finds."""
    problem = network("tangle", 120, 4, seed=1).problem()
    narrow = solve_pbqp(problem)
    monkeypatch.setattr(reductions, "NEVER", 0)
    searched = solve_pbqp(problem)
    assert narrow.status is searched.status is Status.OPTIMAL
    assert narrow.objective == searched.objective


# Each stage, with easier ways out barred


@pytest.fixture
def unreduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing but normal form before the stages."""
    monkeypatch.setattr(solve, "eliminate", lambda *_: None)
    monkeypatch.setattr(reductions, "RULES", ((renormalise,),))
    monkeypatch.setattr(reductions, "dominate", lambda *_: [])


@pytest.fixture
def barred(unreduced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bar branching too, so that dual ascent, relaxation, polishing and CP-SAT remain."""
    monkeypatch.setattr(solve, "CELLS", -1)
    monkeypatch.setattr(solve, "_branch", lambda *_: None)


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("wide", [1, pytest.param(2**45, marks=pytest.mark.cpsat)])
def test_every_stage_ends_with_a_proof(stage: int, wide: int) -> None:
    """From any stage on 40 random problems are solved, or proved infeasible.

    Without time a labelling to begin with is what is found, with a bound below it.  Messages speak
    of the whole problem.  Three nodes of two labels that all must differ are infeasible, which only
    search sees.
    """
    feasible = 0
    for seed in range(40):
        problem = random_problem(seed, nodes=5, wide=wide)
        best, work = optimum(problem), opened(problem)
        heard: list[Progress] = []
        try:
            limits = Limits(tell=heard.append)
            found = None if work is None else solve_parts(work, limits, None, stage)
        except Infeasible:
            assert best is None
            continue
        if work is not None and found is not None:
            assert found.labels is not None
            assert opened(problem).value(found.labels) == best == found.bound
            feasible += 1
            for each in heard:
                assert each.objective is None or each.objective >= best
                assert each.bound is None or each.bound <= best
            late = solve_parts(opened(problem), Limits(deadline=0.0), found.labels, stage)
            assert late.labels == found.labels
            assert late.bound <= found.bound
    assert feasible > 20
    differ = ((None, 0), (0, None))
    ring = stated([[0, 0]] * 3, [(0, 1, differ), (1, 2, differ), (2, 0, differ)])
    with pytest.raises(Infeasible):
        solve_parts(opened(ring), Limits(), None, stage)


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("seconds", [60.0, inf])
def test_time_that_is_left_goes_to_parts_that_are_not_proved(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """The second of three parts ends early at first, and is solved from there in the end."""
    asked = list[tuple[int, list[int] | None]]()

    def stage(part: Work, _: Limits, start: list[int] | None) -> FoundLabels:
        n = len(part.costs)
        asked.append((n, start))
        return FoundLabels([0] * 4 if n == 4 and start is None else [0, 1, 0, 1, 0][:n], 0)

    monkeypatch.setattr(solve, "STAGES", (stage,))
    table = [[1, 0], [0, 2]]
    edges = [(u, v, table) for a, b in ((0, 3), (3, 7), (7, 12)) for u, v in pairwise(range(a, b))]
    work = opened(stated([[0, 0]] * 12, edges))
    assert work is not None
    found = solve_parts(work, Limits().within(seconds), None)
    again = [(4, [0] * 4)] if seconds < inf else []
    assert asked == [(3, None), (4, None), (5, None), *again]
    assert found.bound == 0
    assert work.value(found.labels or []) == (0 if again else 3)


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("lost", [3, 4])
def test_parts_without_labels_leave_the_whole_without(
    monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """The bounds of both parts add up; the whole costs what both do once both have labels."""
    heard: list[Progress] = []

    def stage(part: Work, limits: Limits, _: list[int] | None) -> FoundLabels:
        n = len(part.costs)
        limits.report("search", 5, 2)
        return FoundLabels(None if n == lost else [0, 1, 0, 1][:n], 2)

    monkeypatch.setattr(solve, "STAGES", (stage,))
    edges = [(u, u + 1, [[1, 0], [0, 2]]) for u in (0, 1, 3, 4, 5)]
    work = opened(stated([[0, 0]] * 7, edges))
    assert work is not None
    found = solve_parts(work, Limits(tell=heard.append), None)
    assert (found.labels, found.bound) == (None, 4)
    told = [(m.objective, m.bound) for m in heard if m.phase == "search"]
    assert told == [(None, 2), (None if lost == 3 else 5, 4)]


@pytest.mark.parametrize(("seed", "least"), list(enumerate([-74, -27, 20, -10])))
def test_registers(seed: int, least: int) -> None:
    """Values get registers or are spilled; some must differ, some should agree.

    The least cost is what CP-SAT proves of clauses for what must differ.  Each phase tells
    labellings that are known, and the bound.
    """
    problem = registers(seed, 24)
    heard: list[Progress] = []
    found = solve_pbqp(problem, Limits(tell=heard.append))
    assert found.status is Status.OPTIMAL
    assert cost(problem, found.labelling) == found.objective == least
    assert all((m.bound or -inf) <= least <= (m.objective or inf) for m in heard)
    known = [m.phase for m in heard if m.bound is not None and m.objective is not None]
    assert {"reductions", "search"} <= {*known} or seed == 3  # which needs no search


@pytest.mark.usefixtures("barred")
def test_what_polishing_closes_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that cost 4 become ones that cost 2, which is the least of the table."""
    monkeypatch.setattr(cpsat, "solve_programme", None)
    work = opened(stated([[0, 0, 0]] * 2, [(0, 1, [[4, 3, 2], [3, 5, 9], [9, 4, 6]])]))
    found = solve_parts(work, Limits(), [0, 0], 2)
    assert (found.labels, found.bound) == ([0, 2], 2)


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_every_stage_keeps_the_best_labelling(monkeypatch: pytest.MonkeyPatch, stage: int) -> None:
    """What dual ascent, branching, CP-SAT and later stages find is worse than what is known."""
    best, worse = [0, 1, 0], [0, 0, 0]
    part = opened(coloured(3, 2))
    assert part is not None
    part.constant = 7
    for u, v, _ in list(part.edges()):
        part.put(u, v, ((1, 0), (0, 1)))
    worths, points = list[float](), list[list[int] | None]()
    written = solve.write(part, sparse=True)

    def ascended(_: object, __: object, offer: Callable[[list[int]], float], worth: float) -> None:
        worths.extend([worth, offer(worse), offer(best)])

    def programmed(_: object, __: object, point: IntArray, **___: object) -> ProgrammeResult:
        points.append(written.chosen(point))
        return ProgrammeResult(written.point(worse), bound=0)

    monkeypatch.setattr(ascent.RowAscent, "run", ascended)
    monkeypatch.setattr(solve, "construct", lambda *_: worse)
    branching = iter([FoundLabels(worse, 7)])
    monkeypatch.setattr(solve, "_branch", lambda *_: next(branching, None))
    monkeypatch.setattr(cpsat, "solve_programme", programmed)
    if stage < 3:
        monkeypatch.setattr(solve, "solve_parts", lambda *_: FoundLabels(worse, 7))
    found = solve.STAGES[stage](part, Limits(), best)
    assert (part.value(found.labels or worse), found.bound) == (8, 7)
    assert worths == ([1, 1, 1] if stage == 0 else [])
    assert {*map(str, points)} == ({str(best)} if stage == 3 else set())


def test_points_of_programmes_are_told_as_costs() -> None:
    """They are worth what they save, in units of a programme with smaller numbers."""
    heard: list[Progress] = []
    part = opened(coloured(3, 3, 1))
    assert part is not None
    tell = replace(solve.write(part), constant=7).told(Limits(tell=heard.append), 2)
    tell(None, 3)
    tell(-1, 2)
    assert [(m.phase, m.objective, m.bound) for m in heard] == [
        ("search", None, 1),
        ("search", 9, 3),
    ]


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("stage", [0, 3])
def test_branching_needs_no_programme(monkeypatch: pytest.MonkeyPatch, stage: int) -> None:
    """Random problems of a few nodes are solved, or proved infeasible, before CP-SAT is asked."""
    monkeypatch.setattr(cpsat, "solve_programme", None)
    for seed in range(60):
        problem = random_problem(seed, nodes=5, wide=1 + (seed % 2) * 2**40)
        best, work = optimum(problem), opened(problem)
        try:
            found = None if work is None else solve_parts(work, Limits(), None, stage)
        except Infeasible:
            assert best is None
            continue
        assert found is None or best == found.bound == opened(problem).value(found.labels)
    work = work_on(stated([[3, 5], [4, 2]], [(0, 1, [[1, 2], [3, 4]])]))
    work.constant = 10
    factors, paid = reductions.factors_of(work)
    assert paid == 16
    assert [table.tolist() for _, table in factors] == [[0, 2], [2, 0], [[0, 1], [2, 3]]]


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize(("other", "clash"), [(0, None), (1, None), (1, 9)])
def test_labels_that_cost_the_bound_need_no_relaxation(
    monkeypatch: pytest.MonkeyPatch, other: int, clash: int | None
) -> None:
    """A short search finds them where haste leads into a dead end; nothing else may be left.

    Labels 1 cost nothing; where all nodes agree on labels 0, the last two clash.
    """
    monkeypatch.setattr(solve, "relax", None)
    agree = [[0, clash], [clash, 0]]
    last = [[clash, other], [other, 0]]
    part = opened(stated([[0, 0]] * 3, [(0, 1, agree), (0, 2, agree), (1, 2, last)]))
    assert part is not None
    assert (construct(part, Limits(deadline=0.0)) is None) == (clash is None)
    assert solve_parts(part, Limits(), None) == FoundLabels([1, 1, 1], 0)


@pytest.mark.usefixtures("barred")
def test_dual_ascent_finds_labels_where_nothing_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of a ring in three colours need no programme, even if haste leads into a dead end."""
    monkeypatch.setattr(cpsat, "solve_programme", None)
    monkeypatch.setattr(solve, "construct", lambda *_: None)
    table: CostRows = [[None if i == j else 0 for j in range(3)] for i in range(3)]
    part = opened(stated([[0] * 3] * 9, [(u, (u + 1) % 9, table) for u in range(9)]))
    assert part is not None
    found = solve_parts(part, Limits(), None)
    assert found.labels is not None
    assert (part.value(found.labels), found.bound) == (0, 0)


@pytest.mark.parametrize("seed", [5, 7, 11])
def test_costs_beyond_doubles_are_forbidden(seed: int) -> None:
    """What costs more than a known labelling may have more digits than doubles can hold."""
    draw, big = random.Random(seed), 10**400
    own = [[draw.randrange(big) for _ in range(3)] for _ in range(4)]
    pairs = itertools.combinations(range(4), 2)
    table = [[[draw.randrange(10 * big) for _ in range(3)] for _ in range(3)] for _ in range(6)]
    problem = stated(own, [(u, v, costs) for (u, v), costs in zip(pairs, table, strict=True)])
    best = min(map(problem.cost, map(np.array, itertools.product(range(3), repeat=4))))
    assert (solve_pbqp(problem).objective or 0) >= best


@pytest.mark.usefixtures("unreduced")
def test_without_memory_there_is_no_branching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "available_memory", lambda: 2**20)
    monkeypatch.setattr(solve, "branch_and_bound", None)
    found = solve_parts(opened(random_problem(1)), Limits(), None, 3)
    assert found.bound == optimum(random_problem(1))


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize("change", [{"relax": lambda *_: None}, {"MOST_CELLS": -1, "relax": None}])
def test_without_a_relaxation(monkeypatch: pytest.MonkeyPatch, change: dict[str, object]) -> None:
    """Where HiGHS fails, or is not asked as tables are too large, the optimum is found as well."""
    for name, value in change.items():
        monkeypatch.setattr(solve, name, value)
    for seed in range(40):
        problem = random_problem(seed, nodes=5)
        best, work = optimum(problem), opened(problem)
        if work is not None and best is not None:
            assert solve_parts(work, Limits(), None, 1).bound == best


@pytest.mark.usefixtures("barred")
@pytest.mark.parametrize(
    ("bound", "labels", "turns"), [(0, None, 1), (2, None, 2), (0, [0] * 3, 2)]
)
def test_branching_that_proves_and_finds_nothing_ends(
    monkeypatch: pytest.MonkeyPatch, bound: int, labels: list[int] | None, turns: int
) -> None:
    """It goes on with a better bound than the programme's, 1, or a labelling that is better."""
    asked = list[float]()

    def programmed(_: object, limits: Limits, *__: object, **___: object) -> ProgrammeResult:
        asked.append(limits.counted)
        return ProgrammeResult(bound=-1)

    branching = iter([FoundLabels(labels, bound), FoundLabels(None, bound)])
    monkeypatch.setattr(solve, "_branch", lambda *_: next(branching, None))
    monkeypatch.setattr(cpsat, "solve_programme", programmed)
    work = opened(coloured(3, 3, 1))
    assert work is not None
    solve_parts(work, Limits(), None, 3)
    assert asked == [*[1.0, 4.0][:turns], inf]  # tables that only forbid: longer than branching's


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("wide", [2**45, 2**90])
def test_numbers_of_any_size(wide: int) -> None:
    """What divides all costs is divided out; else too large ones leave a bound that is near."""
    for seed in range(60):
        problem = random_problem(seed, nodes=5, wide=wide)
        best, answer = optimum(problem), solve_pbqp(problem)
        assert answer.infeasible == (best is None)
        if best is not None:
            assert answer.bound <= best <= answer.objective <= answer.bound + (wide >> 46)
    work = work_on(stated([[0, 4 * wide], [6 * wide, 0]], [(0, 1, [[0, wide], [0, None]])]))
    assert (solve.divide(work), work.costs) == (wide, [[0, 4], [6, 0]])
    odd = work_on(stated([[0, 4 * wide * wide + 1], [0, 3]]))
    assert solve.divide(odd) * odd.costs[0][1] <= 4 * wide * wide + 1
    assert solve.ROUNDED // 2 <= odd.size() < solve.LARGEST


@pytest.mark.usefixtures("unreduced")
def test_costs_that_no_good_labelling_pays_may_be_of_any_size() -> None:
    """They are forbidden, so that the others fit 64 bits."""
    table = [[3, 10**25, 5], [10**25, 1, 4], [2, 10**30, 10**25]]
    problem = stated([[0, 1, 2**40]] * 3, [(0, 1, table), (1, 2, table), (0, 2, table)])
    answer = solve_pbqp(problem)
    assert answer.objective == answer.bound == optimum(problem)


# Limits, starts and answers


def test_nothing_to_choose() -> None:
    """No nodes cost nothing; one label for each is the only labelling; some are infeasible."""
    assert solve_pbqp(stated([])).objective == 0
    single = solve_pbqp(stated([[4], [-7]], [(0, 1, [[1]])]))
    assert (single.objective, single.status) == (-2, Status.OPTIMAL)
    ring = [(u, (u + 1) % 7, ((None, 0), (0, None))) for u in range(7)]
    for problem in (coloured(3, 2), coloured(5, 4), stated([[0, 0]] * 7, ring)):
        assert solve_pbqp(problem).status is Status.INFEASIBLE
        assert heuristic_pbqp(problem).objective is None
        assert construct(work_on(problem), Limits()) is None


@pytest.mark.parametrize(("nodes", "colours"), [(3, 2), (4, 3)])
def test_nothing_found_in_no_time(nodes: int, colours: int) -> None:
    """Where choices lead into a dead end and there is no time, only a bound is known."""
    answer = solve_pbqp(coloured(nodes, colours, 1), Limits(deadline=0.0))
    assert (answer.status, answer.stopped) == (Status.UNKNOWN, Stopped.TIME_LIMIT)
    assert answer.bound == nodes * (nodes - 1) // 2


@pytest.mark.parametrize("layouts", [2, 4])
def test_no_time_leaves_a_labelling_and_a_bound(layouts: int) -> None:
    """At once out of time, or interrupted, there is an allowed labelling, and a bound below."""
    problem = network("dense", 150, layouts).problem()
    best, interrupted = solve_pbqp(problem).objective, Limits()
    interrupted.interrupt.set()
    for limits, why in (
        (Limits(deadline=0.0), Stopped.TIME_LIMIT),
        (interrupted, Stopped.INTERRUPTED),
    ):
        answer = solve_pbqp(problem, limits)
        assert answer.labelling is not None
        assert answer.objective == problem.cost(answer.labelling)
        assert (answer.bound or 0) <= (best or 0) <= (answer.objective or 0)
        assert answer.stopped is why or answer.status is Status.OPTIMAL
    assert layouts == 2 or answer.status is Status.FEASIBLE


def test_labels_come_before_bounds_in_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time for an ascent that finds labels, and then for a search, there is a labelling."""
    for name, value in (("CELLS", 0), ("MOST_CELLS", 0), ("WRITING", inf)):
        monkeypatch.setattr(solve, name, value, raising=False)
    monkeypatch.setattr(ascent.RowAscent, "run", lambda *_: None)
    answer = solve_pbqp(network("dense", 60, 4).problem(), Limits(deadline=1e12))
    assert (answer.status, answer.stopped) == (Status.FEASIBLE, Stopped.TIME_LIMIT)


@pytest.mark.usefixtures("unreduced")
@pytest.mark.parametrize("looks", [0, 1, 3, 10, 30, 100, 300])
def test_time_is_up_anywhere(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """After so many looks at the limits the labelling is allowed, and the bound is one."""
    left = 0

    def stopped(_: Limits) -> Stopped | None:
        nonlocal left
        left -= 1
        return Stopped.INTERRUPTED if left < 0 else None

    problems = [random_problem(seed) for seed in range(60)]
    cases = [(problem, optimum(problem), opened(problem)) for problem in problems]
    monkeypatch.setattr(Limits, "stopped", property(stopped))
    monkeypatch.setattr(solve, "CELLS", -1)  # dual ascent comes first
    for problem, best, work in cases:
        left = looks
        answer = solve_pbqp(problem, Limits(deadline=1e12))
        assert best is None or answer.bound is None or answer.bound <= best
        assert answer.labelling is None or not problem.fault(answer.labelling)
        left = looks
        labels = None if work is None else construct(work, Limits())
        assert work is None or labels is None or work.value(labels) < inf


def test_interrupts_and_progress() -> None:
    """What is relaxed is told by name; interrupted, a hard problem has a labelling and a bound."""
    phases: list[str] = []
    told = limited(progress=lambda message: phases.append(message.phase))
    solve_pbqp(network("dense", 200, 4).problem(), told)
    assert "relaxation" in phases
    limits = Limits()
    threading.Timer(0.5, limits.interrupt.set).start()
    answer = solve_pbqp(network("tangle", 600, 8, seed=3).problem(), limits)
    assert answer.objective is not None
    assert answer.bound is not None
    assert answer.bound <= answer.objective
    assert answer.status is Status.OPTIMAL or answer.stopped is Stopped.INTERRUPTED


@pytest.mark.parametrize("labels", [None, [2]])
def test_the_start_is_kept_if_nothing_better_is_found(
    monkeypatch: pytest.MonkeyPatch, labels: list[int] | None
) -> None:
    """A search that comes back with a bound alone, or worse labels, leaves the start.

    A bound that a labelling beats is a defect, and so is infeasibility of what is allowed.
    """
    problem, starts = stated([[1, 0, 5]]), list[list[int] | None]()

    def solved(_: Work, __: Limits, start: list[int] | None) -> FoundLabels:
        starts.append(start)
        return FoundLabels(labels, -3)

    monkeypatch.setattr(solve, "solve_parts", solved)
    answer = solve_pbqp(problem, None, np.array([0]))
    assert starts == [[0]]
    assert answer.labelling is not None
    assert (answer.objective, answer.bound, answer.labelling.tolist()) == (1, -3, [0])
    assert answer.stopped is Stopped.SIZE_LIMIT
    assert solve_pbqp(problem, limited(100.0)).stopped is Stopped.TIME_LIMIT
    monkeypatch.setattr(solve, "solve_parts", lambda *_: FoundLabels([1], 1))
    with pytest.raises(InternalError, match="costs 0, less than the bound 1"):
        solve_pbqp(problem)
    monkeypatch.setattr(Network, "fault", lambda *_: "")
    with pytest.raises(InternalError, match="contradicts infeasibility"):
        solve_pbqp(stated([[None]]), None, np.array([0]))


def test_a_start_must_be_allowed() -> None:
    """A forbidden start, or one of the wrong length, is refused; a status needs its proof."""
    problem = stated([[0, None], [0, 0]])
    with refused("labelling to begin with is not allowed: node '0' must not have label"):
        solve_pbqp(problem, None, np.array([1, 0]))
    with refused("as many whole numbers"):
        solve_pbqp(problem, None, np.array([0]))
    answers = [CostAnswer(objective=3, bound=b) for b in (3, 2)] + [CostAnswer(bound=2)]
    assert [a.status for a in answers] == [Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN]
    assert CostAnswer(infeasible=True).status is Status.INFEASIBLE


# Labellings without proof


def test_constructed_labellings() -> None:
    """On 300 random problems they are allowed, and nearly always the best; wishes come true.

    The node of most neighbours gets what it wishes; without wishes, what costs it least.
    """
    best_ones = found = 0
    for seed in range(300):
        problem = random_problem(seed)
        best, work = optimum(problem), opened(problem)
        labels = None if work is None else construct(work, Limits())
        if work is not None and labels is not None:
            assert best is not None
            assert best <= work.value(labels) < inf
            best_ones += work.value(labels) == best
            found += 1
    assert found > 150
    assert best_ones > 0.8 * found
    table = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    work = work_on(stated([[0, 9, 9]] * 3, [(0, 1, table), (1, 2, table)]))
    wished, free = construct(work, Limits(), [{}, {2: 0.6, 0: 0.4}, {}]), construct(work, Limits())
    assert wished is not None
    assert free is not None
    assert (wished[1], work.value(wished), work.value(free)) == (2, 9, 2)
