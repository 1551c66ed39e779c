"""Small networks for the tests, and what their graphs say about single elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from layoutopt.check.affine import carried
from layoutopt.graphs.ops import Array, Kind, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.read import read_onnx

FLOAT = TensorProto.FLOAT
Shapes = Mapping[str, Sequence[int | str | None]]


def node(op_type: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    """Return a node; a dash stands for an operand or output that is left out."""
    names = ([name.replace("-", "") for name in text.split()] for text in (inputs, outputs))
    return helper.make_node(op_type, *names, **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: Shapes,
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    **more: Any,
) -> onnx.ModelProto:
    """Return a model of float inputs; the outputs' types are left to be inferred.

    Parameters
    ----------
    constants
        Initialisers by name.
    more
        Further arguments of ``make_model``.
    """
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()],
    )
    domains = {n.domain for n in nodes} - {""}
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def save(network: onnx.ModelProto, folder: Path) -> Path:
    """Write a model, and return its file."""
    path = folder / "net.onnx"
    path.write_bytes(network.SerializeToString())
    return path


def graph_of(folder: Path, nodes: Sequence[NodeProto], inputs: Shapes, **more: Any) -> Graph:
    """Return the graph that a small network becomes."""
    return read_onnx(save(model(nodes, inputs, **more), folder))


def passed_on(graph: GraphStore, data: Mapping[str, Array]) -> dict[str, Array]:
    """Carry the elements of roots through all views, by the specification's index formulas.

    Returns
    -------
    dict
        For each tensor that comes from the given roots through views alone: flat, the value
        of the root element that each element comes from.
    """
    found: dict[int, Array] = {}
    for i, op in enumerate(graph.ops):
        t = graph.op_outputs[i][0]
        carriers = graph.carriers(i)
        if op.kind is not Kind.VIEW and op.id in data:
            found[t] = np.asarray(data[op.id]).reshape(-1)
        elif op.kind is Kind.VIEW and all(c in found for c in carriers):
            shapes = [graph.shapes[c] for c in carriers]
            found[t] = carried(op, [found[c] for c in carriers], shapes, graph.shapes[t])
    return {graph.tensor_name(t): values for t, values in found.items()}


def pairs(graph: GraphStore) -> list[tuple[str, str, int]]:
    """Return all pairs but those with the weak linear sources."""
    named = [(graph.tensor_name(a), graph.tensor_name(b), int(v)) for a, b, v in graph.pairs]
    return [pair for pair in named if not pair[1].endswith(".linear")]


def types(graph: GraphStore) -> dict[str, str]:
    """Return the type of each op but the weak linear sources, by name."""
    return {op.id: type_name(op) for op in graph.ops if not op.id.endswith(".linear")}
