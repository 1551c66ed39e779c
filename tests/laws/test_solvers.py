"""What every registered solver of labelling problems and of tables promises, on every case."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from benchmarks.pbqp import network
from benchmarks.traps import TRAPS
from layoutopt.base.entries import ENTRIES, Entry, Takes, entries, load
from layoutopt.base.limits import Limits, Progress, Stopped
from layoutopt.base.result import Status
from layoutopt.network import Network
from layoutopt.network.problem import IntArray, Labelling, Precedence, exact_integers, split
from layoutopt.unwinding import unwind
from tests.network import oracle
from tests.network.costs import cases as tables
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

SOLVERS = [e for e in ENTRIES.values() if e.takes in (Takes.LABELLING, Takes.TABLES)]

every = pytest.mark.parametrize("entry", SOLVERS, ids=lambda e: f"{e.name}, {e.takes}")
labelled = pytest.mark.parametrize("entry", entries(Takes.LABELLING).values(), ids=lambda e: e.name)
exact = pytest.mark.parametrize("entry", [e for e in SOLVERS if e.proves], ids=lambda e: e.name)
heuristics = pytest.mark.parametrize(
    "entry", entries(Takes.LABELLING, proves=False).values(), ids=lambda e: e.name
)

IMPROVING = ("refined", "alpha-expansion")
"""Heuristics whose answer is worth at least as much as their start."""


def mixture(seed: int, nodes: int = 5) -> Labelling:
    """Return a random problem; of 24 in a row each mixture of signs and rules is one."""
    return random_problem(
        seed,
        nodes,
        negative=seed % 2 == 0,
        bans=seed % 3 == 0,
        barriers=(0, 2, 3, 4)[seed // 2 % 4],
        wide=10**30 if seed % 7 == 0 else 1,
    )


@cache
def drawn(takes: Takes, seed: int) -> tuple[Any, int | None]:
    """Return a random problem and its optimum, ``None`` where nothing is allowed."""
    if takes is Takes.LABELLING:
        problem = mixture(seed)
        return problem, optimum(problem)
    nodes, labels, wide = ((10, 2, 1), (8, 4, 1), (9, 3, 1), (7, 4, 2**45))[seed % 4]
    given = tables.random_problem(seed, nodes, labels, wide)
    return given, oracle.best(given)


def large(takes: Takes, seed: int = 2) -> Any:
    """Return a problem that takes a moment."""
    if takes is Takes.LABELLING:
        return hard_problem(seed, 60, 12, negative=True)
    return network("dense", 150, 2 + 2 * (seed % 2)).problem()


def begun(problem: Any, seed: int) -> IntArray | None:
    """Return a labelling to begin with, against all rules if need be; ``None`` for tables."""
    if isinstance(problem, Network):
        return None
    return random_labels(replace(problem, banned=problem.banned[:0]), seed)


def sound(entry: Entry, problem: Any, result: Any, best: int | None = None) -> int | None:
    """Return the value of an answer, after checking all that it claims.

    Parameters
    ----------
    best
        The optimum, if it is known.
    """
    sign = 1 if isinstance(problem, Labelling) else -1
    value: int | None = None
    if result.labelling is not None:
        labels = result.labelling
        if isinstance(problem, Network):
            value = tables.cost(problem, labels)
        elif allowed(problem, labels.tolist()):
            value = worth(problem, labels.tolist())
        assert value is not None
    assert result.objective == value
    if result.bound is not None:
        assert value is None or sign * value <= sign * result.bound
        assert best is None or sign * best <= sign * result.bound
    assert (result.status is Status.OPTIMAL) == (value is not None and value == result.bound)
    assert best is None or value is None or sign * value <= sign * best
    if entry.takes is Takes.LABELLING and not entry.proves:
        assert result.bound is None
    return value


@every
def test_random_problems(entry: Entry) -> None:
    """Exact solvers prove optima, or that nothing is allowed; heuristics never exceed them.

    Whatever they begin with.  Where numbers are too large for a solver, it says so.
    """
    count = 32 if entry.takes is Takes.LABELLING else 300
    reached = ordered = infeasible = lacking = 0
    for seed in range(count):
        problem, best = drawn(entry.takes, seed)
        starts = (None, begun(problem, seed))
        for start in starts[seed % 2 :: 2] if entry.proves else starts:
            result = entry.load()(problem, Limits(seed=seed), start)
            value = sound(entry, problem, result, best)
            if best is None:
                assert value is None
                assert not entry.proves or result.status is Status.INFEASIBLE
                infeasible += result.status is Status.INFEASIBLE
                continue
            assert result.status is not Status.INFEASIBLE
            if entry.proves and result.status is not Status.OPTIMAL:
                assert result.stopped is Stopped.SIZE_LIMIT
                lacking += 1
            reached += value == best
            ordered += value == best and getattr(problem, "precedence", None) is not None
    if entry.takes is Takes.TABLES:
        assert infeasible > 30
        assert reached + infeasible == count if entry.proves else reached > 360
    else:
        assert lacking < 6 or entry.name in ("cpsat", "mip")
        assert reached + lacking >= count if entry.proves else reached > 36
        assert ordered > 18 if entry.proves else ordered > 25


TABLES = Path(__file__).parents[1] / "cases"

CASES: list[dict[str, Any]] = tomllib.loads((TABLES / "labellings.toml").read_text())["case"]


def stated(case: dict[str, Any]) -> Labelling:
    """Return the problem of a case."""
    edges: Edges = {(u, v): w for u, v, w in case.get("edges", ())}
    wishes: Edges = {(u, label): r for u, label, r in case.get("wishes", ())}
    rule = None
    if "order" in case:
        given = case["order"]
        readers = [tuple(read) for read in given["readers"]]
        sets = list(dict.fromkeys([(), *readers]))
        rule = Precedence(
            given["barriers"],
            np.array(given.get("arcs", ()), np.int64).reshape(-1, 2),
            np.array(given["offered"], np.int64),
            tuple(sets),
            np.array([sets.index(read) for read in readers], np.int64),
        )
    banned = [(u, label) for u, label in case.get("banned", ())]
    return labelling(case["nodes"], case["labels"], edges, wishes, banned, rule)


@labelled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cases_by_hand(entry: Entry, case: dict[str, Any]) -> None:
    """Each solver finds what is known by hand; nobody is told of more on the way."""
    problem, heard = stated(case), list[Progress]()
    result = entry.load()(problem, Limits(tell=heard.append), None)
    value = sound(entry, problem, result, case["optimum"])
    assert (value == case["optimum"]) == (entry.name not in case.get("missed", ()))
    assert all(m.objective is None or m.objective <= case["optimum"] for m in heard)


@every
def test_no_time(entry: Entry) -> None:
    """Without time there is a legal labelling or none, a bound that holds, and the reason."""
    for seed in range(48):
        problem, best = drawn(entry.takes, seed)
        result = entry.load()(problem, Limits(deadline=time.monotonic()), begun(problem, seed))
        value = sound(entry, problem, result, best)
        assert not entry.proves or result.bound is not None or best is None
        if entry.name not in ("cpsat", "mip") and entry.takes is Takes.LABELLING:
            assert value is not None
        if result.status in (Status.FEASIBLE, Status.UNKNOWN) and entry.name != "pbqp":
            assert result.stopped in (Stopped.TIME_LIMIT, Stopped.SIZE_LIMIT)


@labelled
def test_no_time_and_a_start_that_is_banned(entry: Entry) -> None:
    """A labelling to begin with that must not be taken is no answer, whatever time there is."""
    problem = hard_problem(2, 60, 12)
    start = np.arange(60) % 12
    problem = replace(problem, banned=np.column_stack([np.arange(60), start])[::2])
    for deadline in (time.monotonic(), time.monotonic() + 0.2):
        sound(entry, problem, entry.load()(problem, Limits(deadline=deadline), start))


class Later(Event):
    """An interrupt that comes after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def is_set(self) -> bool:
        """Return whether there were so many looks."""
        self.looks -= 1
        return self.looks < 0


@every
@pytest.mark.parametrize("looks", [0, 1, 10])
def test_interrupt(entry: Entry, looks: int) -> None:
    """Interrupted at any time, there is an answer, and no more than a few looks are taken."""
    interrupt = Later(looks)
    for seed in (2, 3):
        problem = large(entry.takes, seed)
        result = entry.load()(problem, Limits(interrupt=interrupt), None)
        sound(entry, problem, result)
        if result.status is not Status.OPTIMAL and entry.name != "pbqp":
            assert result.stopped is Stopped.INTERRUPTED
    assert interrupt.looks > -200


@every
def test_equal_seeds_give_equal_answers(entry: Entry) -> None:
    """Two runs agree; where chance has a say in every answer, another seed does not."""
    answers = set()
    if entry.takes is Takes.TABLES:
        problem = network("dense", 60, 4).problem()
    else:
        problem = hard_problem(3, 14, 3) if entry.proves else hard_problem(1, 40, 5, negative=True)
    for seed in range(1 if entry.proves else 4):
        one, two = (entry.load()(problem, Limits(seed=seed), None) for _ in range(2))
        assert one.labelling.tolist() == two.labelling.tolist()
        assert (one.objective, one.bound) == (two.objective, two.bound)
        answers.add(tuple(one.labelling.tolist()))
    if entry.takes is Takes.LABELLING and not entry.proves:
        assert (len(answers) > 1) == (entry.name in ("rounded", "random-greedy"))


@labelled
def test_wide_numbers_change_nothing(entry: Entry) -> None:
    """A factor beyond 64 bits changes no heuristic's labels and no bound but by that factor."""
    factor, told = 10**30, 0
    for seed in range(12):
        problem = random_problem(seed, 7, negative=seed % 2 == 0, barriers=seed % 3)
        wide = replace(
            problem,
            weights=exact_integers([w * factor for w in problem.weights.tolist()]),
            rewards=exact_integers([r * factor for r in problem.rewards.tolist()]),
        )
        one, two = (entry.load()(p, Limits(), None) for p in (problem, wide))
        if two.labelling is None:
            assert (entry.name, two.stopped) == ("cpsat", Stopped.SIZE_LIMIT)
            assert two.bound >= one.bound * factor
            continue
        told += 1
        assert two.objective == int(one.objective) * factor
        assert entry.proves or one.labelling.tolist() == two.labelling.tolist()
        assert one.bound is None or two.bound == one.bound * factor
    assert told > 9 or entry.name == "cpsat"


@labelled
def test_labels_are_known_where_they_are_used(entry: Entry) -> None:
    """A component uses labels that earn it something, and fresh ones of its own nodes."""
    fresh = 0
    for seed in range(24):
        problem = mixture(seed, 4)
        labels = entry.load()(problem, Limits(), random_labels(problem, seed)).labelling
        if labels is None:
            continue
        parts = split(replace(problem, precedence=None))
        for nodes, known in zip(parts.nodes, parts.labels, strict=True):
            own = {*known.tolist(), *(problem.labels + nodes).tolist()}
            assert set(labels[nodes].tolist()) <= own
        fresh += bool((labels >= problem.labels).any())
    assert fresh > 5


def test_tables_keep_an_optimal_start() -> None:
    """Without time an optimal labelling to begin with is the answer."""
    solve = load("auto", Takes.TABLES)
    for seed in (2, 3):
        problem = large(Takes.TABLES, seed)
        best = solve(problem)
        assert best.status is Status.OPTIMAL
        assert solve(problem, Limits(deadline=0.0), best.labelling).objective == best.objective
        assert solve(problem, None, best.labelling).status is Status.OPTIMAL


@pytest.mark.parametrize("name", IMPROVING)
def test_never_worse_than_the_start(name: str) -> None:
    """If the start keeps to all rules, the answer is worth at least as much, without time, too."""
    entry = ENTRIES[name, Takes.LABELLING]
    better = kept = 0
    for seed in range(84):
        problem = mixture(seed)
        start = random_labels(problem, seed)
        if not allowed(problem, start.tolist()):
            continue
        kept += problem.precedence is not None
        for deadline in (float("inf"), time.monotonic()):
            value = sound(entry, problem, entry.load()(problem, Limits(deadline), start))
            assert value is not None
            assert value >= worth(problem, start.tolist())
            better += value > worth(problem, start.tolist())
    assert better > 42
    assert kept > 14


STARTS = tomllib.loads((TABLES / "starts.toml").read_text())["case"]


@pytest.mark.parametrize("name", IMPROVING)
@pytest.mark.parametrize("case", STARTS, ids=lambda case: case["name"])
def test_starts_decide_the_order(name: str, case: dict[str, Any]) -> None:
    """A start that is in order is improved in that order; of wishes it keeps the one it has."""
    result = load(name, Takes.LABELLING)(stated(case), Limits(), np.array(case["start"]))
    assert result.objective == case["best"]
    assert "wish" not in case["name"] or result.labelling.tolist() == case["start"]


@every
def test_messages(entry: Entry) -> None:
    """No message promises more than can be had, or less than is proved."""
    sign = 1 if entry.takes is Takes.LABELLING else -1
    problems: Iterator[Any] = (drawn(entry.takes, seed)[0] for seed in range(24))
    for problem in problems:
        heard: list[Progress] = []
        result = entry.load()(problem, Limits(tell=heard.append), None)
        value = sound(entry, problem, result)
        if value is None:
            continue
        known = [m for m in heard if m.objective is not None]
        assert all(sign * (m.objective or 0) <= sign * value for m in known)
        told = [m.bound for m in heard if m.bound is not None]
        assert not told or entry.proves
        if result.bound is not None:
            assert all(sign * bound >= sign * value for bound in told)


@exact
def test_gap(entry: Entry) -> None:
    """With a gap allowed the answer may be worse, but by no more than that."""
    if entry.takes is Takes.TABLES:
        return
    for seed in range(3):
        problem = hard_problem(seed, 10, 3, negative=True)
        result = entry.load()(problem, Limits(gap=0.2), None)
        best = load("auto", Takes.LABELLING)(problem, Limits(), None).objective
        assert result.objective <= best <= result.bound
        assert result.bound - result.objective <= 0.2 * result.objective + 1e-6


@heuristics
@pytest.mark.parametrize("trap", TRAPS)
def test_traps_of_greedy0(entry: Entry, trap: str) -> None:
    """Every heuristic solves every trap: a labelling problem adds up what greedy0 does not."""
    graph = TRAPS[trap]()
    found, greedy = unwind(graph, entry.name), unwind(graph, "greedy0")
    assert found.score is not None
    assert greedy.score is not None
    assert found.score == proved(graph).score
    assert found.score > greedy.score
