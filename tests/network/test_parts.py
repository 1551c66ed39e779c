"""Problems without order rules: every path from a problem to its proved optimum."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layoutopt.base.entries import Takes, load
from layoutopt.base.errors import SolverError
from layoutopt.base.limits import Limits, Progress, Stopped
from layoutopt.base.result import Result, Status
from layoutopt.network import elimination, parts
from layoutopt.network.contraction import contract
from layoutopt.network.parts import (
    _searched,
    left_over,
    simple_answer,
    solve,
    solve_part,
    solve_parts,
)
from layoutopt.network.problem import Labelling
from layoutopt.network.solvers import relaxation
from layoutopt.network.solvers.relaxation import (
    Ascent,
    _restored,
    begin,
    branch,
    field_of,
    share_columns,
)
from tests.support import (
    Edges,
    allowed,
    beside,
    hard_problem,
    labelling,
    optimum,
    random_labels,
    random_problem,
    swap_solver,
    worth,
)

Used = Counter[str]


def held(problem: Labelling, result: Result, best: int, heard: list[Progress]) -> None:
    """Check that an answer is legal, and that the optimum is between all pairs of numbers."""
    assert allowed(problem, result.labelling.tolist())
    assert result.objective == worth(problem, result.labelling.tolist())
    assert result.objective <= best <= (result.bound or 0)
    assert (result.stopped is Stopped.FINISHED) == (result.objective == result.bound)
    assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)


def test_local_search_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where reductions take all the time, or a part is too large for bounds, its answer is there.

    Up to a number of nodes this needs a part that reductions leave.
    """
    large, small = hard_problem(1, 300, 5), hard_problem(1, 60, 5)
    least = [load("refined", Takes.LABELLING)(x, Limits()).objective for x in (large, small)]
    monkeypatch.setattr(parts, "field_of", lambda *_: None)
    assert int(solve(small, Limits()).objective or 0) >= int(least[1] or 0) > 0

    def slow(problem: Labelling, limits: Limits) -> Any:
        while not limits.over:
            time.sleep(0.01)
        return contract(problem, limits)

    monkeypatch.setattr(parts, "contract", slow)
    found = solve(large, Limits().within(2))
    assert int(found.objective or 0) >= int(least[0] or 0) > 0


def times(problem: Labelling, factor: int) -> Labelling:
    """Return a problem with all numbers multiplied."""
    return replace(problem, weights=problem.weights * factor, rewards=problem.rewards * factor)


def watch(patch: pytest.MonkeyPatch, name: str, used: Used) -> None:
    """Count the calls of a function of the module."""
    original: Callable[..., Any] = getattr(parts, name)

    def watched(*given: Any) -> Any:
        used[name] += 1
        return original(*given)

    patch.setattr(parts, name, watched)


def alone(patch: pytest.MonkeyPatch, search: str, used: Used) -> None:
    """Leave what branching leaves open to one search."""
    solve = load(search, Takes.LABELLING)

    def counted(*given: Any) -> Result:
        used[search] += 1
        found: Result = solve(*given)
        return found

    patch.setattr(parts, "branch", lambda ascent: ascent.bound)
    for name in ("cpsat", "mip"):
        swap_solver(patch, name, counted if name == search else lambda *_: Result())


def short_turns(patch: pytest.MonkeyPatch, used: Used) -> None:
    """Let the first turns of all searches be too short."""

    def counted(ascent: Ascent) -> int:
        used["branch"] += 1
        return branch(ascent) if used["branch"] % 3 == 0 else ascent.bound

    patch.setattr(parts, "TURN", 1e-4)
    patch.setattr(parts, "COLUMNS_LIMIT", 0)
    patch.setattr(parts, "branch", counted)


PATHS: dict[str, Callable[[pytest.MonkeyPatch, Used], None]] = {
    "bounds and search": lambda patch, used: watch(patch, "begin", used),
    "cpsat": lambda patch, used: alone(patch, "cpsat", used),
    "mip": lambda patch, used: alone(patch, "mip", used),
    "short turns": short_turns,
}
"""What is left where easier ways are barred; dynamic programming is barred for all."""


@pytest.mark.parametrize("path", PATHS)
def test_every_path_ends_with_a_proof(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On random problems the optimum is proved, no message contradicts it, no start is lost.

    Numbers beyond 64 bits are rounded to 2^40, which makes a bound too high, and never too low.
    """
    used = Used()
    PATHS[path](monkeypatch, used)
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    rounded = 0
    for seed in range(0, 84, 2):
        wide = {0: 10**30, 4: 2**56 + 1}.get(seed % 14, 1) if path == "bounds and search" else 1
        problem = random_problem(seed, 6, negative=True, bans=seed % 3 == 0, wide=wide)
        problem = times(problem, 7) if seed % 4 and wide == 1 else problem
        heard: list[Progress] = []
        start = random_labels(problem, seed) if seed % 3 else None
        result = solve_parts(problem, Limits(tell=heard.append), start)
        best = optimum(problem)
        held(problem, result, best, heard)
        if result.objective != result.bound:
            rounded += 1
            assert wide > 1
            assert result.stopped is Stopped.SIZE_LIMIT
            assert (result.bound or 0) - best <= 1e-9 * problem.total()
        else:
            assert result.status is Status.OPTIMAL
        if start is not None:
            late = solve_parts(problem, Limits(deadline=time.monotonic()), start)
            assert problem.value(start) <= (late.objective or 0) <= best <= (late.bound or 0)
    assert sum(used.values()) > 3
    assert (rounded > 1) == (path == "bounds and search")


def test_turns_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast the clock runs, as many turns lead to the same labels, stopped or not."""
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    monkeypatch.setattr(parts, "TURN", 1e-3)

    def climbs(problem: Labelling) -> bool:
        fields = [field_of(part) for part in left_over(problem)]
        return all(f is not None and begin(f, Limits()).climb(np.arange(f.nodes)) for f in fields)

    problems = (random_problem(seed, 6, negative=True) for seed in range(400))
    problem = next(p for p in problems if left_over(p) and not climbs(p))
    found = []
    for step in (0.0, 1000.0):
        turns: list[float] = []

        def counted(ascent: Ascent, turns: list[float] = turns) -> int:
            bound = branch(ascent)
            turns.append(ascent.limits.counted)
            return bound

        clock = itertools.count()
        with monkeypatch.context() as patch:
            patch.setattr(parts, "branch", counted)
            patch.setattr(time, "monotonic", lambda s=step, c=clock: s * next(c))
            result = solve_parts(problem, Limits(), None)
        found.append((result.labelling.tolist(), result.bound, turns))
    assert found[0] == found[1]
    assert found[0][2]


def test_gaps_of_parts_add_up_to_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that stop at a gap make a whole within the gap, debts and constants included."""
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    stopped = 0
    for seed in range(4):
        one, two = (hard_problem(2 * seed + i, 16, 4, negative=True) for i in (0, 1))
        for debt in (0, 200):
            result = solve_parts(beside(one, two), Limits(gap=0.3, debt=debt))
            score, bound = result.objective or 0, result.bound or 0
            assert bound - score <= max(0, 0.3 * (score - debt))
            stopped += bound > score
            assert bound == score or result.stopped is Stopped.GAP_LIMIT
    assert stopped > 2


def test_no_time_and_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The given labelling and all that can be earned; where no table fits, size is the limit.

    What reductions leave cannot be closed by them again.
    """
    problem = labelling(2, 2, {(0, 1): -5}, {(0, 0): 3, (0, 1): 4, (1, 0): -2})
    result = simple_answer(problem, Limits(deadline=0.0), np.array([0, 3]))
    assert (result.objective, result.bound, result.stopped) == (3, 4, Stopped.TIME_LIMIT)
    result = solve_parts(hard_problem(0, 100, 5, negative=True), Limits(deadline=time.monotonic()))
    assert result.stopped is Stopped.TIME_LIMIT
    assert (result.objective or 0) < (result.bound or 0)
    assert left_over(hard_problem(0, 30, 2)) == []
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    large = hard_problem(0, 30, 5, negative=True)
    [part] = left_over(large)
    assert 0 < part.nodes <= 30
    assert [again.nodes for again in left_over(part)] == [part.nodes]
    monkeypatch.setattr(parts, "field_of", lambda *_: None)
    result = solve_parts(large, Limits())
    assert (result.stopped, result.status) == (Stopped.SIZE_LIMIT, Status.FEASIBLE)


@pytest.mark.parametrize("error", [SolverError("it failed"), MemoryError()])
def test_a_failing_search_costs_nothing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Bound and labelling stay as they were; all limits know if memory is full."""
    part, limits = random_problem(3, nodes=6, labels=3), Limits()
    field = field_of(part)
    assert field is not None
    ascent = begin(field, Limits(), None)
    before = ascent.value, ascent.labels.tolist()

    def fail(*_: object) -> Result:
        raise error

    swap_solver(monkeypatch, "mip", fail)
    assert _searched("mip", part, ascent, 99, limits) == 99
    assert (ascent.value, ascent.labels.tolist()) == before
    full = isinstance(error, MemoryError)
    assert limits.stopped is (Stopped.MEMORY_LIMIT if full else None)


def test_memory_that_runs_out_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that memory runs out on keeps what it began with, and the whole says why."""
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    hard = hard_problem(0, 30, 5, negative=True)
    both = beside(hard, labelling(2, 2, {(0, 1): 4}, {(0, 0): 3, (1, 1): 2}))

    def eats(*_given: object) -> Result:
        raise MemoryError

    monkeypatch.setattr(parts, "_closed", eats)
    start, limits = random_labels(hard, 1), Limits()
    fresh = np.where(start < hard.labels, start, start + 2)
    result = solve_parts(both, limits, np.append(fresh, [37, 38]))
    assert result.stopped is limits.stopped is Stopped.MEMORY_LIMIT
    assert hard.value(start) + 7 <= (result.objective or 0) <= (result.bound or 0)
    assert result.objective == worth(both, result.labelling.tolist())


# Shared columns


def fresh(problem: Labelling) -> np.ndarray:
    """Return the labelling that gives each node its own fresh label."""
    return problem.labels + np.arange(problem.nodes)


def ring(nodes: int) -> Labelling:
    """Return a ring of edges of 2 in which each node has a label of its own, worth 3, 4 or 5."""
    edges = {(u, (u + 1) % nodes): 2 for u in range(nodes)}
    return labelling(nodes, nodes, edges, {(u, u): 3 + (u % 3) for u in range(nodes)})


def sparse(seed: int, nodes: int = 5) -> Labelling:
    """Return a tree with an edge or two on top, and a label of its own for most nodes."""
    draw = random.Random(seed)
    edges: Edges = {(draw.randrange(v), v): draw.randint(1, 9) for v in range(1, nodes)}
    edges[0, nodes - 1] = draw.randint(1, 9)
    rewards = {(u, draw.choice([u, u, u, 0])): draw.randint(1, 9) for u in range(nodes)}
    return labelling(nodes, nodes, edges, rewards)


@pytest.mark.parametrize("idle", [False, True])
def test_shared_columns_bound(monkeypatch: pytest.MonkeyPatch, idle: bool) -> None:
    """The optimum is between their two numbers, and often both; what follows goes on from there."""
    monkeypatch.setattr(relaxation, "MANY", 1)
    monkeypatch.setattr(relaxation, "DISTANCES", (0, 1, 2))
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    if idle:
        monkeypatch.setattr(parts, "_in_units", simple_answer)
    closed = 0
    for seed in range(15):
        problem, heard = sparse(seed), list[Progress]()
        best = optimum(problem)
        found = share_columns(problem, Limits(tell=heard.append), fresh(problem))
        assert found is not None
        held(problem, found, best, heard)
        closed += found.objective == found.bound
        result = solve_part(problem, Limits(), fresh(problem))
        held(problem, result, best, [])
        if idle:
            assert (result.objective, result.bound) == (found.objective, found.bound)
        else:
            assert (result.objective, result.bound) == (best, best)
    assert 2 < closed < 14


def test_where_columns_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few labels, negative numbers, bans and wide ones are left to others.

    Without time, and where labels meet everywhere or are too many to compare, the given labelling
    comes back.
    """
    assert share_columns(ring(63), Limits(), fresh(ring(63))) is None
    late = share_columns(ring(300), Limits(deadline=time.monotonic()), fresh(ring(300)))
    assert late is not None
    assert (late.objective, late.bound) == (0, ring(300).total())
    assert late.stopped is Stopped.TIME_LIMIT
    edges = {(u, u + 1): 5 for u in range(69)} | {(0, 69): 5}
    labels = {(u, label): 1 + label % 3 for u in range(70) for label in range(70)}
    dense = labelling(70, 70, edges, labels)
    for conflicts, given in ((10, dense), (10, ring(300)), (10**6, dense)):
        monkeypatch.setattr(relaxation, "CONFLICTS_LIMIT", conflicts)
        result = share_columns(given, Limits(), fresh(given))
        assert result is not None
        assert result.labelling.tolist() == fresh(given).tolist()
        assert (result.bound, result.objective) == (given.total(), 0)
    monkeypatch.setattr(relaxation, "MANY", 1)
    aside = 0
    for seed in range(100):
        wide = 10**30 if seed % 4 == 3 else 1
        problem = random_problem(seed, wide=wide, negative=seed % 4 == 1, bans=seed % 4 == 2)
        numbers = [*problem.weights.tolist(), *problem.rewards.tolist()]
        if len(problem.banned) or min(numbers, default=0) < 0 or max(numbers, default=0) > 99:
            assert share_columns(problem, Limits(), fresh(problem)) is None
            aside += 1
    assert aside > 45


def test_shared_columns_by_hand() -> None:
    """In a ring all keep their own label; of a column's labels a piece takes its best.

    To give one up costs at least 3 and gains at most 2, or 4 for a whole piece that joins both
    its neighbours, which then lose 3 more.
    """
    result = share_columns(ring(300), Limits(), fresh(ring(300)))
    assert result is not None
    assert (result.objective, result.bound) == (1200, 1200)
    assert result.labelling.tolist() == list(range(300))
    for one, two in ((1, 5), (5, 1)):
        rewards = {(0, 0): one, (2, 1): two, (3, 2): 9}
        path = labelling(4, 3, {(0, 1): 1, (1, 2): 1, (2, 3): 1}, rewards)
        column = np.array([0, 0, 1])
        assert _restored(path, column, np.array([0, 0, 0, 0])).tolist() == [int(two > one)] * 4
        assert _restored(path, column, np.array([1, 1, 0, 1])).tolist() == [3, 3, 1, 2]
