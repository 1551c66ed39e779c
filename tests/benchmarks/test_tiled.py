"""Small graphs on tiles that hold too little: optima as counted by hand."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.tiled import TILED
from layoutopt.base.result import Status
from layoutopt.unwinding import unwind

COUNTED = {"crowd": 44, "knapsack": 10, "together": 26, "grains": 3, "hooked": 37}
"""Optima; ``instances/tiles/README.md`` counts them."""


@pytest.mark.parametrize("name", COUNTED)
def test_optima_are_those_counted(name: str) -> None:
    """What is proved is what counting by hand gives."""
    result = unwind(TILED[name]())
    assert result.status is Status.OPTIMAL
    assert result.score == result.bound == COUNTED[name]


@pytest.mark.parametrize("name", TILED)
def test_capacity_decides(name: str) -> None:
    """With ample room, every graph earns more than its tiles allow."""
    graph = TILED[name]()
    tight = unwind(graph)
    assert graph.tile_memory is not None
    graph.tile_memory = msgspec.structs.replace(graph.tile_memory, bytes_per_tile=2**30)
    ample = unwind(graph)
    assert tight.bound is not None
    assert ample.score is not None
    assert ample.score > tight.bound
