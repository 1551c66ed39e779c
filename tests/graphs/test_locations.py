"""Locations of whole graphs, as numbers."""

from __future__ import annotations

import numpy as np

from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.locations import Locations
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.unwinding import Graph
from layoutopt.unwinding import unwind


def small() -> Graph:
    """Return a graph of two sinks, shared locations, a view of both sinks and a barrier."""
    graph = Graph()
    x, y = graph.sink((2,), name="x"), graph.sink((1, 2), name="y")
    graph.source((3,), ["here", 7, "here"], name="s")
    graph.source((2,), [7, "7"], name="t")
    joined = graph.concat([graph.reshape(x, (1, 2)), y], 0, name="joined")
    graph.barrier([joined], (2,), name="b")
    return graph


def test_origins_name_the_first_element_of_each_location() -> None:
    """The way back finds the first tensor that has a location; negative numbers have none."""
    graph = small()
    tensors, elements = Locations(graph).origins(np.array([12, 11, 0, -1, 13]))
    names = [graph.tensor_name(t) if t >= 0 else "" for t in tensors.tolist()]
    assert names == ["s", "s", "x", "", "t"]
    assert elements.tolist() == [1, 0, 0, 0, 1]


def test_matches_of_pairs_agree_with_the_specification() -> None:
    """Counting equal numbers of each pair gives what the check counts."""
    for seed in range(60):
        graph = random_graph(seed, elements=12)
        result = unwind(graph)
        where = graph.locations(result.layouts)
        for pair in result.pairs:
            assert np.count_nonzero(where[pair.a] == where[pair.b]) == pair.matched
        again = Locations(graph).origins(
            np.concatenate([np.zeros(0, int), *(w.reshape(-1) for w in where.values())])
        )
        assert all(graph.handle(t).kind is not Kind.VIEW for t in np.unique(again[0]).tolist())
