"""What poprithms' unwinding gets wrong, or cannot do, is right here.

Expected scores are worked out by hand beside each graph; small graphs are also solved by trying
everything.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layoutopt.base.result import Status
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import read_instance
from layoutopt.unwinding import unwind
from models import exhaustive
from tests.models.instances import stated

CASES = Path(__file__).parents[1] / "cases"
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


GRAPHS = {path.stem: path for path in sorted((CASES / "original").glob("*.json"))}
"""Instances; each description begins with the best score, and says how it is counted."""


@pytest.mark.parametrize("name", GRAPHS)
def test_scores_count_elements(name: str) -> None:
    """The optimum is what counting element by element gives, as each graph's text works it out."""
    graph = read_instance(GRAPHS[name])
    assert optimum(graph) == float(graph.description.partition(":")[0])


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


def test_half_a_coprime_reshape() -> None:
    """A slice after a reshape with no common factors reads exactly its elements."""
    graph = Graph()
    x = graph.sink((211, 223), name="x")
    half = graph.slice(graph.reshape(x, (223, 211), name="turned"), 0, 105, dim=1)
    part = np.arange(211 * 223).reshape(223, 211)[:, :105]
    assert np.array_equal(graph.index_map(x, half), part)
    shown = graph.in_regions(half, np.s_[:])
    assert np.array_equal(np.flatnonzero(graph.in_regions("turned", shown)), part.reshape(-1))
