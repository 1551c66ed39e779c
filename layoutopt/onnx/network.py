"""Networks as unwinding graphs, and their training steps: each node enters by its op type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.builder import Attractions, Backward, Build, GraphBuilder, Node, Use
from layoutopt.conversion.rules.gradients import FLAT, UNKNOWN
from layoutopt.conversion.rules.registry import build_of, type_facts
from layoutopt.conversion.rules.unwinding import barrier, together
from layoutopt.graphs.builder import all_or_nothing
from layoutopt.graphs.ops import Shape
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.attributes import op_of
from layoutopt.onnx.protobuf import captured, is_standard, title, type_of, versions_of
from layoutopt.onnx.shapes import ShapedModel

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


@dataclass(frozen=True, eq=False)
class AddedNode:
    """A node that has been added.

    Parameters
    ----------
    proto
        The node in the file.
    node
        What its rule was given.
    outputs
        Its outputs, ``None`` for those that nobody reads.
    """

    proto: NodeProto
    node: Node
    outputs: Sequence[Tensor | None]


class OnnxGraphBuilder:
    """The graph of a network, as it grows.

    Parameters
    ----------
    shaped
        The network.
    graph
        An empty graph.
    attractions
        The pairs' values.
    """

    def __init__(self, shaped: ShapedModel, graph: Graph, attractions: Attractions) -> None:
        self.shaped = shaped
        self.network = shaped.model.graph
        self.roots = _roots(shaped)
        names = {name for node in self.network.node for name in node.output}
        self.unwinding = GraphBuilder(graph, attractions, names | set(self.roots))
        self.versions = versions_of(shaped.model)
        self.tensors: dict[str, Tensor] = {}
        self.wanted: set[str] = set()
        self.live: list[NodeProto] = []
        self.placed: list[AddedNode] = []
        self.misfits: Counter[str] = Counter()

    def build(self) -> None:
        """Add the network's inputs and initialisers as sinks, then its nodes.

        What no output of the network depends on as data is left out.

        Raises
        ------
        InputError
            If a node has no known output shape, or does not fit its operands.
        """
        self.live, self.wanted = live_nodes(self.shaped)
        for name, shape in self.roots.items():
            if name in self.wanted:
                self.tensors[name] = self.unwinding.sink(name, shape)
        for node in self.live:
            try:
                self._add(node)
            except InputError as error:
                raise error.located(title(node)) from None

    def _add(self, node: NodeProto) -> None:
        names = [name if name in self.wanted else "" for name in node.output]
        shapes = [self._shape(name) if name else None for name in names]
        op = replace(op_of(node, self.versions, self.shaped.values), outputs=tuple(names))
        inside = tuple(self.tensors[name] for name in sorted(captured(node)))
        ready = Node(op, tuple(self._inputs(node)), tuple(shapes), inside)
        outputs = self._built(node, ready)
        self.placed.append(AddedNode(node, ready, outputs))
        self.tensors.update(
            (name, x) for name, x in zip(names, outputs, strict=True) if name and x is not None
        )

    def _built(self, node: NodeProto, ready: Node) -> Sequence[Tensor | None]:
        """Return the outputs of a node: by its rule, or of a barrier if sizes are taken for 1."""
        build, guessed = build_of(type_of(node)), self.shaped.guessed
        if not guessed:
            return _follow(build, self.unwinding, ready)
        if guessed.isdisjoint(node.output):
            by_rule = all_or_nothing(lambda _: _follow(build, self.unwinding, ready))
            try:
                return by_rule(self.unwinding.graph)
            except InputError:  # other sizes fit
                self.misfits[type_of(node)] += 1
        return _follow(barrier, self.unwinding, ready)

    def _inputs(self, node: NodeProto) -> Iterator[Tensor | None]:
        read = set(_reads(self.shaped, node))
        facts = type_facts(type_of(node))
        for i, name in enumerate(node.input):
            skipped = i in facts.unread or (i in facts.structural and name in self.shaped.values)
            yield self.tensors[name] if name in read and not skipped else None

    def _shape(self, name: str) -> Shape:
        shape = self.shaped.shapes.get(name)
        if shape is not None:
            return shape
        if name in self.shaped.others:
            raise InputError(f"{name!r} is no tensor, but a sequence, map or optional")
        why = "; ".join(filter(None, (self.shaped.why(), self.shaped.unmeasured)))
        raise InputError(f"the shape of {name!r} cannot be inferred" + (f" ({why})" if why else ""))


def _follow(build: Build, builder: GraphBuilder, node: Node) -> Sequence[Tensor | None]:
    """Return the outputs that a rule adds, of the shapes that they must have."""
    made = build(builder, node)
    outputs = [made] if isinstance(made, Tensor) else made
    for name, shape, x in zip(node.op.outputs, node.shapes, outputs, strict=True):
        if name and x is not None and x.shape != shape:
            raise InputError(
                f"{name!r} has shape {list(shape or ())}, {list(x.shape)} follows from the operands"
            )
    return outputs


def live_nodes(shaped: ShapedModel) -> tuple[list[NodeProto], set[str]]:
    """Return the nodes that outputs depend on as data, in order, and the names that these read."""
    live: list[NodeProto] = []
    wanted = {x.name for x in shaped.model.graph.output}
    for node in reversed(shaped.model.graph.node):
        if not wanted.isdisjoint(node.output):
            live.append(node)
            wanted.update(_reads(shaped, node))
    return live[::-1], wanted


def _reads(shaped: ShapedModel, node: NodeProto) -> Iterator[str]:
    """Yield the names of what a node reads as data."""
    facts = type_facts(type_of(node))
    for i, name in enumerate(node.input):
        known = i in facts.structural and name in shaped.values
        if name and not known and i not in facts.unread:
            yield name
    yield from captured(node)


def _roots(shaped: ShapedModel) -> dict[str, Shape]:
    """Return what comes from outside: inputs, then initialisers, in order."""
    graph = shaped.model.graph
    names = [x.name for x in (*graph.input, *graph.initializer)]
    return {name: shaped.shapes[name] for name in names if name in shaped.shapes}


STATES = {"sgd": (), "momentum": ("momentum",), "adam": ("m", "v")}
"""Optimisers, and the names of the states that each keeps for every trained tensor."""


def check_training(training: str | None) -> None:
    """Refuse an optimiser that does not exist.

    Raises
    ------
    InputError
        That names those that do.
    """
    if training is not None and training not in STATES:
        allowed = ", ".join(STATES)
        raise InputError(f"there is no training {training!r}; allowed: {allowed}")


class Trainer:
    """The backward pass of a network, as it grows.

    Parameters
    ----------
    builder
        The network, built.
    """

    def __init__(self, builder: OnnxGraphBuilder) -> None:
        self.builder = builder
        self.unwinding = builder.unwinding
        self.floats = _floats(builder.network)
        self.trained = [
            (name, builder.tensors[name])
            for name in _parameters(builder.network)
            if name in builder.tensors and name in self.floats
        ]
        self.flowing = {x.index for _, x in self.trained}
        self.found: dict[int, list[Tensor]] = {}
        self.opaque: Counter[str] = Counter()

    def build(self, training: str) -> None:
        """Add the backward pass, and the update of every tensor that gets a gradient.

        Raises
        ------
        InputError
            If there is nothing to train, or a node does not fit its operands.
        """
        plans = [self._plan(placed) for placed in self.builder.placed]
        for name in dict.fromkeys(x.name for x in self.builder.network.output):
            y = self.builder.tensors[name]
            if y.index in self.flowing:
                own = self.unwinding.helper(name, "loss")
                self._note(y, self.unwinding.graph.fixed_point([y], y.shape, name=own))
        for placed, wanted in zip(reversed(self.builder.placed), reversed(plans), strict=True):
            try:
                self._go_back(placed, wanted)
            except InputError as error:
                raise error.located(title(placed.proto)) from None
        learned = [(name, w) for name, w in self.trained if w.index in self.found]
        if not learned:
            raise InputError("there is nothing to train: no output follows from an initialiser")
        for name, w in learned:
            self._update(name, w, STATES[training])

    def _plan(self, placed: AddedNode) -> tuple[int, ...]:
        """Return the positions of operands that need gradients, and say so of the outputs."""
        if type_facts(type_of(placed.proto)).gradient is FLAT:
            return ()
        wanted = tuple(
            i for i, x in self._learnable(placed) if x is not None and x.index in self.flowing
        )
        if wanted:
            self.flowing.update(y.index for y in self._differentiable(placed) if y is not None)
        return wanted

    def _learnable(self, placed: AddedNode) -> Iterator[tuple[int, Tensor | None]]:
        """Yield number and tensor of each operand that gradients may go to."""
        node, facts = placed.node, type_facts(type_of(placed.proto))
        barred = {*facts.structural, *facts.unread, *_backward(placed).constant}
        names = (*node.op.inputs, *sorted(captured(placed.proto)))
        for i, (name, x) in enumerate(zip(names, (*node.inputs, *node.captured), strict=True)):
            if i not in barred and name in self.floats:
                yield i, x

    def _differentiable(self, placed: AddedNode) -> Iterator[Tensor | None]:
        """Yield the outputs, ``None`` for those that have no gradients."""
        every = _backward(placed).every
        for i, (name, y) in enumerate(zip(placed.proto.output, placed.outputs, strict=True)):
            yield y if name in self.floats and (every or i == 0) else None

    def _go_back(self, placed: AddedNode, wanted: tuple[int, ...]) -> None:
        outputs = tuple(self._differentiable(placed)) if wanted else ()
        gradients = tuple(None if y is None else self._gradient(y) for y in outputs)
        if all(dy is None for dy in gradients):
            return
        rule = _backward(placed)
        if rule is UNKNOWN:
            self.opaque[type_of(placed.proto)] += 1
        use = Use(placed.node, outputs, gradients, wanted)
        for position, dx in rule.build(self.unwinding, use):
            self._note(use.operand(position), dx)

    def _note(self, x: Tensor, gradient: Tensor) -> None:
        self.found.setdefault(x.index, []).append(gradient)

    def _gradient(self, x: Tensor) -> Tensor | None:
        """Return the gradient of a tensor, once all that reads it has been gone back through."""
        found = self.found.get(x.index, [])
        if len(found) > 1:
            name = self.unwinding.helper(x.name, "gradient.sum")
            found[:] = [together(self.unwinding, name, found, "gradient_sum")]
        return found[0] if found else None

    def _update(self, name: str, w: Tensor, states: Sequence[str]) -> None:
        gradient = self._gradient(w)
        assert gradient is not None  # tensors without one are not learned
        kept = [
            self.unwinding.sink(self.unwinding.helper(name, state), w.shape) for state in states
        ]
        values = self.unwinding.attractions
        self.unwinding.graph.grow_optimizer_step(
            w,
            gradient,
            kept,
            weights_value=values["optimiser.weights"],
            states_value=values["optimiser.states"],
            name=self.unwinding.helper(name, "update"),
        )


def _backward(placed: AddedNode) -> Backward:
    """Return the backward pass of a node; that of ops of which none is known is opaque."""
    return type_facts(type_of(placed.proto)).gradient or UNKNOWN


def _parameters(network: GraphProto) -> list[str]:
    """Return the names of a network's initialisers.

    A constant that is filled to a shape that an initialiser gives stands for one: networks are
    handed on without their weights in this form.
    """
    names = [x.name for x in network.initializer]
    own = set(names)
    filled = [
        node.output[0]
        for node in network.node
        if node.op_type == "ConstantOfShape" and is_standard(node.domain) and node.input[0] in own
    ]
    return names + filled


def _floats(network: GraphProto) -> set[str]:
    """Return the names of tensors of floating-point numbers."""
    from onnx import TensorProto

    kinds = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    values = (*network.input, *network.value_info, *network.output)
    found = {x.name for x in values if x.type.tensor_type.elem_type in kinds}
    return found | {x.name for x in network.initializer if x.data_type in kinds}
