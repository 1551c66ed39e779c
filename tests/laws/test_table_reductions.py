"""Reductions of tables: each is exact for every labelling of the rest, and fires where it fits."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from math import inf, prod

import numpy as np
import pytest

from layoutopt.base.limits import Limits, limited
from layoutopt.network import Network
from layoutopt.network.builder import CostRows as Given
from layoutopt.network.costs import reductions
from layoutopt.network.costs.reductions import (
    alone,
    between,
    dominate,
    follow,
    leaf,
    reduce,
    renormalise,
    settle,
)
from layoutopt.network.costs.work import Infeasible, Work, level, normalise, normalise_all, split
from tests.network.costs import cases
from tests.network.costs.cases import cost, left_optimum, opened, random_problem, stated
from tests.network.oracle import best as optimum

Rule = Callable[[Work, int], "list[int] | None"]


def work_on(costs: Given, edges: list[tuple[int, int, Given]]) -> Work:
    """Write a problem down to work on."""
    return cases.work_on(stated(costs, edges))


def works(count: int, nodes: int = 4, labels: int = 3) -> Iterator[tuple[Network, Work]]:
    """Yield random problems with what is left of them; of half of them in normal form."""
    for seed in range(count):
        problem = random_problem(seed, nodes, labels)
        work = opened(problem)
        try:
            if work is not None and seed % 2:
                normalise_all(work)
                level(work)
        except Infeasible:
            continue
        if work is not None:
            yield problem, work


def values(work: Work, without: int = -1) -> dict[tuple[int, ...], float]:
    """Return what each labelling of the nodes left costs, at its least over one of the nodes."""
    free = [range(len(own)) if not work.gone[u] else [0] for u, own in enumerate(work.costs)]
    found: dict[tuple[int, ...], float] = {}
    for labels in itertools.product(*free):
        key = tuple(0 if u == without else label for u, label in enumerate(labels))
        found[key] = min(found.get(key, inf), work.value(labels))
    return found


def follows(work: Work, u: int) -> bool:
    """Return whether each label of some neighbour leaves a node one label at most."""

    def choices(v: int, j: int) -> int:
        row = work.near[v][u][j]
        return sum(row[i] < inf for i in work.labels(u))

    return any(all(choices(v, j) == 1 for j in work.labels(v)) for v in work.near[u])


FITS: dict[Rule, Callable[[Work, int], bool]] = {
    settle: lambda work, u: len(work.labels(u)) == 1,
    alone: lambda work, u: not work.near[u],
    leaf: lambda work, u: len(work.near[u]) == 1,
    between: lambda work, u: len(work.near[u]) == 2,
    follow: follows,
}
"""Rules by which a node leaves, and where each applies."""


@pytest.mark.parametrize("rule", FITS, ids=lambda rule: rule.__name__)
def test_nodes_leave_at_their_least(rule: Rule) -> None:
    """A rule fires where it fits, unless the node is held; labellings cost their least with it.

    The best reply comes back, and the neighbours are told.
    """
    fired = infeasible = 0
    for problem, given in works(300):
        for u in range(len(problem)):
            work, held = given.copy(), given.copy()
            held.held = {u}
            assert rule is settle or rule(held, u) is None
            around, before = list(work.near[u]), values(work, u)
            fits = FITS[rule](work, u)
            try:
                touched = rule(work, u)
            except Infeasible:
                assert fits
                assert all(value == inf for value in before.values())
                infeasible += 1
                continue
            assert (touched is not None) == fits
            if touched is None:
                continue
            fired += 1
            assert touched == around
            assert work.order == [u]
            after = values(work)
            for labels, value in before.items():
                assert after[labels] == value
                if value < inf:
                    back = list(labels)
                    work.restore(back)
                    assert given.value(back) == value
    assert fired > 60
    assert infeasible or rule in (alone, follow)


def tidied(work: Work) -> None:
    """Bring the edges of all nodes that lost labels to normal form."""
    for u in work.left():
        around, lost = list(work.near[u]), u in work.shrunk
        assert renormalise(work, u) == ([u, *around] if lost else None)


@pytest.mark.parametrize("move", [normalise_all, level, tidied], ids=lambda move: move.__name__)
def test_costs_move_and_stay(move: Callable[[Work], None]) -> None:
    """Labellings cost what they did; lines of tables have a 0, and those of dead labels no more."""
    for problem, work in works(300):
        if move is tidied:
            for u in work.left():
                if len(work.labels(u)) > 1:
                    work.forbid(u, work.labels(u)[0])
        before = values(work)
        try:
            move(work)
        except Infeasible:
            assert all(value == inf for value in before.values())
            continue
        assert values(work) == before
        if move is level:
            assert all(min(own) == 0 for own in work.costs)
        if move is not normalise_all or work.shrunk:
            continue
        for u, v in itertools.permutations(range(len(problem)), 2):
            table = work.near[u].get(v)
            if table is not None:
                assert work.near[v][u] == tuple(zip(*table, strict=True))
                assert any(map(any, table))
                for i, line in enumerate(table):
                    alive = [line[j] for j in work.labels(v)]
                    assert min(alive) == 0 if i in work.labels(u) else not any(line)


def test_what_is_left_suits_no_rule() -> None:
    """On 400 random problems reductions keep the optimum, and go on until none applies."""
    solved = left = 0
    for seed in range(400):
        problem = random_problem(seed, nodes=7)
        best, work = optimum(problem), opened(problem)
        try:
            if work is None:
                raise Infeasible
            reduce(work, Limits())
        except Infeasible:
            assert best is None
            continue
        assert left_optimum(work) == best
        assert best is None or work.bound() <= best
        for u in work.left():
            sizes = [len(work.costs[v]) for v in (u, *work.near[u])]
            assert len(work.labels(u)) > 1
            assert len(sizes) > 3 or prod(sizes) > reductions.LARGEST
            assert not follows(work, u)
        assert dominate(work.copy(), work.left()) == []
        spaces = [work.labels(u) for u in work.left()]
        for chosen in itertools.islice(itertools.product(*spaces), 0, None, 7):
            labels = [0] * len(problem)
            for u, label in zip(work.left(), chosen, strict=True):
                labels[u] = label
            value = work.value(labels)
            if value < inf:
                work.restore(labels)
                assert (cost(problem, np.array(labels)) or 0) <= value
        solved += not work.left()
        left += bool(work.left())
    assert solved > 150
    assert left > 3


def test_dominated_labels_leave_the_optimum() -> None:
    """On 400 random problems labels go, and an optimum stays."""
    taken = 0
    for problem, work in works(400, nodes=5):
        best = optimum(problem)
        taken += bool(dominate(work, range(len(problem))))
        assert left_optimum(work) == best
    assert taken > 50


def worst(work: Work, u: int, i: int, j: int) -> float:
    """Return the most that label ``j`` instead of ``i`` costs if no neighbour answers."""
    total = work.costs[u][j] - work.costs[u][i]
    for v, table in work.near[u].items():
        pairs = [(table[i][m], table[j][m]) for m in work.labels(v)]
        total += max([after - before for before, after in pairs if before < inf], default=-inf)
    return total


@pytest.mark.parametrize("wide", [reductions.WIDE, 0], ids=["one by one", "arrays first"])
def test_what_goldstein_takes_is_taken(monkeypatch: pytest.MonkeyPatch, wide: int) -> None:
    """On 300 random problems no label is left whose change costs nothing, whatever is chosen.

    One that costs less by itself is not looked at.
    """
    monkeypatch.setattr(reductions, "WIDE", wide)
    taken = 0
    for seed in range(300):
        work = opened(random_problem(seed, nodes=6, labels=3))
        try:
            if work is None:
                continue
            normalise_all(work)
        except Infeasible:
            continue
        for u in work.left():
            before = len(work.labels(u))
            found = dominate(work, [u])
            taken += len(work.labels(u)) < before
            assert found == ([u, *work.near[u]] if len(work.labels(u)) < before else [])
            own = work.costs[u]
            for i in work.labels(u):
                rivals = [j for j in work.labels(u) if j != i and own[j] <= own[i]]
                assert all(worst(work, u, i, j) > 0 for j in rivals)
    assert taken > 100


def test_wide_nodes_take_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of ten labels are ruled out by arrays, in a share of the time, which is reported."""
    draw, phases, shares = random.Random(0), list[str](), list[float]()
    costs = [[draw.randrange(99) for _ in range(10)] for _ in range(8)]
    table = [[draw.randrange(999) for _ in range(10)] for _ in range(10)]
    work = work_on(costs, [(u, v, table) for u, v in itertools.combinations(range(8), 2)])

    def timed(own: Work, nodes: list[int], limits: Limits) -> list[int]:
        shares.append(limits.left / 1000)
        return dominate(own, nodes, limits)

    monkeypatch.setattr(reductions, "dominate", timed)
    monkeypatch.setattr(reductions, "_change", lambda *_: pytest.fail("one by one"))
    reduce(work, limited(1000, progress=lambda message: phases.append(message.phase)))
    assert phases == ["reductions"]
    assert len(shares) == 1
    assert shares[0] < 0.5


Edge = tuple[int, int, Given]
NEEDS: Given = ((0, 0), (None, 0))
EXCLUDES: Given = ((0, 0), (None, 0), (0, None))
"""Label 1 needs the other's label 1, and label 2 cannot be with it."""
BOTH: list[Edge] = [(0, 1, NEEDS), (0, 2, NEEDS)]


def dominated(costs: Given, edges: list[Edge]) -> list[int]:
    """Return the labels of node 0 that are left; what a neighbour's answer costs is known there."""
    work = work_on(costs, edges)
    dominate(work, [0])
    return list(work.labels(0))


EQUAL: Given = ((0, None, None), (None, 4, None), (None, None, 0))
DIFFER: Given = ((0, 1), (1, 0))


def test_what_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Middle nodes of large tables and followers of very many neighbours stay."""
    edges: list[Edge] = [(0, 1, DIFFER), (0, 2, DIFFER)]
    for limit in (7, 8):
        monkeypatch.setattr(reductions, "LARGEST", limit)
        assert (between(work_on([[0, 0]] * 3, edges), 0) is None) == (limit < 8)
    monkeypatch.setattr(reductions, "MANY", 0)
    assert follow(work_on([[0] * 3, [0] * 3], [(0, 1, EQUAL)]), 0) is None


def test_shared_tables_are_left_alone() -> None:
    """Tables in normal form keep their identity, if no label of their nodes is dead."""
    normal = [[0, 1], [2, 0]]
    work = work_on([[0, 0], [0, 0], [0, None]], [(0, 1, normal), (0, 2, normal)])
    before = work.near[0][1]
    normalise_all(work)
    assert work.near[0][1] is before
    assert (work.near[0].get(2), work.costs[0]) == (None, [0, 2])


def test_labels_without_a_pair() -> None:
    """A label whose row is forbidden is out of the question, and its edges are looked at."""
    work = work_on([[0, 0], [0, 0]], [(0, 1, [[None, None], [0, 4]])])
    normalise(work, 0, 1)
    assert (work.near, work.costs) == ([{}, {}], [[inf, 0], [0, 4]])
    assert work.shrunk == {0}
    with pytest.raises(Infeasible):
        normalise(work_on([[0], [0, 0]], [(0, 1, [[None, None]])]), 0, 1)
    with pytest.raises(Infeasible):
        work_on([[None, None]], [])


def test_parts_are_components() -> None:
    """On 200 random problems each node of a part has its costs, and its neighbours' tables."""
    several = 0
    for problem, work in works(200, 7, 4):
        if len(problem) > 3:
            work.leave(0)
        parts = split(work)
        assert sorted(u for _, nodes in parts for u in nodes) == work.left()
        for part, nodes in parts:
            assert part.costs == [work.costs[u] for u in nodes]
            tables = [{nodes[k]: table for k, table in near.items()} for near in part.near]
            assert tables == [work.near[u] for u in nodes]
            reached = {0}
            for _ in nodes:
                reached |= {v for u in reached for v in part.near[u]}
            assert len(reached) == len(nodes)
        several += len(parts) > 1
    assert several > 50


def test_without_time_nothing_is_reduced() -> None:
    """Time is looked at before the first rule; the problem stays whole, and normal."""
    work = work_on([[3, 1], [0, 0]], [(0, 1, [[1, 9], [5, 2]])])
    reduce(work, Limits(deadline=0.0))
    assert work.left() == [0, 1]
    assert work.near[0][1] == ((0, 8), (3, 0))
