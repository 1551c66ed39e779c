"""The order of a solution: steps, and schedules of ops."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import networkx as nx

from benchmarks.figures import unbroadcast_add
from layoutopt.base.result import Piece
from layoutopt.graphs.unwinding import Graph
from layoutopt.program.steps import BarrierReady, Place, Run, Schedule, schedule, steps
from layoutopt.unwinding import unwind
from tests.models.instances import FAMILIES

# Steps and a framework's ops in one order


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


def scheduled(ops: Any, creates: Any = None) -> Schedule:
    """Schedule a framework's ops with the layouts of a figure."""
    graph = unbroadcast_add()
    return schedule(graph, unwind(graph), ops, creates)


# The steps of a result: which there are, in which order, and what each needs


def halves() -> tuple[Graph, dict[str, tuple[Piece, ...]]]:
    """Return a sink whose second half takes what a barrier makes of its first half."""
    graph = Graph("halves")
    x = graph.sink((4,), name="x")
    graph.source((2,), name="s")
    graph.barrier([graph.slice(x, (0,), (2,))], (2,), name="f")
    return graph, {"x": (("f", 0, 2, ((2, 1, 1),)), ("s", 0, 0, ((2, 1, 1),)))}


def test_printed_steps() -> None:
    """A step says what takes locations of what, or which barrier is known."""
    graph, layouts = halves()
    assert [str(step) for step in steps(graph, layouts)] == [
        "place x, piece 1: 2 locations of s",
        "know f",
        "place x, piece 0: 2 locations of f",
    ]
    own = Place("x", 0, ("x", 3, 3, ((1, 1, 1),)))
    assert str(own) == "place x, piece 0: 1 location of its own"
