"""Random cost networks against all their labellings."""

from __future__ import annotations

import random
import signal
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from layoutopt.base import limits as base_limits
from layoutopt.base.limits import Progress
from layoutopt.network import CostNetwork, solve
from layoutopt.network import coupled as coupling
from layoutopt.network.costs import reductions, work
from layoutopt.network.forms import merge_ties
from layoutopt.network.network import CostTable
from layoutopt.network.pipeline import WHY
from layoutopt.network.solvers import cpsat
from layoutopt.network.solvers.programme import ProgrammeResult
from tests.network.oracle import best, draw


def _agree(first: int, *, rows: bool) -> None:
    for seed in range(first, first + 50):
        network = draw(seed, rows=rows)
        heard: list[Progress] = []
        wanted, found = best(network), solve(network, progress=heard.append)
        if wanted is None:
            assert found.status == "infeasible", seed
        else:
            assert found.choice is not None
            assert not network.fault(found.choice), seed
            got = (network.cost(found.choice), found.cost, found.least)
            assert got == (wanted,) * 3, seed
            sign, cost = -1 if network.sense == "max" else 1, float(wanted * network.unit)
            near = 1e-9 * abs(cost) + 1e-9
            for told in heard:  # in the network's own unit and sense
                assert told.objective is None or sign * (told.objective - cost) >= -near, seed
                assert told.bound is None or sign * (told.bound - cost) <= near, seed


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_answers_are_the_best_of_all(first: int) -> None:
    """Status, cost and bound of random networks are those of all labellings."""
    _agree(first, rows=False)


@pytest.mark.parametrize("way", ["as it is", "priced", "HiGHS", "without OR-Tools"])
def test_answers_keep_rows(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with rows: by branching, by prices and CP-SAT, by HiGHS, and by turns of both."""
    if way != "as it is":
        monkeypatch.setattr(coupling, "BRANCHES", 0)
    if way == "HiGHS":
        monkeypatch.setattr(cpsat, "solve", lambda *_, **__: ProgrammeResult())
    if way == "without OR-Tools":
        monkeypatch.setattr(coupling, "find_spec", lambda _: None)
    for first in (0, 50):
        _agree(first, rows=True)


def test_numbers_that_no_double_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs and amounts of 311 digits are added up exactly, beside forbidden ones too."""
    monkeypatch.setattr(coupling, "BRANCHES", 0)
    monkeypatch.setattr(reductions, "WIDE", 1)
    for seed in range(120):
        small, cost, used = draw(seed, rows=seed % 3 > 0), 10 ** (310 * (seed % 3 < 2)), 10**310
        network = replace(
            small,
            costs=small.costs.astype(object) * cost,
            equal_costs=small.equal_costs.astype(object) * cost,
            tables=[CostTable(x.costs.astype(object) * cost, x.allowed) for x in small.tables],
            constant=small.constant * cost,
            usages=[
                replace(
                    usage,
                    amounts=usage.amounts.astype(object) * used,
                    low=[None if x is None else x * used for x in usage.low],
                    high=[None if x is None else x * used for x in usage.high],
                )
                for usage in small.usages
            ],
        )
        wanted, found = best(small), solve(network)
        assert found.infeasible == (wanted is None), seed
        assert wanted is None or found.cost == found.least == wanted * cost, seed
    net = CostNetwork()
    nodes = [net.node(name, net.domain(3)) for name in "abcd"]
    for k, (u, v) in enumerate(combinations(nodes, 2)):
        net.table(u, v, [[(i * j + k * i) % 5 * 10**310 + j for j in range(3)] for i in range(3)])
    assert solve(net).cost == best(net.build())


def test_time_is_up_before_tables_are_in_normal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds, though tables still have negative costs, and a labelling is returned."""
    monkeypatch.setattr(work, "OVERTIME", -1)
    for seed in range(200):
        network = draw(seed, rows=seed % 4 == 0)
        wanted, sign = best(network), -1 if network.sense == "max" else 1
        found = solve(network, time_limit=0)
        assert not (found.infeasible and wanted is not None), seed
        assert found.least is None or wanted is None or sign * (wanted - found.least) >= 0, seed
        assert found.cost is not None or wanted is None or network.usages, seed


def test_large_tables_keep_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """No edge is brought to normal form once time is up for as long as that may take."""
    monkeypatch.setattr(work, "OVERTIME", -1)
    monkeypatch.setattr(work, "normalise", lambda *_: pytest.fail("time is up"))
    net = CostNetwork()
    nodes = [net.node(name, net.domain(9)) for name in "abcdef"]
    for u, v in combinations(nodes, 2):
        net.table(u, v, [[abs(i - j - 1) - 7 for i in range(9)] for j in range(9)])
    found = solve(net, time_limit=0)
    assert (found.status, found.bound, found.stopped) == ("feasible", -7 * 15, "time limit")


@pytest.mark.parametrize(("most", "label"), [(6, 1), (5, 2)])
def test_cheapest_or_least_used_labels_are_an_answer_when_time_is_up(
    most: int, label: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are where rows allow them, though no time is left to look for others."""
    monkeypatch.setattr(coupling, "ANY", -1)
    net = CostNetwork()
    nodes = [net.node(name, net.domain(3), [2, 0, 1]) for name in "abcdef"]
    net.row({(node, 0): 1 for node in nodes}, high=5)
    net.row({(node, 1): 1 for node in nodes}, high=most)
    net.table("a", "b", [[1, 0, 2], [0, 1, 2], [3, 0, 1]])
    found = solve(net, time_limit=0)
    assert (found.status, found.choice.tolist()) == ("feasible", [label] * 6)


def test_labels_that_use_nothing_are_an_answer_when_time_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Registers, of which neighbours must not share one, and memory, which no row counts."""
    monkeypatch.setattr("layoutopt.network.coupled._Solver._search", lambda *_: 0)
    draws, net = random.Random(3), CostNetwork()
    labels = net.domain(4)
    every = [net.node(f"n{k}", labels, [0, 0, 0, draws.randint(1, 9)]) for k in range(40)]
    apart = [[None if i == j < 3 else 0 for j in range(4)] for i in range(4)]
    for u, v in combinations(every, 2):
        if draws.random() < 0.4:
            net.table(u, v, apart)
    net.row({(node, i): draws.randint(1, 9) for node in every for i in range(3)}, high=60)
    network = net.build()
    for limit in (None, 0):
        found = solve(network, time_limit=limit)
        assert found.cost is not None
        assert not network.fault(found.choice)


def test_costs_beyond_those_of_missing_labels_are_an_answer_when_time_is_up() -> None:
    """Nodes of three labels stand beside a fourth place, whose cost is less than theirs."""
    net = CostNetwork()
    a, b = (net.node(name, net.domain(3), [10**31 + i for i in range(3)]) for name in "ab")
    net.table(a, b, [[i * j for i in range(3)] for j in range(3)])
    net.row({(a, 0): 1, (b, 0): 1}, low=1, high=1)
    net.row({(a, 0): 1, (b, 1): 1}, high=1)
    found = solve(net, time_limit=0)
    assert found.objective is None or net.build().fault(found.choice) == ""


@pytest.mark.parametrize("share", [0.02, 0.9])
def test_answers_are_right_whenever_memory_is_short(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is claimed then is true, also if memory was short for a moment only."""
    for seed in range(150):
        draws = random.Random(seed)
        network = draw(seed, rows=seed % 2 == 0)
        wanted, sign = best(network), -1 if network.sense == "max" else 1
        with monkeypatch.context() as short:
            short.setattr(base_limits, "memory_full", lambda draws=draws: draws.random() < share)
            found = solve(network, certificate=True)
        if wanted is None:
            assert found.status in ("infeasible", "unknown"), seed
            continue
        assert found.status != "infeasible", seed
        assert found.status != "optimal" or found.cost == wanted, seed
        assert found.cost is None or sign * (found.cost - wanted) >= 0, seed
        assert found.least is None or sign * (found.least - wanted) <= 0, seed


def test_a_start_keeps_its_cost_inside() -> None:
    """Fresh labels of nodes elsewhere stay equal, or different, in tied nodes and in parts."""
    net = CostNetwork()
    labels = net.domain(1, open=True)
    a, b, c, d, e = (net.node(name, labels, [9]) for name in "abcde")
    net.tie(a, b)
    net.equal(c, d, 5)
    net.equal(d, e, -2)
    network = net.build()
    for start in ([1 + 3, 1 + 3, 1, 2, 2], [1, 1, 1 + 4, 1 + 0, 1 + 0], [2, 2, 3, 3, 1]):
        merged = merge_ties(network)
        own = merged.cut(np.array(start))
        assert not merged.network.fault(own)
        assert merged.network.cost(own) == network.cost(np.array(start))
        assert network.cost(merged.restore(own)) == network.cost(np.array(start))
        found = solve(network, start=start, time_limit=0)
        assert found.cost is not None
        assert found.cost <= network.cost(np.array(start))


@pytest.mark.parametrize("limit", [0, 0.02])
def test_there_is_a_labelling_when_time_is_up(limit: float) -> None:
    """Where labels that cost more are needed to keep rows, too."""
    draws, net = random.Random(1), CostNetwork()
    labels = net.domain(5)
    every = [net.node(f"n{k}", labels, [9, 4, 3, 1, 0]) for k in range(60)]
    for k, name in enumerate(every):
        for other in every[:k]:
            net.table(name, other, [[draws.randint(0, 9) for _ in range(5)] for _ in range(5)])
    for _ in range(3):
        used = {(name, i): i + draws.randint(0, 2) for name in every for i in range(5)}
        net.row(used, high=90)
    found = solve(net, time_limit=limit)
    assert (found.status, found.choice is None) == ("feasible", False)


def test_a_reason_takes_no_longer_than_a_limit_leaves() -> None:
    """``why`` gets what is left of the time, at least a second, at most :data:`WHY`."""
    net = CostNetwork()
    net.node("a", net.domain(1), [None])
    assert solve(net).patience == WHY
    assert 1 <= solve(net, time_limit=5).patience < 5
    assert solve(net, time_limit=0.5).patience == 1
    assert solve(net, time_limit=5).why is not None


def test_ctrl_c_keeps_what_is_found() -> None:
    """A first Ctrl-C asks a solve to stop, and does not end the program."""
    asked = []

    def stop(message: Progress) -> None:
        if message.objective is not None and not asked:
            asked.append(message)
            signal.raise_signal(signal.SIGINT)

    net = CostNetwork()
    labels = net.domain(2)
    every = [net.node(f"n{k}", labels, [k, 3]) for k in range(6)]
    net.row({(name, 0): 1 for name in every}, high=3)
    found = solve(net, progress=stop)
    assert asked
    assert found.choice is not None
