"""Calls, loops and conditions: copies into and out of subgraphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from layoutopt.graphs.ops import Kind
from layoutopt.graphs.unwinding import Graph
from tests.support import named_pairs, proved, refused


def subgraphs() -> Graph:
    """Return a graph with outside tensors ``a``, ``b`` and two bodies ``x -> y``, ``u -> v``."""
    graph = Graph()
    for name in ("a", "b", "x", "u"):
        graph.sink((2,), name=name)
    graph.sink((3,), name="long")
    graph.reverse("x", [0], name="y")
    graph.reverse("u", [0], name="v")
    return graph


Case = tuple[Callable[[Graph], Any], list[str], list[tuple[str, str, int]]]

CASES: dict[str, Case] = {
    "call": (
        lambda g: g.call([("a", "x"), ("b", "u")], ["y", "v"], 4, names=["r", "s"]),
        ["r", "s"],
        [("a", "x", 4), ("b", "u", 4), ("y", "r", 4), ("v", "s", 4)],
    ),
    "call with a value per copy": (
        lambda g: g.call([("a", "x"), ("b", "u")], ["y", "v"], 1, [5, 6], [7, 8], ["r", "s"]),
        ["r", "s"],
        [("a", "x", 5), ("b", "u", 6), ("y", "r", 7), ("v", "s", 8)],
    ),
    "call with values of one kind": (
        lambda g: g.call(iter([("a", "x")]), iter(["y"]), values_out=(v for v in [9])),
        ["sink0"],
        [("a", "x", 1), ("y", "sink0", 9)],
    ),
    "call of nothing": (lambda g: g.call([], []), [], []),
    "call that returns what it got": (
        lambda g: g.call([("a", "x")], ["x", "x"], 2),
        ["sink0", "sink1"],
        [("a", "x", 2), ("x", "sink0", 2), ("x", "sink1", 2)],
    ),
    "loop": (
        lambda g: g.loop([("a", "x"), ("b", "u")], [("y", "x")], ["v"], 4),
        ["sink0"],
        [("a", "x", 4), ("b", "u", 4), ("y", "x", 4), ("v", "sink0", 4)],
    ),
    "loop with a value per copy": (
        lambda g: g.loop(
            [("a", "x"), ("b", "u")],
            [("y", "u"), ("v", "x")],
            ["v", "y"],
            values_in=[1, 2],
            values_carried=[30, 40],
            values_out=[5, 6],
            names=["r", "s"],
        ),
        ["r", "s"],
        [
            ("a", "x", 1),
            ("b", "u", 2),
            ("y", "u", 30),
            ("v", "x", 40),
            ("v", "r", 5),
            ("y", "s", 6),
        ],
    ),
    "loop that only carries": (lambda g: g.loop([], [("y", "x")], [], 3), [], [("y", "x", 3)]),
    "cond": (
        lambda g: g.cond([[("a", "x"), ("b", "x")], [("a", "u")]], [["y"], ["v"]], 4),
        ["sink0"],
        [("a", "x", 4), ("b", "x", 4), ("a", "u", 4), ("y", "sink0", 4), ("v", "sink0", 4)],
    ),
    "cond with a value per copy": (
        lambda g: g.cond(
            [[("a", "x"), ("b", "x")], [("a", "u")]],
            [["y", "x"], ["v", "u"]],
            values_in=[[1, 2], [3]],
            values_out=[[4, 5], [6, 7]],
            names=["r", "s"],
        ),
        ["r", "s"],
        [
            ("a", "x", 1),
            ("b", "x", 2),
            ("a", "u", 3),
            ("y", "r", 4),
            ("x", "s", 5),
            ("v", "r", 6),
            ("u", "s", 7),
        ],
    ),
    "cond of three branches": (
        lambda g: g.cond([[("a", "x")], [("a", "u")], []], [["y"], ["v"], ["b"]], 2, names=["r"]),
        ["r"],
        [("a", "x", 2), ("a", "u", 2), ("y", "r", 2), ("v", "r", 2), ("b", "r", 2)],
    ),
    "cond without results": (
        lambda g: g.cond([[("a", "x")], []], [[], []]),
        [],
        [("a", "x", 1)],
    ),
}
"""What is added for each, worked out by hand: new sinks, and pairs in order."""


@pytest.mark.parametrize("case", CASES)
def test_sinks_and_pairs(case: str) -> None:
    """There is a new sink for each result, a pair for each copy, and nothing else."""
    add, names, pairs = CASES[case]
    graph = subgraphs()
    before = len(graph.ops)
    sinks = add(graph)
    assert [s.name for s in sinks] == names == [op.id for op in graph.ops[before:]]
    assert all(s.kind is Kind.SINK and s.shape == (2,) for s in sinks)
    assert named_pairs(graph) == pairs


WRONG: list[tuple[Callable[[Graph], Any], str]] = [
    (lambda g: g.call([("a", "x")], [], values_in=[1, 2]), "values_in has 2 entries for 1 copies"),
    (lambda g: g.call([], ["y"], values_out=[]), "values_out has 0 entries for 1 copies"),
    (lambda g: g.call([], ["y"], names=["r", "s"]), "names has 2 entries for 1 copies out"),
    (lambda g: g.call([], ["y"], names="r"), "names must be a list, not one str"),
    (lambda g: g.call([], "y"), "copies_out must be a list, not one str"),
    (lambda g: g.call([], g.tensor("y")), "copies_out must be a list, not one Tensor"),
    (lambda g: g.call(None, []), "copies_in must be a list, not one NoneType"),
    (lambda g: g.call(["ax"], []), "copies_in[0] must be a list, not one str"),
    (lambda g: g.call([("a", "x"), ("a",)], []), "copies_in[1] must be two tensors, not 1"),
    (lambda g: g.call([("a", "x", 1)], []), "copies_in[0] must be two tensors, not 3"),
    (
        lambda g: g.call([("a", "x"), ("long", "x")], ["y"]),
        "copies_in[1]: valued pair of 'long' [3] and 'x' [2]: the shapes differ",
    ),
    (lambda g: g.call([("a", "z")], ["y"]), "copies_in[0]: 'z' names no tensor"),
    (lambda g: g.call([("a", "x")], ["z"]), "'z' names no tensor"),
    (lambda g: g.call([("a", "x")], ["y"], "high"), "copies_in[0]: value 'high' is not a decimal"),
    (lambda g: g.call([("a", "x")], ["y", "y"], names=["r", "a"]), "'a' (sink): the id is taken"),
    (
        lambda g: g.loop([], [("y", "x")], [], values_carried=[1, 2]),
        "values_carried has 2 entries for 1 copies",
    ),
    (lambda g: g.loop([], [("y", "x")], [], values_in=[1]), "values_in has 1 entries for 0 copies"),
    (
        lambda g: g.loop([], [], ["y"], values_out=[1, 2]),
        "values_out has 2 entries for 1 copies",
    ),
    (lambda g: g.loop([], [], ["y"], names=[]), "names has 0 entries for 1 copies out"),
    (
        lambda g: g.loop([("a", "x")], [("y", "x"), ("y", "long")], ["y"]),
        "carried[1]: valued pair of 'y' [2] and 'long' [3]: the shapes differ",
    ),
    (lambda g: g.cond([], []), "copies_in has no branches; a condition needs at least one"),
    (lambda g: g.cond([[], []], [["y"]]), "copies_out has 1 entries for 2 branches"),
    (
        lambda g: g.cond([[], []], [["y"], []]),
        "copies_out[1] has 0 entries, copies_out[0] 1; all branches return equally many",
    ),
    (
        lambda g: g.cond([[], []], [["x", "y"], ["u", "long"]]),
        "copies_out[1][1]: 'long' has shape [3], but 'y' of copies_out[0] [2]",
    ),
    (
        lambda g: g.cond([[("a", "x")], [("a", "long")]], [[], []]),
        "copies_in[1][0]: valued pair of 'a' [2] and 'long' [3]: the shapes differ",
    ),
    (
        lambda g: g.cond([[("a", "x")], []], [[], []], values_in=[[1]]),
        "values_in has 1 entries for 2 branches",
    ),
    (
        lambda g: g.cond([[("a", "x")], []], [[], []], values_in=[[1], [2]]),
        "values_in[1] has 1 entries for 0 copies",
    ),
    (
        lambda g: g.cond([[], []], [["y"], ["v"]], values_out=[[1], []]),
        "values_out[1] has 0 entries for 1 copies",
    ),
    (
        lambda g: g.cond([[], []], [["y"], ["v"]], values_out=[1, 2]),
        "values_out[0] must be a list, not one int",
    ),
    (lambda g: g.cond([[], []], [["y"], ["v"]], names=["r", "s"]), "names has 2 entries for 1"),
    (lambda g: g.cond([[], []], ["y", "v"]), "copies_out[0] must be a list, not one str"),
]


@pytest.mark.parametrize(("add", "reason"), WRONG, ids=[reason for _, reason in WRONG])
def test_wrong_arguments(add: Callable[[Graph], Any], reason: str) -> None:
    """What is wrong is told in one line, and nothing is added."""
    graph = subgraphs()
    with refused(reason):
        add(graph)
    assert graph == subgraphs()


def two_branches(first: Any, second: Any, out: Any) -> Graph:
    """Return a graph with two branches, whose inputs have targets of their own worth 10."""
    graph = Graph()
    x = graph.sink((4,), name="x")
    inputs = [graph.sink((4,), name=name) for name in ("a", "b")]
    for branch in inputs:
        graph.valued_pair(branch, graph.source((4,)), 10)
    graph.cond(
        [[(x, inputs[0])], [(x, inputs[1])]],
        [[inputs[0]], [inputs[1]]],
        values_in=[[first], [second]],
        values_out=[[out], [out]],
        names=["y"],
    )
    return graph


@pytest.mark.parametrize(
    ("first", "second", "out", "best"),
    [
        # Both branches at their targets, 80; then x and y lie at one of the two each.
        (3, 7, 1, 80 + 4 * 7 + 4 * 1),
        (8, 7, 1, 80 + 4 * 8 + 4 * 1),
        (3, 7, 2, 80 + 4 * 7 + 4 * 2),
        # All at one target, 40: every copy matches.
        (9, 7, 2, 80 + 4 * 9 + 4 * 2),
        (9, 8, 3, 40 + 4 * (9 + 8 + 3 + 3)),
        (20, 20, 0, 40 + 4 * 40),
    ],
)
def test_optimum_of_a_condition(first: int, second: int, out: int, best: int) -> None:
    """Two branches compete for what they share, and agree where copies are worth more."""
    assert proved(two_branches(first, second, out)).score == best
