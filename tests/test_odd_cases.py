"""Legal oddities: each is written as a file, read, solved by every solver, and known by hand."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from layoutopt import Status, Stopped, UnwindingResult
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, parse_instance, read_instance
from layoutopt.unwinding import unwind
from tests.support import EXACT

ODD = {path.stem: path for path in sorted((Path(__file__).parent / "cases/odd").glob("*.json"))}
"""Instances; each description begins with the best score, and the score if all matched."""


@pytest.mark.parametrize("name", ODD)
def test_known_optimum(name: str) -> None:
    """Every exact method proves the optimum that is known by hand; greedy0 stays below it."""
    graph = read_instance(ODD[name])
    best, _, most = graph.description.partition(":")[0].split(" ")
    for method in EXACT:
        result = unwind(graph, method)
        assert result.bound is not None
        if method != "auto" and result.stopped is Stopped.SIZE_LIMIT:  # numbers too large for it
            assert result.bound >= Decimal(best), method
            continue
        assert result.bound == Decimal(best), method
        if method == "auto" or result.status is Status.OPTIMAL:
            assert result.score == Decimal(best)
            assert result.status is Status.OPTIMAL
        assert result.max_score == Decimal(most)
        _complete(graph, result)
    greedy = unwind(graph, "greedy0")
    assert greedy.score is not None
    assert greedy.score <= Decimal(best)
    assert greedy.bound is not None
    assert greedy.bound >= Decimal(best)
    _complete(graph, greedy)


def _complete(graph: Graph, result: UnwindingResult) -> None:
    """Check that a result speaks of every sink and every pair."""
    assert result.layouts is not None
    assert list(result.layouts) == [sink.name for sink in graph.sinks()]
    assert len(result.pairs) == len(graph.pairs)
    assert sum(Fraction(p.value) * p.matched for p in result.pairs) == Fraction(result.score or 0)
    named = {step if isinstance(step, str) else step[0] for step in result.order}
    assert named == {sink.name for sink in graph.sinks()}


def test_they_are_files() -> None:
    """All of them can be written and read again."""
    for path in ODD.values():
        raw = instance_bytes(read_instance(path))
        assert instance_bytes(parse_instance(raw)) == raw == path.read_bytes()
