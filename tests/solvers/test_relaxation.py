"""Message passing, its exact bound, rounding moves and branching."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Progress
from layoutopt.base.result import Stopped
from layoutopt.network import parts
from layoutopt.network.parts import branch
from layoutopt.network.problem import Labelling
from layoutopt.network.solvers import messages, relaxation
from layoutopt.network.solvers.messages import LabelField, Messages, colouring, ranks
from layoutopt.network.solvers.relaxation import (
    Ascent,
    Ledger,
    begin,
    best_of_both,
    expand,
    expansion,
    field_of,
    fits,
    worth,
)
from tests.support import hard_problem, labelling, optimum, random_problem


def fields(count: int, nodes: int = 5) -> Iterator[tuple[Labelling, LabelField]]:
    """Yield random problems that have any label, and their fields."""
    for seed in range(count):
        problem = random_problem(seed, nodes, negative=seed % 2 == 0, bans=seed % 3 == 0)
        field = field_of(problem)
        if field is not None and field.rewards.shape[1]:
            yield problem, field


def climbed(field: LabelField, limits: Limits | None = None) -> tuple[Ascent, bool]:
    """Return an ascent from scratch, and whether it proved its labelling best."""
    ascent = begin(field, limits or Limits())
    return ascent, ascent.climb(np.arange(field.nodes))


class TestLedger:
    """The exact bound of any messages."""

    def test_books_balance(self) -> None:
        """Maxima less slacks are what a labelling is worth, whatever the messages are."""
        random = np.random.default_rng(1)
        for problem, field in fields(150):
            shape = (len(field.edges), field.rewards.shape[1])
            ledger = Ledger(field)
            ledger.update(np.arange(shape[0]), *random.normal(0, 9, (2, *shape)))
            allowed = [np.flatnonzero(row) for row in field.allowed]
            labels = np.array([random.choice(row) for row in allowed], np.int64)
            ledger.read(np.arange(problem.nodes), labels)
            kept = (ledger.node_top - ledger.node_slack).sum()
            kept += (ledger.edge_top - ledger.edge_slack).sum()
            value = worth(field.rewards, field.edges, field.weights, labels)
            assert kept == value * ledger.scale
            assert (ledger.node_slack >= 0).all()
            assert (ledger.edge_slack >= 0).all()

    def test_any_messages_bound(self) -> None:
        """No labelling exceeds the bound of random messages; choices ruled out are no loss."""
        random = np.random.default_rng(2)
        ruled_out = 0
        for problem, field in fields(150):
            shape = (len(field.edges), field.rewards.shape[1])
            ledger = Ledger(field)
            ledger.update(np.arange(shape[0]), *random.normal(0, 3, (2, *shape)))
            ledger.read(np.arange(problem.nodes), np.array([r.argmax() for r in field.allowed]))
            best = optimum(problem)
            assert ledger.bound >= best
            for value in (best - 3, best - 1, best):
                hopeless = ledger.hopeless(value)
                ruled_out += int((hopeless & field.allowed).sum())
                for labels in product(*map(np.flatnonzero, field.allowed)):
                    if worth(*_given(field), np.array(labels)) > value:
                        assert not hopeless[np.arange(problem.nodes), labels].any()
        assert ruled_out > 100

    def test_partial_updates(self) -> None:
        """Reading off some nodes anew gives what reading all gives."""
        random = np.random.default_rng(3)
        for problem, field in fields(60):
            m, labels = len(field.edges), field.rewards.shape[1]
            first, second = Ledger(field), Ledger(field)
            chosen = np.array([row.argmax() for row in field.allowed])
            every = np.arange(problem.nodes)
            start = random.normal(0, 3, (2, m, labels))
            for ledger in (first, second):
                ledger.update(np.arange(m), *start)
                ledger.read(every, chosen)
            some = np.flatnonzero(random.random(m) < 0.5)
            new = random.normal(0, 3, (2, len(some), labels))
            first.update(some, *new)
            first.read(every, chosen)
            second.update(some, *new)
            second.read(np.unique(field.edges[some]), chosen)
            assert first.scaled_bound == second.scaled_bound
            assert np.array_equal(first.edge_slack, second.edge_slack)


def _given(field: LabelField) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return field.rewards, field.edges, field.weights


class TestMessages:
    """Passing messages."""

    def test_bounds_fall(self) -> None:
        """More passes in one direction never raise the bound by more than rounding."""
        for problem, field in fields(60):
            rank = messages.ranks(field, np.random.default_rng(0))
            passing = Messages(
                field, *np.zeros((2, len(field.edges), field.rewards.shape[1])), rank
            )
            before = None
            for _ in range(4):
                passing.sweep(2)
                ledger = Ledger(field)
                ledger.update(np.arange(len(field.edges)), *_copied(passing).settled())
                ledger.read(np.arange(problem.nodes), np.array([r.argmax() for r in field.allowed]))
                bound = ledger.scaled_bound / ledger.scale
                assert before is None or bound <= before + 1e-3
                before = bound

    def test_trees_are_tight(self) -> None:
        """On trees the relaxation is exact: bound and rounding meet."""
        for seed in range(40):
            draw = np.random.default_rng(seed)
            nodes = 8
            edges = {
                (int(draw.integers(v)), v): int(draw.integers(-5, 9)) or 1 for v in range(1, nodes)
            }
            rewards = {(u, int(draw.integers(3))): int(draw.integers(1, 9)) for u in range(nodes)}
            field = field_of(labelling(nodes, 3, edges, rewards))
            assert field is not None
            ascent, proved = climbed(field)
            assert proved
            assert ascent.bound == ascent.value

    def test_colouring_and_ranks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Neighbours never share a colour or a rank, in small fields and in large ones."""
        for large in (2000, 10):
            monkeypatch.setattr(messages, "LARGE", large)
            problem = hard_problem(1, 60, 3)
            field = field_of(problem)
            assert field is not None
            u, v = problem.edges.T
            colour = colouring(problem.nodes, problem.edges)
            assert (colour[u] != colour[v]).all()
            rank = ranks(field, np.random.default_rng(0))
            assert (rank[u] != rank[v]).all()
            assert sorted(set(rank.tolist())) == list(range(rank.max() + 1))

    def test_fields_that_do_not_fit(self) -> None:
        """Numbers or tables that are too large give no field."""
        assert field_of(labelling(2, 1, {(0, 1): 2**51}, {(0, 0): 1})) is not None
        for size in (2**53, 2**70):
            problem = labelling(2, 1, {(0, 1): size}, {(0, 0): 1})
            assert not fits(problem)
            assert field_of(problem) is None

    def test_tables_that_do_not_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nodes or edges times labels are limited, by the time and by the memory that are left."""
        problem = hard_problem(0, 20, 3)
        assert field_of(problem) is not None
        assert field_of(problem, 0.0) is None
        with monkeypatch.context() as little:
            little.setattr(relaxation, "available", lambda: 1000)
            assert field_of(problem) is None
        monkeypatch.setattr(relaxation, "CELLS_LIMIT", 3 * len(problem.edges) - 1)
        assert field_of(problem) is None


def _copied(given: Messages) -> Messages:
    """Return a copy, because settling changes messages."""
    copy = object.__new__(Messages)
    copy.__dict__.update(given.__dict__)
    copy.back, copy.ahead = given.back.copy(), given.ahead.copy()
    return copy


class TestAscent:
    """Bound and labelling, climbing towards each other."""

    def test_bound_and_value(self) -> None:
        """At every look the bound is at least the optimum, the value at most; a proof is one."""
        proved = 0
        for problem, field in fields(250):
            best = optimum(problem)
            heard: list[Progress] = []
            ascent, done = climbed(field, Limits(tell=heard.append))
            assert ascent.value == worth(*_given(field), ascent.labels) <= best <= ascent.bound
            assert field.allowed[np.arange(problem.nodes), ascent.labels].all()
            if done:
                proved += 1
                assert ascent.bound == ascent.value == best
            for message in heard:
                assert (message.objective or 0) <= best <= (message.bound or 0)
        assert proved > 150

    def test_starts(self) -> None:
        """A labelling to begin with is never made worse."""
        for seed in range(60):
            problem = random_problem(seed, 6)
            field = field_of(problem)
            if field is None or not field.rewards.shape[1]:
                continue
            start = np.random.default_rng(seed).integers(0, field.rewards.shape[1], problem.nodes)
            begun = begin(field, Limits(), start).value
            assert begun == worth(*_given(field), start)
            ascent = begin(field, Limits(), start)
            ascent.climb(np.arange(problem.nodes))
            assert ascent.value >= begun

    def test_time(self) -> None:
        """Without time there is a labelling and a bound all the same."""
        field = field_of(hard_problem(4, 300, 8, negative=True))
        assert field is not None
        ascent, done = climbed(field, Limits(deadline=time.monotonic()))
        assert not done
        assert ascent.stopped is Stopped.TIME_LIMIT
        assert ascent.bound > ascent.value

    def test_gap(self) -> None:
        """A gap that is small enough ends the climb; a debt makes it count for more."""
        field = field_of(hard_problem(4, 200, 8, negative=True))
        assert field is not None
        ascent, done = climbed(field, Limits(gap=0.5))
        assert not done
        assert ascent.stopped is Stopped.GAP_LIMIT
        assert ascent.bound - ascent.value <= 0.5 * ascent.value
        indebted, _ = climbed(field, Limits(gap=0.5, debt=ascent.value - 1))
        assert indebted.bound < ascent.bound

    def test_regions(self) -> None:
        """Neighbourhoods grow edge by edge, and are everything when they are most of it."""
        ring = {(i, i + 1): 1 for i in range(19)} | {(0, 19): 1}
        field = field_of(labelling(20, 2, ring, {(0, 0): 1, (10, 1): 1}))
        assert field is not None
        ascent = begin(field, Limits())
        assert ascent.around(np.array([3]), 0).tolist() == [3]
        assert ascent.around(np.array([0]), 2).tolist() == [0, 1, 2, 18, 19]
        assert len(ascent.around(np.array([0]), 5)) == 20


class TestBranching:
    """Search where the relaxation leaves a gap."""

    def test_exact(self) -> None:
        """Whatever passing leaves open, branching closes: value and bound are the optimum."""
        searched = 0
        for seed in range(200):
            problem = random_problem(seed, 6, negative=seed % 4 > 0)
            field = field_of(problem)
            if field is None or not field.rewards.shape[1]:
                continue
            ascent, done = climbed(field)
            if not done:
                searched += 1
                assert branch(ascent) == ascent.value == optimum(problem)
        assert searched > 10

    def test_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without time, or too deep, the bound still holds."""
        for depth, deadline in [(0, float("inf")), (200, 0.0)]:
            monkeypatch.setattr(parts, "DEPTH", depth)
            for seed in range(0, 100, 2):
                problem = random_problem(seed, 6, negative=True)
                field = field_of(problem)
                if field is None:
                    continue
                ascent, done = climbed(field)
                ascent.limits = Limits(deadline=deadline)
                if not done:
                    assert ascent.value <= optimum(problem) <= branch(ascent)

    def test_messages(self) -> None:
        """Progress of a search speaks of the whole field: bounds hold and never rise."""
        searched = 0
        for seed in range(0, 160, 2):
            problem = random_problem(seed, 6, negative=True)
            field = field_of(problem)
            if field is None:
                continue
            ascent, done = climbed(field)
            if done:
                continue
            heard: list[Progress] = []
            ascent.limits = Limits(tell=heard.append)
            branch(ascent)
            searched += 1
            bounds = [message.bound or 0 for message in heard]
            assert bounds == sorted(bounds, reverse=True)
            assert all((m.objective or 0) <= optimum(problem) <= (m.bound or 0) for m in heard)
        assert searched > 5


class TestMoves:
    """Moves that improve a labelling."""

    def test_expansion_ends_in_a_local_optimum(self) -> None:
        """Afterwards no single expansion improves."""
        field = field_of(hard_problem(0, 60, 5))
        assert field is not None
        start = np.zeros(60, np.int64)
        labels = expansion(*_given(field), start)
        value = worth(*_given(field), labels)
        assert value > worth(*_given(field), start)
        for to in range(5):
            assert worth(*_given(field), expand(*_given(field), labels, to)) == value

    def test_expansion_without_time(self) -> None:
        """When time is up, the labelling stays as it was."""
        field = field_of(hard_problem(0, 60, 5))
        assert field is not None
        start = np.zeros(60, np.int64)
        late = Limits(deadline=time.monotonic())
        assert np.array_equal(expansion(*_given(field), start, late), start)

    def test_best_of_both(self) -> None:
        """The joint labelling is at least as good as both, and made of nothing else."""
        for problem, field in fields(200):
            draw = np.random.default_rng(problem.nodes)
            columns = field.rewards.shape[1]
            old, new = draw.integers(0, columns, (2, problem.nodes))
            joint = best_of_both(*_given(field), old, new)
            value = worth(*_given(field), joint)
            assert value >= max(worth(*_given(field), old), worth(*_given(field), new))
            assert ((joint == old) | (joint == new)).all()
