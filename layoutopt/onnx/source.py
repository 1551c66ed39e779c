"""Networks of ONNX as conversion graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.graph import HELD, ConversionGraph
from layoutopt.conversion.rules.op import NARROW, Op
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import operator_of
from layoutopt.conversion.shapes import infer
from layoutopt.onnx.attributes import op_of
from layoutopt.onnx.folding import known_values
from layoutopt.onnx.layout_functions import known_layouts
from layoutopt.onnx.protobuf import bodies, captured, is_standard, names_read, versions_of
from layoutopt.onnx.shapes import skeleton
from layoutopt.onnx.types import TensorType, differ, turned_axes, types
from layoutopt.onnx.validate import check_functions, check_nodes, check_version
from layoutopt.onnx.weights import overridable

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

    from layoutopt.onnx.weights import Constant

    Model: TypeAlias = ModelProto
    """A network of ONNX in memory."""


@dataclass(frozen=True, eq=False)
class OnnxSource:
    """A graph of ONNX, as it was read.

    Parameters
    ----------
    model
        The whole network.
    proto
        The graph in it: the network's own, or one inside a node.
    graph
        The same as ops that run in layouts.
    nodes
        For each op the node that it was read from.
    constants
        For each constant where its values are.
    bodies
        The graphs inside this graph's nodes, node by node.
    element_types
        What ONNX calls the element types of tensors, where they are known.
    """

    model: ModelProto
    proto: GraphProto
    graph: ConversionGraph
    nodes: Mapping[str, NodeProto]
    constants: Mapping[str, Constant]
    bodies: tuple[OnnxSource, ...] = ()
    element_types: Mapping[str, str] = field(default_factory=dict)
    ops: Mapping[str, Op] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ops", {op.name: op for op in self.graph.ops})

    def every(self) -> Iterator[OnnxSource]:
        """Yield this graph and all inside it, outer ones first."""
        yield self
        for body in self.bodies:
            yield from body.every()

    def opaque(self) -> list[Op]:
        """Return the ops that nothing is known of, of this graph and all inside it."""
        return [op for one in self.every() for op in one.graph.opaque() if op.type != HELD]


OLDEST = 7
"""The oldest version of ONNX's own operator set that is read; the latest is that of ``onnx``."""

UNKNOWN = TensorType(None, 4)


def read_model(model: ModelProto, weights: Mapping[str, TensorProto] | None = None) -> OnnxSource:
    """Return a network as ops that run in layouts, and all graphs inside it.

    Initialisers and constant nodes become constants, nodes that compute shapes too where these
    are known.  Inputs that hold axes, pads and the like stand in the attributes of ops as well.
    A node that holds graphs is opaque, and reads what these capture; each of them is a source of
    its own, to which what it captures is given.

    Parameters
    ----------
    model
        The network.  It is not changed.
    weights
        The weights by name whose data it does not include.

    Raises
    ------
    InputError
        If its operator set is not read, or it is not well-formed; in one line.
    """
    versions = check_network(model)
    known = skeleton(model)
    reader = _Reader(model, versions, overridable(model), weights or {})
    return reader.graph(model.graph, known.graph, {}, {}, {})


def check_network(model: ModelProto) -> dict[str, int]:
    """Check a network as a whole, and its nodes one by one; return the versions of operator sets.

    Raises
    ------
    InputError
        If its operator set is not read, or it is not well-formed; in one line.
    """
    versions = _versions(model)
    made = {x.name for x in (*model.graph.input, *model.graph.initializer)}
    if not model.graph.node and not made.intersection(x.name for x in model.graph.output):
        raise InputError("is no ONNX model: it has no graph with nodes")
    if not model.graph.output:
        raise InputError("the network has no outputs")
    _check_inputs(model)
    check_functions(model)
    check_nodes(model)
    return versions


def _versions(model: ModelProto) -> dict[str, int]:
    versions = versions_of(model)
    if "" not in versions:
        raise InputError("it does not tell which version of ONNX's operator set it follows")
    check_version(model, OLDEST)
    return versions


def _check_inputs(model: ModelProto) -> None:
    for value in model.graph.input:
        if not value.type.WhichOneof("value"):
            raise InputError(f"input {value.name!r} has no type")


class _Reader:
    """Reads the graphs of one network.

    Parameters
    ----------
    model
        The network.
    versions
        The version of each operator set.
    held
        Initialisers that a caller may replace.
    weights
        Weights of its own graph whose data is not in it.
    """

    def __init__(
        self,
        model: ModelProto,
        versions: Mapping[str, int],
        held: set[str],
        weights: Mapping[str, TensorProto],
    ) -> None:
        self.model, self.weights = model, weights
        self.versions = versions
        self.held = held
        self.known = known_layouts(model)

    def graph(
        self,
        proto: GraphProto,
        known: GraphProto,
        outside: Mapping[str, TensorType],
        values: Mapping[str, NDArray[Any]],
        weights: Mapping[str, TensorProto],
    ) -> OnnxSource:
        """Return a graph as a source.

        Parameters
        ----------
        proto
            The graph.
        known
            The same with all shapes, without large data.
        outside
            The tensors that it may capture.
        values
            Small constants among these.
        weights
            Initialisers among these, of which a graph may have copies in other layouts.
        """
        graph = ConversionGraph(proto.name, self.versions[""])
        shapes = types(known)
        shapes.update(_permuted(known, shapes))
        values = {**values, **known_values(known)}
        own = self.weights if proto is self.model.graph else {}
        constants = _constants(proto, known, values, own)
        constants.update((n, weights[n]) for n in sorted(_captured_by(proto) & set(weights)))
        self._roots(graph, proto, known, constants, shapes, outside)
        nodes: dict[str, NodeProto] = {}
        inside: list[OnnxSource] = []
        doubtful: set[str] = set()
        originals = {tuple(node.output): node for node in proto.node}
        names = _op_names(n for n in known.node if not _is_constant(n, constants))
        for node in known.node:
            if _is_constant(node, constants):
                continue
            op = self._op(node, next(names), shapes, values)
            _check_shapes(graph, op, doubtful)
            graph.add(op, [shapes.get(n, UNKNOWN).element_bytes for n in op.outputs])
            nodes[op.name] = originals[tuple(node.output)]
            for body, same in zip(bodies(nodes[op.name]), bodies(node), strict=True):
                seen = {**outside, **_typed(graph, shapes)}
                within = {**weights, **_initialisers(constants)}
                inside.append(self.graph(body, same, seen, values, within))
        graph.output(*(value.name for value in proto.output))
        kinds = {n: x.element_type for n, x in {**outside, **shapes}.items() if x.element_type}
        return OnnxSource(self.model, proto, graph, nodes, constants, tuple(inside), kinds)

    def _roots(
        self,
        graph: ConversionGraph,
        proto: GraphProto,
        known: GraphProto,
        constants: Mapping[str, Constant],
        shapes: Mapping[str, TensorType],
        outside: Mapping[str, TensorType],
    ) -> None:
        """Add inputs, what must stay as it is, and constants."""
        own = {x.name for x in proto.input}
        for value in known.input:
            shape, size, _ = shapes[value.name]
            held = value.name in self.held and proto is self.model.graph
            if value.name in own and not held and value.name not in constants:
                graph.input(value.name, shape, element_bytes=size)
            elif value.name not in constants:
                _hold(graph, value.name, shapes[value.name])
        reads = names_read(known.node)
        reads |= {value.name for value in proto.output}
        made = {name for node in known.node for name in node.output}
        for name in sorted((reads & set(outside)) - made - set(graph.tensors) - set(constants)):
            _hold(graph, name, outside[name])
        for name in constants:
            shape, size, _ = shapes.get(name, outside.get(name, UNKNOWN))
            graph.constant(name, shape, element_bytes=size)

    def _op(
        self,
        node: NodeProto,
        name: str,
        shapes: Mapping[str, TensorType],
        values: Mapping[str, NDArray[Any]],
    ) -> Op:
        op = op_of(node, self.versions, values, name=name, known=self.known)
        kinds = [shapes.get(n, UNKNOWN).element_type for n in (*node.input, *node.output)]
        return replace(
            op,
            inputs=(*node.input, *sorted(captured(node))),
            output_shapes=tuple(shapes.get(n, UNKNOWN).shape if n else None for n in node.output),
            element_type=next((kind for kind in kinds if kind in NARROW), (*kinds, "")[0]),
        )


def _permuted(
    known: GraphProto, shapes: Mapping[str, TensorType]
) -> Iterator[tuple[str, TensorType]]:
    """Yield tensors that are transposed, of which ONNX tells too little or too much.

    Of unknown ranks those that are permuted are told.  What a Loop carries may have other sizes
    after a round than it is declared with: what its transpose does not tell is left open.
    """
    for node in known.node:
        if node.op_type != "Transpose" or not is_standard(node.domain):
            continue
        perm = next((a.ints for a in node.attribute if a.name == "perm"), ())
        before, after = (shapes.get(n, UNKNOWN) for n in (node.input[0], node.output[0]))
        for name, kind in ((node.input[0], before), (node.output[0], after)):
            if kind.shape is None and perm:
                yield name, kind._replace(shape=(None,) * len(perm))
        if before.shape is not None:
            rank = len(before.shape)
            told = dict(zip(turned_axes(node, rank), after.shape or (None,) * rank, strict=False))
            sizes = (None if told.get(n) is None else x for n, x in enumerate(before.shape))
            yield node.input[0], before._replace(shape=tuple(sizes))


def _typed(graph: ConversionGraph, shapes: Mapping[str, TensorType]) -> dict[str, TensorType]:
    return {
        name: TensorType(t.shape, t.element_bytes, shapes.get(name, UNKNOWN).element_type)
        for name, t in graph.tensors.items()
    }


def _hold(graph: ConversionGraph, name: str, kind: TensorType) -> None:
    op = Op(HELD, outputs=(name,), output_shapes=(kind.shape,), name=f"{HELD} {name}")
    graph.add(op, [kind.element_bytes])


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


def _captured_by(graph: GraphProto) -> set[str]:
    """Return what nodes of a graph read from outside of it, but for what it gives back as it is."""
    made = {x.name for x in (*graph.input, *graph.initializer, *graph.output)}
    made.update(x.values.name for x in graph.sparse_initializer)
    made.update(name for node in graph.node for name in node.output)
    return names_read(graph.node) - made


def _initialisers(constants: Mapping[str, Constant]) -> dict[str, TensorProto]:
    from onnx import TensorProto

    return {name: x for name, x in constants.items() if isinstance(x, TensorProto)}


def _is_constant(node: NodeProto, constants: Mapping[str, Constant]) -> bool:
    return bool(node.output) and node.output[0] in constants


def _check_shapes(graph: ConversionGraph, op: Op, doubtful: set[str]) -> None:
    """Check the shapes of an op that reads what has its shape by declaration alone.

    Parameters
    ----------
    doubtful
        Names of such tensors, and of what follows from them; the op's results are added.
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


def _op_names(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """Yield a name for each node: its own if no other has it, else one made of its type."""
    every = list(nodes)
    given = Counter(node.name for node in every)
    taken = set(given)
    counts: Counter[str] = Counter()
    for node in every:
        if node.name and given[node.name] == 1:
            yield node.name
            continue
        while (name := f"{node.op_type}_{counts[node.op_type]}") in taken:
            counts[node.op_type] += 1
        taken.add(name)
        yield name
