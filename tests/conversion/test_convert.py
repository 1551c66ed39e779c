"""Conversion finds the least cost, and graphs that compute the same."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random
from typing import Any

import pytest

from benchmarks.agreement import conversion as agreement
from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.result import Status
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.desired import parse_desired
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.result import Conversion
from layoutopt.conversion.rules.op import Op
from layoutopt.layout.layout import Layout
from tests.conversion.drawn import WEIGH, drawn
from tests.conversion.exhaustive import least
from tests.conversion.running import assert_same

OBJECTIVES = [*agreement.OBJECTIVES, "bytes,changed"]
PER_SETTING = 10

NHWC, NCHW = (0, 2, 3, 1), (0, 3, 1, 2)
"""The transposes that lead there."""


@pytest.mark.parametrize("free_io", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_random_graphs_are_exact(objective: str, free_io: bool) -> None:
    """On random graphs of up to 12 ops the cost is the least that exhaustive search finds.

    Outputs of every third are what they were, permuted only if they are freed.
    """
    first = (OBJECTIVES.index(objective) * 2 + free_io) * PER_SETTING
    for seed in range(first, first + PER_SETTING):
        graph = drawn(seed, 4 + seed % 9)
        found = _exact(graph, objective, free_io)
        if seed % 3 == 0:
            assert_same(graph, found, seed)


@pytest.mark.parametrize("settings", [{"sizes": (2,)}, {"repeated": 0.5}], ids=["equal", "twice"])
@pytest.mark.parametrize("seed", range(24))
def test_tensors_that_meet_their_own_transposes(settings: dict[str, Any], seed: int) -> None:
    """Where all axes are equally long, and where views that stand there twice run in two modes."""
    _exact(drawn(5000 + seed, 9, **settings), "count,bytes", seed % 4 == 0)


@pytest.mark.parametrize("seed", [10556, 11510, 12305, 12880])
def test_orders_that_nothing_is_written_in(seed: int) -> None:
    """Graphs whose best solution has a tensor in an order that no sensitive op leads to."""
    _exact(drawn(seed, 14), ["bytes,count", "count,bytes"][seed % 2], seed % 5 == 0)


@pytest.mark.parametrize("ops", [1, 2, 5])
def test_equally_good_choices_leave_ops_as_they_are(ops: int) -> None:
    """A transpose that can stand before or behind any of some ops stays where it is."""
    graph = ConversionGraph("ties")
    name = graph.input("x", (2, 3, 4, 5))
    for n in range(2 * ops):
        name = graph.op("Relu", [name])
        name = graph.op("Transpose", [name], {"perm": NHWC}) if n == ops - 1 else name
    graph.output(name)
    found = convert_graph(graph)
    assert found.after.transforms == 1
    assert not found.changed


@pytest.mark.parametrize("seed", range(36))
def test_products_of_images(seed: int) -> None:
    """Linear layers between transposes, on images or on the matrix that a Reshape makes of them."""
    draw, graph = Random(seed), ConversionGraph("images")
    first = tuple(draw.choice([1, 2, 2, 3]) for _ in range(draw.randint(3, 4)))
    given = graph.input("x", first)
    y = graph.op("Transpose", [given], {"perm": tuple(draw.sample(range(len(first)), len(first)))})
    *sizes, channels = graph.tensors[y].shape or ()
    flags = {"transA": draw.randint(0, 1), "transB": draw.randint(0, 1)}
    kind, matrix = draw.choice([("Gemm", True), ("MatMul", True), ("MatMul", False)])
    if matrix:
        y = graph.op("Reshape", [y], {"shape": (-1, channels)})
    weights = (2, channels) if kind == "Gemm" and flags["transB"] else (channels, 2)
    make = draw.choice([graph.constant, graph.input])
    operands = [y, make("w", weights)]
    if kind == "Gemm":
        operands[0] = graph.op("Transpose", [y], {"perm": (1, 0)}) if flags["transA"] else y
        bias = draw.choice([None, (), (2,), (1, 2), (prod(sizes), 1), (prod(sizes), 2)])
        operands += [] if bias is None else [make("b", bias)]
    y = graph.op(kind, operands, flags if kind == "Gemm" else {})
    if matrix:
        y = graph.op("Reshape", [y], {"shape": (*sizes, 2)})
    last = tuple(draw.sample(range(len(first)), len(first)))
    graph.output(graph.op("Transpose", [graph.op("Relu", [y])], {"perm": last}))
    _exact(graph, ["count,changed,bytes", "bytes,count"][seed % 2], seed % 5 == 0)
    assert_same(graph, convert_graph(graph), seed)


@pytest.mark.parametrize("seed", [2, 9, 16, 23])
def test_orders_that_only_results_of_reductions_and_fused_products_share(seed: int) -> None:
    """Several modes of an op that give one order are left out only where the rest can follow."""
    draw, graph = Random(seed), ConversionGraph("shared")
    live = [graph.input("x", (2, 2, 2, 2))]
    for _ in range(7):
        name = draw.choice(live)
        rank = len(graph.tensors[name].shape or ())
        turned = graph.op("Transpose", [name], {"perm": tuple(draw.sample(range(rank), rank))})
        kind = draw.choice(["ReduceSum", "com.microsoft::FusedMatMul", "ArgMax"])
        if kind == "ReduceSum" and rank > 1:
            live.append(graph.op(kind, [name], {"axes": (draw.randrange(rank),), "keepdims": 0}))
        elif kind == "ArgMax" and rank > 2:
            merged = graph.op("Reshape", [turned], {"shape": (4, *(2,) * (rank - 2))})
            graph.output(graph.op(kind, [merged], {"axis": 0, "keepdims": 0}))
        elif rank > 2:
            others = [other for other in live if len(graph.tensors[other].shape or ()) == rank]
            live.append(graph.op("com.microsoft::FusedMatMul", [draw.choice(others), turned]))
    graph.output(live[-1])
    _exact(graph, "count,bytes", False)


def _exact(graph: ConversionGraph, objective: str, free_io: bool) -> Conversion:
    found = convert_graph(graph, objective=objective, free_io=free_io)
    assert found.status is Status.OPTIMAL
    # What costs more than was found need not be searched.
    assert found.objective == least(graph, objective, free_io, found.objective), graph.name
    return found


def image() -> tuple[ConversionGraph, str]:
    """Return a graph with an input of 2 x 4 x 4 x 3 = 96 elements in NHWC."""
    graph = ConversionGraph("image")
    return graph, graph.input("x", (2, 4, 4, 3), "NHWC")


def conv(graph: ConversionGraph, x: str, name: str, channels: int = 3) -> str:
    """Add a convolution as exporters of NHWC write it, by weights of 1 x 1."""
    shape = graph.tensors[x].shape or ()
    before = graph.op("Transpose", [x], {"perm": NCHW}, name=f"{name}_in")
    weights = graph.constant(f"{name}_w", (channels, shape[3], 1, 1))
    y = graph.op("Conv", [before, weights], name=name)
    return graph.op("Transpose", [y], {"perm": NHWC}, name=f"{name}_out")


def two_convolutions() -> ConversionGraph:
    """Inner transposes go; those at the input and the output stay."""
    graph, x = image()
    graph.output(conv(graph, graph.op("Relu", [conv(graph, x, "a")]), "b"))
    return graph


def two_readers() -> ConversionGraph:
    """Two convolutions read the input, and one transform serves them."""
    graph, x = image()
    a, b = conv(graph, x, "a"), conv(graph, x, "b")
    graph.output(graph.op("Add", [a, b]))
    return graph


def narrow_middle() -> ConversionGraph:
    """Bytes are least behind the reduction, to 2 x 1 x 4 x 3 elements."""
    graph, x = image()
    y = graph.op("Neg", [x])
    z = graph.op("ReduceSum", [y], {"axes": (1,)})
    graph.output(conv(graph, z, "a"))
    return graph


def one_or_two() -> ConversionGraph:
    """One transform of 96 elements before a split, or two of 24 behind it."""
    graph, x = image()
    parts = ("p", "q", "r", "s")
    shapes = ((2, 1, 4, 3),) * 4
    graph.add(Op("Split", {"axis": 1, "num_outputs": 4}, (x,), parts, (), shapes, "split"))
    for name in ("p", "q"):
        y = graph.op("Transpose", [name], {"perm": NCHW})
        graph.output(graph.op(WEIGH, [y], shape=(2, 3, 1, 4)))
    graph.output("r", "s")
    return graph


def shared_constant() -> ConversionGraph:
    """A constant that is needed in two layouts costs nothing: it is there in both beforehand."""
    graph = ConversionGraph("shared")
    c = graph.constant("c", (2, 3))
    graph.output(graph.op(WEIGH, [c], shape=(2, 3)))
    graph.output(graph.op(WEIGH, [graph.op("Transpose", [c])], shape=(3, 2)))
    return graph


def ones_move() -> ConversionGraph:
    """To move an axis of size 1 is free."""
    graph = ConversionGraph("ones")
    x = graph.input("x", (4, 1, 5))
    graph.output(
        graph.op(WEIGH, [graph.op("Transpose", [x], {"perm": (1, 0, 2)})], shape=(1, 4, 5))
    )
    return graph


def kept_groups() -> ConversionGraph:
    """Transposes around reshapes that split and merge axes are those of the groups."""
    graph = ConversionGraph("groups")
    x = graph.input("x", (4, 6, 5))
    y = graph.op(
        "Reshape", [graph.op("Transpose", [x], {"perm": (2, 0, 1)})], {"shape": (5, 4, 2, 3)}
    )
    z = graph.op("Relu", [y])
    back = graph.op("Reshape", [z], {"shape": (5, 4, 6)})
    graph.output(graph.op("Transpose", [back], {"perm": (1, 2, 0)}))
    return graph


def an_order_in_common() -> ConversionGraph:
    """Two ops that keep some axes last can share an order in which neither is written."""
    graph = ConversionGraph("in common", opset=11)
    x = graph.input("cba", (4, 3, 2))
    acb = graph.op("Transpose", [x], {"perm": (2, 0, 1)})
    bac = graph.op("Transpose", [x], {"perm": (1, 2, 0)})
    # Before opset 13 softmax takes b and c for one axis: abc is as good as acb.
    y = graph.op("Softmax", [acb], {"axis": 1})
    z = graph.op("LayerNormalization", [bac, graph.constant("scale", (4,))])
    graph.output(*(graph.op("ReduceSum", [t], {"keepdims": 0}) for t in (y, z)))
    return graph


def pool() -> ConversionGraph:
    """A pool stays as it is written, even where batch and channels might change places."""
    graph = ConversionGraph("pool")
    x = graph.op("Transpose", [graph.input("x", (2, 3, 4))], {"perm": (1, 0, 2)})
    y = graph.op("MaxPool", [x], {"kernel_shape": (1,)})
    graph.output(graph.op("Transpose", [y], {"perm": (1, 0, 2)}))
    return graph


def written_and_least(
    graph: Callable[[], ConversionGraph], objective: str
) -> tuple[tuple[int, ...], ...]:
    """Return what a graph's transforms cost as written, and at least, which is proved."""
    found = convert_graph(graph(), objective=objective)
    assert (found.objective, found.gap) == (found.bound, 0)
    tally = found.before
    given = {"bytes": tally.bytes, "count": tally.transforms, "changed": 0}
    return tuple(given[name] for name in found.objectives), found.objective


def test_what_remains() -> None:
    """The new graph of two convolutions, op by op, and why transforms are left."""
    found = convert_graph(two_convolutions())
    ops = [(op.type, op.inputs, op.outputs) for op in found.graph.ops]
    assert ops == [
        ("Transpose", ("x",), ("a_in",)),
        ("Conv", ("a_in", "a_w"), ("a",)),
        ("Relu", ("a",), ("b_in",)),
        ("Conv", ("b_in", "b_w"), ("b",)),
        ("Transpose", ("b",), ("b_out",)),
    ]
    assert [str(one) for one in found.remaining] == [
        "'x' comes as NHWC from input 'x', and Conv 'a' takes it as NCHW",
        "'b' comes as NCHW from Conv 'b', and output 'b_out' takes it as NHWC",
    ]
    assert found.after.by_op == {"a_in": 384, "b_out": 384}


def test_who_needs_it() -> None:
    """Needs are told of the ops that have no choice, past those that could run otherwise."""
    graph, x = image()
    graph.output(graph.op("ReduceSum", [conv(graph, graph.op("Concat", [x, x], {"axis": 0}), "a")]))
    found = convert_graph(graph)
    assert [op.type for op in found.graph.ops] == ["Transpose", "Concat", "Conv", "ReduceSum"]
    [why] = found.remaining
    assert (why.giver, why.takers, why.bytes) == ("input 'x'", ("Conv 'a'",), 384)


def test_what_remains_has_the_names_that_were_given() -> None:
    """An output that an op gives in another order has a name of its own there."""
    graph = ConversionGraph("output")
    y = graph.op("Conv", [graph.input("x", (1, 4, 8, 8)), graph.constant("w", (4, 4, 3, 3))])
    graph.output(y)
    graph.output(graph.op("Relu", [y]))
    found = convert_graph(graph, desired=parse_desired("Conv=NHWC"))
    assert [one.tensor for one in found.remaining] == ["x", y]


def test_symbolic_sizes() -> None:
    """Sizes that are not known count as 1; axes of size 1 move past them in two steps."""
    graph = ConversionGraph("symbolic")
    x = graph.input("x", ("n", "m", 1, 4))
    y = graph.op("Transpose", [x], {"perm": (2, 0, 1, 3)})
    graph.output(graph.op(WEIGH, [y], shape=(1, "n", "m", 4), name="free"))
    z = graph.op("Transpose", [x], {"perm": (1, 0, 2, 3)})
    graph.output(graph.op(WEIGH, [z], shape=("m", "n", 1, 4), name="paid"))
    found = convert_graph(graph, objective="bytes,count")
    assert found.objective == (16, 1)
    assert [(op.type, op.attributes) for op in found.graph.ops] == [
        ("Squeeze", {"axes": (2,)}),
        ("Unsqueeze", {"axes": (0,)}),
        (WEIGH, {}),
        ("Transpose", {"perm": (1, 0, 2, 3)}),
        (WEIGH, {}),
    ]


def test_a_view_that_is_kept_as_written_is() -> None:
    """No order with parts changes it, though one would spare a transform."""
    graph = ConversionGraph("view")
    turned = graph.op("Transpose", [graph.input("x", (2, 3, 4))], {"perm": (0, 2, 1)})
    flat = graph.op("Reshape", [turned], {"shape": (2, 12)}, name="flat")
    graph.output(graph.op("MatMul", [flat, graph.constant("w", (12, 5))]))
    found = [convert_graph(graph, written=names) for names in ((), ("flat",))]
    assert [each.after.transforms for each in found] == [0, 1]


def test_no_time() -> None:
    """Without any time the result is no worse than the graph, and says that it is not proved."""
    stopped = set()
    for seed in range(12, 40):
        graph = drawn(seed, 14)
        found = convert_graph(graph, limits=Limits(deadline=0))
        assert found.objective[0] <= found.before.bytes
        assert found.bound <= found.objective
        assert (found.status is Status.OPTIMAL) == (found.stopped is Stopped.FINISHED)
        stopped.add(found.stopped)
    assert stopped == {Stopped.FINISHED, Stopped.TIME_LIMIT}


def _grouped() -> ConversionGraph:
    graph, x = image()
    x = graph.op("Transpose", [x], {"perm": NCHW})
    graph.output(graph.op("Conv", [x, graph.constant("w", (3, 1, 1, 1))], {"group": 3}, name="a"))
    return graph


class Blocks(Requirements):
    """Requires blocks of four channels of all data."""

    def operand_layout(self, op: Op, axes: str, sizes: object) -> Layout:
        """Return blocks, whatever the sizes."""
        return Layout.parse("NCHW4c" if axes == "NCHW" else axes)


class Odd(Requirements):
    """Requires an axis that is not there."""

    def operand_layout(self, op: Op, axes: str, sizes: object) -> Layout:
        """Return letters that no operand has."""
        return Layout.parse("NCHX" if len(axes) == 4 else axes)
