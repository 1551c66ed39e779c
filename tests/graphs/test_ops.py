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
    broadcast,
    count_kept,
    dominates,
    kept,
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
