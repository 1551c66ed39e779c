"""Graphs of models with known shapes: each relevant node enters by its rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layoutopt.base.errors import InputError
from layoutopt.graphs.builder import all_or_nothing
from layoutopt.graphs.ops import Shape
from layoutopt.graphs.tensor import Tensor
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.builder import Attractions, Node, Rule, UnwindingGraphBuilder
from layoutopt.onnx.protobuf import captured, title
from layoutopt.onnx.rules import barrier, is_standard, rule_of, type_of
from layoutopt.onnx.shapes import Shaped

if TYPE_CHECKING:
    from onnx import NodeProto


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

    def __init__(self, shaped: Shaped, graph: Graph, attractions: Attractions) -> None:
        self.shaped = shaped
        self.network = shaped.model.graph
        self.roots = _roots(shaped)
        names = {name for node in self.network.node for name in node.output}
        self.sketch = UnwindingGraphBuilder(graph, attractions, names | set(self.roots))
        self.versions = {x.domain: x.version for x in shaped.model.opset_import}
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
                self.tensors[name] = self.sketch.sink(name, shape)
        for node in self.live:
            try:
                self._add(node)
            except InputError as error:
                raise error.located(title(node)) from None

    def _add(self, node: NodeProto) -> None:
        names = [name if name in self.wanted else None for name in node.output]
        shapes = [None if name is None else self._shape(name) for name in names]
        ready = Node(
            op_type=node.op_type,
            inputs=tuple(self._inputs(node)),
            outputs=tuple(names),
            shapes=tuple(shapes),
            attributes=_attributes(node),
            values=tuple(self.shaped.values.get(name) for name in node.input),
            version=self.versions.get("" if is_standard(node.domain) else node.domain, 1),
            captured=tuple(self.tensors[name] for name in sorted(captured(node))),
        )
        outputs = self._built(node, ready)
        self.placed.append(AddedNode(node, ready, outputs))
        self.tensors.update(
            (name, x) for name, x in zip(names, outputs, strict=True) if name and x is not None
        )

    def _built(self, node: NodeProto, ready: Node) -> Sequence[Tensor | None]:
        """Return the outputs of a node: by its rule, or of a barrier if sizes are taken for 1."""
        rule = rule_of(node.domain, node.op_type)
        guessed = self.shaped.guessed
        if not guessed:
            return _follow(rule, self.sketch, ready)
        if guessed.isdisjoint(node.output):
            by_rule = all_or_nothing(lambda _: _follow(rule, self.sketch, ready))
            try:
                return by_rule(self.sketch.graph)
            except InputError:  # other sizes fit
                self.misfits[type_of(node)] += 1
        return _follow(Rule(barrier), self.sketch, ready)

    def _inputs(self, node: NodeProto) -> Iterator[Tensor | None]:
        read = set(_reads(self.shaped, node))
        rule = rule_of(node.domain, node.op_type)
        for i, name in enumerate(node.input):
            skipped = i in rule.unread or (i in rule.structure and name in self.shaped.values)
            yield self.tensors[name] if name in read and not skipped else None

    def _shape(self, name: str) -> Shape:
        shape = self.shaped.shapes.get(name)
        if shape is not None:
            return shape
        if name in self.shaped.others:
            raise InputError(f"{name!r} is no tensor, but a sequence, map or optional")
        why = "; ".join(filter(None, (self.shaped.why(), self.shaped.unmeasured)))
        raise InputError(f"the shape of {name!r} cannot be inferred" + (f" ({why})" if why else ""))


def _follow(rule: Rule, sketch: UnwindingGraphBuilder, node: Node) -> Sequence[Tensor | None]:
    """Return the outputs that a rule adds, of the shapes that they must have."""
    made = rule.build(sketch, node)
    outputs = [made] if isinstance(made, Tensor) else made
    for name, shape, x in zip(node.outputs, node.shapes, outputs, strict=True):
        if name is not None and x is not None and x.shape != shape:
            raise InputError(
                f"{name!r} has shape {list(shape or ())}, {list(x.shape)} follows from the operands"
            )
    return outputs


def live_nodes(shaped: Shaped) -> tuple[list[NodeProto], set[str]]:
    """Return the nodes that outputs depend on as data, in order, and the names that these read."""
    live: list[NodeProto] = []
    wanted = {x.name for x in shaped.model.graph.output}
    for node in reversed(shaped.model.graph.node):
        if not wanted.isdisjoint(node.output):
            live.append(node)
            wanted.update(_reads(shaped, node))
    return live[::-1], wanted


def _reads(shaped: Shaped, node: NodeProto) -> Iterator[str]:
    """Yield the names of what a node reads as data."""
    rule = rule_of(node.domain, node.op_type)
    for i, name in enumerate(node.input):
        known = i in rule.structure and name in shaped.values
        if name and not known and i not in rule.unread:
            yield name
    yield from captured(node)


def _roots(shaped: Shaped) -> dict[str, Shape]:
    """Return what comes from outside: inputs, then initialisers, in order."""
    graph = shaped.model.graph
    names = [x.name for x in (*graph.input, *graph.initializer)]
    return {name: shaped.shapes[name] for name in names if name in shaped.shapes}


def _attributes(node: NodeProto) -> dict[str, Any]:
    from onnx import helper

    return {
        a.name: helper.get_attribute_value(a)
        for a in node.attribute
        if not (a.HasField("t") or a.HasField("g"))
    }
