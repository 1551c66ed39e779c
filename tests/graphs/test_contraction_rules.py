"""Tile rules of the targets that matrix products and convolutions draw their operands to."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from layoutopt.graphs.contractions import matmul_rules, matmul_shape
from layoutopt.graphs.ops import OpError, Shape, Source
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map

SHAPES: list[Shape] = [(4,), (3, 4), (4, 5), (2, 3, 4), (2, 4, 5), (1, 4, 5), (6, 1, 4, 5), (0, 4)]
MEMORY = TileMemory(24, 1024)


def rules_of(graph: Graph) -> dict[str, Any]:
    """Return the rules of a graph's sources, by name."""
    return {op.id: op.rule for op in graph.ops if isinstance(op, Source)}


@pytest.mark.parametrize(
    ("lhs", "rhs", "left", "right"),
    [
        ((3, 4), (4, 5), {"m": 3, "k": 4, "n": 5}, {"m": 3, "k": 4, "n": 5}),
        ((4,), (4,), {"m": 1, "k": 4, "n": 1}, {"m": 1, "k": 4, "n": 1}),
        ((7, 3, 4), (4, 5), {"m": 21, "k": 4, "n": 5}, {"m": 21, "k": 4, "n": 5}),
        (
            (3, 4),
            (7, 4, 5),
            {"m": 3, "k": 4, "n": 5, "batch": 7},
            {"m": 3, "k": 4, "n": 5, "batch": 7},
        ),
        (
            (2, 1, 3, 4),
            (2, 7, 4, 5),
            None,
            {"m": 3, "k": 4, "n": 5, "batch": 14},
        ),
        ((2, 1, 3, 4), (1, 7, 4, 5), None, None),
    ],
)
def test_rules_of_matmul(lhs: Shape, rhs: Shape, left: Any, right: Any) -> None:
    """Many left operands that meet one right operand are one product of many rows."""
    expected = (
        None if left is None else {"kind": "matmul_lhs"} | left,
        None if right is None else {"kind": "matmul_rhs"} | right,
    )
    assert matmul_rules(lhs, rhs) == expected


@pytest.mark.parametrize(("lhs", "rhs"), list(product(SHAPES, repeat=2)))
def test_rules_of_matmul_fit(lhs: Shape, rhs: Shape) -> None:
    """Whatever NumPy multiplies has targets whose rules fit their shapes; no other has rules."""
    try:
        matmul_shape(lhs, rhs)
    except OpError:
        with pytest.raises(OpError):
            matmul_rules(lhs, rhs)
        return
    graph = Graph()
    out = graph.grow_matmul(graph.sink(lhs), graph.sink(rhs), name="p")
    rules = rules_of(graph)
    assert tuple(rules.values()) == matmul_rules(lhs, rhs)
    for target in (out.lhs_target, out.rhs_target):
        found = tile_map(target.shape, MEMORY, rules[target.name])
        assert len(found.tiles()) == target.size


def test_rules_of_conv() -> None:
    """The targets have the convolution's sizes, and the rules fit their shapes."""
    graph = Graph()
    x, w = graph.sink((2, 4, 9, 8)), graph.sink((6, 2, 3, 2))
    out = graph.grow_conv(x, w, strides=2, groups=2, name="c")
    assert out.shape == (2, 6, 4, 4)
    sizes = {"batch": 2, "in_channels": 4, "out_channels": 6, "groups": 2}
    sizes |= {"size": [9, 8], "kernel": [3, 2], "out_size": [4, 4]}
    rules = rules_of(graph)
    assert rules["c.data.target"] == {"kind": "conv_data"} | sizes
    assert rules["c.weights.target"] == {"kind": "conv_filter"} | sizes
    assert len(tile_map(x.shape, MEMORY, rules["c.data.target"]).tiles()) == x.size
    assert len(tile_map(w.shape, MEMORY, rules["c.weights.target"]).tiles()) == w.size
    with_its_rule = {"kind": "conv_out"} | sizes
    assert len(tile_map(out.shape, MEMORY, with_its_rule).tiles()) == out.size
