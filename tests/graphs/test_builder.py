"""The builder: handles, names, pairs, and the helpers that add several things at once."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs import ops
from layoutopt.graphs.op import Kind, type_name
from layoutopt.graphs.unwinding import Graph, SumLikeTensor
from tests.support import refused


def pairs(graph: Graph) -> list[tuple[str, str, Decimal]]:
    """Return all pairs by name."""
    return [(p.a.name, p.b.name, p.value) for p in graph.valued_pairs()]


def types(graph: Graph) -> list[str]:
    """Return the types of all ops."""
    return [type_name(op) for op in graph.ops]


class TestHandles:
    """Handles of tensors."""

    def test_handle(self) -> None:
        """A handle knows name, shape and size, and equals any other handle of its tensor."""
        graph = Graph("g", "text")
        x = graph.sink((2, 3), name="x")
        assert (x.name, x.shape, x.size, x.index) == ("x", (2, 3), 6, 0)
        assert x == graph.tensor("x") == graph.tensor("x:0") == graph.tensor(x)
        assert repr(x) == "Tensor('x', [2, 3])"
        assert repr(graph) == "Graph('g': 1 ops, 0 valued pairs)"
        assert graph.sink((), name="y").size == 1

    def test_operands_by_name(self) -> None:
        """Handles and names are the same thing."""
        one, two = Graph(), Graph()
        for graph in (one, two):
            graph.sink((2,), name="x")
        one.reverse(one.tensor("x"), [0])
        two.reverse("x", [0])
        assert one == two

    def test_several_outputs(self) -> None:
        """Outputs of one op are named by number, and the bare name is refused."""
        graph = Graph()
        a, b = graph.barrier([], shapes=[(2,), (3,)], name="b")
        assert (a.name, b.name) == ("b:0", "b:1")
        assert graph.tensor("b:1") == b
        assert graph.identity(b).shape == (3,)
        assert graph.fixed_point([a], shapes=[(5,)])[0].name == "fixed_point0"
        for name, reason in [
            ("b", "'b' has 2 outputs; name one, as in 'b:0'"),
            ("b:2", "'b:2': the op has 2 output(s)"),
            ("b:-1", "names no tensor"),
            ("b:", "names no tensor"),
            ("b:¹", "names no tensor"),
            ("", "names no tensor"),
        ]:
            with refused(reason):
                graph.identity(name)

    def test_another_graphs_tensor(self) -> None:
        """A handle of another graph is refused, even where the name would fit."""
        one, two = Graph(), Graph()
        x = one.sink((2,), name="x")
        two.sink((2,), name="x")
        with refused("tensor 'x' belongs to another graph"):
            two.identity(x)

    def test_names_stay_unambiguous(self) -> None:
        """No op may be named like an output of another, whichever comes first."""
        graph = Graph()
        graph.barrier([], shapes=[(1,), (1,)], name="b")
        with refused("op 'b:1'", "ambiguous"):
            graph.sink((1,), name="b:1")
        graph.sink((1,), name="b:2")  # the barrier has no output 2
        graph.sink((1,), name="c:0")
        with refused("op 'c'", "ambiguous"):
            graph.barrier([], shapes=[(1,), (1,)], name="c")
        assert graph.barrier([], (1,), name="c").name == "c"  # "c:0" is the sink, as before
        assert graph.kind("c:0") is Kind.SINK

    def test_free_names(self) -> None:
        """Unnamed ops are numbered by type, past names that are taken."""
        graph = Graph()
        graph.sink((1,), name="sink1")
        assert [graph.sink((1,)).name for _ in range(3)] == ["sink0", "sink2", "sink3"]

    def test_integers(self) -> None:
        """NumPy integers are integers; floats, strings and single numbers are refused."""
        graph = Graph()
        assert graph.sink(np.array([2, 3])).shape == (2, 3)
        assert all(type(n) is int for n in graph.shapes[0])
        for wrong in ([2.0], "23", 2, [None]):
            with refused("must be integers"):
                graph.sink(wrong)
        with refused("must be integers"):
            graph.concat(["sink0"], 0.5)


class TestPairs:
    """ValuedPairs."""

    def test_values_are_exact(self) -> None:
        """What is written is what is kept: shortest decimals of floats, strings as they are."""
        graph = Graph()
        x = graph.sink((2,), name="x")
        long, eighth = "12345678901234567890.5", Fraction(1, 8)
        given = [0.1, 3, Decimal("1e-30"), long, eighth, np.float32(0.1)]
        kept = [graph.valued_pair(x, "x", value).value for value in given]
        texts = ["0.1", "3", "1E-30", long, "0.125", "0.1"]
        assert [str(v) for v in kept] == texts
        assert pairs(graph) == [("x", "x", v) for v in kept]

    def test_wrong_pairs(self) -> None:
        """Shapes must be equal, values finite numbers; nothing is added otherwise."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((1, 2), name="y")
        with refused("pair of 'x' [2] and 'y' [1, 2]: the shapes differ"):
            graph.valued_pair(x, y, 1)
        for wrong in (float("nan"), "inf", Decimal("-Infinity"), "one", None, True, 1j):
            with refused("value "):
                graph.valued_pair(x, x, wrong)
        assert graph.pairs == []

    def test_partners(self) -> None:
        """Partners are listed pair by pair, a tensor paired with itself once."""
        graph = Graph()
        x, y, z = (graph.sink((2,), name=n) for n in "xyz")
        for a, b, value in [(x, y, 1), (z, x, 2), (y, z, 3), (x, x, 4), (x, y, 5)]:
            graph.valued_pair(a, b, value)
        found = [(t.name, int(v)) for t, v in graph.valued_partners("x")]
        assert found == [("y", 1), ("z", 2), ("x", 4), ("y", 5)]


class TestSumLike:
    """The helper for elementwise ops."""

    def test_equal_shapes_are_paired(self) -> None:
        """Every two different inputs of one shape get a pair, in order."""
        graph = Graph()
        x, y, z = (graph.sink((2,), name=n) for n in "xyz")
        out = graph.sum_like([x, y, z], 3, {(2, 0): "7.5"}, unwindable=(1, 0), name="s")
        assert isinstance(out, SumLikeTensor)
        assert out.reduces == ()
        assert pairs(graph) == [("x", "y", 3), ("x", "z", Decimal("7.5")), ("y", "z", 3)]
        assert types(graph) == ["sink"] * 3 + ["sum_like"]
        op = graph.ops[3]
        assert isinstance(op, ops.SumLike)
        assert op.unwindable_inputs == (1, 0)

    def test_broadcast_operands_get_reduces(self) -> None:
        """The larger operand is reduced to the smaller one's shape, and tied to it."""
        graph = Graph()
        x, bias = graph.sink((2, 3), name="x"), graph.sink((3,), name="bias")
        out = graph.sum_like([bias, x], 5, unwindable=1)
        [(large, reduced, small)] = out.reduces
        assert (large, small) == (x, bias)
        assert (reduced.shape, graph.kind(reduced)) == ((3,), Kind.BARRIER)
        assert pairs(graph) == [(reduced.name, "bias", 5)]
        assert types(graph) == ["sink", "sink", "sum_like", "sum_like_reduce"]

    def test_operands_apart(self) -> None:
        """Where neither broadcasts to the other, nothing is added for the two."""
        graph = Graph()
        row, column = graph.sink((1, 3), name="row"), graph.sink((2, 1), name="column")
        x = graph.sink((2, 3), name="x")
        out = graph.sum_like([row, column, x], unwindable=2)
        assert [(a.name, b.name) for a, _, b in out.reduces] == [("x", "row"), ("x", "column")]
        assert len(graph.pairs) == 2

    def test_one_tensor_twice(self) -> None:
        """Two copies of a tensor are not paired, but each gets its own reduce."""
        graph = Graph()
        x, b = graph.sink((2,), name="x"), graph.sink((1,), name="b")
        out = graph.sum_like([x, x, b])
        assert len(out.reduces) == 2
        assert [(p.b.name, p.value) for p in graph.valued_pairs()] == [("b", 1), ("b", 1)]

    def test_nothing_unwindable(self) -> None:
        """Without unwindable inputs it is a plain barrier, and no pairs are added."""
        graph = Graph()
        x, y = graph.sink((2, 1), name="x"), graph.sink((3,), name="y")
        out = graph.sum_like([x, y], 9, unwindable=())
        assert (out.shape, graph.kind(out), graph.pairs) == ((2, 3), Kind.BARRIER, [])

    def test_wrong_arguments(self) -> None:
        """Values for pairs that are none, values twice, and shapes that do not fit."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((3,), name="y")
        cases = [
            ({"values": {(0, 2): 1}}, [x, x], "pair of inputs (0, 2) is not two of the 2"),
            ({"values": {(0, 0): 1}}, [x, x], "pair of inputs (0, 0) is not two of the 2"),
            ({"values": {(0, 1): 1, (1, 0): 2}}, [x, x], "(1, 0) is given twice"),
            (
                {"unwindable": ()},
                [x, y],
                "sum_like of 'x', 'y': shapes [[2], [3]] do not broadcast",
            ),
            ({"unwindable": ()}, [], "sum_like of nothing: needs at least one input"),
            ({"unwindable": "a"}, [x], "must be integers"),
        ]
        for arguments, operands, reason in cases:
            with refused(reason):
                graph.sum_like(operands, **arguments)
        assert types(graph) == ["sink", "sink"]


class TestCall:
    """The helper for subgraphs that are called."""

    def caller(self) -> Graph:
        """Return a graph with a callee (in0, in1 -> out) and tensors to call it with."""
        graph = Graph()
        for name in ("in0", "in1", "a", "b"):
            graph.sink((2,), name=name)
        graph.sum_like(["in0", "in1"], 1, name="out")
        graph.pairs.clear()
        return graph

    def test_one_value(self) -> None:
        """One value serves all copies; sinks come before pairs."""
        graph = self.caller()
        sinks = graph.call([("a", "in0"), ("b", "in1")], ["out"], 4)
        assert [graph.kind(s) for s in sinks] == [Kind.SINK]
        assert pairs(graph) == [("a", "in0", 4), ("b", "in1", 4), ("out", sinks[0].name, 4)]

    def test_value_per_copy(self) -> None:
        """Each copy may have its own value and each result its name; ops are shared."""
        graph = self.caller()
        first = graph.call([("a", "in0")], ["out", "in1"], 1, [5], [6, 7], ["r", "s"])
        assert [s.name for s in first] == ["r", "s"]
        assert pairs(graph) == [("a", "in0", 5), ("out", "r", 6), ("in1", "s", 7)]
        before = len(graph.ops)
        graph.call([(first[0], "in0")], ["out"])
        assert types(graph)[before:] == ["sink"]

    def test_no_copies(self) -> None:
        """A call of nothing adds nothing."""
        graph = self.caller()
        assert graph.call([], []) == ()
        assert graph.pairs == []

    def test_wrong_lengths(self) -> None:
        """Lists of another length than the copies are refused before anything is added."""
        for arguments, reason in [
            ({"values_in": [1, 2]}, "values_in has 2 entries for 1 copies"),
            ({"values_out": []}, "values_out has 0 entries for 1 copies"),
            ({"names": ["r", "s"]}, "names has 2 entries for 1 copies"),
        ]:
            graph = self.caller()
            with refused(reason):
                graph.call([("a", "in0")], ["out"], **arguments)
            assert graph == self.caller()


class TestQueries:
    """What a graph tells about itself."""

    def test_by_kind(self) -> None:
        """Sinks, sources, barriers (reduces included) and fixed points, in order."""
        graph = Graph()
        x = graph.sink((2,), name="x")
        graph.source((1,), name="s")
        graph.barrier([x], shapes=[(1,), (2,)], name="b")
        graph.fixed_point([x], (1,), name="f")
        graph.sum_like_reduce(x, (1,), name="r")
        graph.sink((), name="y")
        graph.identity(x, name="i")
        assert [t.name for t in graph.sinks()] == ["x", "y"]
        assert [t.name for t in graph.sources()] == ["s"]
        assert [t.name for t in graph.barriers()] == ["b:0", "b:1", "r"]
        assert [t.name for t in graph.fixed_points()] == ["f"]
        assert [t.name for t in graph.tensors()] == ["x", "s", "b:0", "b:1", "f", "r", "y", "i"]
        assert [t.index for t in graph.tensors()] == list(range(8))
        assert graph.kind("i") is Kind.VIEW

    def test_equality(self) -> None:
        """Equal graphs have equal ops, pairs and texts, and nothing else counts."""
        for seed in range(20):
            assert random_graph(seed) == random_graph(seed)
            assert random_graph(seed) != random_graph(seed + 1)
        one, two = Graph("a"), Graph("a")
        one.sink((1,), name="x")
        two.sink((1,), name="x")
        assert one == two
        two.valued_pair("x", "x", 1)
        assert one != two
        assert one != Graph("b")
        assert one != "x"
        assert len({one, two, one}) == 2  # graphs are kept in sets by identity
