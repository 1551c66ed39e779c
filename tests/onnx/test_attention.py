"""A block of a transformer, from file to proof."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from layoutopt.base.result import Status
from layoutopt.onnx.read import read_onnx
from layoutopt.unwinding import unwind
from tests.onnx.networks import model, node, save

HEADS, WIDTH = 2, 4


def block() -> list:
    """Return self-attention over ``x`` of shape (batch, length, 8), as exporters write it."""
    nodes = [
        node("Shape", "x", "size"),
        node("Slice", "size zero two", "lead"),
        node("Concat", "lead heads", "split_shape", axis=0),
        node("Concat", "lead minus", "join_shape", axis=0),
    ]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", f"x w{name}", f"{name}0"),
            node("Add", f"{name}0 b{name}", f"{name}1"),
            node("Reshape", f"{name}1 split_shape", f"{name}2"),
            node("Transpose", f"{name}2", name, perm=order),
        ]
    return nodes + [
        node("MatMul", "q k", "scores"),
        node("Div", "scores scale", "scaled"),
        node("Softmax", "scaled", "weights", axis=-1),
        node("MatMul", "weights v", "mixed"),
        node("Transpose", "mixed", "mixed1", perm=[0, 2, 1, 3]),
        node("Reshape", "mixed1 join_shape", "joined"),
        node("MatMul", "joined wo", "out"),
        node("Add", "out x", "sum"),
        node("LayerNormalization", "sum gain shift", "y"),
    ]


def test_attention_is_solved_to_a_proof(tmp_path: Path) -> None:
    """Each weight reaches its target: only ``x`` is wanted in three places at once.

    ``x`` has 3 x 8 elements.  It may follow one of its three targets (100 each), or ``out``
    (20 for the sum): a target it is.  Batch 1, so a target is worth 2400.
    """
    size = HEADS * WIDTH
    weights = {f"w{name}": np.ones((size, size), np.float32) for name in "qkvo"}
    vectors = {name: np.ones(size, np.float32) for name in ("bq", "bk", "bv", "gain", "shift")}
    numbers = {
        "zero": np.array([0]), "two": np.array([2]), "minus": np.array([-1]),
        "heads": np.array([HEADS, WIDTH]), "scale": np.float32(2),
    }  # fmt: skip
    network = model(block(), {"x": ("batch", 3, size)}, constants=weights | vectors | numbers)
    graph = read_onnx(save(network, tmp_path), dims={"batch": 1})
    assert {sink.name for sink in graph.sinks()} == {"x", "scale", *weights, *vectors}
    result = unwind(graph)
    assert result.status is Status.OPTIMAL
    earned = {(pair.a, pair.b): pair.value * pair.matched for pair in result.pairs}
    assert all(earned[name, f"{name[1]}0.rhs.target"] == 6400 for name in ("wq", "wk", "wv"))
    assert sum(earned["x", f"{name}0.lhs.target"] for name in "qkv") == 2400
    assert earned["y.parameter1.reduce", "gain"] == 160
