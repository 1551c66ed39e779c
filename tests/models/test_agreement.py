"""Solvers and models find the same optimum, on graphs small enough to try every choice."""

from __future__ import annotations

import shutil
from collections import Counter
from fractions import Fraction
from functools import cache

import pytest

from layoutopt.base.result import Status
from layoutopt.generate.random_graphs import random_graph
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import OP_TYPES
from layoutopt.unwinding import unwind
from models import exhaustive, minizinc, textbook_mip
from tests.models.instances import FAMILIES, features, stated, wide
from tests.support import EXACT

CHUNK = 50

SEEDS = {"mixed": 100, "tangle": 50, "apart": 50}

CHUNKS = [
    pytest.param(family, start, id=f"{family}-{start}")
    for family, seeds in SEEDS.items()
    for start in range(0, seeds, CHUNK)
]


@cache
def tried(family: str, seed: int) -> tuple[Graph, Fraction]:
    """Return a graph and its optimum, which several tests hold what they look at against."""
    graph = FAMILIES[family](seed)
    return graph, exhaustive.maximum(stated(graph))


def methods(seed: int) -> tuple[str, str]:
    """Return the first method, and one of the others, each for twenty seeds in a row."""
    first, *others = EXACT
    return first, others[seed // 20 % len(others)]


needs_minizinc = pytest.mark.skipif(
    shutil.which("minizinc") is None,
    reason="the minizinc command is not on this machine, so its model is not compared",
)


@pytest.mark.parametrize(("family", "start"), CHUNKS)
def test_every_exact_method_proves_the_optimum(family: str, start: int) -> None:
    """Each method's objective and bound are what trying everything finds."""
    for seed in range(start, start + CHUNK):
        graph, optimum = tried(family, seed)
        for method in methods(seed):
            result = unwind(graph, method)
            found = (result.status, result.objective, result.bound)
            assert found == (Status.OPTIMAL, optimum, optimum), f"{graph.name} by {method}"


@pytest.mark.parametrize(("family", "start"), CHUNKS)
def test_greedy0_never_beats_the_optimum(family: str, start: int) -> None:
    """The heuristic's layouts are legal, and worth at most the optimum, its bound at least."""
    for seed in range(start, start + CHUNK):
        graph, optimum = tried(family, seed)
        result = unwind(graph, "greedy0")
        assert result.objective is not None
        assert result.bound is not None
        assert Fraction(result.objective) <= optimum <= Fraction(result.bound), graph.name


def test_methods_prove_the_optimum_of_larger_graphs() -> None:
    """The same on graphs of up to eight free elements and many barriers."""
    for seed in range(10_000, 10_000 + CHUNK):
        graph = random_graph(seed, elements=8, ops=18, pairs=10, negative=seed % 3 == 0)
        optimum = exhaustive.maximum(stated(graph))
        for method in methods(seed):
            result = unwind(graph, method)
            assert (result.status, result.objective) == (Status.OPTIMAL, optimum), graph.name


@pytest.mark.parametrize("family", FAMILIES)
def test_values_beyond_64_bits_are_never_wrong(family: str) -> None:
    """A proof may be missing there, but score, optimum and bound stand in this order."""
    proofs = 0
    for seed in range(CHUNK // 2):
        graph = wide(FAMILIES[family](seed), seed)
        optimum = exhaustive.maximum(stated(graph))
        for method in EXACT:
            result = unwind(graph, method)
            assert result.objective is not None, f"{graph.name} by {method}"
            assert Fraction(result.objective) <= optimum, f"{graph.name} by {method}"
            assert result.bound is not None
            assert Fraction(result.bound) >= optimum, graph.name
            proofs += result.status is Status.OPTIMAL
    assert proofs >= CHUNK // 2


@pytest.mark.parametrize("family", FAMILIES)
def test_textbook_mip_agrees(family: str) -> None:
    """The textbook rows have the same optimum."""
    for seed in range(CHUNK):
        graph, optimum = tried(family, seed)
        assert textbook_mip.maximum(stated(graph)) == optimum, graph.name


@needs_minizinc
@pytest.mark.parametrize("family", FAMILIES)
def test_minizinc_agrees(family: str) -> None:
    """The MiniZinc model has the same optimum; few seeds, as each call takes its time."""
    for seed in range(10):
        graph, optimum = tried(family, seed)
        assert minizinc.maximum(stated(graph)) == optimum, graph.name


OFTEN = {
    "mixed": {"order matters": 16, "exclusive barriers": 6, "several outputs": 4}
    | {"part of a sink read": 3, "chain of barriers": 16, "element in several barriers": 16}
    | {"constant": 16, "fractions": 16, "shared location": 16, "unconstrained element": 16}
    | {"nothing to choose": 3, "no location": 1, "negative location": 4},
    "tangle": {"order matters": 25, "exclusive barriers": 18, "several outputs": 25}
    | {"part of a sink read": 25, "chain of barriers": 18, "element in several barriers": 25}
    | {"negative location": 12, "negative agreement": 6},
    "apart": {"negative agreement": 37, "negative location": 25, "no location": 5}
    | {"order matters": 2, "shared location": 10},
}
"""In how many graphs of a family each feature must occur, at least."""


@pytest.mark.parametrize("family", FAMILIES)
def test_random_graphs_have_what_solvers_may_get_wrong(family: str) -> None:
    """Every trouble with barriers, signs and locations occurs often; in ``mixed`` every op."""
    graphs = [FAMILIES[family](seed) for seed in range(SEEDS[family])]
    found = Counter(feature for graph in graphs for feature in features(graph))
    required = OFTEN[family] | (dict.fromkeys(OP_TYPES, 16) if family == "mixed" else {})
    assert {f: (found[f], n) for f, n in required.items() if found[f] < n} == {}
