"""Sizes below 0, which windows and pads can make, and on which ONNX's shape inference dies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutopt.errors import InputError
from layoutopt.onnx.folding import WINDOWS
from layoutopt.onnx.protobuf import graphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

SHRINKING = WINDOWS | {"Pad"}
"""Op types whose results can be smaller than nothing."""

UNREAD = "layoutopt.unread"
"""A domain of ops that nothing is known of."""


def check_cropping(model: ModelProto) -> None:
    """Check that no slice is taken of a tensor with a size below 0.

    Slices are left out at first, and come in as what they are taken of becomes known.

    Raises
    ------
    InputError
        If there is such a tensor; the text names it.
    """
    from onnx import ModelProto, helper, shape_inference

    types = {node.op_type for graph in graphs(model.graph) for node in graph.node}
    if "Slice" not in types or not types & SHRINKING:
        return
    trial = ModelProto()
    trial.CopyFrom(model)
    trial.opset_import.append(helper.make_opsetid(UNREAD, 1))
    slices = [n for g in graphs(trial.graph) for n in g.node if n.op_type == "Slice"]
    for node in slices:
        node.domain = UNREAD
    while slices:
        shapes = _shapes(shape_inference.infer_shapes(trial).graph)
        for name, shape in shapes.items():
            if min(shape, default=0) < 0:
                raise InputError(f"{name!r} would have a size below 0: {list(shape)}")
        ready = [node for node in slices if node.input and node.input[0] in shapes]
        if not ready:
            return
        for node in ready:
            node.domain = ""
        slices = [node for node in slices if node.domain]


def _shapes(graph: GraphProto) -> dict[str, tuple[int, ...]]:
    """Return all shapes of a graph and those inside, open sizes taken for 0."""
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for one in graphs(graph)
        for value in (*one.value_info, *one.input, *one.output)
        if value.type.tensor_type.HasField("shape")
    }
