"""Local search: nodes that are labelled anew while all others keep their labels."""

from __future__ import annotations

import random
from itertools import pairwise, product
from math import inf

import pytest

from benchmarks.pbqp import network
from benchmarks.registers import tables
from layoutopt.base.limits import Limits, Progress
from layoutopt.network.costs import solve
from layoutopt.network.costs.local_search import Neighbourhoods, part_of, polish, tabu_search
from layoutopt.network.costs.reductions import reduce
from layoutopt.network.costs.solve import SHORT, TURN, FoundLabels, construct, rebuild
from layoutopt.network.costs.work import Work
from tests.network.costs.cases import opened, registers, work_on
from tests.network.test_elimination import ring


def test_polishing() -> None:
    """It makes better, never worse, equally with equal seeds; without time the labelling stays."""
    work = work_on(network("dense", 40, 8).problem())
    reduce(work, Limits())
    labels = construct(work, Limits())
    assert labels is not None
    heard: list[Progress] = []
    better = polish(work, labels, Limits(tell=heard.append))
    assert work.value(better) < work.value(labels)
    assert {m.phase for m in heard} == {"local search"}
    assert (heard[0].objective, heard[-1].objective) == (work.value(labels), work.value(better))
    assert work.value(polish(work, better, Limits(seed=1))) <= work.value(better)
    assert polish(work, labels, Limits(seed=3)) == polish(work, labels, Limits(seed=3))
    assert polish(work, labels, Limits(deadline=0.0)) == labels


def test_parts_cost_what_they_add_to_the_whole() -> None:
    """Two labellings that differ in a part alone differ in cost by what the part's labels cost."""
    draw = random.Random(1)
    work = work_on(tables(30, 4, 1))
    nodes = work.left()
    for _ in range(20):
        inside = sorted(draw.sample(nodes, 6))
        one = {u: draw.choice(work.labels(u)) for u in nodes}
        two = one | {u: draw.choice(work.labels(u)) for u in inside}
        before, after = ([each.get(u, 0) for u in range(len(work.costs))] for each in (one, two))
        part = part_of(work, inside, before)
        left, right = ([each[u] for u in inside] for each in (before, after))
        gain = part.value(right) - part.value(left)
        assert work.value(after) == work.value(before) + gain < inf


@pytest.mark.parametrize(("deadline", "most"), [(1e12, 4), (inf, 2)])
def test_parts_grow_and_end(monkeypatch: pytest.MonkeyPatch, deadline: float, most: int) -> None:
    """A ring of 24 nodes of two labels: parts double until they hold everything, or enough.

    Then they end; where something was gained, and there is a deadline, they begin anew.
    """
    monkeypatch.setattr("layoutopt.network.costs.local_search.UNTIMED", 2)
    work = ring(24, 2)
    parts = Neighbourhoods(work, Limits(deadline=deadline), size=12)
    sizes = list[int]()
    while nodes := parts.next():
        assert nodes == sorted(set(nodes))
        assert len(nodes) <= 4 * parts.size / 2 + 1
        sizes.append(parts.size)
    assert sizes == sorted(sizes)
    assert {*sizes} == {12 * 2**k for k in range(most.bit_length())}
    parts.better()
    again = list[int]()
    while parts.next():
        again.append(parts.size)
    assert sum(b < a for a, b in pairwise(again)) == (deadline < inf)


def test_groups_are_joined() -> None:
    """Parts are around nodes of a group, mostly, and now and then around two of them."""
    groups = [[0], [8]]
    parts = Neighbourhoods(ring(16, 2), Limits(), groups, size=0)
    seeds = [parts.next() for _ in range(200)]
    assert sum(bool({0, 8} & {*each}) for each in seeds) > 120
    assert {(0, 8), (0,), (8,)} < {*map(tuple, seeds)}


def drawn(seed: int, forbidden: float) -> Work:
    """Return seven nodes of two or three labels that all have tables with each other."""
    draw = random.Random(seed)
    sizes = [draw.randrange(2, 4) for _ in range(7)]
    work = Work([[draw.randrange(9) for _ in range(size)] for size in sizes])
    for u in range(7):
        for v in range(u):
            rows = [
                [float(draw.randrange(-9, 30)) for _ in range(sizes[v])] for _ in range(sizes[u])
            ]
            rows = [[inf if draw.random() < forbidden else cost for cost in row] for row in rows]
            work.put(u, v, tuple(map(tuple, rows)))
    return work


@pytest.mark.parametrize("forbidden", [0.0, 0.15])
def test_small_networks_are_solved(forbidden: float) -> None:
    """From the worst allowed labelling it reaches the least cost of all labellings."""
    solved = 0
    for seed in range(8):
        work = drawn(seed, forbidden)
        every = [list(each) for each in product(*map(range, map(len, work.costs)))]
        allowed = sorted((each for each in every if work.value(each) < inf), key=work.value)
        if allowed:
            assert work.value(tabu_search(work, allowed[-1], Limits())) == work.value(allowed[0])
            solved += 1
    assert solved >= 6


def test_large_costs() -> None:
    """Where sums are too large to be exact in floating point, labels never become worse."""
    for seed in range(3):
        draw, work = random.Random(seed), drawn(seed, 0.0)
        for u, near in enumerate(work.near):
            work.costs[u] = [2**57 + draw.randrange(300) for _ in work.costs[u]]
            for v in [v for v in near if v < u]:
                rows = [[2**57 + draw.randrange(300) for _ in row] for row in near[v]]
                work.put(u, v, tuple(map(tuple, rows)))
        best = min(map(list, product(*map(range, map(len, work.costs)))), key=work.value)
        assert work.value(tabu_search(work, best, Limits())) == work.value(best)


def test_progress_and_seeds() -> None:
    """Better labellings are reported; equal seeds give equal labels, and few steps worse ones."""
    work = work_on(tables(30, 4, 1))
    start = [0] * 30
    heard: list[Progress] = []
    found = tabu_search(work, start, Limits(tell=heard.append))
    costs = [message.objective or 0 for message in heard]
    assert costs == sorted({*costs}, reverse=True)
    assert costs[-1] == work.value(found) < work.value(start)
    assert {(m.phase, m.bound) for m in heard} == {("local search", work.bound())}
    assert start == [0] * 30
    assert tabu_search(work, start, Limits()) == found
    other: list[Progress] = []
    tabu_search(work, start, Limits(seed=1, tell=other.append))
    assert [message.objective for message in other] != costs
    one = tabu_search(work, start, Limits(deadline=0.0))
    assert work.value(found) < work.value(one) < work.value(start)


def test_nodes_that_have_left_keep_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is left is relabelled, in so many steps; too large tables are left alone."""
    work = work_on(registers(1, 20))
    labels = [len(own) - 1 for own in work.costs]
    gone = [u for u in work.left() if u % 3 == 0]
    for u in gone:
        work.leave(u)
    found = tabu_search(work, labels, Limits())
    assert work.value(found) < work.value(labels)
    assert [found[u] for u in gone] == [labels[u] for u in gone]
    monkeypatch.setattr("layoutopt.network.costs.local_search.LOOKED_AT", 1)
    assert tabu_search(work, labels, Limits()) == tabu_search(work, labels, Limits(deadline=0.0))
    monkeypatch.setattr("layoutopt.network.costs.local_search.ENTRIES", 1)
    assert tabu_search(work, labels, Limits()) == labels


@pytest.mark.cpsat
def test_large_problems_are_solved_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels become better, equally with equal seeds; parts themselves are not divided."""
    monkeypatch.setattr(solve, "COVERED", 10**5)
    work = opened(registers(1, 50))
    assert work is not None
    labels = construct(work, Limits())
    assert labels is not None
    heard: list[Progress] = []
    found = rebuild(work, labels, Limits(tell=heard.append))
    assert work.value(found) < work.value(labels)
    assert {(m.phase, m.bound) for m in heard} == {("local search", work.bound())}
    costs = [m.objective or 0 for m in heard]
    assert costs == sorted({*costs}, reverse=True)
    assert costs[-1] == work.value(found)
    assert rebuild(work, labels, Limits()) == found
    assert rebuild(work, labels, Limits(deadline=0.0)) == labels


def test_labels_are_improved_more_after_a_short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is outside turns, and unless the short search proves that nothing costs less."""
    work = work_on(tables(20, 3, 1))
    ran: list[str] = []

    def search(part: Work, limits: Limits, best: list[int]) -> FoundLabels:
        ran.append(f"search {limits.counted}")
        return FoundLabels(best, int(part.value(best)) if proves else int(part.bound()))

    def improve(part: Work, labels: list[int], limits: Limits) -> list[int]:
        ran.append(f"improve {limits.seed}")
        return better.pop() if better else labels

    monkeypatch.setattr(solve, "_search_less", search)
    monkeypatch.setattr(solve, "tabu_search", improve)
    monkeypatch.setattr(solve, "rebuild", improve)
    proves, better = False, [tabu_search(work, [0] * 20, Limits())]
    first, second = ["improve 0"] * 2, ["improve 1"] * 2  # a second turn, as the first finds less
    solve.STAGES[2](work.copy(), Limits(), [0] * 20)
    assert ran == [f"search {SHORT}", *first, *second, "search inf"]
    solve.STAGES[2](work.copy(), Limits().turn(TURN), [0] * 20)
    assert ran[6:] == [f"search {TURN}"]
    proves = True
    solve.STAGES[2](work.copy(), Limits(), [0] * 20)
    assert ran[7:] == [f"search {SHORT}"]
