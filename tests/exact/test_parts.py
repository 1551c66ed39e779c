"""Problems without order rules: every path from a problem to its proved optimum."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from layoutopt.base.entries import Takes, load
from layoutopt.base.errors import SolverError
from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Result, Status, Stopped
from layoutopt.network import elimination
from layoutopt.network import parts as parts_module
from layoutopt.network.contraction import contract
from layoutopt.network.cuts import isolating_cuts
from layoutopt.network.parts import (
    Tracker,
    _searched,
    branch,
    left_over,
    simple_answer,
    solve_part,
    solve_parts,
)
from layoutopt.network.problem import Labelling, split
from layoutopt.network.solvers.formulation import by_cpsat, by_highs
from layoutopt.network.solvers.relaxation import Ascent, begin, field_of
from tests.support import (
    allowed,
    hard_problem,
    labelling,
    optimum,
    random_labels,
    random_problem,
    swap_solver,
    worth,
)


def proved(problem: Labelling, limits: Limits | None = None) -> Result:
    """Return a result after comparing it with the optimum of all labellings."""
    best = optimum(problem)
    result = solve_parts(problem, limits or Limits())
    assert (result.objective, result.bound) == (best, best)
    assert result.status is Status.OPTIMAL
    assert result.stopped is Stopped.FINISHED
    assert worth(problem, result.labelling.tolist()) == best
    assert allowed(problem, result.labelling.tolist())
    return result


def times(problem: Labelling, factor: int) -> Labelling:
    """Return a problem with all numbers multiplied."""
    return replace(problem, weights=problem.weights * factor, rewards=problem.rewards * factor)


def signed(seed: int) -> Labelling:
    """Return a random problem with negative numbers."""
    return random_problem(seed, 6, negative=True)


def climbs(problem: Labelling) -> bool:
    """Return whether message passing alone proves what reductions leave."""
    fields = [field_of(part) for part in left_over(problem)]
    return all(f is not None and begin(f, Limits()).climb(np.arange(f.nodes)) for f in fields)


@pytest.fixture
def tables_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dynamic programming refuse everything, so that the search behind it is needed."""
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)


def test_random_problems() -> None:
    """400 random problems of all kinds, numbers beyond 64 bits included."""
    for seed in range(400):
        wide = {0: 10**30, 1: 2**58}.get(seed % 5, 1)
        proved(random_problem(seed, 6, negative=seed % 2 == 0, bans=seed % 3 == 0, wide=wide))


@pytest.mark.usefixtures("tables_are_small")
class TestSearch:
    """What is left to bounds and search."""

    def test_random_problems(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without dynamic programming the optimum is proved all the same."""
        closed: list[int] = []
        original = parts_module.begin

        def watched(*given: object) -> object:
            closed.append(1)
            return original(*given)

        monkeypatch.setattr(parts_module, "begin", watched)
        for seed in range(0, 200, 2):
            problem = random_problem(seed, 6, negative=True, bans=seed % 3 == 0)
            proved(times(problem, 7) if seed % 4 else problem)
        assert len(closed) > 12

    def test_turns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """When the first turns of all searches are too short, longer ones follow."""
        turns: list[int] = []

        def counted(ascent: Ascent) -> int:
            turns.append(1)
            return ascent.bound if len(turns) < 3 else branch(ascent)

        monkeypatch.setattr(parts_module, "TURN", 1e-4)
        monkeypatch.setattr(parts_module, "COLUMNS_LIMIT", 0)
        monkeypatch.setattr(parts_module, "branch", counted)
        problem = next(p for p in map(signed, range(400)) if left_over(p) and not climbs(p))
        proved(problem)
        assert len(turns) >= 3

    def test_turns_are_not_measured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However fast the clock runs, as many turns lead to the same labels, stopped or not."""
        problem = next(p for p in map(signed, range(400)) if left_over(p) and not climbs(p))
        monkeypatch.setattr(parts_module, "TURN", 1e-3)
        found = []
        for step in (0.0, 1000.0):
            turns: list[float] = []

            def counted(ascent: Ascent, turns: list[float] = turns) -> int:
                bound = branch(ascent)
                turns.append(ascent.limits.counted)
                return bound

            clock = itertools.count()
            with monkeypatch.context() as patch:
                patch.setattr(parts_module, "branch", counted)
                patch.setattr(time, "monotonic", lambda s=step, c=clock: s * next(c))
                result = solve_parts(problem, Limits(), None)
            found.append((result.labelling.tolist(), result.bound, turns))
        assert found[0] == found[1]
        assert found[0][2]

    @pytest.mark.parametrize("search", [by_cpsat, by_highs], ids=["cpsat", "mip"])
    def test_each_search_alone(
        self, monkeypatch: pytest.MonkeyPatch, search: Callable[..., Result]
    ) -> None:
        """Branching that finds nothing leaves it to CP-SAT, and CP-SAT to HiGHS."""
        searched: list[int] = []

        def counted(*given: object) -> Result:
            searched.append(1)
            return search(*given)

        def idle(*_given: object) -> Result:
            return Result()

        monkeypatch.setattr(parts_module, "branch", lambda ascent: ascent.bound)
        for name in ("cpsat", "mip"):
            swap_solver(
                monkeypatch, name, counted if load(name, Takes.LABELLING) is search else idle
            )
        for seed in range(0, 180, 2):
            proved(random_problem(seed, 6, negative=True))
        assert len(searched) > 3

    def test_numbers_too_large_for_floats(self) -> None:
        """Rounded to 2^40, the bound is a little too high, and never too low."""
        rounded = 0
        for seed in range(0, 160, 2):
            wide = 10**30 if seed % 4 else 2**56 + 1
            problem = random_problem(seed, 6, negative=True, wide=wide)
            heard: list[Progress] = []
            result = solve_parts(problem, Limits(tell=heard.append))
            best = optimum(problem)
            assert result.objective is not None
            assert result.bound is not None
            assert result.objective == worth(problem, result.labelling.tolist())
            assert result.objective <= best <= result.bound
            assert result.bound - result.objective <= 1e-9 * max(problem.total(), 1)
            if result.bound > result.objective:
                rounded += 1
                assert result.stopped is Stopped.SIZE_LIMIT
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        assert rounded > 5

    def test_messages(self) -> None:
        """Every message holds the optimum of the whole between its two numbers."""
        count = 0
        for seed in range(150):
            problem = random_problem(seed, 6, negative=seed % 3 > 0, bans=seed % 2 == 0)
            problem = times(problem, 1 + seed % 4)
            heard: list[Progress] = []
            best = proved(problem, Limits(tell=heard.append)).objective or 0
            for message in heard:
                count += 1
                assert message.objective is not None
                assert message.bound is not None
                assert message.objective <= best <= message.bound, (seed, message)
        assert count > 50

    def test_messages_after_cuts(self) -> None:
        """The same for larger parts, of which isolating cuts decide a part."""
        decided = 0
        for seed, nodes in [(13, 30), (26, 30), (41, 30), (13, 60), (58, 60)]:
            problem = hard_problem(seed, nodes, 3)
            [part] = split(contract(problem).problem).parts
            decided += isolating_cuts(part).constant
            heard: list[Progress] = []
            result = solve_parts(problem, Limits(tell=heard.append))
            best = by_highs(problem, Limits(), None).objective
            assert result.objective == result.bound == best
            assert heard
            assert all((m.objective or 0) <= (best or 0) <= (m.bound or 0) for m in heard)
        assert decided > 100

    def test_starts(self) -> None:
        """A labelling to begin with is answered at least, even without any time."""
        for seed in range(100):
            problem = random_problem(seed, 6, negative=seed % 2 == 0)
            start = random_labels(problem, seed)
            for limits in (Limits(), Limits(deadline=time.monotonic())):
                result = solve_parts(problem, limits, start)
                assert result.objective is not None
                assert result.bound is not None
                assert problem.value(start) <= result.objective <= optimum(problem) <= result.bound

    def test_gaps_of_parts_add_up_to_less(self) -> None:
        """Parts that stop at a gap make a whole within the gap, debts and constants included."""
        stopped = 0
        for seed in range(12):
            halves = [hard_problem(2 * seed + i, 16, 4, negative=True) for i in (0, 1)]
            one, two = halves
            both = Labelling(
                one.nodes + two.nodes,
                6,
                np.concatenate([one.edges, two.edges + one.nodes]),
                np.concatenate([one.weights, two.weights]),
                np.concatenate([one.reward_at, two.reward_at + (one.nodes, 0)]),
                np.concatenate([one.rewards, two.rewards]),
            )
            for debt in (0, 200):
                result = solve_parts(both, Limits(gap=0.3, debt=debt))
                assert result.objective is not None
                assert result.bound is not None
                allowed_gap = 0.3 * (result.objective - debt)
                assert result.bound - result.objective <= max(0, allowed_gap)
                if result.bound > result.objective:
                    stopped += 1
                    assert result.stopped is Stopped.GAP_LIMIT
        assert stopped > 10


def test_part_by_hand() -> None:
    """A triangle of weight 2 whose nodes want labels of their own at 3, 3 and 4.

    All in label 2 earn 6 + 4; all apart earn 3 + 3 + 4.  Two together on label 2 and the third
    alone: 2 + 4 + 3.  So 10 it is.
    """
    edges = {(0, 1): 2, (1, 2): 2, (0, 2): 2}
    problem = labelling(3, 3, edges, {(0, 0): 3, (1, 1): 3, (2, 2): 4})
    assert proved(problem).objective == 10
    result = solve_part(problem, Limits(), np.array([3, 4, 5]))
    assert result.objective == result.bound == 10


def test_no_time() -> None:
    """The simple answer: a given labelling, and a bound that earns all that can be earned."""
    problem = labelling(2, 2, {(0, 1): -5}, {(0, 0): 3, (0, 1): 4, (1, 0): -2})
    result = simple_answer(problem, Limits(deadline=0.0), np.array([0, 3]))
    assert (result.objective, result.bound) == (3, 4)
    assert result.stopped is Stopped.TIME_LIMIT
    large = hard_problem(0, 100, 5, negative=True)
    result = solve_parts(large, Limits(deadline=time.monotonic()))
    assert result.stopped is Stopped.TIME_LIMIT
    assert result.objective is not None
    assert result.bound is not None
    assert result.objective < result.bound


def test_too_large_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no table fits, the answer says that size was the limit."""
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    monkeypatch.setattr(parts_module, "field_of", lambda *_: None)
    result = solve_parts(hard_problem(0, 30, 5, negative=True), Limits())
    assert result.stopped is Stopped.SIZE_LIMIT
    assert result.status is Status.FEASIBLE


def test_left_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions close small problems; what they leave cannot be closed by them again."""
    assert left_over(hard_problem(0, 30, 2)) == []
    monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    [part] = left_over(hard_problem(0, 30, 5, negative=True))
    assert 0 < part.nodes <= 30
    assert [again.nodes for again in left_over(part)] == [part.nodes]


def test_tracker() -> None:
    """Objectives and bounds of parts add up, also while one of them is being solved."""
    first = labelling(2, 1, {(0, 1): 4}, {(0, 0): 1, (1, 0): -3})
    parts = [first, labelling(1, 1, {}, {(0, 0): 7})]
    starts = [np.array([1, 2]), np.array([0])]
    heard: list[Progress] = []
    tracker = Tracker(Limits(tell=heard.append).beside(100), parts, starts)
    tracker.limits_for(0).report("first", 3, 4)
    tracker.settle(0, Result(objective=5, bound=5, labelling=np.array([0, 0])))
    tracker.limits_for(1).report("second", 7, 7)
    tracker.settle(1, Result(objective=7, bound=8, stopped=Stopped.TIME_LIMIT))
    assert [(m.objective, m.bound) for m in heard] == [(110, 111), (112, 112)]
    assert tracker.stopped is Stopped.TIME_LIMIT


def test_a_failing_search_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a solver fails inside ``auto``, bound and labelling stay as they were."""
    part = random_problem(3, nodes=6, labels=3)
    field = field_of(part)
    assert field is not None
    ascent = begin(field, Limits(), None)
    before = ascent.value, ascent.labels.tolist()

    def fail(*_: object) -> Result:
        raise SolverError("it failed")

    swap_solver(monkeypatch, "mip", fail)
    assert _searched("mip", part, ascent, 99, Limits()) == 99
    assert (ascent.value, ascent.labels.tolist()) == before


@pytest.mark.usefixtures("tables_are_small")
def test_memory_that_runs_out_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that memory runs out on keeps what it began with, and the whole says why."""
    hard = hard_problem(0, 30, 5, negative=True)
    edges = {(30, 31): 4}
    both = replace(
        hard,
        nodes=32,
        edges=np.concatenate([hard.edges, list(edges)]),
        weights=np.concatenate([hard.weights, list(edges.values())]),
        reward_at=np.concatenate([hard.reward_at, [[30, 0], [31, 1]]]),
        rewards=np.concatenate([hard.rewards, [3, 2]]),
    )

    def eats(*_given: object) -> Result:
        raise MemoryError

    monkeypatch.setattr(parts_module, "_closed", eats)
    start = random_labels(hard, 1)
    limits = Limits()
    result = solve_parts(both, limits, np.append(start, [34, 35]))
    assert result.stopped is limits.stopped is Stopped.MEMORY_LIMIT
    assert result.objective is not None
    assert result.bound is not None
    assert hard.value(start) + 7 <= result.objective <= result.bound
    assert result.objective == worth(both, result.labelling.tolist())


def test_a_search_that_takes_all_memory_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound and labelling stay as they were, and all limits know that memory is full."""
    part, limits = random_problem(3, nodes=6, labels=3), Limits()
    field = field_of(part)
    assert field is not None
    ascent = begin(field, Limits(), None)
    before = ascent.value, ascent.labels.tolist()

    def eats(*_: object) -> Result:
        raise MemoryError

    swap_solver(monkeypatch, "cpsat", eats)
    assert _searched("cpsat", part, ascent, 99, limits) == 99
    assert (ascent.value, ascent.labels.tolist()) == before
    assert limits.stopped is Stopped.MEMORY_LIMIT
