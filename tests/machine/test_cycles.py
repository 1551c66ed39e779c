"""Values from the bytes of elements and the bandwidth of tiles."""

from __future__ import annotations

from decimal import Decimal

import pytest

from layoutopt import Graph, cycle_values
from layoutopt.machine.simulation import exchange_rate
from layoutopt.tiles.memory import TileMemory
from tests.support import named_pairs, refused


def example() -> Graph:
    """Return pairs of a sink and its views, of a named view, and of values that are no costs."""
    graph = Graph("example")
    x, y = graph.sink((2, 3), name="x"), graph.sink((3, 2), name="y")
    s = graph.source((3, 2), name="s")
    turned = graph.dim_shuffle(x, (1, 0), name="turned")
    graph.valued_pair(s, graph.identity(turned, name="again"), 100)
    graph.valued_pair(turned, y, "0.001")
    graph.valued_pair(graph.identity(y, name="half"), s, 7)
    graph.valued_pair(y, s, 0)
    graph.valued_pair(turned, y, -3)
    return graph


@pytest.mark.parametrize(
    ("rate", "expected"),
    [(None, ["1.5", "0.5", "0.25", "0", "-3"]), (8, ["0.75", "0.25", "0.125", "0", "-3"])],
)
def test_values_are_bytes_by_bandwidth(rate: int | None, expected: list[str]) -> None:
    """Views have the bytes of what they show, unless they are named; 4 is the usual bandwidth."""
    widths = {"default": 2, "x": 6, "half": 1}
    graph, memory = example(), TileMemory(4, 100, widths, exchange_bytes_per_cycle=rate)
    before = named_pairs(graph)
    found = cycle_values(graph, memory)
    assert [value for _, _, value in named_pairs(found)] == [Decimal(v) for v in expected]
    assert [pair[:2] for pair in named_pairs(found)] == [pair[:2] for pair in before]
    assert (named_pairs(graph), graph.tile_memory) == (before, None)
    assert found.tile_memory == memory
    graph.tile_memory = memory
    assert cycle_values(graph) == found


def test_numbers_that_are_no_decimals() -> None:
    """A third has no finite decimal; a bandwidth that divides is fine."""
    graph = example()
    with refused("2 bytes at 3 bytes per cycle are no finite decimal number"):
        cycle_values(graph, TileMemory(4, 100, {"default": 2, "x": 6}, exchange_bytes_per_cycle=3))
    found = cycle_values(graph, TileMemory(4, 100, {"default": 6}, exchange_bytes_per_cycle=3))
    assert named_pairs(found)[0][2] == 2
    assert exchange_rate(TileMemory(1, 1)) == 4


def test_no_machine() -> None:
    """Values in cycles need one."""
    with refused("the graph has no tile memory"):
        cycle_values(example())
