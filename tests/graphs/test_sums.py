"""Elementwise ops and the pairs that draw their operands together."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from layoutopt.graphs.growers import SumLikeTensor
from layoutopt.graphs.ops import Kind, SumLike
from layoutopt.graphs.unwinding import Graph
from tests.support import named_pairs, proved, refused

SHAPES = {
    "x": (2, 3),
    "y": (2, 3),
    "z": (2, 3),
    "row": (1, 3),
    "column": (2, 1),
    "bias": (3,),
    "scalar": (),
}


def graph_of(*names: str) -> Graph:
    """Return a graph with a sink of each name."""
    graph = Graph()
    for name in dict.fromkeys(names):
        graph.sink(SHAPES[name], name=name)
    return graph


PAIRS = {
    "x y": [("x", "y")],
    "x y z": [("x", "y"), ("x", "z"), ("y", "z")],
    "x bias": [("s.1.reduce", "bias")],
    "bias x": [("s.0.reduce", "bias")],
    "x row": [("s.1.reduce", "row")],
    "x scalar": [("s.1.reduce", "scalar")],
    "x row column": [("s.1.reduce", "row"), ("s.2.reduce", "column")],
    "x row bias": [("s.1.reduce", "row"), ("s.2.reduce", "bias"), ("s.2.reduce2", "bias")],
    "x y bias": [("x", "y"), ("s.2.reduce", "bias"), ("s.2.reduce2", "bias")],
    "bias x y": [("s.0.reduce", "bias"), ("s.0.reduce2", "bias"), ("x", "y")],
    "x": [],
    "x x": [],
    "x x y": [("x", "y"), ("x", "y")],
    "x x bias": [("s.2.reduce", "bias"), ("s.2.reduce2", "bias")],
    "bias x bias": [("s.0.reduce", "bias"), ("s.2.reduce", "bias")],
}
"""The pairs of each sum, worked out by hand from the rule of the unwinding notes."""


@pytest.mark.parametrize("names", PAIRS)
def test_pairs(names: str) -> None:
    """Equal shapes are paired, larger ones reduced to smaller ones; nothing else is."""
    graph = graph_of(*names.split())
    largest = names.split().index("x")
    out = graph.sum_like(names.split(), "2.5", unwindable=largest, name="s")
    assert isinstance(out, SumLikeTensor)
    assert named_pairs(graph) == [(a, b, Decimal("2.5")) for a, b in PAIRS[names]]
    reduces = [(reduced.name, small.name) for _, reduced, small in out.reduces]
    assert reduces == [pair for pair in PAIRS[names] if "reduce" in pair[0]]
    for large, reduced, small in out.reduces:
        assert graph.kind(reduced) is Kind.BARRIER
        assert reduced.shape == small.shape
        assert reduced.op.inputs == (large.name,)


def test_who_is_reduced() -> None:
    """A row is reduced to a bias though both have three elements, as their shapes differ."""
    graph = graph_of("x", "row", "bias")
    reduces = graph.sum_like(["x", "row", "bias"]).reduces
    assert [(a.name, b.name) for a, _, b in reduces] == [
        ("x", "row"),
        ("x", "bias"),
        ("row", "bias"),
    ]


def test_order_and_names() -> None:
    """The op comes first; without a name all ops are numbered by type."""
    graph = graph_of("x", "row", "column")
    graph.sum_like(["x", "row", "column"])
    assert [op.id for op in graph.ops[3:]] == ["sum_like0", "sum_like_reduce0", "sum_like_reduce1"]


def test_values_for_some_pairs() -> None:
    """A value may be given for any two inputs, in either order, by any integers."""
    graph = graph_of("x", "y", "bias")
    values = {(2, 0): 7, (np.int64(0), np.int64(1)): 8}
    graph.sum_like(["x", "y", "bias"], 3, values, name="s")
    assert named_pairs(graph) == [
        ("x", "y", 8),
        ("s.2.reduce", "bias", 7),
        ("s.2.reduce2", "bias", 3),
    ]


@pytest.mark.parametrize("ways", [[0], [1], [0, 1], [1, 0], [2, 0, 1], 2, np.int64(1)])
def test_the_first_unwindable_input_gives_the_locations(ways: Any) -> None:
    """The output lies like the first listed input, and the pairs do not depend on the list."""
    graph = graph_of("x", "y", "z")
    out = graph.sum_like(["x", "y", "z"], 4, unwindable=ways, name="s")
    first = "xyz"[np.atleast_1d(ways)[0]]
    where = graph.locations()
    assert (where["s"] == where[first]).all()
    assert named_pairs(graph) == [("x", "y", 4), ("x", "z", 4), ("y", "z", 4)]
    op = out.op
    assert isinstance(op, SumLike)
    assert op.unwindable_inputs == tuple(np.atleast_1d(ways).tolist())


def test_nothing_unwindable() -> None:
    """Without unwindable inputs it is a plain barrier, and no pairs are added."""
    graph = graph_of("row", "column")
    out = graph.sum_like(["column", "row"], 9, unwindable=())
    assert (out.shape, graph.kind(out), out.reduces) == ((2, 3), Kind.BARRIER, ())
    assert graph.pairs == []


@pytest.mark.parametrize(
    ("operands", "arguments", "reason"),
    [
        ("x x", {"values": {(0, 2): 1}}, "pair of inputs (0, 2) is not two of the 2 inputs"),
        ("x x", {"values": {(0, 0): 1}}, "pair of inputs (0, 0) is not two of the 2 inputs"),
        ("x x", {"values": {(0, 1): 1, (1, 0): 2}}, "(1, 0) is given twice"),
        ("x x", {"values": {0: 1}}, "values: 0 is not a pair of input indices"),
        ("x x", {"values": {(0, 1, 1): 1}}, "values: (0, 1, 1) is not a pair of input indices"),
        ("x x", {"values": {"ab": 1}}, "values: 'ab' is not a pair of input indices"),
        ("x row", {"unwindable": 1}, "unwindable input 1 has shape [1, 3], the output [2, 3]"),
        ("x y", {"unwindable": 2}, "unwindable input 2 is not one of 0..1"),
        ("x y", {"unwindable": "a"}, "must be integers"),
        ("x y", {"value": "much"}, "value 'much' is not a decimal number"),
        ("x y", {"values": {(0, 1): float("nan")}}, "value nan is not finite"),
        ("x y", {"name": "x"}, "op 'x' (sum_like): the id is taken"),
        ("", {"unwindable": ()}, "sum_like of nothing: needs at least one input"),
        ("", {}, "needs at least one input"),
    ],
)
def test_wrong_arguments(operands: str, arguments: dict[str, Any], reason: str) -> None:
    """What is wrong is told in one line, and nothing is added."""
    graph = graph_of("x", "y", "row")
    with refused(reason):
        graph.sum_like(operands.split(), **arguments)
    assert graph == graph_of("x", "y", "row")


def test_shapes_that_do_not_broadcast() -> None:
    """Operands that fit neither way are refused with and without unwindable inputs."""
    graph = Graph()
    x, y = graph.sink((2,), name="x"), graph.sink((3,), name="y")
    for ways in ((), 0):
        with refused("'x'", "'y'", "shapes [[2], [3]] do not broadcast"):
            graph.sum_like([x, y], unwindable=ways)
    for single in (x, "x"):
        with refused("inputs must be a list, not one "):
            graph.sum_like(single)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "values", "best"),
    [
        # The bias follows one of two reduces: x's at (0, 2) or y's at (1, 2).
        (1, {(0, 2): 5, (1, 2): 7}, 3 * 7),
        (1, {(0, 2): 9, (1, 2): 7}, 3 * 9),
        # It has a target worth 4 as well.
        (3, {}, 3 * 4),
        ("4.5", {}, Decimal("13.5")),
    ],
)
def test_optimum(value: Any, values: Any, best: Any) -> None:
    """A bias lies where it is worth most: at one of two reduces, or at its own target."""
    graph = Graph()
    x, y = graph.source((2, 3), name="x"), graph.source((2, 3), name="y")
    bias = graph.sink((3,), name="bias")
    graph.valued_pair(bias, graph.source((3,), name="target"), 4)
    graph.sum_like([x, y, bias], value, values, name="s")
    assert proved(graph).score == best


@pytest.mark.parametrize(("ways", "best"), [((0, 1), 60), ((1, 0), 6), (1, 6)])
def test_optimum_depends_on_the_first_unwindable_input(ways: Any, best: int) -> None:
    """A target of the output can be reached only through a first listed input that is free.

    Where that is the source, the sink has nothing better to do than to take its locations.
    """
    graph = Graph()
    free, fixed = graph.sink((2, 3)), graph.source((2, 3))
    out = graph.sum_like([free, fixed], 1, unwindable=ways)
    graph.valued_pair(out, graph.source((2, 3)), 10)
    assert proved(graph).score == best
