"""What poprithms' unwinding gets wrong, or cannot do, is right here.

Expected scores are worked out by hand beside each graph; small graphs are also solved by trying
everything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.check.elements import evaluate
from layoutopt.graphs.ops import Kind
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.unwinding import unwind
from models import exhaustive
from tests.models.instances import stated
from tests.support import refused

EXHAUSTIVE = 12
"""Graphs of up to so many sink elements are also solved by trying everything."""


def optimum(graph: Graph) -> float:
    """Return a graph's proved optimum."""
    result = unwind(graph)
    assert result.status is Status.OPTIMAL
    assert result.score is not None
    if sum(x.size for x in graph.sinks()) <= EXHAUSTIVE:
        assert exhaustive.maximum(stated(graph)) == result.score
    return float(result.score)


def draw(graph: Graph, x: Tensor, value: float) -> Tensor:
    """Draw a tensor to a new source, and return that."""
    target = graph.source(x.shape)
    graph.valued_pair(x, target, value)
    return target


def cyclic_shuffles(graph: Graph) -> float:
    """Three cyclic shuffles of three dimensions change nothing: 24 matches of 2."""
    x = graph.sink((2, 3, 4))
    y = x
    for _ in range(3):
        y = graph.dim_shuffle(y, (1, 2, 0))
    graph.valued_pair(x, y, 2)
    return 48


def shuffles_of_rank_four(graph: Graph) -> float:
    """Four cyclic shuffles change nothing, nor do two swaps: 12 matches of 2, and 12 of 3."""
    x = graph.sink((1, 2, 3, 2))
    y = z = x
    for _ in range(4):
        y = graph.dim_shuffle(y, (1, 2, 3, 0))
    for _ in range(2):
        z = graph.dim_shuffle(z, (1, 0, 3, 2))
    graph.valued_pair(x, y, 2)
    graph.valued_pair(y, z, 3)
    return 60


def two_shuffles_and_one(graph: Graph) -> float:
    """Shuffled twice by (1, 2, 0) is shuffled by (2, 0, 1): 12 matches of 1, and 12 at 10."""
    x = graph.sink((2, 3, 2))
    draw(graph, x, 10)
    twice = graph.dim_shuffle(graph.dim_shuffle(x, (1, 2, 0)), (1, 2, 0))
    graph.valued_pair(twice, graph.dim_shuffle(x, (2, 0, 1)), 1)
    return 132


def diagonal(graph: Graph) -> float:
    """A square at its target, 9 * 10, has the target's transpose on the diagonal: 3 * 1."""
    x = graph.sink((3, 3))
    target = draw(graph, x, 10)
    graph.valued_pair(x.T, target, 1)
    return 93


def diagonal_of_rank_three(graph: Graph) -> float:
    """A cube at its target, 8 * 10; shuffled it agrees with itself where all indices do: 2 * 1."""
    x = graph.sink((2, 2, 2))
    draw(graph, x, 10)
    graph.valued_pair(x, graph.dim_shuffle(x, (2, 0, 1)), 1)
    return 82


def middle(graph: Graph) -> float:
    """Five elements at their target, 5 * 10; the middle one is its own mirror image: 1."""
    x = graph.sink((5,))
    draw(graph, x, 10)
    graph.valued_pair(x, x[::-1], 1)
    return 51


def one_location_everywhere(graph: Graph) -> float:
    """Four elements at copies of one, 4 * 5, agree backwards, too: 4 * 1."""
    x = graph.sink((4,))
    one = graph.source((1,))
    graph.valued_pair(x, one.broadcast_to((4,)), 5)
    graph.valued_pair(x, x[::-1], 1)
    return 24


def one_source_by_two_chains(graph: Graph) -> float:
    """A target, and the same put together from parts: 2 * 10 twice, and 2 matches of 1."""
    x, y = graph.sink((2,)), graph.sink((2,))
    target = draw(graph, x, 10)
    graph.valued_pair(y, graph.concat([target[:1], target[1:]], 0), 10)
    graph.valued_pair(x, y, 1)
    return 42


def one_source_element_by_two_chains(graph: Graph) -> float:
    """The last of three and the first of three reversed are one: 1 match of 7, nothing free."""
    source = graph.source((3,))
    graph.valued_pair(source[2:], source[::-1][:1], 7)
    graph.sink((1,))
    return 7


def reversed_and_shuffled(graph: Graph) -> float:
    """Rows reversed and then shuffled are shuffled and then reversed: 6 matches of 4."""
    x = graph.sink((2, 3))
    graph.valued_pair(x[:, ::-1].T, x.T[::-1], 4)
    return 24


def columns_one_by_one(graph: Graph) -> float:
    """The columns one after the other are the transpose flattened: 6 matches of 4."""
    x = graph.sink((2, 3))
    graph.valued_pair(x.T.flatten(), graph.concat([x[:, 0], x[:, 1], x[:, 2]], 0), 4)
    return 24


def shared_locations(graph: Graph) -> float:
    """Sources may share locations: two of three agree, 2 * 3, and x takes them all, 3 * 5."""
    x = graph.sink((3,))
    one = graph.source((3,), ["a", "b", "c"])
    graph.valued_pair(one, graph.source((3,), ["a", "d", "c"]), 3)
    graph.valued_pair(x, one, 5)
    return 21


def paired_with_itself(graph: Graph) -> float:
    """A tensor's pair with itself is worth its value once per element, 4 * 3, not twice."""
    x = graph.sink((4,))
    graph.valued_pair(x, x, 3)
    return 12


def slice_along_the_long_axis(graph: Graph) -> float:
    """Seen as one row, elements 2 to 4 take one target, 3 * 4, and the others another, 3 * 1."""
    x = graph.sink((6,))
    draw(graph, x, 1)
    row = graph.reshape(x, (1, 6))
    draw(graph, graph.slice(row, (0, 2), (1, 5)), 4)
    return 15


def expanded_slice(graph: Graph) -> float:
    """Of two copies of an element one can be at its target, 5; the other 8 are at theirs, 8 * 1."""
    x = graph.sink((3, 3))
    draw(graph, x, 1)
    corner = graph.slice(x, (0, 0), (1, 1))
    draw(graph, graph.expand(corner, (2, 1, 1)), 5)
    return 13


def expanded_slice_at_one_location(graph: Graph) -> float:
    """As before, with a target whose two elements are at one location: 2 * 5 + 8 * 1."""
    x = graph.sink((3, 3))
    draw(graph, x, 1)
    corner = graph.slice(x, (0, 0), (1, 1))
    target = graph.source((2, 1, 1), ["here", "here"])
    graph.valued_pair(graph.expand(corner, (2, 1, 1)), target, 5)
    return 18


def coprime_reshape(graph: Graph) -> float:
    """Half the columns after a reshape, 223 * 105 at 2, and the other 23638 elements at 1."""
    x = graph.sink((211, 223))
    draw(graph, x, 1)
    draw(graph, graph.reshape(x, (223, 211))[:, :105], 2)
    return 2 * 23415 + 23638


def sixteen_exchanges(graph: Graph) -> float:
    """Two elements exchanged 16 times are where they were: 2 * 3 at a target, 2 matches of 1."""
    x = graph.sink((2,))
    y = x
    for _ in range(16):
        y = graph.concat([y[1:], y[:1]], 0)
    draw(graph, y, 3)
    graph.valued_pair(x, y, 1)
    return 8


def seventeen_exchanges(graph: Graph) -> float:
    """Exchanged once more they match only where they are alike: 2 * 3 beats 3 + 2 * 1."""
    x = graph.sink((2,))
    y = x
    for _ in range(17):
        y = graph.concat([y[1:], y[:1]], 0)
    draw(graph, y, 3)
    graph.valued_pair(x, y, 1)
    return 6


def without_sources(graph: Graph) -> float:
    """With no source at all elements still agree, 3 * 2, and need no default that is asked for."""
    x, y = graph.sink((3,)), graph.sink((3,))
    graph.valued_pair(x, y, 2)
    graph.sink((7,))
    return 6


GRAPHS: list[Callable[[Graph], float]] = [
    *(cyclic_shuffles, shuffles_of_rank_four, two_shuffles_and_one),
    *(diagonal, diagonal_of_rank_three, middle, one_location_everywhere),
    *(one_source_by_two_chains, one_source_element_by_two_chains),
    *(reversed_and_shuffled, columns_one_by_one, shared_locations, paired_with_itself),
    *(slice_along_the_long_axis, expanded_slice, expanded_slice_at_one_location),
    *(coprime_reshape, sixteen_exchanges, seventeen_exchanges, without_sources),
]


@pytest.mark.parametrize("build", GRAPHS, ids=lambda build: build.__name__)
def test_scores_count_elements(build: Callable[[Graph], float]) -> None:
    """The optimum is what counting element by element gives, as each graph's text works it out."""
    graph = Graph(build.__name__)
    assert build(graph) == optimum(graph)


def test_a_given_layout_is_counted_by_elements() -> None:
    """Half of x at its target in order and half exchanged scores what agrees: 2 of 4."""
    graph = Graph()
    x, target = graph.sink((4,), name="x"), graph.source((4,), name="target")
    graph.valued_pair(x, target, 10)
    layout = [("target", 0, 0, ((2, 1, 1),)), ("target", 3, 2, ((2, -1, 1),))]
    assert evaluate(graph, {"x": layout}).score == 20


def half_covered_sum(first: int) -> Graph:
    """Return a sum whose operands are each drawn to a target in part, the parts overlapping.

    Parameters
    ----------
    first
        Which of the two operands is listed first as unwindable.
    """
    graph = Graph()
    a, b = graph.sink((4,), name="a"), graph.sink((4,), name="b")
    draw(graph, a[:3], 10)
    draw(graph, b[1:], 10)
    out = graph.sum_like([a, b], 1, unwindable=[first, 1 - first], name="out")
    draw(graph, out[:1], 5)
    return graph


def test_sum_with_two_unwindable_inputs() -> None:
    """The first listed is the layout: a legal graph with one meaning, in either order.

    Elements 1 and 2 of a and b have targets of their own: 2 * (10 + 10).  Element 3 of b has a
    target, and a's follows: 10 + 1.  Element 0 of a has a target that b's follows, 10 + 1, and if
    the output is a, its 5 is lost; if it is b, that element takes the 5 instead of the 1.
    """
    assert optimum(half_covered_sum(0)) == 40 + 11 + 11
    assert optimum(half_covered_sum(1)) == 40 + 11 + 15
    for first in (0, 1):
        graph = half_covered_sum(first)
        assert graph.index_map("ab"[first], "out").tolist() == [0, 1, 2, 3]
        assert graph.index_map("ba"[first], "out").tolist() == [-1] * 4
        assert graph.is_unwindable("out", first)
        assert not graph.is_unwindable("out", 1 - first)


def test_kinds_are_told() -> None:
    """A source is a source, and nothing else is; the same for sinks, barriers and fixed points."""
    graph = Graph()
    x, s = graph.sink((2,), name="x"), graph.source((2,), name="s")
    graph.barrier([x], (2,), name="b")
    graph.fixed_point([x], (2,), name="f")
    graph.sum_like_reduce(x, (1,), name="r")
    kinds = {t.name: t.kind for t in graph.tensors()}
    assert kinds == {
        "x": Kind.SINK,
        "s": Kind.SOURCE,
        "b": Kind.BARRIER,
        "f": Kind.FIXED_POINT,
        "r": Kind.BARRIER,
    }
    assert graph.kind(s) is Kind.SOURCE
    assert graph.sources() == (s,)


def test_call_with_a_wrong_number_of_values() -> None:
    """Fewer or more values than copies are refused in one line, and nothing is added."""
    for wrong, reason in [
        ({"values_out": []}, "values_out has 0 entries for 1 copies"),
        ({"values_out": [1, 2]}, "values_out has 2 entries for 1 copies"),
        ({"values_in": []}, "values_in has 0 entries for 1 copies"),
        ({"names": []}, "names has 0 entries for 1 copies"),
    ]:
        graph = Graph()
        x, inside = graph.sink((2,)), graph.sink((2,))
        with refused(reason):
            graph.call([(x, inside)], [inside], **wrong)
        assert (len(graph.ops), graph.pairs) == (2, [])


def test_shape_of_a_reduce() -> None:
    """A reduce has a shape that broadcasts to its input's, and no other."""
    for shape in [(2, 3), (1, 3), (2, 1), (3,), (1,), (1, 1), ()]:
        graph = Graph()
        assert graph.sum_like_reduce(graph.sink((2, 3)), shape).shape == shape
    for shape in [(3, 2), (2,), (6,), (1, 2, 3), (0,), (2, 2), (4, 3)]:
        graph = Graph()
        with refused(f"shape {list(shape)} does not broadcast to [2, 3]", "'sink0' [2, 3]"):
            graph.sum_like_reduce(graph.sink((2, 3)), shape)


def test_reshapes_of_huge_tensors() -> None:
    """Shapes far beyond 2^32 elements, where the original's periods overflow, are right."""
    graph = Graph()
    x = graph.sink((2**31 - 1, 2**30))
    turned = x.reshape(2**30, -1)
    assert turned.shape == (2**30, 2**31 - 1)
    assert turned[::3, 5:].shape == (357913942, 2**31 - 6)


def test_half_a_coprime_reshape() -> None:
    """A slice after a reshape with no common factors reads exactly its elements."""
    graph = Graph()
    x = graph.sink((211, 223), name="x")
    half = graph.slice(graph.reshape(x, (223, 211), name="turned"), 0, 105, dim=1)
    part = np.arange(211 * 223).reshape(223, 211)[:, :105]
    assert np.array_equal(graph.index_map(x, half), part)
    shown = graph.in_regions(half, np.s_[:])
    assert np.array_equal(np.flatnonzero(graph.in_regions("turned", shown)), part.reshape(-1))
