"""Problems as arrays and to work on: values, copies, bounds as costs, and what these forbid."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

import numpy as np
import pytest

from layoutopt.base.limits import Limits
from layoutopt.network import Network
from layoutopt.network.costs.reductions import reduce
from layoutopt.network.costs.solve import forbid, tighten
from layoutopt.network.costs.work import Infeasible, Work, level, normalise_all
from layoutopt.network.solvers.pairwise import programme, relax
from tests.network.costs.cases import (
    cost,
    left_optimum,
    opened,
    optimum,
    random_network,
    random_problem,
    stated,
    work_on,
)


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


def test_values_are_the_costs_of_the_problem() -> None:
    """On 100 random problems a labelling costs what the problem says, or is forbidden there."""
    allowed = 0
    for seed in range(100):
        problem = random_problem(seed, nodes=4, labels=3)
        work = opened(problem)
        if work is None:
            continue
        for labels in itertools.product(*map(range, problem.sizes.tolist())):
            value = work.value(labels)
            expected = cost(problem, np.array(labels, np.int64))
            assert value == (inf if expected is None else expected)
            allowed += value < inf
        assert work.left() == list(range(len(problem)))
    assert allowed > 400


TABLE = [[1, -4], [2, None]]


def pair() -> Work:
    """Return two nodes, of which one can only take its first label, and a third one."""
    costs = [[3, None], [-7, 2], [0, 0]]
    return work_on(stated(costs, [(0, 1, TABLE), (2, 1, TABLE)]))


def test_size_and_bound() -> None:
    """The largest cost of each node and edge counts, and the least of each; what left does not."""
    work = pair()
    assert work.size() == 3 + 7 + 0 + 2 * 4
    work.constant = 5
    assert work.bound() == 5 + 3 - 7
    work.leave(0)
    assert (work.size(), work.bound()) == (7 + 0 + 4, 5 - 7)
    assert work_on(stated([[0]])).size() == 0
    forbidden = stated([[0, 0], [0, 0]], [(0, 1, [[None, None], [0, 0]])])
    assert work_on(forbidden).size() == 0


def test_what_is_forbidden_costs_infinity() -> None:
    """In costs and in tables; labels keep their numbers."""
    work = pair()
    assert work.costs == [[3, inf], [-7, 2], [0, 0]]
    assert [work.labels(u) for u in range(3)] == [[0], [0, 1], [0, 1]]
    assert work.near[0] == {1: ((1, -4), (2, inf))}
    assert work.near[1] == {0: ((1, 2), (-4, inf)), 2: ((1, 2), (-4, inf))}
    assert sorted((u, v) for u, v, _ in work.edges()) == [(0, 1), (1, 2)]
    assert (work.constant, work.order, work.shrunk) == (0, [], set())
    with pytest.raises(Infeasible):
        work_on(stated([[0], [None, None]]))


def test_replies_are_the_best_to_last_neighbours() -> None:
    """Node 0 left before node 1: it replies to both others, and 1 only to the one that stayed."""
    table = [[0, 5], [5, 0]]
    work = work_on(stated([[1, 0]] * 3, [(0, 1, table), (0, 2, table), (1, 2, table)]))
    work.leave(0)
    work.leave(1)
    assert work.near[0].keys() == {1, 2}
    assert work.near[1].keys() == {2}
    for last in (0, 1):
        labels = [9, 9, last]
        work.restore(labels)
        assert labels == [last, last, last]


def test_costs_of_networks_are_those_of_their_modes() -> None:
    """A network's problem costs as much as its modes say, with the layouts they need there."""
    for seed in range(40):
        net = random_network(seed)
        problem = net.problem()
        labels = np.zeros(len(problem), np.int64)
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
        labels[len(chosen) + (len(read) - 1) * net.layouts + next(iter(there))] = 0
        assert cost(problem, labels) is None


def test_random_problems_are_of_all_sorts() -> None:
    """They are feasible and infeasible, with both signs; equal tables are kept once."""
    found = [optimum(random_problem(seed)) for seed in range(200)]
    assert 10 < found.count(None) < 100
    assert min(x for x in found if x is not None) < -20
    assert any(len(random_problem(seed).banned) for seed in range(20))
    one, other = ((0, 1),), ((1, 0),)
    problem = stated([[0], [0, 0]], [(0, 1, one), (0, 1, other), (0, 1, [[0, 1]])])
    assert (len(problem.tables), problem.table_of.tolist()) == (2, [0, 1, 0])


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
    labels = [work.labels(u) for u in range(len(work.costs))]
    costs = [[work.costs[u][i] for i in own] for u, own in enumerate(labels)]
    edges = [
        (u, v, [[table[i][j] for j in labels[v]] for i in labels[u]])
        for u, v, table in work.edges()
    ]
    relaxed = relax(programme(costs, edges), Limits())
    return None if relaxed is None else tighten(work, scale, relaxed.messages, labels)


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
