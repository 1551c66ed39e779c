"""Helpers that add several ops and pairs: operations, products, steps of optimisers, subgraphs."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from layoutopt.graphs.builder import Builder, all_or_nothing
from layoutopt.graphs.growers import DynamicTensor
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from tests.support import named_pairs, refused, sinks

# Elementwise operations, dynamic slices and optimiser steps: pairs and optima


@pytest.mark.parametrize("update", [False, True])
def test_dynamic(update: bool) -> None:
    """Two barriers and a source, a pair for each; the result is the part or the sliceable."""
    graph = sinks(part=(1, 3), whole=(4, 3))
    out = graph.grow_dynamic("part", "whole", update=update, name="d")
    assert isinstance(out, DynamicTensor)
    assert named_pairs(graph) == [
        ("whole", "d.plain", 50),
        ("part", "d.part.target", 100),
        ("whole", "d.sliceable.target", 100),
    ]
    found = [
        (t.name, t.kind, t.op.inputs) for t in (out.plain, out.part_target, out.sliceable_target)
    ]
    assert found == [
        ("d.plain", Kind.SOURCE, ()),
        ("d.part.target", Kind.BARRIER, ("whole",)),
        ("d.sliceable.target", Kind.BARRIER, ("part",)),
    ]
    where = graph.locations()
    assert out == graph.tensor("d" if update else "part")
    assert (where[out.name] == where["whole" if update else "part"]).all()
    assert len(graph.ops) == 5 + update


def test_dynamic_part_may_be_any_output() -> None:
    """The handle of a part that is one of several outputs is that output."""
    graph = sinks(whole=(4,))
    _, part = graph.barrier([], shapes=[(4,), (2,)], name="b")
    out = graph.grow_dynamic(part, "whole")
    assert (out, out.name, out.shape) == (part, "b:1", (2,))


# Calls, loops and conditions: copies into and out of subgraphs


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


# Helpers add everything or nothing


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
