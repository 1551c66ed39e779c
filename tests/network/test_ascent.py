"""Prices and messages of large networks, and parts that are solved while the rest stays."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from layoutopt.base.limits import Limits, limited
from layoutopt.network import CostNetwork, Network, solve
from layoutopt.network import coupled as coupling
from layoutopt.network.ascent import RowAscent
from layoutopt.network.costs import local_search
from layoutopt.network.costs.work import work_of
from layoutopt.network.rows import RowSet, settle
from tests.network.oracle import best


def drawn(seed: int, nodes: int = 7, labels: int = 3) -> Network:
    """Return a connected network with tables, forbidden pairs and rows that bind."""
    r = random.Random(seed)
    net = CostNetwork(f"drawn {seed}")
    sizes = [r.randint(2, labels) for _ in range(nodes)]
    names = [
        net.node(f"n{k}", net.domain(size), [r.randint(0, 20) for _ in range(size)])
        for k, size in enumerate(sizes)
    ]
    for k in range(1, nodes):
        for j in {r.randrange(k), r.randrange(k)}:
            table = [
                [None if r.random() < 0.1 else r.randint(0, 30) for _ in range(sizes[k])]
                for _ in range(sizes[j])
            ]
            table[r.randrange(sizes[j])] = [r.randint(0, 30) for _ in range(sizes[k])]
            net.table(names[j], names[k], table)
    for first in (0, 2):
        amounts = {
            (names[k], i): r.randint(0, 9)
            for k in range(first, nodes - 2 + first)
            for i in range(sizes[k])
        }
        net.row(amounts, high=4 * (nodes - 2))
    return net.build()


@pytest.mark.parametrize("star", [False, True])
def test_messages_are_tight_on_trees(star: bool) -> None:
    """Where there are no circles and the row always holds, the bound is the optimum."""
    for seed in range(4):
        r = random.Random(seed)
        net, sizes = CostNetwork(), [r.choice([2, 3, 5]) for _ in range(7)]
        for k, size in enumerate(sizes):
            net.node(f"n{k}", net.domain(size), [r.randint(0, 9) for _ in range(size)])
        for k in range(1, 7):
            j = 0 if star else k - 1
            table = [[r.randint(0, 9) for _ in range(sizes[k])] for _ in range(sizes[j])]
            net.table(f"n{j}", f"n{k}", table)
        net.row({("n0", 0): 1, ("n1", 0): 1}, high=1)
        network = net.build()
        work, rows = work_of(network, Limits()), RowSet.of(network)
        single = rows.one_sided(work)
        single.room[:] = [2] * len(single.room)  # more than can be used
        ascent = RowAscent(work, single, Limits())
        seen: list[list[int]] = []

        def offer(labels: list[int], seen: list[list[int]] = seen) -> float:
            seen.append(labels)
            return float("inf")

        ascent.run(Limits(), offer, float("inf"))
        wanted = best(replace(network, usages=()))
        assert ascent.bound == pytest.approx(wanted, abs=1e-6)
        assert not any(ascent.prices)
        assert min(network.cost(np.array(x)) for x in seen) >= wanted


def test_prices_of_windows_come_near_those_of_the_relaxation() -> None:
    """Rows that follow each other count nearly the same; HiGHS tells the relaxation's bounds."""
    for seed, linear in enumerate((629, 715, 643)):
        r = random.Random(seed)
        net, nodes = CostNetwork(), [f"n{k}" for k in range(60)]
        live, used = {}, {}
        for node in nodes:
            net.node(node, net.domain(3), [0, r.randint(3, 9), r.randint(10, 30)])
            begin = r.randint(0, 180)
            live[node] = begin, begin + r.randint(20, 100)
            used[node] = [r.randint(20, 40), r.randint(5, 19), 0]
        for one, two in itertools.pairwise(nodes):
            net.table(one, two, [[0 if i == j else 4 for j in range(3)] for i in range(3)])
        net.windows(live, used, 120)
        network = net.build()
        work, rows = work_of(network, Limits()), RowSet.of(network)
        ascent = RowAscent(work, rows.one_sided(work), Limits())
        ascent.run(Limits(), lambda _: float("inf"), float("inf"))
        assert 0.99 * linear <= ascent.bound + work.constant <= linear


def test_parts_make_labellings_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without search, parts of a few labels lead to what is mostly the best, and never break rows.

    Equal calls give equal answers.
    """
    monkeypatch.setattr(local_search, "STALE", 4)
    for name, value in {"SMALL": 0, "SEARCHED": -1, "PART": 5}.items():
        monkeypatch.setattr(coupling, name, value)
    found = 0
    for seed in range(6):
        network = drawn(seed)
        wanted, answer = best(network), solve(network)
        if wanted is None:
            assert answer.choice is None
            continue
        if answer.choice is not None:
            assert answer.cost is not None
            assert answer.least is not None
            assert not network.fault(answer.choice)
            assert answer.least <= wanted <= answer.cost == network.cost(answer.choice)
            found += answer.cost == wanted
            again = solve(network)
            assert (again.cost, again.least) == (answer.cost, answer.least)
    assert found > 3


def test_ascent_goes_on_from_what_it_led_to() -> None:
    """Prices and messages, told by rows and edges, prove what they proved; labels may be fewer."""
    for seed in range(6):
        network = drawn(seed, nodes=14, labels=4)
        work, rows = work_of(network, Limits()), RowSet.of(network)
        settle(work, rows, Limits())
        single = rows.one_sided(work)
        first, cold = RowAscent(work, single, Limits()), RowAscent(work, single, Limits())
        first.run(Limits(), None, float("inf"))
        found = first.relaxed()
        edges = zip(work.edges(), found.messages, strict=True)
        messages = {
            (u, v): dict(zip(work.labels(v), two, strict=True)) for (u, v, _), (_, two) in edges
        }
        prices = dict(zip(single.source, found.prices, strict=True))
        fewer = work.copy()
        for u in work.left():
            if not any(inf in row for table in work.near[u].values() for row in table):
                fewer.forbid(u, work.labels(u)[-1])
        for part in (work, fewer):
            again = RowAscent(part, rows.one_sided(part), Limits())
            again.begin_with(prices, messages)
            again.run(Limits(), None, float("inf"), 1)
            assert again.bound >= first.bound - 1e-9 * abs(first.bound)
        cold.run(Limits(), None, float("inf"), 1)
        assert cold.bound < first.bound - 1


def test_labels_are_divided_by_what_they_use() -> None:
    """By the amount that separates most at the rows' prices, else by the least decided label."""
    net = CostNetwork()
    a, b = net.node("a", net.domain(3)), net.node("b", net.domain(2))
    net.row({(a, 1): 4, (a, 2): 8, (b, 1): 7}, high=9)
    network = net.build()
    work, rows = work_of(network, Limits()), RowSet.of(network)
    shares = [{0: 0.25, 1: 0.0, 2: 0.75}, {0: 0.9, 1: 0.1}]
    found = coupling.PriceBound(0, rows.one_sided(work), [2.0], {}, shares)
    assert coupling.by_use(work, found) == (0, [[2], [0, 1]])
    shares[1] = {0: 0.5, 1: 0.5}
    assert coupling.by_use(work, found) == (1, [[1], [0]])
    free = replace(found, prices=[0.0])
    assert coupling.by_use(work, free) is None
    assert coupling.by_label(work, free) == (1, [[1], [0]])
    free = replace(free, shares=[shares[0], {0: 0.2, 1: 0.8}])
    assert coupling.by_label(work, free) == (0, [[0, 1], [2]])
    work.costs[1] = [1, 5]
    assert coupling.by_costs(work) == (1, [[1], [0]])


def test_branches_close_what_prices_leave_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without other search, branches with prices prove the optimum, the deepest first or not."""
    networks = [drawn(seed, nodes=14, labels=4) for seed in range(2)]
    wanted = [solve(network).cost for network in networks]
    monkeypatch.setattr(local_search, "STALE", -1)
    for name, value in {"SMALL": 0, "SEARCHED": -1, "CELLS": -1}.items():
        monkeypatch.setattr(coupling, name, value)
    for held in (coupling.HELD, 0):
        monkeypatch.setattr(coupling, "HELD", held)
        found = [solve(network) for network in networks]
        assert [(answer.cost, answer.least) for answer in found] == [(x, x) for x in wanted]
    monkeypatch.setattr(coupling.Branching, "run", lambda *_: True)
    assert any(
        solve(network, time_limit=60).cost != x for network, x in zip(networks, wanted, strict=True)
    )


def test_branching_goes_on_while_it_halves_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programmes have their turn after the first one of branching that closes less than half.

    What that leaves open is searched part by part, too.
    """
    for name, value in {"SMALL": 0, "CELLS": -1}.items():
        monkeypatch.setattr(coupling, name, value)
    gaps, turns = [0, 1, 1, 2], list[str]()

    def branch(branching: coupling.Branching, _: Limits) -> bool:
        assert branching.search.worth is not None
        bound = branching.search.worth - gaps.pop()
        monkeypatch.setattr(coupling.Branching, "bound", bound)
        turns.append("branching")
        return False

    def search(_: object, *given: object) -> object:
        turns.append("programme")
        return given[4]

    monkeypatch.setattr(coupling.Branching, "run", branch)
    solver = "layoutopt.network.coupled._Solver."
    monkeypatch.setattr(solver + "_search_programme", search)
    monkeypatch.setattr(solver + "_rebuild", lambda *_: turns.append("parts"))
    solve(drawn(0, nodes=14, labels=4))
    assert turns == ["branching"] * 3 + ["programme", "parts", "branching", "programme"]


def knapsack(items: int) -> Network:
    """Return a network with one row, whose relaxation divides one item."""
    net = CostNetwork()
    for k in range(items):
        net.node(f"n{k}", net.domain(2), [0, -(k * 7919 % 1009)])
    net.row({(f"n{k}", 1): k * 104729 % 997 + 1 for k in range(items)}, high=items * 100)
    return net.build()


def test_relaxed_solutions_round_to_labellings_that_keep_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Labels of undecided nodes that do not fit any more are left out before one is taken."""
    monkeypatch.setattr("layoutopt.network.coupled._Solver._decide", lambda *given: given[3])
    for items in (100, 200, 300):
        found = solve(knapsack(items))
        assert found.cost is not None
        assert found.least is not None
        assert found.least <= found.cost <= 0.98 * found.least


def test_dual_ascent_goes_on_where_the_relaxation_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise there would be no bound but that of costs alone."""

    def late(_: object, limits: Limits, __: object) -> None:
        object.__setattr__(limits, "deadline", 0.0)

    monkeypatch.setattr(coupling, "relax", late)
    monkeypatch.setattr("layoutopt.network.coupled._Solver._decide", lambda *given: given[3])
    found = solve(knapsack(200))
    assert found.cost is not None
    assert found.least is not None
    assert 1.1 * found.cost <= found.least <= found.cost


def test_no_time_gives_any_answer_and_no_error() -> None:
    """A limit that is over before anything is done ends with what is given or found soon."""
    network = drawn(1)
    found = solve(network, limited(0))
    assert (found.status, found.least) == ("feasible", None)
    start = solve(network).choice
    assert start is not None
    kept = solve(network, limited(0), start=start.tolist())
    assert kept.choice is not None
    assert kept.choice.tolist() == start.tolist()


def test_rows_that_nothing_keeps() -> None:
    """Prices rise as long as steps gain, but not for ever."""
    net = CostNetwork()
    for k in range(3):
        net.node(f"n{k}", net.domain(3), [k, 1, 2])
    net.row({(f"n{k}", i): 2 + i for k in range(3) for i in range(3)}, high=5)
    network = net.build()
    work, rows = work_of(network, Limits()), RowSet.of(network)
    ascent = RowAscent(work, rows.one_sided(work), Limits())
    ascent.run(Limits(), lambda _: float("inf"), float("inf"))
    assert ascent.bound > 1e15
