"""A network of ONNX with its conversion graph, and what is needed to write another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from layoutopt.conversion.graph import HELD, ConversionGraph
from layoutopt.conversion.rules.op import Op

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

    Model: TypeAlias = ModelProto
    """A network of ONNX in memory."""

    Constant: TypeAlias = TensorProto | NodeProto
    """An initialiser, or a node that makes a tensor of known values."""


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
