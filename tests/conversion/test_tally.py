"""Transforms of a graph are counted from the graph alone."""

from __future__ import annotations

from layoutopt.conversion.costs import tally
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Relaid, Tally
from tests.conversion.drawn import WEIGH


def test_transposes() -> None:
    """Each transpose that moves elements counts, with its bytes; size 1 and constants are free."""
    graph = ConversionGraph()
    x = graph.input("x", (2, 1, 5, "n"), element_bytes=2)
    graph.op("Transpose", [x], {"perm": (0, 2, 3, 1)}, name="free")
    y = graph.op("Transpose", [x], {"perm": (2, 1, 0, 3)}, name="paid")
    graph.op("Transpose", [y], {"perm": (2, 1, 0, 3)}, name="back")
    c = graph.constant("c", (3, 4))
    graph.op("Transpose", [c], name="folded")
    assert tally(graph) == Tally(2, 40, 2, {"paid": 20, "back": 20})


def test_copies_of_constants() -> None:
    """Of layouts of one constant that are read, all but the first cost a copy each."""
    graph = ConversionGraph()
    c = graph.constant("c", (3, 4))
    turned = graph.op("Transpose", [c], name="turned")
    again = graph.op("Transpose", [turned], name="again")
    graph.op("Relu", [turned])
    assert tally(graph).transforms == 0
    graph.op("Relu", [again])
    assert tally(graph) == Tally(1, 48, 2, {"again": 48})


def test_constants_made_of_others() -> None:
    """Constants of one source are its layouts; axes of size 1 in them make no difference."""
    graph = ConversionGraph()
    for name, shape in {"a": (3, 4), "b": (1, 3, 4), "c": (4, 1, 3), "d": (4, 3)}.items():
        graph.op(WEIGH, [graph.constant(name, shape)], shape=shape)
    relaid = {
        "b": Relaid("a", (1, 3, 4), (0, 1, 2)),
        "c": Relaid("a", (1, 3, 4), (2, 0, 1)),
        "d": Relaid("a", None, (1, 0)),
    }
    assert tally(graph).transforms == 0
    assert tally(graph, relaid) == Tally(1, 48, 0, {"c": 48})


def test_what_nobody_reads() -> None:
    """A constant in a layout that nobody reads costs nothing; an output is read."""
    graph = ConversionGraph()
    c = graph.constant("c", (3, 4))
    graph.op("Relu", [c])
    turned = graph.op("Transpose", [c])
    assert tally(graph).bytes == 0
    graph.output(turned)
    assert tally(graph).bytes == 48
