"""Graphs of billions of elements, checked by their pieces alone."""

from __future__ import annotations

import tracemalloc

import pytest

from layoutopt.check.elements import SMALL as SMALL_ENOUGH
from layoutopt.check.elements import by_elements, by_pieces, counts, dependencies, evaluate
from tests.check.large import LARGE, SMALL

MEMORY = 4 * 2**20
"""Bytes; one array of a byte for each element of the smallest case would take more."""

STEPS = {"symmetric": 4000, "chain": 6000}
"""Steps that suffice for hundreds of pieces and pairs; fewer do for all others."""


@pytest.mark.parametrize("name", SMALL)
def test_formulas(name: str) -> None:
    """Where elements can be looked at, both ways find what the formulas say."""
    case = SMALL[name]()
    found = by_elements(case.graph, case.layouts)
    assert [pair.matched for pair in found.pairs] == case.matched
    assert found.violations == case.violations
    assert by_pieces(case.graph, case.layouts) == found


@pytest.mark.parametrize("name", LARGE)
def test_without_elements(name: str) -> None:
    """With up to 10^13 elements: the same formulas, in few steps and hardly any memory."""
    case = LARGE[name]()
    assert counts(case.graph)["elements"] > max(SMALL_ENOUGH, MEMORY)
    tracemalloc.start()
    try:
        found = by_pieces(case.graph, case.layouts, STEPS.get(name, 3000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [pair.matched for pair in found.pairs] == case.matched
    assert found.violations == case.violations
    earned = zip(case.graph.pairs, case.matched, strict=True)
    assert found.score == sum(value * matched for (_, _, value), matched in earned)
    assert peak < MEMORY
    if name not in STEPS:
        assert evaluate(case.graph, case.layouts) == found


def test_waiting_without_elements() -> None:
    """What waits for what is asked by pieces where elements are too many."""
    case = LARGE["circle"]()
    given = dependencies(case.graph, case.layouts)
    parts = {case.graph.ops[b].id: needed for b, needed in given.needs.items()}
    assert parts == {"up": ({1}, set()), "down": ({0}, set())}
