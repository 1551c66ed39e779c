"""Networks of ONNX as conversion graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.graph import HELD, ConversionGraph
from layoutopt.conversion.rules.op import NARROW, Body, Op
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.conversion.shapes import infer
from layoutopt.onnx.attributes import op_of
from layoutopt.onnx.layout_functions import known_layouts
from layoutopt.onnx.names import NetworkNames, unshadow
from layoutopt.onnx.protobuf import bodies, copied, graphs, is_standard, versions_of
from layoutopt.onnx.shapes import skeleton
from layoutopt.onnx.types import UNSQUEEZED, TensorType, differ, rounds_of, turned_axes, types
from layoutopt.onnx.validate import check_functions, check_nodes, check_version
from layoutopt.onnx.weights import known_values, variable_initialisers

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

    from layoutopt.onnx.weights import Constant

    Model: TypeAlias = ModelProto
    """A network of ONNX in memory."""


@dataclass(frozen=True, eq=False)
class OnnxSource:
    """A network of ONNX, as it was read."""

    model: ModelProto
    graph: ConversionGraph  # the same as ops that run in layouts, those of bodies too
    nodes: Mapping[str, NodeProto]  # for each op the node that it was read from
    constants: Mapping[str, Constant]  # for each constant where its values are
    # the graph of each body by its scope, and under "" that of the network
    scopes: Mapping[str, GraphProto]
    # what ONNX calls the element types of tensors, where they are known
    element_types: Mapping[str, str]
    ops: Mapping[str, Op] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", {op.name: op for op in self.graph.ops})


OLDEST = 7
"""The oldest version of ONNX's own operator set that is read; the latest is that of ``onnx``."""

UNKNOWN = TensorType(None, 4)


def read_model(model: ModelProto, weights: Mapping[str, TensorProto] | None = None) -> OnnxSource:
    """Return a network as ops that run in layouts, with those of all graphs inside it.

    Initialisers and constant nodes become constants, nodes that compute shapes too where these are
    known.  Inputs that hold axes, pads and the like stand in the attributes of ops as well.
    Tensors of graphs inside nodes that have the names of others get new ones.  ``weights`` are
    those by name whose data the network does not include.

    Raises ``InputError`` as :func:`check_network` does.
    """
    versions = check_network(model)
    if any(True for node in model.graph.node for _ in bodies(node)):
        model = copied(model)
        unshadow(model.graph, NetworkNames(model))
    known = skeleton(model).graph
    reader = _Reader(model, known, versions, weights or {})
    reader.read("", model.graph, known, {})
    return reader.source()


def check_network(model: ModelProto) -> dict[str, int]:
    """Check a network as a whole, and its nodes one by one; return the versions of operator sets.

    Raises ``InputError`` if its operator set is not read, or it is not well-formed; in one line.
    """
    versions = versions_of(model)
    if "" not in versions:
        raise InputError("it does not tell which version of ONNX's operator set it follows")
    check_version(model, OLDEST)
    made = {x.name for x in (*model.graph.input, *model.graph.initializer)}
    if not model.graph.node and not made.intersection(x.name for x in model.graph.output):
        raise InputError("is no ONNX model: it has no graph with nodes")
    if not model.graph.output:
        raise InputError("the network has no outputs")
    for value in model.graph.input:
        if not value.type.WhichOneof("value"):
            raise InputError(f"input {value.name!r} has no type")
    check_functions(model)
    check_nodes(model)
    return versions


class _Reader:
    """Reads the graphs of a network; ``known`` is its graph with shapes, without large data."""

    def __init__(
        self,
        model: ModelProto,
        known: GraphProto,
        versions: Mapping[str, int],
        weights: Mapping[str, TensorProto],
    ) -> None:
        self.model, self.weights, self.versions = model, weights, versions
        self.held = variable_initialisers(model)
        self.layouts = known_layouts(model)
        self.graph = ConversionGraph(model.graph.name, versions[""])
        self.shapes: dict[str, TensorType] = {}
        self.nodes: dict[str, NodeProto] = {}
        self.constants: dict[str, Constant] = {}
        self.scopes: dict[str, GraphProto] = {}
        self.doubtful: set[str] = set()
        self.taken = {node.name for graph in graphs(known) for node in graph.node}
        self.named: set[str] = set()
        self.counts: Counter[str] = Counter()

    def source(self) -> OnnxSource:
        """Return the network, once it is read."""
        kinds = {name: x.element_type for name, x in self.shapes.items() if x.element_type}
        return OnnxSource(self.model, self.graph, self.nodes, self.constants, self.scopes, kinds)

    def read(
        self, scope: str, proto: GraphProto, known: GraphProto, values: Mapping[str, NDArray[Any]]
    ) -> None:
        """Read a graph, which is the body ``scope``, or the network's own if that is ``""``.

        ``known`` is the same with all shapes, without large data; it may capture the small
        constants ``values``.
        """
        self.scopes[scope] = proto
        own = types(known)
        self.shapes.update(own)
        for name, kind in _permuted(known, self.shapes):
            self.shapes[name] = own[name] = kind
        self.shapes.update(_without_ones(own))
        values = {**values, **known_values(known)}
        given = {value.name for value in proto.input} if scope else set()
        weights = {} if scope else self.weights
        constants = _constants(proto, known, values, weights)
        constants = {name: x for name, x in constants.items() if name not in given}
        self._roots(scope, proto, known, constants)
        originals = {tuple(node.output): node for node in proto.node}
        nodes = [n for n in known.node if not n.output or n.output[0] not in constants]
        for node, name in zip(nodes, list(self._op_names(nodes)), strict=True):
            self.nodes[name] = original = originals[tuple(node.output)]
            op = self._op(node, name, scope, values)
            for body, own, same in zip(op.bodies, bodies(original), bodies(node), strict=True):
                self.read(body.scope, own, same, values)
            kinds = [self.shapes.get(name, UNKNOWN) if name else UNKNOWN for name in op.outputs]
            op = replace(op, output_shapes=tuple(kind.shape for kind in kinds))
            _check_shapes(self.graph, op, self.doubtful)
            self.graph.add(op, [kind.element_bytes for kind in kinds])
        if not scope:
            self.graph.output(*(value.name for value in proto.output))

    def _roots(
        self, scope: str, proto: GraphProto, known: GraphProto, constants: Mapping[str, Constant]
    ) -> None:
        """Add inputs, what must stay as it is, and constants."""
        own = {x.name for x in proto.input}
        for value in known.input:
            name, (shape, size, _) = value.name, self.shapes[value.name]
            if name in own and scope:
                self.graph.body_input(name, shape, size, scope)
            elif name in own - self.held and name not in constants:
                self.graph.input(name, shape, element_bytes=size)
            elif name not in constants:
                held = f"{HELD} {name}"
                op = Op(HELD, outputs=(name,), output_shapes=(shape,), name=held, scope=scope)
                self.graph.add(op, [size])
        for name in constants:
            shape, size, _ = self.shapes.get(name, UNKNOWN)
            self.graph.constant(name, shape, element_bytes=size, scope=scope)
        self.constants.update(constants)

    def _op_names(self, nodes: Sequence[NodeProto]) -> Iterator[str]:
        """Yield a name for each node: its own if no other has it, else one made of its type."""
        given = Counter(node.name for node in nodes)
        for node in nodes:
            if node.name and given[node.name] == 1 and node.name not in self.named:
                name = node.name
            else:
                while (name := f"{node.op_type}_{self.counts[node.op_type]}") in self.taken:
                    self.counts[node.op_type] += 1
                self.taken.add(name)
            self.named.add(name)
            yield name

    def _op(self, node: NodeProto, name: str, scope: str, values: Mapping[str, NDArray[Any]]) -> Op:
        op = op_of(node, self.versions, values, name=name, known=self.layouts)
        kinds = [self.shapes.get(n, UNKNOWN).element_type for n in (*node.input, *node.output)]
        inside = list(bodies(node))
        rounds = rounds_of(node, values, lambda name: self.shapes.get(name, UNKNOWN).shape)
        return replace(
            op,
            inputs=(*node.input, *(x.name for body in inside for x in body.output)),
            outputs=(*node.output, *(x.name for body in inside for x in body.input)),
            element_type=next((kind for kind in kinds if kind in UNSQUEEZED), (*kinds, "")[0]),
            scope=scope,
            bodies=tuple(
                Body(f"{name}/{k}", len(body.input), len(body.output), rounds)
                for k, body in enumerate(inside)
            ),
        )


def _permuted(
    known: GraphProto, shapes: Mapping[str, TensorType]
) -> Iterator[tuple[str, TensorType]]:
    """Yield tensors that are transposed, of which ONNX tells too little or too much.

    Of unknown ranks those that are permuted are told, in bodies as well.  What a Loop carries may
    have other sizes after a round than it is declared with: what its transpose does not tell is
    left open.
    """
    every = ((graph, node) for graph in graphs(known) for node in graph.node)
    for graph, node in every:
        if node.op_type != "Transpose" or not is_standard(node.domain):
            continue
        perm = next((a.ints for a in node.attribute if a.name == "perm"), ())
        before, after = (shapes.get(n, UNKNOWN) for n in (node.input[0], node.output[0]))
        for name, kind in ((node.input[0], before), (node.output[0], after)):
            if kind.shape is None and perm:
                yield name, kind._replace(shape=(None,) * len(perm))
        if before.shape is not None and graph is known:
            rank = len(before.shape)
            told = dict(zip(turned_axes(node, rank), after.shape or (None,) * rank, strict=False))
            sizes = (None if told.get(n) is None else x for n, x in enumerate(before.shape))
            yield node.input[0], before._replace(shape=tuple(sizes))


def _without_ones(shapes: Mapping[str, TensorType]) -> dict[str, TensorType]:
    """Return tensors whose elements runtimes do not reshape, with sizes of 1 left open.

    To move such an axis takes a transpose, as it does for others.
    """
    return {
        name: kind._replace(shape=tuple(None if size == 1 else size for size in kind.shape))
        for name, kind in shapes.items()
        if kind.element_type in NARROW and kind.shape
    }


def _constants(
    proto: GraphProto,
    known: GraphProto,
    values: Mapping[str, NDArray[Any]],
    weights: Mapping[str, TensorProto],
) -> dict[str, Constant]:
    """Return initialisers and nodes that make known values, by the name of what they make."""
    kept = {x.name for x in known.initializer}
    found: dict[str, Constant] = {
        x.name: weights.get(x.name, x) for x in proto.initializer if x.name in kept
    }
    originals = {node.output[0]: node for node in proto.node if node.output}
    for node in known.node:
        if not is_standard(node.domain) or not node.output:
            continue
        filled = node.op_type == "ConstantOfShape" and node.input[0] in values
        if node.op_type == "Constant" or filled:
            old = originals.get(node.output[0], node)
            found[node.output[0]] = old if old.op_type == node.op_type else node
    return found


def _check_shapes(graph: ConversionGraph, op: Op, doubtful: set[str]) -> None:
    """Check the shapes of an op that reads what has its shape by declaration alone.

    ``doubtful`` has the names of such tensors, and of what follows from them; the op's results are
    added.
    """
    known = operator_of(op).category is not Category.OPAQUE
    if known and not doubtful.isdisjoint(op.inputs):
        shapes = tuple(graph.tensors[name].shape if name else None for name in op.inputs)
        for own, told in zip(
            op.output_shapes, infer(replace(op, input_shapes=shapes)), strict=True
        ):
            if own is not None and told is not None and differ(own, told):
                raise InputError(f"{op}: its result has shape {told}, not {own}")
    if not known or not doubtful.isdisjoint(op.inputs):
        doubtful.update(filter(None, op.outputs))
