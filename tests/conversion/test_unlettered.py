"""Layouts that are desired of ops whose axes have no letters of their own."""

from __future__ import annotations

import pytest

from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph

LAST = (0, 2, 3, 1)


def network() -> ConversionGraph:
    """Return a convolution, a sum, and behind a transpose a ReLU and a mean."""
    graph = ConversionGraph("unlettered")
    y = graph.op("Conv", [graph.input("x", (1, 3, 8, 8)), graph.constant("w", (8, 3, 3, 3))])
    y = graph.op("Add", [y, graph.constant("b", (8, 1, 1))], name="add")
    y = graph.op("Relu", [graph.op("Transpose", [y], {"perm": LAST})], name="relu")
    graph.output(graph.op("ReduceMean", [y], {"axes": (1, 2), "keepdims": 0}, name="mean"))
    graph.output(y)
    return graph


@pytest.mark.parametrize(
    ("text", "orders"),
    [("Relu=NHWC", [LAST, (0, 3, 1, 2)]), ("Relu=NCHW", []), ("Relu=C*H*", [(1, 0, 2, 3)] * 2)],
)
def test_letters_that_nothing_tells_go_by_position(text: str, orders: list[object]) -> None:
    """Of four axes they are N, C, H, W."""
    graph = ConversionGraph()
    graph.output(graph.op("Relu", [graph.input("x", (2, 3, 4, 5))]))
    found = convert_graph(graph, desired=parse_desired(text))
    ran = [op.attributes["perm"] for op in found.graph.ops if op.type == "Transpose"]
    assert ran == orders
