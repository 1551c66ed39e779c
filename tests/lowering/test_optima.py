"""Problems over boxes have the optimum of problems over elements."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import ModuleType

import pytest

from benchmarks.figures import FIGURES
from benchmarks.traps import TRAPS
from layoutopt import unwinding
from layoutopt.base.errors import SizeError
from layoutopt.base.limits import Limits
from layoutopt.base.result import Status
from layoutopt.check.elements import by_elements, evaluate
from layoutopt.generate.layers import training_step
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.tiling import tiled
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.lowering import lower as lowering
from layoutopt.lowering.classes import reduced, runs
from layoutopt.lowering.lower import Lowered, lower
from layoutopt.network.parts import solve_parts
from layoutopt.network.problem import IntArray
from layoutopt.unwinding import unwind
from models.exhaustive import maximum
from models.statement import state
from tests.lowering.graphs import awkward, on_tiles
from tests.models.instances import mixed, tangle

NEVER = 2**62


def solved(lowered: Lowered) -> tuple[IntArray, Fraction]:
    """Return the labels of a lowered graph, and their score, which is proved to be the best."""
    result = solve_parts(lowered.problem, Limits())
    assert result.objective == result.bound is not None
    return result.labelling, lowered.unit * (lowered.constant + int(result.objective))


def optimum(graph: Graph, lowered: Lowered) -> Decimal | None:
    """Solve a lowered graph, and return the score of its layouts, which must be the optimum."""
    labels, best = solved(lowered)
    found = evaluate(graph, lowered.layouts(labels))
    assert (found.violations, found.score) == ((), best)
    return found.score


def assert_alike(graph: Graph) -> Lowered:
    """Assert that lifting and tracing give the same optimum, layouts that earn it, and sizes."""
    traced = lower(graph, Limits(), lift_from=NEVER)
    lifted = lower(graph, Limits(), lift_from=0)
    assert optimum(graph, lifted) == optimum(graph, traced), graph.name
    assert lifted.size == traced.size, graph.name
    return lifted


@pytest.mark.parametrize("negative", [False, True])
def test_awkward_graphs(negative: bool) -> None:
    """Small graphs of views of every kind, ragged and square, have the same optimum both ways."""
    for seed in range(25):
        assert_alike(awkward(seed + 10_000 * negative, negative=negative))


def test_values_whose_sum_does_not_fit_64_bits() -> None:
    """Each group's values do, but not those of all groups together."""
    graph = Graph("large values")
    values = [2**60 + 2 * i + 1 for i in range(9)]
    for value in values:
        graph.valued_pair(graph.sink((1,)), graph.source((1,)), value)
    for solver in ("auto", "random-greedy"):
        assert unwind(graph, solver).score == sum(values)


@pytest.mark.parametrize("copies, width, step", [(13, 2, 5), (23, 1, 7), (24, 4, 7)])
def test_strided_copies(copies: int, width: int, step: int) -> None:
    """So have copies of a row of which every some are told apart, and these do not divide them."""
    graph = Graph("strided copies")
    whole = graph.expand(graph.sink((1, width)), (copies, width))
    for view in (whole, whole[::step]):
        graph.valued_pair(view, graph.source(view.shape), 1)
    assert_alike(graph)


def test_awkward_graphs_on_tiles() -> None:
    """So have graphs whose sources lie on tiles, and their layouts earn it by the check."""
    for seed in range(25):
        graph = on_tiles(awkward(seed), seed)
        best = []
        for lift_from in (0, NEVER):
            lowered = lower(tiled(graph), Limits(), lift_from=lift_from)
            labels, score = solved(lowered)
            found = by_elements(graph, lowered.layouts(labels))
            assert (found.violations, found.score) == ((), score)
            best.append(score)
        assert best[0] == best[1], seed


def test_larger_awkward_graphs() -> None:
    """So have some with up to 900 elements in a tensor."""
    for seed in range(20):
        assert_alike(awkward(seed, widest=24, largest=900))


def test_awkward_graphs_against_exhaustive_search() -> None:
    """The tiniest have the optimum that trying everything finds."""
    tried = 0
    for seed in range(120):
        graph = awkward(seed, widest=3, largest=9)
        if sum(sink.size for sink in graph.sinks()) <= 6:
            tried += 1
            assert optimum(graph, lower(graph, Limits(), lift_from=0)) == maximum(
                state(instance_bytes(graph).decode())
            )
    assert tried > 30


@pytest.mark.parametrize("family", [mixed, tangle, partial(random_graph, elements=30, ops=14)])
def test_barrier_order(family: Callable[[int], Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs with barriers that compete are proved alike, with and without lifting."""
    for seed in range(12):
        graph = family(seed)
        traced = unwind(graph)
        with monkeypatch.context() as patch:
            patch.setattr(unwinding, "lower", partial(lower, lift_from=0))
            lifted = unwind(graph)
        assert (lifted.score, lifted.bound) == (traced.score, traced.bound), graph.name
        assert lifted.size == traced.size


@pytest.mark.parametrize("name", [*FIGURES, *TRAPS])
def test_figures_and_traps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of the notes and the graphs that beat Greedy0 have their known optima."""
    graph = {**FIGURES, **TRAPS}[name]()
    traced = unwind(graph)
    monkeypatch.setattr(unwinding, "lower", partial(lower, lift_from=0))
    lifted = unwind(graph)
    assert (lifted.score, lifted.status) == (traced.score, Status.OPTIMAL)


def transposed(n: int) -> Graph:
    """Return a square matrix tied to its transpose and to two sources."""
    graph = Graph()
    w = graph.sink((n, n), name="w")
    graph.valued_pair(w, w.T, 3)
    graph.valued_pair(w, graph.source((n, n)), 2)
    graph.valued_pair(w.T, graph.source((n, n)), 2)
    return graph


def reversed_twice(n: int) -> Graph:
    """Return a 3-d tensor tied to itself with two axes swapped, and reversed on two axes."""
    graph = Graph()
    x = graph.sink((n, n, 3), name="x")
    graph.valued_pair(x, graph.dim_shuffle(x, (1, 0, 2)), 2)
    graph.valued_pair(x, x[::-1, ::-1], 3)
    graph.valued_pair(x, graph.source((n, n, 3)), 4)
    return graph


def reversed_odd(n: int) -> Graph:
    """Return a vector of odd length tied to itself reversed; the middle is its own image."""
    graph = Graph()
    x = graph.sink((2 * n + 1,), name="x")
    graph.valued_pair(x, x[::-1], 2)
    graph.valued_pair(x, graph.source((2 * n + 1,)), 1)
    return graph


def ragged(n: int) -> Graph:
    """Return three views of a matrix at offsets that have nothing in common, transposed."""
    graph = Graph()
    x = graph.sink((n, n), name="x")
    for first in (3, 5, 1):
        part = x[first:, : n - first]
        graph.valued_pair(part.T, graph.source((n - first, n - first)), first)
    return graph


def sliding(n: int) -> Graph:
    """Return a matrix tied to itself shifted: long chains, which no class can shorten."""
    graph = Graph()
    x = graph.sink((n, 4), name="x")
    graph.valued_pair(x[1:], x[:-1], 2)
    graph.valued_pair(x, graph.source((n, 4)), 1)
    return graph


def attention(n: int) -> Graph:
    """Return fused projections of uneven widths, and views of their heads."""
    graph = Graph()
    w = graph.sink((n, 3 * n), name="w")
    query, key, value = w[:, :n], w[:, n : 2 * n], w[:, 2 * n :]
    heads = graph.dim_shuffle(graph.reshape(query, (n, 4, n // 4)), (1, 0, 2))
    graph.valued_pair(heads, graph.source((4, n, n // 4)), 5)
    graph.valued_pair(key, value, 1)
    graph.valued_pair(key.T, graph.source((n, n)), 3)
    graph.valued_pair(w, graph.source((n, 3 * n)), 2)
    return graph


def buffer(n: int) -> Graph:
    """Return a flat buffer of three matrices, and flat states beside it."""
    graph = Graph()
    matrices = [graph.sink((n, k * n)) for k in (3, 4, 1)]
    flat = graph.concat([x.flatten() for x in matrices], 0)
    state = graph.sink(flat.shape, name="state")
    graph.valued_pair(flat, state, 2)
    graph.valued_pair(state, graph.source(flat.shape), 1)
    for x in matrices:
        graph.valued_pair(x.T, graph.source(x.T.shape), 3)
    return graph


def spread_bias(n: int) -> Graph:
    """Return a bias whose copies meet a free activation, one element many."""
    graph = Graph()
    bias, x = graph.sink((n,), name="bias"), graph.sink((4, n), name="x")
    graph.valued_pair(bias.broadcast_to((4, n)), x, 1)
    graph.valued_pair(x, graph.source((4, n)), 2)
    graph.valued_pair(bias, graph.source((n,)), 3)
    return graph


def parallel_edges(n: int) -> Graph:
    """Return two vectors whose copies meet only each other."""
    graph = Graph()
    x, y = graph.sink((n,), name="x"), graph.sink((n,), name="y")
    graph.valued_pair(x.broadcast_to((7, n)), y.broadcast_to((7, n)), 1)
    graph.valued_pair(x, graph.source((n,)), 3)
    graph.valued_pair(y, graph.source((n,)), 5)
    return graph


def twice_the_same(n: int) -> Graph:
    """Return one source that a matrix meets as it is and transposed: labels agree on a diagonal."""
    graph = Graph()
    x, s = graph.sink((n, n), name="x"), graph.source((n, n), name="s")
    graph.valued_pair(x, s, 2)
    graph.valued_pair(x.T, s, 3)
    return graph


def partly_fixed(n: int) -> Graph:
    """Return a concatenation of a sink, a source and the sink again, tied to another sink."""
    graph = Graph()
    x, s = graph.sink((n, 2), name="x"), graph.source((n, 2), name="s")
    joined = graph.concat([x, s, x], 1)
    graph.valued_pair(joined, graph.sink((n, 6), name="y"), 2)
    graph.valued_pair(joined, joined[::-1], 1)
    return graph


def mapped(n: int) -> Graph:
    """Return a small source of shared locations spread over a large matrix."""
    graph = Graph()
    x = graph.sink((n, 4), name="x")
    tiles = graph.source((4,), [0, 1, 1, 0], name="tiles")
    graph.valued_pair(x, tiles.broadcast_to((n, 4)), 2)
    graph.valued_pair(x, x[::-1, ::-1], 1)
    return graph


STRUCTURES: list[Callable[[int], Graph]] = [
    transposed,
    reversed_twice,
    reversed_odd,
    ragged,
    attention,
    buffer,
    spread_bias,
    parallel_edges,
    twice_the_same,
    partly_fixed,
    mapped,
]


@pytest.mark.parametrize("build", [*STRUCTURES, sliding])
def test_structures(build: Callable[[int], Graph]) -> None:
    """Graphs as networks have them, and awkward ones, agree with tracing at several sizes."""
    for n in (8, 20):
        assert_alike(build(n))


@pytest.mark.parametrize("build", STRUCTURES)
def test_size_does_not_matter(build: Callable[[int], Graph]) -> None:
    """Four times and 4096 times as wide, the problem has as many nodes, edges and rewards."""
    small, medium, large = (
        lower(build(n), Limits(), lift_from=0).problem for n in (64, 256, 262_144)
    )
    assert small.nodes <= 60
    for other in (medium, large):
        assert (other.nodes, len(other.edges)) == (small.nodes, len(small.edges))
        assert len(other.rewards) == len(small.rewards)


def test_scores_of_huge_graphs_by_formula() -> None:
    """At n = 2^18 optima are what counting by hand gives.

    ``transposed``: off the diagonal two elements that are each other's image earn 3 + 3 at one
    location, which is worth 2 more to one of them; apart, each at a source, they earn 2 + 2.
    On the diagonal an element is its own image: 3, and 2 for either source.
    ``twice_the_same``: 3 everywhere, and 2 more on the diagonal.  ``parallel_edges``: seven copies
    of each element meet, and the dearer of two sources.
    """
    n = 2**18
    pairs = n * (n - 1) // 2
    assert solved(lower(transposed(n), Limits()))[1] == pairs * 8 + n * 5
    assert solved(lower(twice_the_same(n), Limits()))[1] == n * n * 3 + n * 2
    assert solved(lower(parallel_edges(n), Limits()))[1] == n * (7 + 5)


def test_training_steps_agree() -> None:
    """Training steps with fused and ragged layers have equal optima both ways."""
    for layers, width, batch, step in [(3, 4, 2, 0), (3, 6, 6, 1), (4, 5, 3, 2)]:
        assert_alike(training_step(layers, width, batch, step))


@pytest.mark.parametrize(
    ("module", "limit", "text"),
    [(reduced, "CELLS_LIMIT", "cells are left"), (runs, "VALUES_LIMIT", "told apart")],
)
def test_what_is_too_irregular_is_traced(
    module: ModuleType, limit: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a limit a group is traced if it fits the memory, and refused if it does not."""
    for graph in (sliding(40), competing(40)):
        monkeypatch.undo()
        expected = lower(graph, Limits(), lift_from=NEVER)
        monkeypatch.setattr(module, limit, 20)
        found = lower(graph, Limits(), lift_from=0)
        assert (found.problem.nodes, found.size) == (expected.problem.nodes, expected.size)
        assert (found.problem.precedence is None) == (expected.problem.precedence is None)
        monkeypatch.setattr(lowering, "fits_memory", lambda _needed: False)
        with pytest.raises(SizeError, match=text):
            lower(graph, Limits(), lift_from=0)


def competing(n: int) -> Graph:
    """Return two matrices, each drawn to a barrier that reads the other; one has long chains."""
    graph = Graph()
    x, y = graph.sink((n, 4), name="x"), graph.sink((n, 4), name="y")
    graph.valued_pair(y, graph.barrier([x], (n, 4)), 2)
    graph.valued_pair(x, graph.barrier([y], (n, 4)), 3)
    graph.valued_pair(x[1:], x[:-1], 1)
    return graph
