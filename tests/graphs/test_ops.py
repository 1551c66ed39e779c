"""Ops: huge shapes, stripes, kinds and broadcasting."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.graphs import ops
from layoutopt.graphs.ops import Kind, broadcast, count_kept, dominates, kept
from layoutopt.graphs.unwinding import Graph
from tests.support import refused


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
