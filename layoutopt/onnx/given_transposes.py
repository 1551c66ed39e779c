"""Transposes of a network as it was given: what they cost, and which are gone."""

from __future__ import annotations

from collections.abc import Container
from math import prod
from typing import TYPE_CHECKING

from layoutopt.conversion.result import Tally
from layoutopt.conversion.rules.op import Shape
from layoutopt.onnx.declared import Declared, types_of
from layoutopt.onnx.protobuf import graphs, is_standard
from layoutopt.onnx.result import PREFIX
from layoutopt.onnx.types import shape_of, turned_axes, typed
from layoutopt.onnx.weights import light_model, overridable

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

GIVEN = f"{PREFIX}given"
"""Entry of metadata by which a transpose of the network as it was given is known, meanwhile."""


class GivenTransposes:
    """The transposes of a network, those in graphs inside nodes too.

    Parameters
    ----------
    graph
        The network's graph; the nodes are marked.
    types
        What is known of its tensors.
    held
        Initialisers that a caller may replace.
    """

    def __init__(self, graph: GraphProto, types: Declared, held: Container[str]) -> None:
        self.found: dict[str, tuple[str, int, bool]] = {}
        for one in graphs(graph):
            constant = {x.name for x in one.initializer if x.name not in held}
            for node in one.node:
                if not is_standard(node.domain):
                    continue
                if node.op_type == "Constant":
                    constant.update(node.output)
                if node.op_type == "Transpose":
                    if node.input[0] in constant:
                        constant.update(node.output)
                    self._add(node, types, node.input[0] in constant)

    def _add(self, node: NodeProto, types: Declared, constant: bool) -> None:
        kind = types.get(node.input[0])
        shape = shape_of(kind)
        if kind is None or shape is None:
            free, size = constant, 0
        else:
            free = constant or _stays(node, shape)
            size = prod(x for x in shape if isinstance(x, int)) * typed(kind).element_bytes
        if free or shape is not None:
            number = str(len(self.found))
            node.metadata_props.add(key=GIVEN, value=number)
            self.found[number] = (node.name or node.output[0], size, free)

    def gone(self, graph: GraphProto) -> Tally:
        """Return what those cost that a graph has no more, less copies; marks are taken away.

        A transpose moves the bytes of its tensor, unless that is a constant, or only axes of
        size 1 move.
        """
        left, copies = dict(self.found), list[tuple[str, int, bool]]()
        for one in graphs(graph):
            for node in one.node:
                for entry in [x for x in node.metadata_props if x.key == GIVEN]:
                    if left.pop(entry.value, None) is None:
                        copies.append(self.found[entry.value])
                    node.metadata_props.remove(entry)
        moved = [(name, size) for name, size, free in left.values() if not free]
        again = [size for _, size, free in copies if not free]
        count = len(moved) - len(again)
        total = sum(size for _, size in moved) - sum(again)
        return Tally(count, total, len(left) - len(copies) - count, dict(moved))


def _stays(node: NodeProto, shape: Shape) -> bool:
    """Return whether a transpose moves axes of size 1 only."""
    axes = [
        axis for axis in turned_axes(node, len(shape)) if axis >= len(shape) or shape[axis] != 1
    ]
    return axes == sorted(axes)


def given_transposes(model: ModelProto) -> tuple[Tally, int]:
    """Return what a network's transposes cost by the shapes that it declares.

    Returns
    -------
    tally, unknown
        Those of a shape that is not declared are among the transforms, without their bytes; how
        many these are.
    """
    light = light_model(model, {})
    given = GivenTransposes(light.graph, types_of(light.graph), overridable(light))
    left = {
        node.name or node.output[0]: 0
        for one in graphs(light.graph)
        for node in one.node
        if node.op_type == "Transpose"
        and is_standard(node.domain)
        and not any(entry.key == GIVEN for entry in node.metadata_props)
    }
    known = given.gone(type(light.graph)())
    by_op = {**left, **known.by_op}
    return Tally(len(left) + known.transforms, known.bytes, known.free, by_op), len(left)
