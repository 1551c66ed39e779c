"""Convolutions and matrix products: targets, biases and chains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.onnx.networks import graph_of, node, pairs, types


@pytest.mark.parametrize("shape", [(2, 4), (2, 1), (1, 4), (1,), ()])
def test_gemm_addend_broadcasts(shape: tuple[int, ...], tmp_path: Path) -> None:
    """An addend of the output's shape is tied to the output itself."""
    inputs = {"a": (3, 2), "b": (3, 4), "c": shape}
    graph = graph_of(tmp_path, [node("Gemm", "a b c", transA=1)], inputs)
    expected = ("y" if shape == (2, 4) else "y.bias.reduce", "c", 50)
    assert pairs(graph)[-1] == expected
    assert graph.tensor("y.lhs.transposed").shape == (2, 3)


def test_chain_of_square_products(tmp_path: Path) -> None:
    """The first output is fixed, so only the pairs of sinks can be won or lost."""
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w", "y")]
    graph = graph_of(tmp_path, nodes, {"x": (2, 2), "w": (2, 2)})
    assert [p for p in pairs(graph) if "h" in p[:2]] == [
        ("x", "h", 50),
        ("w", "h", 50),
        ("h", "y.lhs.target", 100),
        ("h", "y", 50),
    ]


def test_einsum_of_two_operands_is_a_product(tmp_path: Path) -> None:
    nodes = [node("Einsum", "a b", equation="bij,bjk->bik")]
    graph = graph_of(tmp_path, nodes, {"a": (2, 3, 4), "b": (2, 4, 5)})
    assert types(graph)["y"] == "fixed_point"
    assert [value for _, _, value in pairs(graph)] == [100, 100]
