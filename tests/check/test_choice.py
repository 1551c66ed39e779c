"""Which of the two ways a graph is checked."""

from __future__ import annotations

import pytest

from layoutopt.base.errors import SizeError
from layoutopt.check.elements import ELEMENTS_PER_STEP, LARGE, SMALL, STEPS, either
from layoutopt.graphs.unwinding import Graph


def ways(elements: int, needed: int) -> list[str | int]:
    """Return what is called for a graph of so many elements whose pieces need so many steps."""
    graph = Graph()
    graph.sink((elements - 7,))
    graph.sink((7,))
    called: list[str | int] = []

    def by_pieces(limit: int) -> str:
        called.append(limit)
        if needed > limit:
            raise SizeError("too many")
        return "answer"

    def by_elements() -> str:
        called.append("elements")
        return "answer"

    assert either(graph, by_elements, by_pieces) == "answer"
    return called


def test_size_decides() -> None:
    """Small ones go by elements; larger ones by pieces, and by elements after too many steps."""
    assert ways(SMALL, 1) == ["elements"]
    assert ways(SMALL + 1000, 1) == [SMALL // ELEMENTS_PER_STEP + 1]
    assert ways(LARGE, 10**9) == [LARGE // ELEMENTS_PER_STEP, "elements"]
    assert ways(LARGE + 1, STEPS) == [STEPS]


def test_too_large_for_both() -> None:
    """Where elements are too many, too many steps are the end."""
    with pytest.raises(SizeError, match="too many"):
        ways(LARGE + 1, STEPS + 1)
