"""Tensor handles: NumPy's habits, held against NumPy itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutopt.graphs.ops import Array, Kind, type_name
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from tests.support import refused

Act = Callable[[Any], Any]
"""What can be done to a handle and to an array alike."""


def sink(*shape: int) -> Tensor:
    """Return a sink of a graph of its own."""
    return Graph().sink(shape, name="x")


def numbered(*shape: int) -> Array:
    """Return an array in which every element is its own flat index."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def added(x: Tensor) -> list[str]:
    """Return the types of the ops that were appended after the first one."""
    return [type_name(op) for op in x.graph.ops[1:]]


VIEWS: list[tuple[tuple[int, ...], Act, list[str]]] = [
    # shape, what is done to it, the ops that this appends
    ((2, 3, 4), lambda x: x.T, ["dim_shuffle"]),
    ((5,), lambda x: x.T, []),
    ((), lambda x: x.T, []),
    ((2, 3), lambda x: x.transpose(), ["dim_shuffle"]),
    ((2, 3), lambda x: x.transpose(None), ["dim_shuffle"]),
    ((2, 3, 4), lambda x: x.transpose(2, 0, 1), ["dim_shuffle"]),
    ((2, 3, 4), lambda x: x.transpose((1, 2, 0)), ["dim_shuffle"]),
    ((2, 3, 4), lambda x: x.transpose([-1, 0, -2]), ["dim_shuffle"]),
    ((2, 3), lambda x: x.transpose(0, 1), []),
    ((2, 3), lambda x: x.transpose(-2, -1), []),
    ((), lambda x: x.transpose(), []),
    ((2, 3, 4), lambda x: x.swapaxes(0, 2), ["dim_shuffle"]),
    ((2, 3, 4), lambda x: x.swapaxes(-1, 1), ["dim_shuffle"]),
    ((2, 3, 4), lambda x: x.swapaxes(1, -2), []),
    ((2, 3, 4), lambda x: x.reshape(6, 4), ["reshape"]),
    ((2, 3, 4), lambda x: x.reshape((4, 6)), ["reshape"]),
    ((2, 3, 4), lambda x: x.reshape(np.array([4, 3, 2])), ["reshape"]),
    ((2, 3, 4), lambda x: x.reshape(-1), ["reshape"]),
    ((2, 3, 4), lambda x: x.reshape(3, -1, 2), ["reshape"]),
    ((2, 3, 4), lambda x: x.reshape(2, -1, 4), []),
    ((2, 3), lambda x: x.reshape(2, 3), []),
    ((1,), lambda x: x.reshape(()), ["reshape"]),
    ((), lambda x: x.reshape(1, 1), ["reshape"]),
    ((2, 0), lambda x: x.reshape(5, -1), ["reshape"]),
    ((2, 3), lambda x: x.flatten(), ["flatten"]),
    ((6,), lambda x: x.flatten(), []),
    ((), lambda x: x.flatten(), ["flatten"]),
    ((2, 3), lambda x: x.ravel(), ["flatten"]),
    ((1, 3, 1), lambda x: x.squeeze(), ["squeeze"]),
    ((2, 3), lambda x: x.squeeze(), []),
    ((1, 3, 1), lambda x: x.squeeze(0), ["reshape"]),
    ((1, 3, 1), lambda x: x.squeeze(-1), ["reshape"]),
    ((1, 3, 1), lambda x: x.squeeze((0, 2)), ["reshape"]),
    ((1, 3, 1), lambda x: x.squeeze(()), []),
]


@pytest.mark.parametrize("row", range(len(VIEWS)))
def test_methods_do_what_numpy_does(row: int) -> None:
    """Each method gives NumPy's shape and elements, by the op that the table names."""
    shape, act, types = VIEWS[row]
    x = sink(*shape)
    y, array = act(x), act(numbered(*shape))
    assert added(x) == types
    assert y.shape == array.shape
    assert np.array_equal(x.graph.index_map(x, y), array)
    assert types or y is x


s_ = np.s_

INDICES: list[tuple[tuple[int, ...], Any, list[str]]] = [
    # shape, index, the ops that this appends
    ((4, 6, 5), s_[1:3, ::2, ::-1], ["slice", "reverse", "sub_sample"]),
    ((4, 6, 5), s_[1, ::2, ::-1], ["slice", "reverse", "sub_sample", "reshape"]),
    ((4, 6), s_[...], []),
    ((4, 6), s_[:], []),
    ((4, 6), (), []),
    ((4, 6), s_[0:4, ::1], []),
    ((4, 6), s_[-99:99, ...], []),
    ((4, 6), s_[1:], ["slice"]),
    ((4, 6), s_[:, -2:], ["slice"]),
    ((4, 6), s_[:, ::-1], ["reverse"]),
    ((4, 6), s_[::2], ["sub_sample"]),
    ((4, 6), s_[::3, ::4], ["sub_sample"]),
    ((4, 6), s_[1::2], ["slice", "sub_sample"]),
    ((4, 6), s_[:3:2], ["sub_sample"]),  # 0 and 2, as up to the end
    ((4, 6), s_[:2:2], ["slice"]),
    ((4, 6), s_[::-2], ["reverse", "sub_sample"]),
    ((4, 6), s_[2::-2], ["slice", "reverse", "sub_sample"]),
    ((4, 6), s_[:1:-1], ["slice", "reverse"]),
    ((4, 6), s_[3:0:-3], ["slice"]),
    ((4, 6), s_[2], ["slice", "reshape"]),
    ((4, 6), s_[-1, -6], ["slice", "reshape"]),
    ((4, 6), s_[np.int8(2), np.uint64(3)], ["slice", "reshape"]),
    ((4, 6), s_[None], ["reshape"]),
    ((4, 6), s_[:, None, 1:], ["slice", "reshape"]),
    ((4, 6), s_[..., None], ["reshape"]),
    ((4, 6, 5), s_[..., 2], ["slice", "reshape"]),
    ((4, 6, 5), s_[1, ..., ::-1], ["slice", "reverse", "reshape"]),
    ((1, 6), s_[0], ["reshape"]),
    ((1, 6), s_[::-1], []),
    ((1, 6), s_[0, None], []),
    ((1, 1), s_[0, None, 0, None], []),
    ((4, 6), s_[4:], ["slice"]),
    ((4, 6), s_[2:2, ::-1], ["slice", "reverse"]),
    ((4, 6), s_[3:1], ["slice"]),
    ((0, 6), s_[::-2], []),
    ((0, 6), s_[:, 1], ["slice", "reshape"]),
    ((), s_[...], []),
    ((), s_[None, ..., None], ["reshape"]),
]


@pytest.mark.parametrize("row", range(len(INDICES)))
def test_indices_do_what_numpy_does(row: int) -> None:
    """Each basic index gives NumPy's shape and elements, by the ops that the table names."""
    shape, index, types = INDICES[row]
    x = sink(*shape)
    y, array = x[index], numbered(*shape)[index]
    assert y.shape == array.shape
    assert np.array_equal(x.graph.index_map(x, y), array)
    assert added(x) == types
    assert types or y is x


bounds = st.one_of(st.none(), st.integers(-6, 6))
steps = st.one_of(st.none(), st.integers(-4, 4).filter(bool))
entries = st.one_of(st.builds(slice, bounds, bounds, steps), st.integers(-4, 3), st.none())


@given(
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.lists(entries, max_size=4),
    st.one_of(st.none(), st.integers(0, 4)),
)
def test_any_basic_index(shape: tuple[int, ...], entries: list[Any], dots: int | None) -> None:
    """What NumPy takes is taken and gives the same by few ops; what it refuses is refused.

    Few: at most one of each kind, in a fixed order, none of which leaves everything in place.
    """
    if dots is not None:
        entries.insert(dots, ...)
    index = tuple(entries)
    x = sink(*shape)
    try:
        array = numbered(*shape)[index]
    except IndexError:
        with refused("'x' ["):
            x[index]
        assert added(x) == []
        return
    y = x[index]
    graph = x.graph
    assert y.shape == array.shape
    assert np.array_equal(graph.index_map(x, y), array)
    order = ["slice", "reverse", "sub_sample", "reshape"]
    assert added(x) == [name for name in order if name in added(x)]
    for op in graph.ops[1:]:
        before, after = graph.tensor(op.inputs[0]), graph.tensor(op.id)
        same = before.shape == after.shape
        moved = graph.index_map(before, after)
        assert not same or not np.array_equal(moved, numbered(*after.shape)) or not after.size


class TestSequences:
    """Length and iteration."""

    def test_rows_are_appended_as_they_come(self) -> None:
        """Asking for an iterator appends nothing; a huge tensor can be iterated."""
        x = sink(2**61)
        rows = iter(x)
        assert added(x) == []
        assert next(rows).shape == next(rows).shape == ()
        assert len(added(x)) == 4

    def test_rank_0(self) -> None:
        """A tensor without dimensions has neither."""
        for act in (len, iter, list):
            with refused("'x' has rank 0, so that it has no length"):
                act(sink())

    def test_truth_and_membership(self) -> None:
        """A handle is true even if empty; ``in`` is refused rather than slicing into rows."""
        x = sink(0)
        assert x
        assert sink()
        with pytest.raises(TypeError, match="not a container"):
            _ = 3 in x
        assert added(x) == []

    def test_no_list_of_tensors(self) -> None:
        """Where several tensors or integers are asked for, one handle is no list of its rows."""
        x = sink(2, 2)
        for act in (
            lambda: x.graph.concat(x, 0),
            lambda: x.graph.barrier(x, (2,)),
            lambda: x.graph.fixed_point("x", (2,)),
            lambda: x.graph.sum_like(x),
        ):
            with refused("inputs must be a list, not one "):
                act()
        for act in (lambda: x.graph.sink(x), lambda: x.graph.reshape(x, x)):
            with refused("must be integers"):
                act()
        assert added(x) == []


OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / y,
]


@pytest.mark.parametrize("row", range(len(OPERATORS)))
class TestOperators:
    """Elementwise operators: one as the other, as far as layouts go."""

    def test_broadcast(self, row: int) -> None:
        """The operand of the output's shape gives the locations, wherever it stands."""
        for x_first in (True, False):
            graph = Graph()
            x, b = graph.sink((2, 3), name="x"), graph.sink((3,), name="b")
            z = OPERATORS[row](*((x, b) if x_first else (b, x)))
            assert added(x) == ["sink", "sum_like", "sum_like_reduce"]
            assert np.array_equal(graph.index_map(x, z), numbered(2, 3))
            [(large, reduced, small)] = z.reduces
            assert (large, small) == (x, b)
            assert [(p.a, p.b, p.value) for p in graph.valued_pairs()] == [(reduced, b, 1)]

    def test_no_operand_of_the_shape(self, row: int) -> None:
        """Where both are broadcast the result is opaque, and nothing is paired."""
        graph = Graph()
        column, line = graph.sink((2, 1), name="column"), graph.sink((3,), name="line")
        z = OPERATORS[row](column, line)
        assert (z.shape, z.kind, graph.pairs) == ((2, 3), Kind.BARRIER, [])

    def test_one_operand_twice(self, row: int) -> None:
        """A tensor with itself is not paired."""
        x = sink(2)
        assert OPERATORS[row](x, x).shape == (2,)
        assert (added(x), x.graph.pairs) == (["sum_like"], [])

    def test_what_is_no_tensor(self, row: int) -> None:
        """Numbers, arrays and names are none, on either side; nothing is added."""
        x = sink(2)
        for other in (1, 2.5, "x", None, np.float64(2), np.ones(2), [x]):
            for operands in ((x, other), (other, x)):
                with pytest.raises(TypeError):
                    OPERATORS[row](*operands)
        assert added(x) == []

    def test_another_graph(self, row: int) -> None:
        """A handle of another graph is refused, as everywhere."""
        x, other = sink(2), Graph().sink((2,), name="other")
        with refused("tensor 'other' belongs to another graph"):
            OPERATORS[row](x, other)
        assert added(x) == []


def test_removed() -> None:
    """A handle of a removed tensor can still be printed, and nothing else."""
    x = sink(2, 3)
    x.graph.remove(x)
    assert repr(x) == "Tensor(removed)"
    acts: list[Act] = [
        lambda x: x.T,
        lambda x: x[0],
        lambda x: x.reshape(6),
        lambda x: x + x,
        lambda x: x.name,
        len,
    ]
    for act in acts:
        with refused("the tensor's op was removed from its graph"):
            act(x)
