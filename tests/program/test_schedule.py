"""Steps and a framework's ops in one order."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import networkx as nx
import pytest

from benchmarks.figures import unbroadcast_add
from layoutopt.base.errors import InputError
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.steps import BarrierReady, Place, Run, Schedule, schedule, steps
from layoutopt.unwinding import unwind
from tests.models.instances import FAMILIES
from tests.support import refused

ADD = {"A": [], "B": [], "C": [], "matmul": ["A", "B"], "Out": ["matmul", "C"]}
"""The ops of the figure on unbroadcast sums: three inputs, a matrix product and a sum."""


def names(found: Schedule) -> list[str]:
    """Return items as ``"sink.number"``, ``"barrier!"`` and ``"run op"``."""
    return [
        f"{x.sink}.{x.number}"
        if isinstance(x, Place)
        else f"{x.barrier}!"
        if isinstance(x, BarrierReady)
        else f"run {x.op}"
        for x in found
    ]


CASES: dict[str, tuple[Any, dict[str, Hashable] | None, str]] = {
    "each step right before its op": (
        ADD,
        None,
        "A.0; run A; B.0; run B; matmul!; C.0; run C; run matmul; run Out",
    ),
    # The product's layout is known before the product has run.
    "C comes first": (
        {"C": [], **ADD},
        None,
        "A.0; B.0; matmul!; C.0; run C; run A; run B; run matmul; run Out",
    ),
    "no op creates C": (
        {"A": [], "B": [], "matmul": ["A", "B"]},
        None,
        "A.0; run A; B.0; run B; run matmul; matmul!; C.0",
    ),
    "one op creates all": (
        {"first": [], "init": ["first"], "last": ["init"]},
        {"A": "init", "B": "init", "C": "init"},
        "run first; A.0; B.0; matmul!; C.0; run init; run last",
    ),
    "another op than the one of its name": (
        {"A": [], "B": ["A"]},
        {"A": "B"},
        "run A; A.0; B.0; run B; matmul!; C.0",
    ),
    "numbers for ops": ({7: [], 3: [7]}, {"B": 3}, "run 7; B.0; run 3; A.0; matmul!; C.0"),
    "given order where it can be": (
        {"c": ["b"], "a": [], "b": [], "d": []},
        None,
        "run a; run b; run c; run d; A.0; B.0; matmul!; C.0",
    ),
    "no ops": (None, None, "A.0; B.0; matmul!; C.0"),
}


@pytest.mark.parametrize("name", CASES)
def test_figure(name: str) -> None:
    """Figure unbroadcastadd in frameworks of different ops."""
    ops, creates, wanted = CASES[name]
    graph = unbroadcast_add()
    assert names(schedule(graph, unwind(graph), ops, creates)) == wanted.split("; ")


def test_networkx() -> None:
    """A DiGraph whose edges point from earlier to later ops says the same as a mapping."""
    graph = unbroadcast_add()
    result = unwind(graph)
    given = nx.DiGraph()
    given.add_nodes_from(ADD)
    given.add_edges_from((earlier, later) for later, ops in ADD.items() for earlier in ops)
    assert schedule(graph, result, given).items == schedule(graph, result, ADD).items


def test_without_ops_it_is_the_steps() -> None:
    """With no ops a schedule is what ``steps`` returns."""
    for seed in range(40):
        graph = FAMILIES["tangle"](seed)
        result = unwind(graph)
        assert schedule(graph, result).items == steps(graph, result)


def test_printed_schedule() -> None:
    """A numbered list, a line for each item."""
    graph = unbroadcast_add()
    lines = str(schedule(graph, unwind(graph), ADD)).splitlines()
    assert lines == [
        "1  place A, piece 0: 6 locations of target_A",
        "2  run A",
        "3  place B, piece 0: 6 locations of target_B",
        "4  run B",
        "5  know matmul",
        "6  place C, piece 0: 4 locations of matmul",
        "7  run C",
        "8  run matmul",
        "9  run Out",
    ]
    many = schedule(graph, unwind(graph), {i: [] for i in range(8)})
    assert [line[:5] for line in str(many).splitlines()[7:10]] == [" 8  r", " 9  p", "10  p"]


def random_case(seed: int) -> tuple[Graph, dict[Hashable, list[Hashable]], dict[str, Hashable]]:
    """Return a graph with barriers, a random DAG of ops, and who creates which sink."""
    draw = random.Random(seed)
    graph = FAMILIES[draw.choice(["tangle", "mixed"])](seed)
    order = draw.sample(range(8), draw.randint(1, 8))
    chance = draw.choice([0.1, 0.4])
    before = {op: [o for o in order[:i] if draw.random() < chance] for i, op in enumerate(order)}
    ops = dict(draw.sample(list(before.items()), len(before)))
    sinks = [sink.name for sink in graph.sinks()]
    return graph, ops, {name: draw.choice(order) for name in sinks if draw.random() < 0.7}


def test_every_step_comes_as_late_as_possible() -> None:
    """Against all paths of needs: before the first op that needs it, after the one before that."""
    moved, ended = 0, 0
    for seed in range(120):
        graph, ops, creates = random_case(seed)
        result = unwind(graph, "auto" if seed % 2 else "greedy0")
        found = schedule(graph, result, ops, creates)
        items = list(found)
        assert sorted(map(repr, items)) == sorted(
            [*map(repr, map(Run, ops)), *map(repr, steps(graph, result))]
        )
        needs = nx.DiGraph()
        needs.add_nodes_from(items)
        for item in items:
            if not isinstance(item, Run):
                needs.add_edges_from((other, item) for other in item.needs)
                if isinstance(item, Place) and item.sink in creates:
                    needs.add_edge(item, Run(creates[item.sink]))
        place = {item: i for i, item in enumerate(items)}
        assert all(place[a] < place[b] for a, b in needs.edges)
        runs = [i for i, item in enumerate(items) if isinstance(item, Run)]
        for item in items:
            if isinstance(item, Run):
                assert all(place[Run(op)] < place[item] for op in ops[item.op])
                continue
            later = nx.descendants(needs, item)
            first = min((place[x] for x in later if isinstance(x, Run)), default=len(items))
            after = min((i for i in runs if i > place[item]), default=len(items))
            assert after == first  # the next op is the first that needs it
            if after < len(items):
                # It cannot change places with that op: something up to there needs it.
                assert any(place[x] <= after for x in needs.successors(item))
            moved += first < len(items)
            ended += first == len(items)
    assert moved > 120
    assert ended > 60


def test_ops_keep_their_order_where_they_can() -> None:
    """The next op is the first given of those whose predecessors have all run."""
    for seed in range(100):
        graph, ops, creates = random_case(seed)
        found = schedule(graph, unwind(graph, "greedy0"), ops, creates)
        left, ran = list(ops), set()
        for item in found:
            if isinstance(item, Run):
                assert item.op == next(op for op in left if ran.issuperset(ops[op]))
                left.remove(item.op)
                ran.add(item.op)
        assert left == []


WRONG: dict[str, tuple[Any, dict[str, Any] | None, tuple[str, ...]]] = {
    "cycle": ({"a": ["c"], "b": ["a"], "c": ["b"], "d": ["a"]}, None, ("'a'", "'b'", "'c'")),
    "itself": ({"a": ["a"]}, None, ("'a' -> 'a'",)),
    "unknown op": ({"a": ["b"]}, None, ("'a'", "'b'", "no op")),
    "unhashable op": ({"a": [["b"]]}, None, ("'a'", "['b']", "no op")),
    "a string of ops": ({"a": [], "b": "a"}, None, ("'b'", "list")),
    "a number of ops": ({"a": 3}, None, ("'a'", "list")),
    "a list": (["a", "b"], None, ("mapping", "networkx.DiGraph", "list")),
    "an undirected graph": (nx.Graph(), None, ("mapping", "networkx.DiGraph", "Graph")),
    "a list of sinks": ({"a": []}, ["A"], ("creates", "list")),
    "unknown sink": ({"a": []}, {"D": "a"}, ("'D'", "no sink")),
    "unknown creator": ({"a": []}, {"A": "b"}, ("'A'", "'b'", "no op")),
    "unhashable creator": ({"a": []}, {"A": ["a"]}, ("'A'", "['a']", "no op")),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ops_are_refused(name: str) -> None:
    """One line that names the op or the sink."""
    ops, creates, told = WRONG[name]
    graph = unbroadcast_add()
    with refused(*told):
        schedule(graph, unwind(graph), ops, creates)


def test_a_cycle_names_no_other_op() -> None:
    """Ops that only wait for a cycle, or that it waits for, are not on it."""
    graph = unbroadcast_add()
    ops = {"after": ["b"], "a": ["b"], "b": ["a", "before"], "before": []}
    with pytest.raises(InputError, match=r"^[^']*('a' -> 'b' -> 'a'|'b' -> 'a' -> 'b')$"):
        schedule(graph, unwind(graph), ops)
