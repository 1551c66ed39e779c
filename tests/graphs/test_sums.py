"""Elementwise ops and the pairs that draw their operands together."""

from __future__ import annotations

from typing import Any

import pytest

from layoutopt.graphs.unwinding import Graph
from tests.support import refused

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
