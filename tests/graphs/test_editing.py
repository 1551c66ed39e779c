"""Editing: removing, renaming and copying, held against graphs that were built that way."""

from __future__ import annotations

import copy
import pickle
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from layoutopt import explain_pair, explain_sink, unwind
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, parse_instance
from layoutopt.tiles.memory import TileMemory
from tests.support import refused


def rebuilt(graph: Graph, without: frozenset[str] = frozenset()) -> Graph:
    """Return a graph built anew from the ops and pairs of another, except for some ops."""
    again = Graph(graph.name, graph.description)
    gone = {x.name for name in without for x in graph.outputs(name)}
    for op in graph.ops:
        if op.id not in without:
            again.add(op)
    for pair in graph.valued_pairs():
        if pair.a.name not in gone and pair.b.name not in gone:
            again.valued_pair(pair.a.name, pair.b.name, pair.value)
    return again


def told(graph: Graph) -> Any:
    """Return everything that a graph tells about itself, by name and number."""
    return (
        graph.op_inputs,
        [list(outputs) for outputs in graph.op_outputs],
        graph.producers,
        graph.pairs,
        [(x.name, x.index, x.shape, x.kind, x.op.id) for x in graph.tensors()],
        [[x.index for x in some()] for some in (graph.sinks, graph.sources, graph.barriers)],
        [graph.consumers(x) for x in graph.tensors()],
        [[(p.name, v) for p, v in graph.valued_partners(x)] for x in graph.tensors()],
        [(graph.op_number(op.id), graph.carriers(i)) for i, op in enumerate(graph.ops)],
        str(graph),
    )


def same(graph: Graph, other: Graph) -> bool:
    """Return whether two graphs are equal, and tell the same."""
    return graph == other and told(graph) == told(other)


def small(**names: str) -> Graph:
    """Return a graph with an op of two outputs and one of none, and a pair of most kinds.

    Parameters
    ----------
    names
        Other names for its ops.
    """
    graph = Graph("small", "for editing")
    named = {name: names.get(name, name) for name in ("x", "y", "b", "none", "r", "c")}
    x, y = graph.sink((2,), name=named["x"]), graph.sink((2,), name=named["y"])
    a, b = graph.barrier([x], shapes=[(2,), (3,)], name=named["b"])
    graph.barrier([], shapes=[], name=named["none"])
    r = graph.reverse(y, [0], name=named["r"])
    graph.concat([a, r], 0, name=named["c"])
    for one, other, value in [(x, y, 1), (y, a, 2), (x, x, 3), (y, x, 4), (a, r, 5), (b, b, 6)]:
        graph.valued_pair(one, other, value)
    return graph


class TestRemove:
    """Removing ops."""

    @pytest.mark.parametrize("seed", range(25))
    def test_random_graphs_down_to_nothing(self, seed: int) -> None:
        """Unread ops are removed one by one; each time it is as if they never were."""
        draw = random.Random(seed)
        graph = random_graph(seed, ops=12, pairs=8)
        handles = {x.name: x for x in graph.tensors()}
        while graph.ops:
            read = {name for op in graph.ops for name in op.inputs}
            free = [op.id for op in graph.ops if not read & {x.name for x in graph.outputs(op.id)}]
            name = draw.choice(free)
            wanted = rebuilt(graph, frozenset([name]))
            for x in graph.outputs(name):
                del handles[x.name]
            graph.remove(name)
            assert same(graph, wanted)
            assert all(x == graph.tensor(n) and x.name == n for n, x in handles.items())
        assert not handles
        assert same(graph, Graph(graph.name, graph.description))

    def test_adding_goes_on(self) -> None:
        """What is added after a removal is as in a graph that was built without."""
        graph, wanted = small(), rebuilt(small(), frozenset(["b", "c"]))
        graph.remove("c", "b")
        for one in (graph, wanted):
            one.concat(["x", "r"], 0)
            one.valued_pair("concat0", "concat0", 9)
            one.barrier(["concat0"], shapes=[(1,), (1,)], name="b")
        assert same(graph, wanted)


def test_all_of_two_tensors() -> None:
    """Every pair of the two goes, whichever way it was written, and is returned."""
    graph = small()
    told(graph)  # so that something could have been kept in mind
    gone = graph.remove_pairs("x", "y")
    assert [(p.a.name, p.b.name, int(p.value)) for p in gone] == [("x", "y", 1), ("y", "x", 4)]
    assert [int(v) for _, _, v in graph.pairs] == [2, 3, 5, 6]
    assert [(p.name, int(v)) for p, v in graph.valued_partners("y")] == [("b:0", 2)]
    assert same(graph, rebuilt(graph))


class TestRename:
    """Renaming ops."""

    @pytest.mark.parametrize(
        ("old", "new"),
        [("x", "first"), ("b", "barrier"), ("b:1", "barrier"), ("c", "joint"), ("none", "empty")]
        + [("r", "r:0"), ("r", "b:2"), ("y", "x:0"), ("x", "x")],
    )
    def test_as_if_always_named_so(self, old: str, new: str) -> None:
        """Readers, pairs and files have the new name, as if the op had been added with it."""
        graph = small()
        handles = graph.tensors()
        name = graph.op(old).id
        graph.rename(old, new)
        assert same(graph, small(**{name: new}))
        assert same(graph, parse_instance(instance_bytes(graph)))
        assert handles == graph.tensors()
        assert [x.index for x in handles] == list(range(len(handles)))
        if name != new:
            with refused(f"unknown tensor '{name}'"):
                graph.inputs(name)
            assert graph.sink((1,), name=name).name == name

    def test_bytes_follow_a_name(self) -> None:
        """What an element of a tensor takes is not lost with the tensor's name."""
        graph = small()
        graph.tile_memory = TileMemory(4, 64, element_bytes={"x": 2, "b:1": 8, "default": 1})
        graph.rename("x", "first")
        graph.rename("b", "barrier")
        assert graph.tile_memory.element_bytes == {"first": 2, "barrier:1": 8, "default": 1}
        graph.tile_memory = TileMemory(4, 64, element_bytes={"first": 2, "x": 8, "default": 1})
        graph.rename("first", "x")
        graph.rename("y", "default")
        graph.rename("default", "y")
        assert graph.tile_memory.element_bytes == {"x": 2, "default": 1}

    def test_random_graphs(self) -> None:
        """With every op renamed, the file of a graph still describes that graph."""
        for seed in range(20):
            graph = random_graph(seed, ops=12)
            shapes = list(graph.shapes)
            for i, op in enumerate(list(graph.ops)):
                graph.rename(op.id, f"op{-i}")
            assert [op.id for op in graph.ops] == [f"op{-i}" for i in range(len(graph.ops))]
            assert graph.shapes == shapes
            assert same(graph, parse_instance(instance_bytes(graph)))


COPIERS: list[Callable[[Any], Any]] = [
    lambda graph: graph.copy(),
    copy.copy,
    copy.deepcopy,
    lambda held: pickle.loads(pickle.dumps(held)),
]


@pytest.mark.parametrize("copied", COPIERS)
def test_copies_are_equal_and_independent(copied: Callable[[Any], Any]) -> None:
    """A copy tells the same, and neither changes with the other."""
    for changed_first in (False, True):
        graph = small()
        told(graph)  # so that something could have been kept in mind
        other = copied(graph)
        assert type(other) is Graph
        assert same(graph, other)
        changed, kept = (graph, other) if changed_first else (other, graph)
        changed.reverse("c", [0])
        changed.identity("x")
        changed.valued_pair("x", "y", 9)
        changed.valued_pair("b:1", "b:1", 9)
        assert same(kept, small())
        assert same(changed, rebuilt(changed))
        changed.remove("none")
        changed.remove_pairs("b:0", "r")
        changed.rename("x", "z")
        changed.name = "changed"
        assert same(kept, small())
        assert same(changed, rebuilt(changed))


def test_subclasses() -> None:
    """Graphs whose class is made otherwise are copied, explained and put on tiles."""

    class Layer(Graph):
        __slots__ = ("lock", "width")

        def __init__(self, width: int) -> None:
            super().__init__("layer")
            self.width, self.lock, self.sizes = width, threading.Lock(), (n for n in range(width))

    graph = Layer(2)
    x = graph.sink((2,), name="x")
    graph.valued_pair(graph.barrier([x], (2,), hook="same"), graph.source((2,), name="s"), 1)
    assert (type(graph.copy()), graph.copy().width, graph.copy()) == (Layer, 2, graph)
    graph.tile_memory = TileMemory(2, 1024)
    result = unwind(graph, barriers="opaque")
    assert type(result.graph) is Layer
    assert explain_sink(result.graph, result, "x").sink == "x"
    graph.tile_memory = None
    assert str(explain_pair(graph, unwind(graph), "barrier0", "s"))


def test_threads_may_look_at_one_graph() -> None:
    """What is kept in mind for one of them is not kept twice."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            graph, go = Graph(), threading.Barrier(4)
            x = graph.sink((2,), name="x")
            for _ in range(300):
                graph.valued_pair(x, graph.identity(x), 1)

            def look(graph: Graph = graph, go: threading.Barrier = go) -> None:
                go.wait()
                graph.consumers("x")
                graph.valued_partners("x")

            threads = [threading.Thread(target=look) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(graph.consumers("x")) == len(graph.valued_partners("x")) == 300
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("road", COPIERS[2:])
def test_handles_that_are_copied_with_their_graph(road: Callable[[Any], Any]) -> None:
    """A graph and its handles, copied together, belong together again, in any order."""
    for first in (False, True):
        graph = small()
        total = graph.sum_like(["x", "c", "y"][::2], name="total")
        held = [graph.tensor("r"), total, graph.tensor("b:1"), graph.valued_pairs()[0]]
        held.insert(0 if first else 4, graph)
        copies = road(held)
        other = copies.pop(0 if first else 4)
        r, again, b, pair = copies
        assert (r, again, b) == (other.tensor("r"), other.tensor("total"), other.tensor("b:1"))
        assert (pair.a, pair.b) == (other.tensor("x"), other.tensor("y"))
        assert type(again) is type(total)
        other.remove("total", "c", "none")
        assert repr(again).endswith("(removed)")
        assert other.identity(r).shape == (2,)
        assert {r: 1}[other.tensor("r")] == 1
        assert graph.tensor("total") == total
