"""Nodes of ONNX from ops of conversion graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutopt.onnx.wellformed import schema
from layoutopt.operators.op import Op
from layoutopt.rewriting.attributes import changed, is_attribute, places, set_attribute
from layoutopt.rewriting.constants import array_of
from layoutopt.rewriting.functions import LayoutFunctions
from layoutopt.rewriting.names import Names
from layoutopt.rewriting.source import OnnxSource

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto


def integers(values: Sequence[int], name: str) -> TensorProto:
    """Return an initialiser of 64-bit integers."""
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(values, np.int64), name)


class NodeWriter:
    """Writes the nodes of one graph.

    Parameters
    ----------
    source
        The graph, as it was read.
    new
        The names that new tensors have in the file.
    names
        What is taken in the whole network.
    functions
        Takes the ops in other layouts than ONNX has.

    Attributes
    ----------
    initialisers
        New ones, which nodes read as axes, pads, shapes and the like.
    """

    def __init__(
        self, source: OnnxSource, new: Mapping[str, str], names: Names, functions: LayoutFunctions
    ) -> None:
        self.source = source
        self.new = new
        self.names = names
        self.functions = functions
        self.initialisers: list[TensorProto] = []
        self._made: dict[Any, str] = {}

    def node(self, op: Op) -> NodeProto:
        """Return the node of an op: the one that it was read from, or a new one."""
        from onnx import NodeProto

        before = self.source.ops.get(op.name)
        node = NodeProto()
        if before is None or before.type != op.type:
            domain, _, node.op_type = op.type.rpartition("::")
            node.domain, node.name = domain, op.name
            self._set_operands(node, op, len(op.inputs))
            given: Mapping[str, Any] = {}
        else:
            node.CopyFrom(self.source.nodes[op.name])
            caught = len(before.inputs) - len(node.input)
            self._set_operands(node, op, len(op.inputs) - caught)
            given = before.attributes
        for name, value in changed(op, given).items():
            if is_attribute(op, name):
                set_attribute(node, op, name, value)
            else:
                self._set_parameter(node, op, name, value)
        if op.layouts != (before.layouts if before else None):
            node.domain, _, node.op_type = op.type.rpartition("::")
            if op.layouts is not None:
                self.functions.call(node, op)
        return node

    def _set_operands(self, node: NodeProto, op: Op, count: int) -> None:
        """Name outputs and the first inputs; those behind are what graphs inside it capture."""
        del node.input[:]
        node.input.extend(self.new.get(name, name) for name in op.inputs[:count])
        del node.output[:]
        node.output.extend(self.new.get(name, name) for name in op.outputs)

    def _set_parameter(self, node: NodeProto, op: Op, name: str, value: Any) -> None:
        """Give a node an input that holds what older versions of its op have as attribute."""
        place = places(op)[name]
        old = node.input[place] if place < len(node.input) else ""
        like = self._known(old) if old else self._known(self._typing(node, op, place))
        array = np.asarray(value, np.int64 if like is None else like.dtype)
        if old and like is not None and like.size == array.size:
            array = array.reshape(like.shape)
        while len(node.input) <= place:
            node.input.append("")
        node.input[place] = self._initialiser(array, f"{node.name or node.op_type}_{name}")

    def _typing(self, node: NodeProto, op: Op, place: int) -> str:
        """Return an input that must have the same type as one that is to be added."""
        known = schema(op.type, op.opset)
        formal = [] if known is None else list(known.inputs)
        for n, name in enumerate(node.input):
            same = n < len(formal) and place < len(formal) and n != place
            if name and same and formal[n].type_str == formal[place].type_str:
                return str(name)
        return ""

    def _known(self, name: str) -> Any:
        constant = self.source.constants.get(name)
        return None if constant is None else array_of(constant)

    def _initialiser(self, array: Any, wish: str) -> str:
        from onnx import numpy_helper

        key = str(array.dtype), array.shape, array.tobytes()
        name = self._made.get(key)
        if name is None:
            name = self._made[key] = self.names.fresh(wish)
            self.initialisers.append(numpy_helper.from_array(array, name))
        return name
