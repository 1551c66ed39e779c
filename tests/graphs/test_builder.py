"""The builder: handles, names and pairs."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from layoutopt.generate.random_graphs import random_graph
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

    def test_names_that_are_none(self) -> None:
        """A name must be a string with something in it, and new."""
        graph = Graph()
        graph.sink((1,), name="x")
        for wrong, reason in [
            ("", "the id is empty"),
            (3, "the id is no string"),
            (["x"], "the id is no string"),
            ("x", "the id is taken"),
        ]:
            with refused(f"op {wrong!r} (sink): ", reason):
                graph.sink((1,), name=wrong)
        assert len(graph.ops) == 1

    def test_free_names(self) -> None:
        """Unnamed ops are numbered by type, past names that are taken."""
        graph = Graph()
        graph.sink((1,), name="sink1")
        assert [graph.sink((1,)).name for _ in range(3)] == ["sink0", "sink2", "sink3"]

    def test_integers(self) -> None:
        """NumPy integers are integers; a single one is a list; floats and strings are refused."""
        graph = Graph()
        assert graph.sink(np.array([2, 3])).shape == (2, 3)
        assert all(type(n) is int for n in graph.shapes[0])
        assert graph.sink(np.int64(2)).shape == (2,)
        for wrong in ([2.0], "23", 2.5, [None]):
            with refused("must be integers"):
                graph.sink(wrong)
        with refused("must be integers"):
            graph.concat(["sink0"], 0.5)

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

    def test_what_is_no_tensor(self) -> None:
        """An operand must be a handle or a name."""
        graph = Graph()
        for wrong in (3, None, ("x",), ["x"], {}):
            with refused("op 'identity0' (identity): ", "is neither a tensor nor the name of one"):
                graph.identity(wrong)


class TestForms:
    """Shorter ways to say the same."""

    def test_the_same_op(self) -> None:
        """Both ways of each row give the same op, and files keep no negative dimension."""
        rows: list[tuple[Callable[[Graph], object], Callable[[Graph], object]]] = [
            (lambda g: g.slice("x", 1, 2), lambda g: g.slice("x", (1, 0, 0), (2, 3, 4))),
            (lambda g: g.slice("x", 1, 3, 2), lambda g: g.slice("x", (0, 0, 1), (2, 3, 3))),
            (lambda g: g.slice("x", 1, 3, dim=-2), lambda g: g.slice("x", (0, 1, 0), (2, 3, 4))),
            (lambda g: g.slice("x", np.int64(0), 0), lambda g: g.slice("x", [0] * 3, [0, 3, 4])),
            (lambda g: g.sub_sample("x", 3, dim=2), lambda g: g.sub_sample("x", (1, 1, 3))),
            (lambda g: g.sub_sample("x", 2, -3), lambda g: g.sub_sample("x", (2, 1, 1))),
            (lambda g: g.reverse("x", (-1, 0)), lambda g: g.reverse("x", (2, 0))),
            (lambda g: g.concat(["x", "x"], -1), lambda g: g.concat(["x", "x"], 2)),
            (lambda g: g.dim_shuffle("x", (-1, 0, -2)), lambda g: g.dim_shuffle("x", (2, 0, 1))),
            (lambda g: g.reshape("x", (-1, 8)), lambda g: g.reshape("x", (3, 8))),
            (lambda g: g.reshape("x", [-1]), lambda g: g.reshape("x", [24])),
            (lambda g: g.reshape("x", (24, -1)), lambda g: g.reshape("x", (24, 1))),
        ]
        for short, long in rows:
            one, two = Graph(), Graph()
            for graph, add in ((one, short), (two, long)):
                graph.sink((2, 3, 4), name="x")
                add(graph)
            assert one == two
            assert b"-" not in instance_bytes(one)

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

    def test_ops_by_name(self) -> None:
        """An op, what it reads, what it makes and who reads that, by name or handle."""
        graph = Graph()
        x, y = graph.sink((2,), name="x"), graph.sink((2,), name="y")
        a, b = graph.barrier([y, x, y], shapes=[(1,), (2,)], name="b")
        graph.concat([x, b, x], 0, name="c")
        graph.barrier([], shapes=[], name="nothing")
        assert graph.op("b") is graph.op("b:1") is graph.op(a) is graph.ops[2]
        assert graph.inputs("b") == graph.inputs(b) == (y, x, y)
        assert (graph.inputs("x"), graph.inputs("nothing")) == ((), ())
        assert graph.outputs("b") == graph.outputs(b) == (a, b)
        assert (graph.outputs(x), graph.outputs("nothing")) == ((x,), ())
        assert graph.consumers("x") == (("b", 1), ("c", 0), ("c", 2))
        assert graph.consumers(y) == (("b", 0), ("b", 2))
        assert (graph.consumers(a), graph.consumers("b:1")) == ((), (("c", 1),))
        for ask in (graph.op, graph.inputs, graph.outputs, graph.consumers):
            with refused("'no' names no tensor of an earlier op"):
                ask("no")
        with refused("'b' has 2 outputs; name one"):
            graph.consumers("b")

    def test_table(self) -> None:
        """A printed graph shows ops, operands, shapes and attractions, one line per output."""
        graph = Graph("shown")
        x, t = graph.sink((2, 3), name="x"), graph.source((3, 2), name="target")
        graph.valued_pair(x.T, t, "7.50")
        graph.valued_pair(t, t, -1)
        graph.barrier([x, t], shapes=[(1,), ()], name="b")
        graph.barrier([], shapes=[], name="nothing")
        assert str(graph).splitlines() == [
            "Graph('shown': 5 ops, 2 valued pairs)",
            "tensor        type         inputs     shape   attractions",
            "x             sink                    [2, 3]",
            "target        source                  [3, 2]  dim_shuffle0: 7.50, target: -1",
            "dim_shuffle0  dim_shuffle  x          [3, 2]  target: 7.50",
            "b:0           barrier      x, target  [1]",
            "b:1           barrier      x, target  []",
            "nothing       barrier",
        ]
        assert str(Graph()).splitlines()[1:] == ["tensor  type  inputs  shape  attractions"]

    def test_long_tables_are_cut(self) -> None:
        """After 60 ops the table says how many are left, and after six entries a cell does."""
        graph = Graph()
        sinks = [graph.sink((1,), name=f"s{n}") for n in range(60)]
        assert len(str(graph).splitlines()) == 62
        for other in sinks[1:9]:
            graph.valued_pair(sinks[0], other, 1)
        graph.concat(sinks, 0, name="joint")
        graph.identity("joint")
        first, *lines = str(graph).splitlines()[2:]
        assert first.endswith("s1: 1, s2: 1, s3: 1, s4: 1, s5: 1, s6: 1, and 2 more")
        assert len(lines) == 60
        assert lines[-1] == "... and 2 more ops"

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
