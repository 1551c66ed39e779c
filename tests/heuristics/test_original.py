"""Greedy0 against what the original scores, on graphs of views that join elements every which way.

The graphs are in the folder ``original``; scores were measured with poprithms.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from layoutopt import Status, Stopped
from layoutopt.reading import read
from layoutopt.unwinding import unwind

GRAPHS = Path(__file__).parent / "original"


@pytest.mark.parametrize(("name", "score"), [("16x64-101", 224_320), ("64x64-101", 702_224)])
def test_scores(name: str, score: int) -> None:
    """In the first graph a tensor has two ways back to one sink, and the direct one is first."""
    result = unwind(read(GRAPHS / f"views-{name}.json.gz"), "greedy0")
    assert result.score == Decimal(score)


@pytest.mark.parametrize("solver", ["auto", "greedy0"])
def test_too_irregular_and_too_large(solver: str) -> None:
    """A graph of 1.7e9 elements that makes no classes gets what greedy0 chooses, with a bound."""
    result = unwind(read(GRAPHS / "views-64x4096-300.json.gz"), solver)
    assert (result.status, result.score) == (Status.FEASIBLE, 4_312_028_458)
    assert result.bound == 17_232_297_984
    assert (result.stopped is Stopped.SIZE_LIMIT) == (solver != "greedy0")
