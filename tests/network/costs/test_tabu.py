"""Tabu search: labels of single nodes change, also for worse ones."""

from __future__ import annotations

import random
from itertools import product
from math import inf

import pytest

from benchmarks.registers import tables
from layoutopt.base.limits import Limits, Progress
from layoutopt.network.costs import tabu
from layoutopt.network.costs.tabu import tabu_search
from layoutopt.network.costs.work import Work
from tests.network.costs.cases import registers, work_on


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
    assert tabu_search(work, start, Limits().turn(tabu.POLLED / tabu.STEPS)) == one


def test_nodes_that_have_left_keep_their_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is left is relabelled; tables of too many entries are left alone."""
    work = work_on(registers(1, 20))
    labels = [len(own) - 1 for own in work.costs]
    gone = [u for u in work.left() if u % 3 == 0]
    for u in gone:
        work.leave(u)
    found = tabu_search(work, labels, Limits())
    assert work.value(found) < work.value(labels)
    assert [found[u] for u in gone] == [labels[u] for u in gone]
    monkeypatch.setattr(tabu, "ENTRIES", 1)
    assert tabu_search(work, labels, Limits()) == labels
