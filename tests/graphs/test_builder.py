"""The builder: handles, names and pairs."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from layoutopt.graphs import ops
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, parse_instance
from tests.support import refused


def pairs(graph: Graph) -> list[tuple[str, str, Decimal]]:
    """Return all pairs by name."""
    return [(p.a.name, p.b.name, p.value) for p in graph.valued_pairs()]


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

    def test_locations_of_sources(self) -> None:
        """A mapping's integers are Python's, of whatever kind they came; others are refused."""
        graph = Graph()
        x = graph.source((3,), np.array([4, 4, 5], np.uint8), name="x")
        y = graph.source((3,), [np.int64(4), "a", np.str_("b")], name="y")
        assert graph.op(x) == ops.Source(id="x", inputs=(), shape=(3,), mapping=(4, 4, 5))
        assert graph.op(y) == ops.Source(id="y", inputs=(), shape=(3,), mapping=(4, "a", "b"))
        assert parse_instance(instance_bytes(graph)) == graph
        for wrong in ([0.5], [None], [[1]], np.array([1.0]), np.array([[1, 2]])):
            with refused("mapping must hold one integer or string per element"):
                graph.source((1,), wrong)
        for wrong in (1, "a", x):
            with refused("mapping must be a list, not one "):
                graph.source((1,), wrong)
        with refused("rule must be a dictionary, not str"):
            graph.source((1,), rule="linear")

    def test_lists_that_are_none(self) -> None:
        """Where a list of lists is wanted, anything else is refused in one line."""
        graph = Graph()
        x = graph.sink((3,), name="x")
        for add, reason in [
            (lambda: graph.sett_sample(x, 1), "setts must be a list, not one int"),
            (lambda: graph.sett_sample(x, [1]), "a dimension's setts must be a list, not one int"),
            (lambda: graph.sett_sample(x, [[1]]), "a stripe must be [on, off, phase]"),
            (lambda: graph.barrier([x], shapes=1), "shapes must be a list, not one int"),
            (lambda: graph.barrier([x], shapes=["1"]), "'1' must be integers"),
            (lambda: graph.barrier(1, (1,)), "inputs must be a list, not one int"),
        ]:
            with refused(reason):
                add()
        assert len(graph.ops) == 1

    def test_refused_ops_leave_no_trace(self) -> None:
        """After an op was refused, the next one gets the name that it would have had."""
        graph = Graph()
        graph.sink((2,))
        with refused("op 'reverse0'"):
            graph.reverse("sink0", [1])
        assert graph.reverse("sink0", [0]).name == "reverse0"

    def test_inputs_are_kept_by_one_name(self) -> None:
        """``"x:0"`` is ``"x"``, also in ops that are given as data."""
        one, two = Graph(), Graph()
        for graph, name in ((one, "x"), (two, "x:0")):
            graph.sink((2,), name="x")
            graph.identity(name)
            graph.add(ops.Identity(id="again", inputs=(name,)))
        assert one == two
        assert two.op("again").inputs == ("x",)


class TestForms:
    """Shorter ways to say the same."""

    def test_wrong_arguments(self) -> None:
        """Each form says in one line what goes together; nothing is added."""
        rows: list[tuple[Callable[[Graph], object], str]] = [
            (lambda g: g.slice("x", 1, [2, 3]), "slice: lower 1 and upper [2, 3] must both be"),
            (lambda g: g.slice("x", [0, 0], 1, 0), "slice: lower [0, 0] and upper 1 must both be"),
            (lambda g: g.slice("x", [0, 0], [1, 1], 0), "slice: dim goes with two integers"),
            (lambda g: g.slice("x", 0, 1, dim=2), "slice of 'x': there is no dimension 2 in a"),
            (lambda g: g.slice("x", 0, 1, dim=-3), "slice of 'x': there is no dimension -3"),
            (lambda g: g.slice("x", 0, 1, dim="0"), "['0'] must be integers"),
            (lambda g: g.slice("s", 0, 1), "slice of 's': there is no dimension 0 in a tensor of"),
            (lambda g: g.slice("x", 0.0, 1.0), "0.0 must be integers"),
            (lambda g: g.slice("x", -1, 1), "0 <= lower <= upper <= 2 does not hold for -1, 1"),
            (lambda g: g.sub_sample("x", 2), "sub_sample: give an integer and its dim, or a list"),
            (lambda g: g.sub_sample("x", [2, 2], 0), "sub_sample: give an integer and its dim"),
            (lambda g: g.sub_sample("x", 2, 2), "sub_sample of 'x': there is no dimension 2"),
            (lambda g: g.sub_sample("x", 0, 0), "strides [0, 1] must be at least 1"),
            (lambda g: g.reshape("x", (-1, 4)), "reshape of 'x': no size fits the -1 in shape"),
            (lambda g: g.reshape("x", (-1, -1)), "no size fits the -1 in shape [-1, -1] for 6"),
            (lambda g: g.reshape("x", (-1, 0)), "no size fits the -1 in shape [-1, 0] for 6"),
            (lambda g: g.reshape("no", (-1, 0)), "'no' names no tensor"),
            (lambda g: g.reshape("x", (-1, -6)), "shape [-1, -6] has a negative dimension"),
            (lambda g: g.concat("x", 0), "inputs must be a list, not one str"),
            (lambda g: g.concat(["x", "no"], -1), "'no' names no tensor"),
            (lambda g: g.concat(["no", "x"], -1), "'no' names no tensor"),
            (lambda g: g.barrier("x", (1,)), "inputs must be a list, not one str"),
        ]
        for add, reason in rows:
            graph = Graph()
            graph.sink((2, 3), name="x")
            graph.sink((), name="s")
            with refused(reason):
                add(graph)
            assert len(graph.ops) == 2


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
