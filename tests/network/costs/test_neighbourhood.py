"""Large neighbourhood search: nodes that are labelled anew while all others keep their labels."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf

import pytest

from benchmarks.pbqp import network
from benchmarks.registers import tables
from layoutopt.base.limits import Limits, Progress
from layoutopt.network.costs import solve
from layoutopt.network.costs.neighbourhood import Neighbourhoods, part_of, polish
from layoutopt.network.costs.reductions import reduce
from layoutopt.network.costs.solve import TURN, construct, improved, rebuild
from layoutopt.network.costs.work import Work
from tests.network.costs.cases import opened, registers, work_on


def test_polishing() -> None:
    """It makes better, never worse, equally with equal seeds; without time the labelling stays."""
    work = work_on(network("dense", 40, 8).problem())
    reduce(work, Limits())
    labels = construct(work)
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
    monkeypatch.setattr("layoutopt.network.costs.neighbourhood.UNTIMED", 2)
    work = ring(24)
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
    parts = Neighbourhoods(ring(16), Limits(), groups, size=0)
    seeds = [parts.next() for _ in range(200)]
    assert sum(bool({0, 8} & {*each}) for each in seeds) > 120
    assert {(0, 8), (0,), (8,)} < {*map(tuple, seeds)}


@pytest.mark.cpsat
def test_large_problems_are_solved_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels become better, equally with equal seeds; parts themselves are not divided."""
    monkeypatch.setattr(solve, "COVERED", 10**5)
    work = opened(registers(1, 50))
    assert work is not None
    labels = construct(work)
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
    polished = polish(work, labels, Limits())
    assert work.value(improved(work, labels, Limits())) < work.value(polished)
    monkeypatch.setattr(solve, "rebuild", lambda *_: [])
    assert improved(work, labels, Limits()) == []
    assert improved(work, labels, Limits().turn(TURN)) == polished


def ring(nodes: int) -> Work:
    """Return a ring of nodes of two labels each."""
    work = Work([[0, 0] for _ in range(nodes)])
    for u in range(nodes):
        work.put(u, (u + 1) % nodes, ((0, 1), (1, 0)))
    return work
