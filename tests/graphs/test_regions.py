"""Which elements come from where: regions pushed both ways, and numbers of locations."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.locations import Locations
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.unwinding import unwind
from models.statement import view

s_ = np.s_


def origins(graph: Graph) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield each view's name, and input index and flat element of each output element.

    By the plain-Python statement of the problem, which shares nothing with the package.
    """
    for entry in json.loads(instance_bytes(graph))["ops"]:
        if graph.kind(f"{entry['id']}:0") is Kind.VIEW:
            held = [
                (list(x.shape), [("", k, e) for e in range(x.size)])
                for k, x in enumerate(graph.inputs(entry["id"]))
            ]
            yield entry["id"], [(k, e) for _, k, e in view(entry, held)[1]]


def test_regions_are_what_the_statement_says() -> None:
    """On random graphs, regions pushed either way are the elements that the definition names."""
    rng = np.random.default_rng(0)
    pushed = 0
    for seed in range(60):
        graph = random_graph(seed, ops=12)
        for name, comes_from in origins(graph):
            out = graph.tensor(name)
            for k in {k for k, _ in comes_from}:
                x = graph.inputs(name)[k]
                chosen, inside = rng.random(out.shape) < 0.5, rng.random(x.shape) < 0.5
                used = {comes_from[i][1] for i in np.flatnonzero(chosen) if comes_from[i][0] == k}
                found = graph.in_regions(name, chosen, k)
                assert found.shape == x.shape
                assert set(np.flatnonzero(found)) == used
                found = graph.out_regions(name, inside, k)
                assert found.shape == out.shape
                shown = [i for i, (j, e) in enumerate(comes_from) if j == k and inside.flat[e]]
                assert np.flatnonzero(found).tolist() == shown
                pushed += 1
    assert pushed > 300


def test_regions_by_hand() -> None:
    """A concat's part, an expand's copies, and a slice's box; regions as indices and as masks."""
    graph = Graph()
    x, y = graph.sink((2, 2), name="x"), graph.sink((2, 1), name="y")
    graph.concat([x, y], 1, name="joint")  # x x y
    assert graph.in_regions("joint", s_[0]).tolist() == [[True, True], [False, False]]
    assert graph.in_regions("joint", s_[:, 1:], 1).tolist() == [[True], [True]]
    assert graph.out_regions("joint", s_[:, 1]).tolist() == [[False, True, False]] * 2
    assert graph.out_regions("joint", s_[1], 1).tolist() == [[False] * 3, [False, False, True]]
    graph.expand(y, (2, 3), name="wide")
    assert graph.in_regions("wide", s_[1, 2]).tolist() == [[False], [True]]
    assert graph.out_regions("wide", s_[1]).tolist() == [[False] * 3, [True] * 3]
    part = graph.slice(x, 1, 2)
    mask = np.array([[True, False], [True, True]])
    assert graph.out_regions(part, mask).tolist() == [[True, True]]
    assert graph.in_regions(part, s_[..., ::-1]).tolist() == [[False, False], [True, True]]
    scalar = graph.reshape(graph.slice(y, 0, 1), (), name="scalar")
    assert graph.in_regions(scalar, ()).tolist() == [[True]]
    assert graph.out_regions(scalar, s_[:]).tolist() is True
    assert graph.out_regions(scalar, s_[:0]).shape == ()
    assert graph.in_regions(scalar, np.False_).tolist() == [[False]]
    empty = graph.slice(x, 1, 1)
    assert not graph.in_regions(empty, s_[:]).any()
    assert graph.out_regions(empty, s_[:]).shape == (0, 2)


def test_index_maps_of_random_graphs() -> None:
    """Composed over whole graphs, it is what following the statement's ops gives."""
    come = 0
    for seed in range(40):
        graph = random_graph(seed, ops=12)
        flows = dict(origins(graph))
        tensors = graph.tensors()
        for start in tensors[:: 1 + len(tensors) // 8]:
            reached: dict[Tensor, list[int]] = {}
            for t in tensors:
                if t == start:
                    reached[t] = list(range(t.size))
                elif t.op.id in flows:
                    inputs = [reached[x] for x in graph.inputs(t)]
                    reached[t] = [inputs[k][e] for k, e in flows[t.op.id]]
                else:
                    reached[t] = [-1] * t.size
            for t in tensors:
                found = graph.index_map(start, t)
                assert found.shape == t.shape
                assert found.reshape(-1).tolist() == reached[t]
                come += t != start and max(reached[t], default=-1) >= 0
    assert come > 200


# Locations of whole graphs, as numbers


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
