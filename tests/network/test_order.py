"""Barrier order: the master problem, what it forbids, and the decomposition that solves it."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits, Progress, Stopped
from layoutopt.network import elimination, parts
from layoutopt.network import problem as problem_module
from layoutopt.network.components import components
from layoutopt.network.heuristics.frame import OrderChoices, choices_of
from layoutopt.network.heuristics.frame import allowed as keeps
from layoutopt.network.parts import Arc, OrderCut, best_order, solve
from layoutopt.network.problem import Labelling, Precedence, split, without
from tests.support import (
    allowed,
    beside,
    hard_problem,
    labelling,
    labellings,
    optimum,
    random_labels,
    random_problem,
    worth,
)

Master = tuple[int, list[Arc], list[int], list[OrderCut]]


def earned(rank: list[int] | tuple[int, ...], tops: list[int], cuts: list[OrderCut]) -> int:
    """Return what an order lets the parts earn, as far as cuts tell."""
    left = list(tops)
    for cut in cuts:
        if all(rank[b] >= rank[c] for b, c in cut.closed):
            left[cut.part] = min(left[cut.part], cut.value)
    return sum(left)


def random_master(seed: int, wide: int = 1) -> Master:
    """Return barriers, static arcs without a cycle, tops and cuts."""
    draw = random.Random(seed)
    barriers = draw.randint(2, 5)
    every = [(b, c) for b in range(barriers) for c in range(barriers) if b != c]
    static = [(b, c) for b, c in every if b < c and draw.random() < 0.2]
    tops = [draw.randint(5, 20) * wide for _ in range(3)]
    cuts = []
    for _ in range(8):
        part = draw.randrange(3)
        closed = frozenset(draw.sample(every, draw.randint(1, 2)))
        cuts.append(OrderCut(part, closed, tops[part] - draw.randint(0, 5) * wide - (wide > 1)))
    return barriers, static, tops, cuts


def best_of_all(barriers: int, static: list[Arc], tops: list[int], cuts: list[OrderCut]) -> int:
    """Return the most that any order earns."""
    orders = permutations(range(barriers))
    kept = (r for r in orders if all(r[b] < r[c] for b, c in static))
    return max(earned(rank, tops, cuts) for rank in kept)


def test_best_order() -> None:
    """On random masters the order keeps static arcs and earns the most, and that is the bound."""
    for seed in range(60):
        barriers, static, tops, cuts = random_master(seed)
        bound, rank = best_order(barriers, static, tops, cuts, Limits())
        assert rank is not None
        assert all(rank[b] < rank[c] for b, c in static)
        best = best_of_all(barriers, static, tops, cuts)
        assert bound == earned(rank, tops, cuts) == best
        late, _ = best_order(barriers, static, tops, cuts, Limits(deadline=time.monotonic()))
        assert best <= late <= sum(tops)
    assert best_order(3, [(2, 0)], [5, 6], [], Limits())[0] == 11
    either = [OrderCut(0, frozenset({(0, 1)}), 7), OrderCut(1, frozenset({(1, 0)}), 8)]
    assert best_order(2, [], [10, 10], either, Limits())[0] == 18
    assert best_order(2, [(1, 0)], [10, 10], either, Limits())[0] == 17


@pytest.mark.cpsat
def test_wide_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses too large for CP-SAT are rounded down, which keeps bounds true; most are exact."""
    for seed in range(20):
        barriers, static, tops, cuts = random_master(seed, wide=10**40)
        bound, _ = best_order(barriers, static, tops, cuts, Limits())
        best = best_of_all(barriers, static, tops, cuts)
        assert best <= bound <= best * (1 + 1e-9)
    rounded = 0
    for seed in range(80):
        problem = random_problem(seed, negative=seed % 2 == 0, barriers=3, wide=10**30)
        result = solve(problem, Limits(), None)
        best = optimum(problem)
        assert result.objective == worth(problem, result.labelling.tolist()) == best
        assert best <= (result.bound or 0) <= best + problem.total() // 10**12
        rounded += result.bound != best
        assert result.bound == best or result.stopped is Stopped.SIZE_LIMIT
    assert rounded < 10
    monkeypatch.setattr(parts, "LARGEST", 8)
    barriers, static, tops, cuts = random_master(1)
    bound, _ = best_order(barriers, static, tops, cuts, Limits())
    assert bound >= best_of_all(barriers, static, tops, cuts)


def random_tournament(seed: int, barriers: int = 5) -> tuple[Labelling, int]:
    """Return a problem in which a barrier's coming before another earns a random value.

    Also the best that any order earns.
    """
    draw = random.Random(seed)
    values = {pair: draw.randint(1, 9) for pair in permutations(range(barriers), 2)}
    ranks = permutations(range(barriers))
    best = max(sum(v for (b, c), v in values.items() if r[b] < r[c]) for r in ranks)
    sets = tuple((c,) for c in range(barriers))
    rule = Precedence(
        barriers,
        np.zeros((0, 2), np.int64),
        np.array([b for b, _ in values]),
        ((), *sets),
        np.array([1 + c for _, c in values]),
    )
    wishes = {(i, i): value for i, value in enumerate(values.values())}
    return labelling(len(values), len(values), {}, wishes, precedence=rule), best


@pytest.mark.parametrize("tables", [True, False], ids=["tables", "search"])
def test_the_decomposition(tables: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tournaments, and these beside parts without order: proofs, messages, gaps and no time.

    A tournament of five barriers decides 10 pairs; with and without dynamic programming.
    """
    if not tables:
        monkeypatch.setattr(elimination, "TABLE_LIMIT", 1)
    phases, stopped = set(), 0
    for seed in range(5):
        problem, best = random_tournament(seed)
        gap = solve(problem, Limits(gap=1.1), None)
        assert allowed(problem, gap.labelling.tolist())
        assert (gap.objective or 0) <= best <= (gap.bound or 0)
        assert (gap.bound or 0) <= 2.1 * (gap.objective or 0)
        stopped += gap.bound != gap.objective
        assert gap.bound == gap.objective or gap.stopped is Stopped.GAP_LIMIT
        if seed % 2:
            other = hard_problem(seed, 14, 4, negative=True)
            problem, best = (
                beside(problem, other),
                best + int(solve(other, Limits()).objective or 0),
            )
        heard: list[Progress] = []
        result = solve(problem, Limits(tell=heard.append), None)
        assert result.objective == result.bound == problem.value(result.labelling) == best
        assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        phases |= {message.phase for message in heard}
    assert stopped > 1
    assert {"barrier order", "message passing"} <= phases
    for seed in range(25):
        problem = random_problem(seed, 6, negative=seed % 2 == 0, barriers=3)
        best, heard = optimum(problem), []
        result = solve(problem, Limits(tell=heard.append), None)
        assert result.objective == result.bound == worth(problem, result.labelling.tolist()) == best
        assert allowed(problem, result.labelling.tolist())
        assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        late = solve(problem, Limits(deadline=time.monotonic()), None)
        assert allowed(problem, late.labelling.tolist())
        assert late.objective == worth(problem, late.labelling.tolist())
        assert (late.objective or 0) <= best <= (late.bound or 0)


def test_bans_are_those_of_all_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """On random problems leaving rewards out is as good as banning every single choice.

    What all nodes must not take is not listed; a list beyond memory is refused before it is made.
    """
    unlisted = 0
    for seed in range(300):
        draw = random.Random(seed)
        wide = {0: 10**30, 1: 2**58}.get(seed % 5, 1)
        kinds = {"negative": seed % 2 == 0, "bans": seed % 3 == 0}
        part = random_problem(seed, 4, 4, wide=wide, **kinds)
        barrier = np.array([draw.randint(-1, 1) for _ in range(part.labels)], np.int64)
        readers = np.array([draw.randint(0, 1) for _ in range(part.nodes)], np.int64)
        shut = np.array([[draw.random() < 0.6 for _ in range(3)] for _ in range(2)] + [[False] * 3])
        small = without(part, shut, barrier, readers)
        choices = product(range(part.nodes), range(part.labels))
        every = [(u, label) for u, label in choices if shut[barrier[label], readers[u]]]
        listed = np.array(every, np.int64).reshape(-1, 2)
        banned = replace(part, banned=np.concatenate([part.banned, listed]))
        assert optimum(small) == optimum(banned)
        own = set(map(tuple, small.banned.tolist()))
        assert set(map(tuple, part.banned.tolist())) <= own
        of = components(part.nodes, *part.edges.T)[1]
        for u, label in set(every) - own:  # of no use to any of the component
            unlisted += 1
            assert not (of[small.reward_at[small.reward_at[:, 1] == label, 0]] == of[u]).any()
    assert unlisted > 100
    n = 10**6
    at = np.column_stack([np.arange(n), np.arange(n)])
    part = replace(labelling(n, n), reward_at=at, rewards=np.ones(n, np.int64))
    shut = np.array([[True, False], [False, False]])
    small = without(part, shut, np.zeros(n, np.int64), np.zeros(n, np.int64))
    assert (len(small.banned), len(small.rewards)) == (0, 0)
    part = labelling(4, 2, {(0, 2): 1, (1, 3): 1}, {(2, 0): 1, (3, 1): 1})
    given = part, shut, np.zeros(2, np.int64), np.array([0, 0, 1, 1])
    assert without(*given).banned.tolist() == [[0, 0], [1, 1]]
    monkeypatch.setattr(problem_module, "BAN_BYTES", 2**60)
    with pytest.raises(SizeError, match="barrier order forbids"):
        without(*given)


# Order that is settled beforehand, for heuristics


def admission(problem: Labelling) -> OrderChoices:
    """Return the choices of a problem with order rules."""
    assert problem.precedence is not None
    return OrderChoices(problem, problem.precedence, split(replace(problem, precedence=None)))


def test_rules_are_understood() -> None:
    """Whether a labelling keeps to bans and order, against the tests' own reading, 3000 times."""
    kept = 0
    for seed in range(300):
        problem = random_problem(seed, bans=seed % 2 == 0, barriers=seed % 5)
        draw = random.Random(seed)
        for _ in range(10):
            labels = [draw.randrange(problem.labels + problem.nodes) for _ in range(problem.nodes)]
            assert keeps(problem, np.array(labels)) == allowed(problem, labels)
            kept += allowed(problem, labels)
    assert 300 < kept < 2700


def test_what_is_admitted_is_in_order() -> None:
    """Every labelling of admitted choices is in order; a wish in order is admitted; firsts win.

    Each of two barriers reads the node that wants the other's label, so that wishes exclude.
    """
    seen = refused = 0
    for seed in range(150):
        problem = random_problem(seed, 4, barriers=3)
        rule = problem.precedence
        assert rule is not None
        wish = random_labels(problem, seed)
        forbidden = admission(problem).forbidden(wish)
        refused += int(forbidden.sum())
        known = {tuple(row) for row in np.argwhere(admission(problem).present).tolist()}
        for labels in labellings(admission(problem).without(forbidden)):
            made = np.array(choices_of(rule, np.array(labels))).T
            # Labels that nothing earns any more are not banned: nothing takes them.
            if all(b < 0 or ((b, s) in known and not forbidden[b, s]) for b, s in made.tolist()):
                seen += 1
                assert allowed(problem, labels)
        if allowed(problem, wish.tolist()):
            assert not forbidden[choices_of(rule, wish)].any()
    assert seen > 1000
    assert refused > 50
    none = np.zeros((0, 2), np.int64)
    rule = Precedence(2, none, np.array([0, 1]), ((1,), (0,)), np.array([0, 1]))
    problem = labelling(2, 2, {}, {(0, 0): 5, (1, 1): 3}, precedence=rule)
    one, two, both = np.array([0, 3]), np.array([2, 1]), np.array([0, 1])
    for wishes, lost in [((one, two), [1, 1]), ((two, one), [0, 0]), ((both,), [1, 1])]:
        assert np.argwhere(admission(problem).forbidden(*wishes)).tolist() == [lost]
