"""Views against the truth: elements of outputs are the input elements that the graph names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, defs
from onnx.reference import ReferenceEvaluator

from layoutopt.onnx.read import read_onnx
from tests.onnx.networks import model, node, passed_on, save

Case = tuple[str, Sequence[NodeProto], Mapping[str, Sequence[int]], Mapping[str, Any], int]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


END, START = 2**63 - 1, -(2**63)

CASES: list[Case] = [
    ("transpose", [node("Transpose", "x", perm=[2, 0, 1])], {"x": (2, 3, 4)}, {}, 17),
    ("transpose reversed", [node("Transpose", "x")], {"x": (2, 3, 4)}, {}, 17),
    ("reshape 0 and -1", [node("Reshape", "x s")], {"x": (2, 3, 4)}, {"s": ints(0, -1, 2)}, 17),
    ("reshape old", [node("Reshape", "x s")], {"x": (2, 6)}, {"s": ints(-1, 4)}, 6),
    ("reshape allowzero", [node("Reshape", "x s", allowzero=1)], {"x": (0, 3)},
     {"s": ints(3, 0)}, 17),
    ("flatten", [node("Flatten", "x", axis=2)], {"x": (2, 3, 4, 5)}, {}, 17),
    ("flatten all", [node("Flatten", "x", axis=0)], {"x": (2, 3)}, {}, 17),
    ("flatten negative", [node("Flatten", "x", axis=-1)], {"x": (2, 3, 4)}, {}, 17),
    ("squeeze", [node("Squeeze", "x")], {"x": (1, 3, 1)}, {}, 17),
    ("squeeze attribute", [node("Squeeze", "x", axes=[0])], {"x": (1, 3, 1)}, {}, 9),
    ("squeeze operand", [node("Squeeze", "x a")], {"x": (1, 3, 1)}, {"a": ints(-1)}, 17),
    ("unsqueeze attribute", [node("Unsqueeze", "x", axes=[0, 2])], {"x": (3, 4)}, {}, 9),
    ("unsqueeze operand", [node("Unsqueeze", "x a")], {"x": (3, 4)}, {"a": ints(-1, 0)}, 17),
    ("slice attributes", [node("Slice", "x", starts=[1, -3], ends=[3, -1], axes=[0, 1])],
     {"x": (4, 5)}, {}, 9),
    ("slice attributes, no axes", [node("Slice", "x", starts=[1], ends=[1000])],
     {"x": (4, 5)}, {}, 6),
    ("slice operands", [node("Slice", "x s e a t")], {"x": (7, 9)},
     {"s": ints(1, 8), "e": ints(6, 0), "a": ints(0, -1), "t": ints(2, -3)}, 17),
    ("slice backwards to the start", [node("Slice", "x s e a t")], {"x": (7,)},
     {"s": ints(END), "e": ints(START), "a": ints(0), "t": ints(-2)}, 17),
    ("slice backwards within", [node("Slice", "x s e - t")], {"x": (9,)},
     {"s": ints(-2), "e": ints(-8), "t": ints(-4)}, 17),
    ("slice of nothing", [node("Slice", "x s e")], {"x": (4, 3)},
     {"s": ints(3), "e": ints(1)}, 17),
    ("split alike", [node("Split", "x", "y z", axis=-1)], {"x": (2, 6)}, {}, 9),
    ("split attribute", [node("Split", "x", "y z", axis=1, split=[1, 5])], {"x": (2, 6)}, {}, 9),
    ("split operand", [node("Split", "x s", "y z")], {"x": (5, 2)}, {"s": ints(2, 3)}, 13),
    ("split uneven", [node("Split", "x", "y z w", num_outputs=3)], {"x": (7, 2)}, {}, 18),
    ("concat", [node("Concat", "x1 x2 x1", axis=-2)], {"x1": (1, 2, 3), "x2": (1, 4, 3)}, {}, 17),
    ("expand", [node("Expand", "x s")], {"x": (3, 1)}, {"s": ints(2, 1, 4)}, 17),
    ("identity", [node("Identity", "x")], {"x": (2, 3)}, {}, 17),
    ("dropout", [node("Dropout", "x", ratio=0.5)], {"x": (2, 3)}, {}, 9),
    ("dropout operands", [node("Dropout", "x r t")], {"x": (2, 3)},
     {"r": np.float32(0.5), "t": np.array(False)}, 17),
    ("cast", [node("Cast", "x", to=7)], {"x": (2, 3)}, {}, 17),
    ("cast like", [node("CastLike", "x t")], {"x": (2, 3)}, {"t": ints(1)}, 17),
    ("tile", [node("Tile", "x r")], {"x": (2, 3)}, {"r": ints(3, 2)}, 17),
    ("depth to space", [node("DepthToSpace", "x", blocksize=2)], {"x": (2, 12, 2, 3)}, {}, 17),
    ("depth to space CRD", [node("DepthToSpace", "x", blocksize=2, mode="CRD")],
     {"x": (2, 12, 2, 3)}, {}, 17),
    ("space to depth", [node("SpaceToDepth", "x", blocksize=2)], {"x": (2, 3, 4, 6)}, {}, 17),
    ("space to depth CRD", [node("SpaceToDepth", "x", blocksize=2, mode="CRD")],
     {"x": (2, 3, 4, 6)}, {}, 28),
    ("channel shuffle", [node("Reshape", "x s", "a"), node("Transpose", "a", "b",
                         perm=[0, 2, 1, 3]), node("Flatten", "b", "y", axis=1)],
     {"x": (1, 6, 5)}, {"s": ints(1, 2, 3, 5)}, 17),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_elements_come_from_where_the_graph_says(case: Case, tmp_path: Path) -> None:
    """Every input element is a different number, so equal numbers are the same element."""
    _, nodes, inputs, constants, opset = case
    if opset > defs.onnx_opset_version():
        pytest.skip("the installed onnx is older than the operator set")
    outputs = nodes[-1].output
    network = model(nodes, inputs, outputs, constants, opset)
    data, start = {}, 0
    for name, shape in inputs.items():
        size = int(np.prod(shape))
        data[name] = np.arange(start, start + size, dtype=np.float32).reshape(shape)
        start += size
    graph = read_onnx(save(network, tmp_path))
    said = passed_on(graph, data)
    for name, truth in zip(outputs, ReferenceEvaluator(network).run(None, data), strict=True):
        assert graph.tensor(name).shape == truth.shape
        np.testing.assert_array_equal(said[name], truth.reshape(-1))
    assert {sink.name for sink in graph.sinks()} == set(inputs)  # structure makes no tensors


def test_a_mask_is_a_barrier(tmp_path: Path) -> None:
    """Dropout's data passes on; its mask is made anew, of the same shape."""
    nodes = [node("Dropout", "x", "a m"), node("Cast", "m", "c", to=1), node("Mul", "a c")]
    graph = read_onnx(save(model(nodes, {"x": (2, 3)}), tmp_path))
    assert [t.name for t in graph.barriers()] == ["m"]
    assert passed_on(graph, {"x": np.arange(6)})["y"].tolist() == list(range(6))


def test_helper_names_avoid_those_of_the_network(tmp_path: Path) -> None:
    """``y.slice`` is a tensor of the network here, so the helper is numbered."""
    nodes = [node("Relu", "x", "y.slice"),
             node("Slice", "y.slice s e a t")]  # fmt: skip
    constants = {"s": ints(5), "e": ints(0), "a": ints(0), "t": ints(-1)}
    graph = read_onnx(save(model(nodes, {"x": (6,)}, constants=constants), tmp_path))
    assert [op.id for op in graph.ops] == ["x", "x.linear", "y.slice", "y.slice2", "y"]
