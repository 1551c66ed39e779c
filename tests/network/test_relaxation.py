"""Message passing, its exact bound, rounding moves and branching."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Progress, Stopped
from layoutopt.network.components import colouring
from layoutopt.network.problem import Labelling
from layoutopt.network.solvers import messages, relaxation
from layoutopt.network.solvers.messages import LabelField, Messages, ranks
from layoutopt.network.solvers.relaxation import (
    Ascent,
    Ledger,
    begin,
    best_of_both,
    branch,
    expand,
    expansion,
    field_of,
    fits,
    worth,
)
from tests.support import hard_problem, labelling, optimum, random_labels, random_problem


def fields(count: int, nodes: int = 5) -> Iterator[tuple[Labelling, LabelField]]:
    """Yield random problems that have any label, and their fields."""
    for seed in range(count):
        problem = random_problem(seed, nodes, negative=seed % 2 == 0, bans=seed % 3 == 0)
        field = field_of(problem)
        if field is not None and field.rewards.shape[1]:
            yield problem, field


def taken(problem: Labelling) -> LabelField:
    """Return the field of a problem that has one."""
    field = field_of(problem)
    assert field is not None
    return field


def climbed(field: LabelField, limits: Limits | None = None) -> tuple[Ascent, bool]:
    """Return an ascent from scratch, and whether it proved its labelling best."""
    ascent = begin(field, limits or Limits())
    return ascent, ascent.climb(np.arange(field.nodes))


def read(field: LabelField, sent: np.ndarray, labels: np.ndarray) -> Ledger:
    """Return the ledger of messages at a labelling."""
    ledger = Ledger(field)
    ledger.update(np.arange(len(field.edges)), *sent)
    ledger.read(np.arange(field.nodes), labels)
    return ledger


def test_any_messages_bound() -> None:
    """Of random messages: books balance, no labelling exceeds the bound, hopeless choices lose.

    Maxima less slacks are what a labelling is worth; reading off some nodes anew gives what
    reading all gives.
    """
    draw, ruled_out = np.random.default_rng(1), 0
    for problem, field in fields(80):
        m, shape = len(field.edges), (2, len(field.edges), field.rewards.shape[1])
        every = np.arange(problem.nodes)
        labels = np.array([draw.choice(np.flatnonzero(row)) for row in field.allowed], np.int64)
        ledger = read(field, draw.normal(0, 9, shape), labels)
        kept = (ledger.node_top - ledger.node_slack).sum()
        kept += (ledger.edge_top - ledger.edge_slack).sum()
        assert kept == worth(field, labels) * ledger.scale
        assert min(ledger.node_slack.min(initial=0), ledger.edge_slack.min(initial=0)) >= 0
        first = np.array([row.argmax() for row in field.allowed])
        start = draw.normal(0, 3, shape)
        ledger, other = (read(field, start, first) for _ in range(2))
        best = optimum(problem)
        assert ledger.bound >= best
        legal = list(product(*map(np.flatnonzero, field.allowed)))
        for value in (best - 3, best - 1, best):
            hopeless = ledger.hopeless(value)
            ruled_out += int((hopeless & field.allowed).sum())
            for chosen in legal:
                if worth(field, np.array(chosen)) > value:
                    assert not hopeless[every, chosen].any()
        some = np.flatnonzero(draw.random(m) < 0.5)
        new = draw.normal(0, 3, (2, len(some), shape[2]))
        for one in (ledger, other):
            one.update(some, *new)
        ledger.read(every, first)
        other.read(np.unique(field.edges[some]), first)
        assert ledger.scaled_bound == other.scaled_bound
        assert np.array_equal(ledger.edge_slack, other.edge_slack)
    assert ruled_out > 50


def test_bounds_fall() -> None:
    """More passes in one direction never raise the bound by more than rounding."""
    for _, field in fields(60):
        rank = ranks(field, np.random.default_rng(0))
        passing = Messages(field, *np.zeros((2, len(field.edges), field.rewards.shape[1])), rank)
        before = None
        for _ in range(4):
            passing.sweep(2)
            twin = copy.copy(passing)  # because settling changes messages
            twin.back, twin.ahead = passing.back.copy(), passing.ahead.copy()
            first = np.array([row.argmax() for row in field.allowed])
            ledger = read(field, np.array(twin.settled()), first)
            bound = ledger.scaled_bound / ledger.scale
            assert before is None or bound <= before + 1e-3
            before = bound


def test_trees_are_tight() -> None:
    """On trees the relaxation is exact: bound and rounding meet."""
    for seed in range(40):
        draw = np.random.default_rng(seed)
        edges = {(int(draw.integers(v)), v): int(draw.integers(-5, 9)) or 1 for v in range(1, 8)}
        rewards = {(u, int(draw.integers(3))): int(draw.integers(1, 9)) for u in range(8)}
        ascent, proved = climbed(taken(labelling(8, 3, edges, rewards)))
        assert proved
        assert ascent.bound == ascent.value


def test_colouring_and_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours never share a colour or a rank, in small fields and in large ones."""
    for large in (2000, 10):
        monkeypatch.setattr(messages, "LARGE", large)
        problem = hard_problem(1, 60, 3)
        u, v = problem.edges.T
        colour = colouring(problem.nodes, problem.edges)
        rank = ranks(taken(problem), np.random.default_rng(0))
        assert (colour[u] != colour[v]).all()
        assert (rank[u] != rank[v]).all()
        assert sorted(set(rank.tolist())) == list(range(rank.max() + 1))


def test_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers or tables that are too large, by the time and the memory left, give no field."""
    assert field_of(labelling(2, 1, {(0, 1): 2**51}, {(0, 0): 1})) is not None
    for size in (2**53, 2**70):
        problem = labelling(2, 1, {(0, 1): size}, {(0, 0): 1})
        assert not fits(problem)
        assert field_of(problem) is None
    problem = hard_problem(0, 20, 3)
    assert field_of(problem) is not None
    assert field_of(problem, 0.0) is None
    with monkeypatch.context() as little:
        little.setattr(relaxation, "available_memory", lambda: 1000)
        assert field_of(problem) is None
    monkeypatch.setattr(relaxation, "CELLS_LIMIT", 3 * len(problem.edges) - 1)
    assert field_of(problem) is None


def test_ascent() -> None:
    """At every look the bound is at least the optimum, the value at most; a proof is one.

    What passing leaves open, branching closes; its messages hold and never rise.  A labelling to
    begin with is never made worse.
    """
    proved = searched = 0
    for problem, field in fields(60, 6):
        best, heard = optimum(problem), list[Progress]()
        limits = Limits(tell=heard.append)
        ascent, done = climbed(field, limits)
        assert ascent.value == worth(field, ascent.labels) <= best <= ascent.bound
        assert field.allowed[np.arange(problem.nodes), ascent.labels].all()
        assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        proved += done
        if not done:
            searched += 1
            heard.clear()
            assert branch(ascent) == best
            bounds = [message.bound or 0 for message in heard]
            assert bounds == sorted(bounds, reverse=True)
            assert all((m.objective or 0) <= best <= (m.bound or 0) for m in heard)
        assert ascent.value == best
        start = random_labels(problem, problem.nodes) % field.rewards.shape[1]
        if field.allowed[np.arange(problem.nodes), start].all():
            begun = begin(field, Limits(), start)
            assert begun.value == worth(field, start)
            begun.climb(np.arange(problem.nodes))
            assert begun.value >= worth(field, start)
    assert proved > 33
    assert searched > 3


@pytest.mark.parametrize(("depth", "deadline"), [(0, float("inf")), (200, 0.0)])
def test_stopped_branching(monkeypatch: pytest.MonkeyPatch, depth: int, deadline: float) -> None:
    """Without time, or too deep, the bound still holds."""
    monkeypatch.setattr(relaxation, "DEPTH", depth)
    for problem, field in fields(60, 6):
        ascent, done = climbed(field)
        ascent.limits = Limits(deadline=deadline)
        if not done:
            assert ascent.value <= optimum(problem) <= branch(ascent)


def test_limits_of_an_ascent() -> None:
    """Without time there are labels and a bound; a small gap ends the climb, a debt counts more."""
    ascent, done = climbed(taken(hard_problem(4, 300, 8, negative=True)), Limits(deadline=0.0))
    assert (done, ascent.stopped) == (False, Stopped.TIME_LIMIT)
    assert ascent.bound > ascent.value
    field = taken(hard_problem(4, 200, 8, negative=True))
    ascent, done = climbed(field, Limits(gap=0.5))
    assert (done, ascent.stopped) == (False, Stopped.GAP_LIMIT)
    assert ascent.bound - ascent.value <= 0.5 * ascent.value
    indebted, _ = climbed(field, Limits(gap=0.5, debt=ascent.value - 1))
    assert indebted.bound < ascent.bound


def test_regions() -> None:
    """Neighbourhoods grow edge by edge, and are everything when they are most of it."""
    ring = {(i, i + 1): 1 for i in range(19)} | {(0, 19): 1}
    ascent = begin(taken(labelling(20, 2, ring, {(0, 0): 1, (10, 1): 1})), Limits())
    assert ascent.around(np.array([3]), 0).tolist() == [3]
    assert ascent.around(np.array([0]), 2).tolist() == [0, 1, 2, 18, 19]
    assert len(ascent.around(np.array([0]), 5)) == 20


def test_moves() -> None:
    """No expansion is left after expansion; without time labels stay; a joint is of both."""
    field, start = taken(hard_problem(0, 60, 5)), np.zeros(60, np.int64)
    labels = expansion(field, start, Limits())
    value = worth(field, labels)
    assert value > worth(field, start)
    assert {worth(field, expand(field, labels, to)) for to in range(5)} == {value}
    late = Limits(deadline=time.monotonic())
    assert np.array_equal(expansion(field, start, late), start)
    for problem, own in fields(200):
        draw = np.random.default_rng(problem.nodes)
        old, new = draw.integers(0, own.rewards.shape[1], (2, problem.nodes))
        joint = best_of_both(own, old, new)
        both = max(worth(own, old), worth(own, new))
        assert worth(own, joint) >= both
        assert ((joint == old) | (joint == new)).all()
