"""Networks of ONNX from conversion graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from layoutopt.conversion.graph import HELD, ConversionGraph
from layoutopt.conversion.result import Conversion
from layoutopt.onnx.protobuf import bodies, captured, copied_except, graphs
from layoutopt.operators.op import Op, Shape
from layoutopt.rewriting.capturing import recapture
from layoutopt.rewriting.constants import is_filled, relaid_fill, relaid_tensor
from layoutopt.rewriting.functions import LayoutFunctions
from layoutopt.rewriting.metadata import tell
from layoutopt.rewriting.names import Names
from layoutopt.rewriting.nodes import NodeWriter, integers
from layoutopt.rewriting.reshapes import fewer_reshapes
from layoutopt.rewriting.skeleton import SINCE_OVERRIDABLE, typed
from layoutopt.rewriting.source import OnnxSource

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

NUMBERS_OF_ANY_TYPE = 9
"""Version since which constant nodes hold more than floating-point numbers."""


def write_model(
    source: OnnxSource,
    conversion: Conversion,
    inside: Mapping[OnnxSource, Conversion] | None = None,
) -> ModelProto:
    """Return a network with converted graphs.

    Nodes keep names, texts and all attributes that are as they were.  Changed attributes that an
    op takes as inputs become new initialisers.  Constants that nobody reads any more are left
    out.  All else that the network holds is kept.

    Parameters
    ----------
    source
        The network, as it was read.
    conversion
        Its own graph in other layouts.
    inside
        The same for graphs inside nodes; those that are not named stay as they are.
    """
    from onnx import ModelProto, helper

    model = ModelProto()
    copied_except(source.model, model, "graph")
    functions = LayoutFunctions(source.model)
    names = Names(source.model)
    _Writer(names, functions, dict(inside or {})).write(source, conversion, model.graph)
    if model.ir_version < SINCE_OVERRIDABLE:
        _forget_initialisers(source, model)
    functions.add_to(model)
    known = {x.domain for x in model.opset_import}
    used = {node.domain for graph in graphs(model.graph) for node in graph.node}
    if MICROSOFT in used - known:
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return model


MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own ops."""


def _forget_initialisers(source: OnnxSource, model: ModelProto) -> None:
    """Take initialisers out of the inputs, where old files had to list them."""
    model.ir_version = SINCE_OVERRIDABLE
    constants = {x.name for x in source.proto.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)


class _Writer:
    """Writes the graphs of one network.

    Parameters
    ----------
    names
        What is taken.
    functions
        Takes the ops in other layouts than ONNX has.
    conversions
        Those of graphs inside nodes.
    """

    def __init__(
        self, names: Names, functions: LayoutFunctions, conversions: Mapping[OnnxSource, Conversion]
    ) -> None:
        self.names = names
        self.functions = functions
        self.conversions = conversions

    def write(self, source: OnnxSource, conversion: Conversion, target: GraphProto) -> None:
        """Write a graph.

        Parameters
        ----------
        source
            The graph, as it was read.
        conversion
            The same in other layouts.
        target
            An empty graph.
        """
        copied_except(source.proto, target, "node", "initializer", "value_info")
        graph = conversion.graph
        new = {
            name: self.names.fresh(name)
            for name in graph.tensors
            if name not in source.graph.tensors
        }
        writer = NodeWriter(source, new, self.names, self.functions)
        ops = [
            op
            for op in fewer_reshapes(graph, source.ops)
            if op.type != HELD and op.outputs[0] not in source.constants  # it is there as it was
        ]
        nodes = [writer.node(op) for op in ops]
        _explain(nodes, conversion)
        self._write_bodies(source, nodes, [op.name for op in ops])
        nodes = [
            one
            for pair in zip(ops, nodes, strict=True)
            for one in self._captured(source, *pair, new)
        ]
        read = {name for node in nodes for name in (*node.input, *captured(node))}
        read |= {value.name for value in target.output}
        self._write_constants(source, conversion, new, read, target)
        target.node.extend(nodes)
        target.initializer.extend(writer.initialisers)
        target.value_info.extend(_same_values(source, graph))
        for value in (*target.input, *target.output):
            if value.name in conversion.freed:
                _set_shape(value, graph.tensors[value.name].shape)

    def _write_bodies(
        self, source: OnnxSource, nodes: Sequence[NodeProto], ops: Sequence[str]
    ) -> None:
        """Put converted graphs into nodes in place of theirs."""
        from onnx import GraphProto

        places = dict(zip(ops, nodes, strict=True))
        for body in source.bodies:
            if body in self.conversions:
                place = _place(source, body, places)
                if place is not None:
                    new = GraphProto()
                    self.write(body, self.conversions[body], new)
                    place.CopyFrom(new)

    def _captured(
        self, source: OnnxSource, op: Op, node: NodeProto, new: Mapping[str, str]
    ) -> list[NodeProto]:
        """Return a node, behind what its graphs need to read what they capture by new names."""
        before = source.ops.get(op.name)
        if before is None or not any(bodies(node)):
            return [node]
        count = len(before.inputs) - len(node.input)
        now = [new.get(name, name) for name in op.inputs[len(op.inputs) - count :]]
        names = zip(before.inputs[len(node.input) :], now, strict=True)
        return [*recapture(node, dict(names), self.names), node]

    def _write_constants(
        self,
        source: OnnxSource,
        conversion: Conversion,
        new: Mapping[str, str],
        read: set[str],
        target: GraphProto,
    ) -> None:
        """Write constants that are read, and those that were not before."""
        from onnx import NodeProto

        nodes = {n: c for n, c in source.constants.items() if isinstance(c, NodeProto)}
        for name in reversed(nodes):
            if name in read:
                read = read.union(nodes[name].input)
        given = {n.output[0] for n in source.proto.node if n.op_type == "Constant"}
        for name, node in nodes.items():
            if name not in read:
                continue
            if name in given or not _is_too_early(node, source.graph.opset):
                target.node.append(node)
            else:
                target.initializer.add().CopyFrom(node.attribute[0].t)
                target.initializer[-1].name = name
        read = read | {x.name for x in source.proto.initializer} - _read(source.proto)
        for tensor in source.proto.initializer:
            if tensor.name in read:
                target.initializer.append(source.constants.get(tensor.name, tensor))
                target.initializer[-1].name = tensor.name
        for name in conversion.relaid:
            if new.get(name, name) in read:
                self._write_relaid(source, conversion, name, new.get(name, name), target)

    def _write_relaid(
        self, source: OnnxSource, conversion: Conversion, name: str, own: str, target: GraphProto
    ) -> None:
        """Write a constant in another layout, under a name of its own."""
        from onnx import NodeProto

        how = conversion.relaid[name]
        constant = source.constants[how.source]
        fill = isinstance(constant, NodeProto) and is_filled(constant)
        if not fill or how.padding is not None:
            target.initializer.append(relaid_tensor(constant, how, own))
            return
        sizes = [int(size or 0) for size in conversion.graph.tensors[name].shape or ()]
        shape = integers(sizes, self.names.fresh(f"{own}_shape"))
        target.initializer.append(shape)
        target.node.append(relaid_fill(constant, shape, own))


def _is_too_early(node: NodeProto, opset: int) -> bool:
    """Return whether a constant node would hold what these only do in newer versions."""
    return opset < NUMBERS_OF_ANY_TYPE and node.op_type == "Constant"


def _explain(nodes: Sequence[NodeProto], conversion: Conversion) -> None:
    """Tell of transposes why they are there."""
    reasons = {line.op: line.why for line in conversion.remaining}
    for node in nodes:
        if node.name in reasons:
            tell(node, {"why": reasons[node.name]})


def _read(graph: GraphProto) -> set[str]:
    found = {name for node in graph.node for name in (*node.input, *captured(node))}
    return found | {value.name for value in graph.output}


def _place(
    source: OnnxSource, body: OnnxSource, places: Mapping[str, NodeProto]
) -> GraphProto | None:
    """Return where a body stands in the node written for its own; None if there is no such."""
    for name, node in source.nodes.items():
        for k, proto in enumerate(bodies(node)):
            if proto is body.proto:
                return list(bodies(places[name]))[k] if name in places else None
    return None


def _same_values(source: OnnxSource, graph: ConversionGraph) -> Iterator[ValueInfoProto]:
    """Yield what the file says of tensors that are still there: names keep their layouts."""
    for value in source.proto.value_info:
        if value.name in graph.tensors:
            yield value


def _set_shape(value: ValueInfoProto, shape: Shape | None) -> None:
    """Declare a shape in place of another one, which may have another rank, or be missing."""
    if shape is None or typed(value.type).shape == shape:
        return
    kind = value.type.tensor_type
    kind.ClearField("shape")
    kind.shape.SetInParent()
    for size in shape:
        dim = kind.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size
