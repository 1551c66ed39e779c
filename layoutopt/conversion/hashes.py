"""Hashes that tell whether two networks are the same conversion problem."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.tensor import ConversionTensor
from layoutopt.io.hashes import digest
from layoutopt.operators.op import Op

FORMAT = "layoutopt/network/1"


def network_hash(graphs: Iterable[ConversionGraph]) -> str:
    """Return the hash of a network, however its file is written.

    It is ``"sha256:"`` and the digest of a canonical text, which ``docs/same_answers.md`` states.
    Everything counts that layouts are chosen by: ops, tensors, inputs and outputs, in order and
    with their names.  Values of weights, names of graphs and metadata do not.

    Parameters
    ----------
    graphs
        The network's own graph, and then those inside its nodes.

    Raises
    ------
    InputError
        If an attribute of an op holds what JSON cannot.

    Examples
    --------
    >>> graph = ConversionGraph()
    >>> x = graph.input("x", (1, 3, 8, 8))
    >>> graph.output(graph.op("Relu", [x]))
    >>> network_hash([graph])[:15]
    'sha256:2c7431b3'
    """
    return digest({"format": FORMAT, "graphs": [_graph(graph) for graph in graphs]})


def _graph(graph: ConversionGraph) -> dict[str, Any]:
    tensors = [_tensor(t) for t in graph.tensors.values() if t.kind != "activation"]
    return {"tensors": tensors, "ops": [_op(graph, op) for op in graph.ops], "out": graph.outputs}


def _tensor(tensor: ConversionTensor) -> list[Any]:
    layout = str(tensor.layout)
    return [tensor.kind, tensor.name, tensor.shape, tensor.element_bytes, layout]


def _op(graph: ConversionGraph, op: Op) -> list[Any]:
    widths = [graph.tensors[name].element_bytes if name else None for name in op.outputs]
    results = [op.outputs, op.output_shapes, widths]
    layouts = None if op.layouts is None else str(op.layouts)
    return [op.name, op.type, op.opset, op.inputs, results, dict(op.attributes), layouts]
