"""Helpers add everything or nothing."""

from __future__ import annotations

import inspect

import pytest

from layoutopt.graphs.builder import Builder, all_or_nothing
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from tests.support import refused


@all_or_nothing
def three_sinks(graph: Builder, last: str, *, value: object = 1) -> Tensor:
    """Add three sinks, with pairs of the first two and of old tensors."""
    first = graph.sink((2,), name="first")
    graph.valued_pair("old", "old", 5)
    graph.valued_pair(first, "old", 5)
    graph.valued_pair(first, graph.identity("old", name="second"), value)
    return graph.sink((2,), name=last)


def start() -> Graph:
    """Return a graph with a tensor and a pair."""
    graph = Graph()
    x = graph.sink((2,), name="old")
    graph.valued_pair(x, x, 1)
    return graph


@pytest.mark.parametrize(("last", "value"), [("old", 1), ("third", "no number"), ("second", 1)])
def test_what_was_added_is_taken_back(last: str, value: object) -> None:
    """After an error ops and pairs are what they were, and the graph can be built further."""
    graph = start()
    old = graph.tensor("old")
    with refused(""):
        three_sinks(graph, last, value=value)
    assert graph == start()
    assert (old.index, old.name, graph.valued_partners(old)) == (0, "old", ((old, 1),))
    assert three_sinks(graph, "third").index == 3
    assert len(graph.pairs) == 4


def test_errors_that_are_no_input_errors() -> None:
    """A mistake in Python, too, leaves nothing behind, and is told as it is."""

    @all_or_nothing
    def mistaken(graph: Builder, inputs: int) -> float:
        graph.valued_pair(graph.sink((2,)), "old", 5)
        return 1 / inputs

    graph = start()
    with pytest.raises(ZeroDivisionError):
        mistaken(graph, 0)
    assert graph == start()


def test_a_helper_keeps_its_signature() -> None:
    """Name, text and parameters are the helper's own."""
    assert three_sinks.__name__ == "three_sinks"
    assert inspect.getdoc(Graph.call) is not None
    assert [*inspect.signature(Graph.grow_matmul).parameters][:3] == ["graph", "lhs", "rhs"]
