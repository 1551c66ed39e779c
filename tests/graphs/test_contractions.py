"""Matrix products and convolutions: shapes, pairs, optima and tile rules."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from layoutopt.base.errors import InputError
from layoutopt.graphs.growers import ConvTensor, matmul
from layoutopt.graphs.ops import Kind, Shape, Source
from layoutopt.graphs.unwinding import Graph
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import tile_map
from tests.support import named_pairs, proved, refused

# Matrix products and convolutions: shapes, pairs and optima


SHAPES: list[Shape] = [
    (),
    (1,),
    (2,),
    (3,),
    (2, 3),
    (3, 2),
    (1, 3),
    (3, 1),
    (2, 2),
    (0, 3),
    (3, 0),
    (4, 2, 3),
    (4, 3, 2),
    (1, 3, 2),
    (5, 1, 2, 3),
    (5, 4, 3, 2),
]


def operands(*shapes: Shape) -> Graph:
    """Return a graph with sinks ``x``, ``y``, ``z`` of the given shapes."""
    graph = Graph()
    for name, shape in zip("xyz", shapes, strict=False):
        graph.sink(shape, name=name)
    return graph


@pytest.mark.parametrize("lhs", SHAPES, ids=str)
def test_matmul_has_the_shape_of_numpy(lhs: Shape) -> None:
    """For every two shapes the product has NumPy's shape, or both refuse.

    Its targets have rules that fit their shapes.
    """
    taken = 0
    for rhs in SHAPES:
        graph = operands(lhs, rhs)
        try:
            expected = np.matmul(np.zeros(lhs), np.zeros(rhs)).shape
        except ValueError:
            with refused(f"matmul of 'x' {list(lhs)} and 'y' {list(rhs)}: "):
                graph.grow_matmul("x", "y")
            assert graph == operands(lhs, rhs)
        else:
            out = graph.grow_matmul("x", "y")
            assert out.shape == matmul(lhs, rhs)[0] == expected
            rules = rules_of(graph)
            assert tuple(rules.values()) == matmul(lhs, rhs)[1:]
            for target in (out.lhs_target, out.rhs_target):
                found = tile_map(target.shape, MEMORY, rules[target.name])
                assert len(found.tiles()) == target.size
            taken += 1
    assert (taken > 0) is (lhs != ())


def convolved(
    data: Shape, weights: Shape, strides: Any, padding: Any, dilations: Any, groups: int
) -> Shape:
    """Return the shape of a convolution that is really computed, from windows of padded data."""
    rank = len(data) - 2
    before, after = zip(*padding, strict=True)
    padded = np.pad(np.zeros(data), [(0, 0), (0, 0), *zip(before, after, strict=True)])
    kernel = np.zeros(weights)
    spread = [slice(None, None, d) for d in dilations]
    reach = [range(0, d * k, d)[-1] + 1 for d, k in zip(dilations, weights[2:], strict=True)]
    windows = sliding_window_view(padded, reach, axis=tuple(range(2, 2 + rank)))
    stepped = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    seen = stepped[(..., *spread)]
    parts = [
        np.tensordot(x, w, axes=([1, *range(2 + rank, 2 + 2 * rank)], range(1, 2 + rank)))
        for x, w in zip(np.split(seen, groups, 1), np.split(kernel, groups, 0), strict=True)
    ]
    return np.moveaxis(np.concatenate(parts, -1), -1, 1).shape


NUMBERS = list(product((1, 2, 3), ((0, 0), (1, 1), (0, 2)), (1, 2), ((1, 4), (2, 6), (4, 4))))
"""Stride, padding and dilation of the first dimension; groups and output channels."""


@pytest.mark.parametrize(("stride", "pads", "dilation", "channels"), NUMBERS)
def test_conv_has_the_shape_of_one_that_is_computed(
    stride: int, pads: tuple[int, int], dilation: int, channels: tuple[int, int]
) -> None:
    """For sizes and kernels of many kinds shapes agree, or both refuse."""
    groups, features = channels
    for size, kernel in product((1, 2, 5, 6), (1, 2, 3)):
        data, weights = (2, 4, size, 5), (features, 4 // groups, kernel, 2)
        graph = operands(data, weights)
        given = {"strides": (stride, 1), "padding": (pads, 0), "dilations": (dilation, 2)}
        try:
            expected = convolved(data, weights, (stride, 1), (pads, (0, 0)), (dilation, 2), groups)
        except ValueError:
            with refused("spatial dimension 0: the kernel spans "):
                graph.grow_conv("x", "y", **given, groups=groups)
        else:
            assert graph.grow_conv("x", "y", **given, groups=groups).shape == expected


def test_pairs_of_conv() -> None:
    """Data and weights have targets, the bias the reduced output; data are chained."""
    graph = operands((2, 4, 8, 8), (4, 4, 3, 3), (4,))
    out = graph.grow_conv("x", "y", padding=1, bias="z", name="c")
    assert isinstance(out, ConvTensor)
    assert named_pairs(graph) == [
        ("x", "c.data.target", 100),
        ("y", "c.weights.target", 100),
        ("c.bias.reduce", "c.bias.aligned", 50),
        ("x", "c", 50),
    ]
    assert (out.kind, out.op.inputs) == (Kind.FIXED_POINT, ("x", "y", "z"))
    assert out.data_target.name == "c.data.target"
    assert out.weights_target.name == "c.weights.target"
    assert out.bias_target is not None
    assert (out.bias_target.shape, out.bias_target.op.inputs) == ((4, 1, 1), ("c",))
    where = graph.locations()
    assert (where["c.bias.aligned"].ravel() == where["z"]).all()


def conv_earns(**values: int) -> Decimal | None:
    """Return what a convolution earns: data lie at their target or at the output, others at theirs.

    Of 10 data, 4 weights and a bias of 2.
    """
    graph = operands((1, 2, 5), (2, 2, 1), (2,))
    graph.grow_conv("x", "y", bias="z", **values)
    return proved(graph).score


@pytest.mark.parametrize("name", ["x", "c"])
def test_a_name_that_is_taken(name: str) -> None:
    """If the name of any part is taken, nothing is added."""
    graph = operands((1, 2, 5), (2, 2, 1), (2,))
    graph.sink((1,), name="c.bias.reduce")
    before = graph.copy()
    with pytest.raises(InputError, match="the id is already used"):
        graph.grow_conv("x", "y", bias="z", name=name)
    assert graph == before


# Tile rules of the targets that matrix products and convolutions draw their operands to


MEMORY = TileMemory(24, 1024)


def rules_of(graph: Graph) -> dict[str, Any]:
    """Return the rules of a graph's sources, by name."""
    return {op.id: op.rule for op in graph.ops if isinstance(op, Source)}


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
