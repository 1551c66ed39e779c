"""Problems as arrays and to work on: values, copies, bounds as costs, and what these forbid."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

import pytest

from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.network import CostNetwork, Network, solve
from layoutopt.network.costs.reductions import reduce
from layoutopt.network.costs.solve import forbid, tighten
from layoutopt.network.costs.work import Infeasible, Work, level, normalise_all, work_of
from layoutopt.network.solvers.pairwise import relax, write
from tests.network.costs.cases import left_optimum, opened, random_problem, stated, work_on
from tests.network.oracle import best as optimum


def state(work: Work) -> tuple[Any, ...]:
    """Return all that a problem holds, as it is now."""
    near = [dict(tables) for tables in work.near]
    costs = [list(own) for own in work.costs]
    marks = (list(work.gone), list(work.order), set(work.shrunk))
    return costs, near, work.constant, *marks


def started(seed: int) -> Work | None:
    """Return a random problem on which there was some work, ``None`` if it is infeasible."""
    work = opened(random_problem(seed))
    if work is not None:
        try:
            normalise_all(work)
            level(work)
            for u in work.left()[: seed % 3]:
                work.leave(u)
            for u in work.left()[:2]:
                if len(work.labels(u)) > 1:
                    work.forbid(u, work.labels(u)[0])
        except Infeasible:
            return None
    return work


def test_copies_are_equal_and_independent() -> None:
    """Whatever is done to a copy, the original stays; 200 random problems."""
    some = 0
    for seed in range(200):
        work = started(seed)
        if work is None:
            continue
        before, twin = state(work), work.copy()
        assert state(twin) == before
        try:
            reduce(twin, Limits())
            for u in twin.left():
                twin.near[u].clear()
                twin.costs[u][0] = -1
        except Infeasible:
            pass
        twin.constant += 1
        twin.gone[0], twin.shrunk = not twin.gone[0], twin.shrunk ^ {0}
        twin.order.append(0)
        assert state(work) == before
        some += bool(work.order and work.shrunk)
    assert some > 50


TABLE = [[1, -4], [2, None]]


def pair() -> Work:
    """Return two nodes, of which one can only take its first label, and a third one."""
    costs = [[3, None], [-7, 2], [0, 0]]
    return work_on(stated(costs, [(0, 1, TABLE), (2, 1, TABLE)]))


# The relaxation's bound as costs, and what it forbids


def normal(problem: Network) -> Work | None:
    """Return a problem in normal form, ``None`` if that proves it infeasible."""
    work = opened(problem)
    if work is not None:
        try:
            normalise_all(work)
        except Infeasible:
            return None
        level(work)
    return work


def tightened(work: Work, scale: int) -> Work | None:
    """Return a problem with the messages of its relaxation."""
    relaxed = relax(write(work).given, Limits())
    return None if relaxed is None else tighten(work, scale, relaxed.messages, Limits())


@pytest.mark.parametrize("scale", [1, 60])
def test_messages_change_no_labelling(scale: int) -> None:
    """On 100 random problems every labelling costs what it did, and the bound only rises."""
    raised = 0
    for seed in range(100):
        problem = random_problem(seed, nodes=4, labels=3)
        work = normal(problem)
        tight = None if work is None else tightened(work, scale)
        if work is None or tight is None:
            assert optimum(problem) is None
            continue
        for labels in itertools.product(*(work.labels(u) for u in range(len(problem)))):
            value = work.value(labels)
            assert tight.value(labels) == (value * scale if value < inf else inf)
        best = left_optimum(tight)
        assert best is None or tight.constant == tight.bound() <= best
        raised += tight.constant > work.constant * scale
    assert raised > 10


def test_equal_edges_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges of one cost have one table, from both sides; tables that do not fit are refused."""
    net = CostNetwork("chain")
    labels = net.domain(400)
    for u in "abc":
        net.node(u, labels, range(400))
    for u, v in ("ab", "bc"):
        net.equal(u, v, 5)
    work = work_of(net.build(), Limits())
    assert len({id(table) for near in work.near for table in near.values()}) == 1
    monkeypatch.setattr("layoutopt.base.limits.available_memory", lambda: 2**20)
    with pytest.raises(SizeError, match="storing costs of equal labels as tables needs about"):
        solve(net)


def test_what_is_forbidden_costs_more() -> None:
    """On 200 random problems all labellings up to a given cost stay, and many others go.

    A pair that costs 8 goes where there is room for 7, its labels stay.  A label that costs 1
    itself and 2 at each of two neighbours stays for 5, and goes for 4.
    """
    gone = 0
    for seed in range(200):
        problem = random_problem(seed, nodes=4, labels=3)
        work, best = normal(problem), optimum(problem)
        if work is None or best is None:
            continue
        whole, worth = work.copy(), best + seed % 3
        forbid(work, worth)
        for labels in itertools.product(*(whole.labels(u) for u in range(len(problem)))):
            value = whole.value(labels)
            assert value > worth or work.value(labels) == value
            gone += value < inf == work.value(labels)
    assert gone > 500
    for room, left in ((7, inf), (8, 8)):
        work = work_on(stated([[0, 0], [0, 0]], [(0, 1, [[0, 8], [8, 0]])]))
        forbid(work, room)
        assert work.near[0][1] == ((0, left), (left, 0))
        assert work.labels(0) == [0, 1]
    for room, kept in ((5, [0, 1]), (4, [0])):
        edges = [(0, v, [[0, 4], [4, 0]]) for v in (1, 2)]
        work = work_on(stated([[0, 1], [0, 2], [0, 2]], edges))
        forbid(work, room)
        assert work.labels(0) == kept
