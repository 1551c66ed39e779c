"""Convolutions and matrix products: targets, biases and chains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.onnx.networks import graph_of, node, pairs, passed_on, types


def test_conv_is_a_fixed_point_between_targets(tmp_path: Path) -> None:
    """With 3 channels in and 5 out, data and output differ in shape: no chain."""
    inputs = {"x": (1, 3, 4, 4), "w": (5, 3, 3, 3), "b": (5,)}
    graph = graph_of(tmp_path, [node("Conv", "x w b")], inputs)
    assert types(graph) == {
        "x": "sink", "w": "sink", "b": "sink",
        "y": "fixed_point", "y.data.target": "source", "y.weights.target": "source",
        "y.bias.aligned": "reshape", "y.bias.reduce": "sum_like_reduce",
    }  # fmt: skip
    assert pairs(graph) == [
        ("x", "y.data.target", 100),
        ("w", "y.weights.target", 100),
        ("y.bias.reduce", "y.bias.aligned", 50),
    ]
    assert graph.tensor("y").shape == (1, 5, 2, 2)
    assert graph.tensor("y.bias.aligned").shape == (5, 1, 1)
    assert graph.op_inputs[graph.producers[graph.tensor("y.bias.reduce").index]] == (
        graph.tensor("y").index,
    )


def test_conv_that_keeps_the_shape_is_chained(tmp_path: Path) -> None:
    nodes = [node("Conv", "x w", pads=[1, 1])]
    graph = graph_of(tmp_path, nodes, {"x": (1, 3, 8), "w": (3, 3, 3)})
    assert ("x", "y", 50) in pairs(graph)
    assert len(pairs(graph)) == 3


def test_transposed_conv_has_its_bias_per_output_channel(tmp_path: Path) -> None:
    inputs = {"x": (1, 3, 4, 4), "w": (3, 5, 2, 2), "b": (5,)}
    graph = graph_of(tmp_path, [node("ConvTranspose", "x w b")], inputs)
    assert graph.tensor("y").shape == (1, 5, 5, 5)
    assert ("y.bias.reduce", "y.bias.aligned", 50) in pairs(graph)


def test_quantised_conv_finds_its_operands_between_the_scales(tmp_path: Path) -> None:
    constants = {
        "x": np.zeros((1, 3, 4, 4), np.uint8), "xs": np.float32(1), "xz": np.uint8(0),
        "w": np.zeros((5, 3, 1, 1), np.uint8), "ws": np.float32(1), "wz": np.uint8(0),
        "ys": np.float32(1), "yz": np.uint8(0), "b": np.zeros(5, np.int32),
    }  # fmt: skip
    nodes = [node("QLinearConv", "x xs xz w ws wz ys yz b")]
    assert pairs(graph_of(tmp_path, nodes, {}, constants=constants)) == [
        ("x", "y.data.target", 100),
        ("w", "y.weights.target", 100),
        ("y.bias.reduce", "y.bias.aligned", 50),
    ]


@pytest.mark.parametrize(
    ("lhs", "rhs", "out", "chained"),
    [
        ((2, 3), (3, 4), (2, 4), []),
        ((3, 3), (3, 3), (3, 3), ["a", "b"]),
        ((2, 3), (3, 3), (2, 3), ["a"]),
        ((5, 1, 2, 3), (7, 3, 4), (5, 7, 2, 4), []),
        ((7, 3, 3), (3, 3), (7, 3, 3), ["a"]),
        ((3,), (3, 4), (4,), []),
        ((2, 3), (3,), (2,), []),
        ((3,), (3,), (), []),
    ],
)
def test_matmul_by_numpys_shapes(
    lhs: tuple, rhs: tuple, out: tuple, chained: list[str], tmp_path: Path
) -> None:
    graph = graph_of(tmp_path, [node("MatMul", "a b")], {"a": lhs, "b": rhs})
    assert graph.tensor("y").shape == out == np.matmul(np.zeros(lhs), np.zeros(rhs)).shape
    assert pairs(graph) == [
        ("a", "y.lhs.target", 100),
        ("b", "y.rhs.target", 100),
        *((name, "y", 50) for name in chained),
    ]
    assert [t.name for t in graph.fixed_points()] == ["y"]


def test_gemm_ties_transposed_operands_to_targets(tmp_path: Path) -> None:
    """The second operand is stored as its transpose, so its view has the target's shape."""
    inputs = {"a": (2, 3), "b": (4, 3), "c": (4,)}
    graph = graph_of(tmp_path, [node("Gemm", "a b c", transB=1)], inputs)
    assert pairs(graph) == [
        ("a", "y.lhs.target", 100),
        ("y.rhs.transposed", "y.rhs.target", 100),
        ("y.bias.reduce", "c", 50),
    ]
    assert graph.tensor("y.rhs.target").shape == (3, 4)
    moved = passed_on(graph, {"b": np.arange(12).reshape(4, 3)})["y.rhs.transposed"]
    assert moved.tolist() == np.arange(12).reshape(4, 3).T.reshape(-1).tolist()


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


def test_einsum_of_one_operand_is_a_barrier(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("Einsum", "a", equation="ij->i")], {"a": (2, 3)})
    assert types(graph)["y"] == "barrier"
    assert pairs(graph) == []
