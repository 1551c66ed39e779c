"""Elementwise operations: whom they follow, and who is drawn to whom."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.onnx.networks import graph_of, node, pairs, passed_on, types


def test_two_way_broadcast_is_a_barrier_without_pairs(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [node("Add", "a b")], {"a": (3, 1), "b": (1, 4)})
    assert types(graph)["y"] == "barrier"
    assert pairs(graph) == []


def test_operands_that_do_not_dominate_each_other_are_left_alone(tmp_path: Path) -> None:
    inputs = {"x": (3, 4), "a": (3, 1), "b": (1, 4)}
    graph = graph_of(tmp_path, [node("Max", "x a b")], inputs)
    assert pairs(graph) == [("y.1.reduce", "a", 20), ("y.2.reduce", "b", 20)]


def test_where_follows_what_it_chooses_from(tmp_path: Path) -> None:
    """The condition has the output's shape, too, and stands first."""
    constants = {"c": np.ones((2, 2), bool)}
    nodes = [node("Where", "c a b")]
    graph = graph_of(tmp_path, nodes, {"a": (2,), "b": (2, 2)}, constants=constants)
    assert passed_on(graph, {"b": np.arange(4)})["y"].tolist() == [0, 1, 2, 3]
    assert pairs(graph) == [("y.1.reduce", "a", 20), ("c", "b", 20), ("y.1.reduce2", "a", 20)]


def test_slopes_of_old_operator_sets_are_per_channel(tmp_path: Path) -> None:
    """Three slopes for three channels, which NumPy would not broadcast to (1, 3, 4)."""
    graph = graph_of(tmp_path, [node("PRelu", "x s")], {"x": (1, 3, 4), "s": (3,)}, opset=6)
    assert graph.tensor("y.1.aligned").shape == (3, 1)
    assert pairs(graph) == [("y.1.reduce", "y.1.aligned", 20)]


def test_axis_of_old_operator_sets_places_the_second_operand(tmp_path: Path) -> None:
    nodes = [node("Add", "x b", broadcast=1, axis=1)]
    graph = graph_of(tmp_path, nodes, {"x": (2, 3, 4, 5), "b": (3, 4)}, opset=6)
    assert graph.tensor("y.1.aligned").shape == (3, 4, 1)
    assert pairs(graph) == [("y.1.reduce", "y.1.aligned", 20)]


def test_scales_of_blocks_make_a_barrier(tmp_path: Path) -> None:
    """Two scales for four rows do not broadcast."""
    constants = {"x": np.zeros((4, 3), np.uint8), "s": np.ones((2, 3), np.float32)}
    nodes = [node("DequantizeLinear", "x s", axis=0, block_size=2)]
    graph = graph_of(tmp_path, nodes, {}, constants=constants, opset=21)
    assert types(graph)["y"] == "barrier"
