"""Tensor handles: indices, sequences and operators, held against NumPy itself."""

from __future__ import annotations

import operator
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


@pytest.mark.parametrize("act", [operator.add, operator.sub, operator.mul, operator.truediv])
class TestOperators:
    """Elementwise operators: one as the other, as far as layouts go."""

    def test_broadcast(self, act: Callable[[Any, Any], Any]) -> None:
        """The operand of the output's shape gives the locations, wherever it stands."""
        for x_first in (True, False):
            graph = Graph()
            x, b = graph.sink((2, 3), name="x"), graph.sink((3,), name="b")
            z = act(*((x, b) if x_first else (b, x)))
            assert added(x) == ["sink", "sum_like", "sum_like_reduce"]
            assert np.array_equal(graph.index_map(x, z), numbered(2, 3))
            [(large, reduced, small)] = z.reduces
            assert (large, small) == (x, b)
            assert [(p.a, p.b, p.value) for p in graph.valued_pairs()] == [(reduced, b, 1)]

    def test_no_operand_of_the_shape(self, act: Callable[[Any, Any], Any]) -> None:
        """Where both are broadcast the result is opaque, and nothing is paired."""
        graph = Graph()
        column, line = graph.sink((2, 1), name="column"), graph.sink((3,), name="line")
        z = act(column, line)
        assert (z.shape, z.kind, graph.pairs) == ((2, 3), Kind.BARRIER, [])

    def test_one_operand_twice(self, act: Callable[[Any, Any], Any]) -> None:
        """A tensor with itself is not paired."""
        x = sink(2)
        assert act(x, x).shape == (2,)
        assert (added(x), x.graph.pairs) == (["sum_like"], [])

    def test_what_is_no_tensor(self, act: Callable[[Any, Any], Any]) -> None:
        """Numbers, arrays and names are none, on either side; nothing is added."""
        x = sink(2)
        for other in (1, 2.5, "x", None, np.float64(2), np.ones(2), [x]):
            for operands in ((x, other), (other, x)):
                with pytest.raises(TypeError):
                    act(*operands)
        assert added(x) == []

    def test_another_graph(self, act: Callable[[Any, Any], Any]) -> None:
        """A handle of another graph is refused, as everywhere."""
        x, other = sink(2), Graph().sink((2,), name="other")
        with refused("tensor 'other' belongs to another graph"):
            act(x, other)
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
