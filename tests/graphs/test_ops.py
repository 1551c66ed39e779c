"""Every op: the shape it infers, and the errors it gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.graphs import ops
from layoutopt.graphs.ops import (
    Kind,
    UnwindingOp,
    broadcast,
    count_kept,
    dominates,
    kept,
    size,
    type_name,
)
from layoutopt.graphs.unwinding import Graph
from tests.support import refused

Add = Callable[[Graph], Any]


def graph_with_operands() -> Graph:
    """Return a graph with a sink of each of several shapes, named by shape."""
    graph = Graph("operands")
    for shape in [(), (0,), (4,), (2, 3), (2, 1), (3,), (1, 3, 1), (2, 3, 4)]:
        graph.sink(shape, name="x" + "_".join(map(str, shape)))
    return graph


SHAPES: list[tuple[Add, tuple[int, ...]]] = [
    (lambda g: g.sink((5, 0, 2)), (5, 0, 2)),
    (lambda g: g.source([2, 2], mapping=[0, 0, "a", 1]), (2, 2)),
    (lambda g: g.source([2], rule={"kind": "linear"}), (2,)),
    (lambda g: g.barrier(["x4"], (7,)), (7,)),
    (lambda g: g.barrier([], ()), ()),
    (lambda g: g.fixed_point(["x4", "x3"], (1, 2)), (1, 2)),
    (lambda g: g.sum_like_reduce("x2_3", (1, 3)), (1, 3)),
    (lambda g: g.sum_like_reduce("x2_3", (3,)), (3,)),
    (lambda g: g.sum_like_reduce("x2_3", ()), ()),
    (lambda g: g.sum_like(["x2_3", "x3", "x2_1", "x"]), (2, 3)),
    (lambda g: g.sum_like(["x3", "x2_3"], unwindable=1), (2, 3)),
    (lambda g: g.identity("x2_3"), (2, 3)),
    (lambda g: g.flatten("x2_3_4"), (24,)),
    (lambda g: g.flatten("x"), (1,)),
    (lambda g: g.flatten("x0"), (0,)),
    (lambda g: g.squeeze("x1_3_1"), (3,)),
    (lambda g: g.squeeze("x2_3"), (2, 3)),
    (lambda g: g.reshape("x2_3_4", (6, 4)), (6, 4)),
    (lambda g: g.reshape("x", (1, 1)), (1, 1)),
    (lambda g: g.reshape("x0", (3, 0)), (3, 0)),
    (lambda g: g.dim_shuffle("x2_3_4", (2, 0, 1)), (4, 2, 3)),
    (lambda g: g.dim_shuffle("x", ()), ()),
    (lambda g: g.reverse("x2_3", (1,)), (2, 3)),
    (lambda g: g.reverse("x", ()), ()),
    (lambda g: g.slice("x2_3", (0, 1), (2, 3)), (2, 2)),
    (lambda g: g.slice("x4", (2,), (2,)), (0,)),
    (lambda g: g.sub_sample("x2_3_4", (1, 2, 3)), (2, 2, 2)),
    (lambda g: g.sub_sample("x4", (9,)), (1,)),
    (lambda g: g.sub_sample("x0", (2,)), (0,)),
    (lambda g: g.sett_sample("x4", [[(1, 1, 1)]]), (2,)),
    (lambda g: g.sett_sample("x2_3", [[], [(0, 1, 0)]]), (2, 0)),
    (lambda g: g.sett_sample("x2_3_4", [[(1, 1, -1)], [(2, 1, 0), (1, 1, 1)], []]), (1, 1, 4)),
    (lambda g: g.concat(["x2_3", "x2_1", "x2_3"], 1), (2, 7)),
    (lambda g: g.concat(["x4"], 0), (4,)),
    (lambda g: g.concat(["x0", "x4"], 0), (4,)),
    (lambda g: g.expand("x2_1", (5, 2, 3)), (5, 2, 3)),
    (lambda g: g.expand("x2_1", (2, 0)), (2, 0)),
    (lambda g: g.expand("x", (2,)), (2,)),
]


def test_every_op_type_is_in_the_table() -> None:
    """The table of shapes leaves no op type out."""
    graph = graph_with_operands()
    for add, _ in SHAPES:
        add(graph)
    assert {type_name(op) for op in graph.ops} == {
        str(cls.__struct_config__.tag) for cls in get_args(ops.AnyOp)
    }


BAD: list[tuple[Add, str, str, str]] = [
    # what is added, the op's type, an operand that the text names, what the text says
    (lambda g: g.sink((-1,)), "sink", "", "shape [-1] has a negative dimension"),
    (lambda g: g.sink((2**40, 2**40)), "sink", "", "more than 2^62 elements"),
    (lambda g: g.sink((2**40, 0, 2**40)), "sink", "", "more than 2^62 elements"),
    (lambda g: g.sink([1] * 65), "sink", "", "rank 65 exceeds 64"),
    (lambda g: g.source((2,), mapping=[1]), "source", "", "mapping has 1 entries, shape [2] has 2"),
    (lambda g: g.source((1,), [1], {"kind": "x"}), "source", "", "give mapping or rule"),
    (lambda g: g.source((1,), rule={}), "source", "", 'rule must have a "kind"'),
    (lambda g: g.source((1,), rule={"kind": 3}), "source", "", 'rule must have a "kind"'),
    (lambda g: g.barrier(["x4"]), "barrier", "'x4' [4]", "exactly one of shape and shapes"),
    (lambda g: g.barrier(["x4"], (1,), shapes=[(1,)]), "barrier", "'x4'", "exactly one of"),
    (lambda g: g.barrier([], shapes=[(1,), (-2,)]), "barrier", "", "shape [-2] has a negative"),
    (lambda g: g.fixed_point(["x4"]), "fixed_point", "'x4'", "exactly one of shape and shapes"),
    (
        lambda g: g.sum_like_reduce("x2_3", (2,)),
        "sum_like_reduce",
        "'x2_3' [2, 3]",
        "shape [2] does not broadcast to [2, 3]",
    ),
    (
        lambda g: g.sum_like_reduce("x3", (2, 3)),
        "sum_like_reduce",
        "'x3' [3]",
        "does not broadcast",
    ),
    (lambda g: g.sum_like(["x4", "x3"]), "sum_like", "'x4' [4], 'x3' [3]", "do not broadcast"),
    (lambda g: g.sum_like(["x4"], unwindable=1), "sum_like", "'x4'", "input 1 is not one of 0..0"),
    (lambda g: g.sum_like(["x4"], unwindable=-1), "sum_like", "'x4'", "input -1 is not one of"),
    (
        lambda g: g.sum_like(["x3", "x2_3"]),
        "sum_like",
        "'x2_3'",
        "unwindable input 0 has shape [3], the output [2, 3]",
    ),
    (lambda g: g.sum_like([]), "sum_like", "", "needs at least one input"),
    (
        lambda g: g.reshape("x2_3", (4,)),
        "reshape",
        "'x2_3' [2, 3]",
        "shape [4] has 4 elements, the input [2, 3] has 6",
    ),
    (lambda g: g.reshape("x2_3", (-1, -6)), "reshape", "'x2_3'", "negative dimension"),
    (
        lambda g: g.dim_shuffle("x2_3", (0, 0)),
        "dim_shuffle",
        "'x2_3'",
        "permutation [0, 0] must permute the 2 dimensions",
    ),
    (lambda g: g.dim_shuffle("x2_3", (0,)), "dim_shuffle", "'x2_3'", "permutation [0]"),
    (lambda g: g.dim_shuffle("x2_3", (-1, 1)), "dim_shuffle", "'x2_3'", "permutation [1, 1]"),
    (lambda g: g.dim_shuffle("x2_3", (-3, 0)), "dim_shuffle", "'x2_3'", "permutation [-3, 0]"),
    (lambda g: g.reverse("x4", (1,)), "reverse", "'x4'", "dims names dimension 1 of a tensor of"),
    (lambda g: g.reverse("x4", (-2,)), "reverse", "'x4'", "dims names dimension -2"),
    (lambda g: g.reverse("x4", (0, -1)), "reverse", "'x4'", "dims [0, 0] names a dimension twice"),
    (lambda g: g.slice("x4", (0, 0), (1,)), "slice", "'x4'", "lower has 2 entries for 1 dim"),
    (lambda g: g.slice("x4", (0,), (1, 1)), "slice", "'x4'", "upper has 2 entries for 1 dim"),
    (lambda g: g.slice("x4", (0,), (5,)), "slice", "'x4'", "0 <= lower <= upper <= 4"),
    (lambda g: g.slice("x4", (-1,), (2,)), "slice", "'x4'", "bounds -1, 2 violate"),
    (lambda g: g.slice("x4", (3,), (2,)), "slice", "'x4'", "bounds 3, 2 violate"),
    (lambda g: g.sub_sample("x4", (0,)), "sub_sample", "'x4'", "strides [0] must be at least 1"),
    (lambda g: g.sub_sample("x4", (2**62,)), "sub_sample", "'x4'", "below 2^62"),
    (lambda g: g.slice("x4", 1, 5), "slice", "'x4'", "violate 0 <= lower <= upper <= 4"),
    (lambda g: g.sub_sample("x4", -1, dim=0), "sub_sample", "'x4'", "strides [-1] must be at"),
    (lambda g: g.sub_sample("x4", ()), "sub_sample", "'x4'", "strides has 0 entries for 1 dim"),
    (lambda g: g.sett_sample("x4", []), "sett_sample", "'x4'", "setts has 0 entries for 1 dim"),
    (lambda g: g.sett_sample("x4", [[(1, 1)]]), "sett_sample", "'x4'", "a stripe must be [on, off"),
    (lambda g: g.sett_sample("x4", [[(0, 0, 1)]]), "sett_sample", "'x4'", "not both 0"),
    (lambda g: g.sett_sample("x4", [[(-1, 3, 0)]]), "sett_sample", "'x4'", "must be 0 or more"),
    (lambda g: g.sett_sample("x4", [[(1, 0, 2**62)]]), "sett_sample", "'x4'", "is 2^62 or more"),
    (lambda g: g.concat(["x4", "x2_3"], 0), "concat", "'x2_3'", "input 1 has shape [2, 3], which"),
    (
        lambda g: g.concat(["x2_3", "x2_1"], 0),
        "concat",
        "'x2_1'",
        "differs from [2, 3] in a dimension other",
    ),
    (lambda g: g.concat(["x4"], 1), "concat", "'x4'", "axis names dimension 1 of a tensor of rank"),
    (lambda g: g.concat(["x4"], -2), "concat", "'x4'", "axis names dimension -2 of a tensor of"),
    (lambda g: g.concat(["x"], 0), "concat", "'x'", "axis names dimension 0 of a tensor of rank 0"),
    (lambda g: g.concat([], 0), "concat", "", "needs at least one input"),
    (lambda g: g.expand("x2_3", (2, 4)), "expand", "'x2_3'", "[2, 3] does not broadcast to [2, 4]"),
    (lambda g: g.expand("x2_3", (3,)), "expand", "'x2_3'", "does not broadcast to [3]"),
    (lambda g: g.expand("x4", (2**61, 4)), "expand", "'x4'", "more than 2^62"),
    (lambda g: g.identity("y"), "identity", "'y'", "unknown tensor"),
]


def test_bad_arguments_are_named() -> None:
    """Each error names op, type and operand, says what is wrong, and adds nothing."""
    for add, tag, operand, reason in BAD:
        graph = graph_with_operands()
        with refused(f"op '{tag}0' ({tag}): ", operand, reason):
            add(graph)
        assert len(graph.ops) == 8


def test_ops_given_as_data_are_checked() -> None:
    """What only a file can get wrong: missing shapes, a wrong derived shape, wrong arity."""
    graph = graph_with_operands()
    cases: list[tuple[UnwindingOp, str]] = [
        (ops.Sink(id="a", inputs=()), "op 'a' (sink): shape is missing"),
        (ops.Reshape(id="a", inputs=("x4",)), "shape is missing (operands: 'x4' [4])"),
        (ops.Expand(id="a", inputs=("x4",)), "shape is missing"),
        (ops.SumLikeReduce(id="a", inputs=("x4",)), "shape is missing"),
        (ops.Source(id="a", inputs=()), "shape is missing"),
        (ops.Identity(id="a", inputs=("x4",), shape=(2, 2)), "the given shape [2, 2] must be [4]"),
        (ops.Reverse(id="a", inputs=("x4",), dims=(-1,)), "dims names dimension -1"),
        (ops.Concat(id="a", inputs=("x4",), axis=-1), "axis names dimension -1"),
        (ops.DimShuffle(id="a", inputs=("x4",), permutation=(-1,)), "permutation [-1]"),
        (ops.Reshape(id="a", inputs=("x4",), shape=(-1,)), "shape [-1] has a negative"),
        (ops.Identity(id="a", inputs=("x4", "x4")), "takes 1 input(s), 2 given"),
        (ops.Sink(id="a", inputs=("x4",), shape=(1,)), "takes 0 input(s), 1 given"),
        (ops.SumLike(id="a", inputs=("x4",), unwindable_inputs=()), "unwindable_inputs is empty"),
        (ops.Sink(id="", inputs=(), shape=(1,)), "the id must be a nonempty string"),
        (ops.Sink(id="x4", inputs=(), shape=(1,)), "the id is already used"),
    ]
    for op, reason in cases:
        with refused(reason):
            graph.add(op)
    assert len(graph.ops) == 8


def test_huge_tensors_need_no_memory() -> None:
    """Shapes of up to 2^62 elements are inferred by arithmetic alone."""
    graph = Graph()
    x = graph.source((2**61,), name="x")
    assert graph.sett_sample(x, [[(1, 1, 0)]]).shape == (2**60,)
    assert graph.sett_sample(x, [[(3, 1, 5), (1, 1, 1), (1, 1, 0)]]).size == 2**59
    assert graph.sub_sample(x, (3,)).shape == (-(-(2**61) // 3),)
    assert graph.slice(x, (7,), (2**61,)).size == 2**61 - 7
    assert graph.concat([x, x], 0).size == 2**62
    assert graph.reshape(x, (2**30, 2**31)).shape == (2**30, 2**31)
    with refused("op 'concat1' (concat): ", "more than 2^62 elements (operands: 'x' ["):
        graph.concat([x, x, x], 0)


stripe = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-9, 9)).filter(
    lambda s: s[0] + s[1] > 0
)


@given(st.integers(0, 40), st.lists(stripe, max_size=3))
def test_stripes_count_what_they_keep(n: int, stripes: list[tuple[int, int, int]]) -> None:
    """Counting by arithmetic agrees with listing, and listing with the definition."""

    def on(i: int) -> bool:
        for wide, off, phase in stripes:
            i = (i - phase) % (wide + off)
            if i >= wide:
                return False
        return True

    assert kept(n, stripes).tolist() == [i for i in range(n) if on(i)]
    assert count_kept(n, stripes) == len(kept(n, stripes))


def test_stripes_restart_in_every_run() -> None:
    """An inner stripe starts anew in each on-run of the outer one, by hand.

    Of 0..9, (3, 2, 1) keeps 1 2 3 and 6 7 8; within each run, (1, 1, 0) keeps the first and
    the third.  Index 0 is off: (0 - 1) mod 5 = 4.
    """
    assert kept(10, [(3, 2, 1), (1, 1, 0)]).tolist() == [1, 3, 6, 8]


def test_views_show_what_they_infer() -> None:
    """Applied to data, every view gives an array of the inferred shape."""
    for add, shape in SHAPES:
        graph = graph_with_operands()
        add(graph)
        op = graph.ops[8]
        if op.kind is not Kind.VIEW:
            continue
        carriers = [
            np.arange(size(graph.shapes[t])).reshape(graph.shapes[t]) for t in graph.carriers(8)
        ]
        assert op.view(carriers).shape == shape


def test_kinds() -> None:
    """Each op type gets its locations as the format says."""
    kinds = {str(cls.__struct_config__.tag): cls.kind for cls in get_args(ops.AnyOp)}
    roots = {
        "sink": Kind.SINK,
        "source": Kind.SOURCE,
        "barrier": Kind.BARRIER,
        "sum_like_reduce": Kind.BARRIER,
        "fixed_point": Kind.FIXED_POINT,
    }
    assert {tag: kind for tag, kind in kinds.items() if kind is not Kind.VIEW} == roots


def test_broadcasting_is_numpys() -> None:
    """``dominates`` and ``broadcast`` agree with NumPy on all small shapes."""
    shapes = [s for rank in range(3) for s in product([0, 1, 2, 3], repeat=rank)]
    for large, small in product(shapes, shapes):
        try:
            joint = np.broadcast_shapes(large, small)
        except ValueError:
            joint = None
        assert dominates(large, small) == (joint == large)
        if joint is not None:
            assert broadcast([large, small]) == joint
