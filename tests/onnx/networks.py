"""Networks for the tests, from texts, from nodes and of the standard, and what they become."""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from layoutopt.base.limits import Stopped
from layoutopt.check.affine import carried
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Conversion, StatedProblem, Tally, TransformedConstant
from layoutopt.conversion.rules.op import Op
from layoutopt.graphs.ops import Array, Kind, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.unwinding import Graph
from layoutopt.onnx.read import read_onnx
from layoutopt.onnx.source import OnnxSource, read_model

NOTHING = Tally(0, 0, 0)


def network(
    text: str,
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 17,
    ir: int = 8,
    domains: Sequence[str] = (),
    annotated: Mapping[str, str] = MappingProxyType({}),
) -> ModelProto:
    """Return a network from ONNX's textual form of its graph.

    Parameters
    ----------
    constants
        Initialisers by name; a shape stands for random numbers.  Files of cases tell a shape as a
        list, and other constants by their type and values, or one value for all of a shape.
    domains
        Further domains, of version 1.
    annotated
        Tensors with the names of their scales, for quantisation annotations.
    """
    imports = ", ".join([f'"" : {opset}', *(f'"{domain}" : 1' for domain in domains)])
    model = parser.parse_model(f"<ir_version: {ir}, opset_import: [{imports}]> {text}")
    for name, given in (constants or {}).items():
        told = constant(given)
        array = random_array(told) if isinstance(told, tuple) else told
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for name, scale in annotated.items():
        note = model.graph.quantization_annotation.add(tensor_name=name)
        note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)
    return model


def constant(given: Any) -> Any:
    """Return an array as a file of cases tells it, the shape of another, or None for nothing."""
    if isinstance(given, tuple | list):
        return tuple(given)
    if not isinstance(given, dict):
        return np.asarray(given)
    if not given:
        return None
    [(kind, values), *_] = given.items()
    shape = given.get("shape", np.shape(values))
    if values == "count":
        values = np.arange(np.prod(shape)).reshape(shape) % given.get("modulo", 2**62)
    return np.broadcast_to(values, shape).astype(kind)


def cases(name: str) -> dict[str, Any]:
    """Return the networks of a file, with what is expected of each, by name."""
    text = (Path(__file__).parents[1] / f"cases/networks/{name}.toml").read_text()
    return tomllib.loads(text)


def random_array(shape: Sequence[int]) -> Any:
    """Return the same random numbers for the same shape."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def conversion(
    graph: ConversionGraph,
    relaid: Mapping[str, TransformedConstant] | None = None,
    freed: Mapping[str, tuple[int, ...]] | None = None,
) -> Conversion:
    """Return a conversion that says nothing of cost."""
    return Conversion(
        graph=graph,
        relaid=relaid or {},
        freed=freed or {},
        objectives=("count",),
        objective=(0,),
        bound=(0,),
        stopped=Stopped.FINISHED,
        seconds={},
        before=NOTHING,
        after=NOTHING,
        explain=tuple,
        state=lambda: StatedProblem({}, [], []),
    )


def edited(source: OnnxSource, changes: Mapping[str, Mapping[str, Any]]) -> ConversionGraph:
    """Return the graph of a source with some fields of some ops replaced."""
    graph = ConversionGraph(source.graph.name, source.graph.opset)
    for name, tensor in source.graph.tensors.items():
        if tensor.kind == "input":
            graph.input(name, tensor.shape, element_bytes=tensor.element_bytes)
        elif tensor.kind == "constant":
            graph.constant(name, tensor.shape, element_bytes=tensor.element_bytes)
    for op in source.graph.ops:
        graph.add(replace(op, **changes.get(op.name, {})))
    graph.output(*source.graph.outputs)
    return graph


def only(source: OnnxSource, type: str) -> Op:
    """Return the only op of a type."""
    [op] = [op for op in source.graph.ops if op.type == type]
    return op


def read(text: str, constants: Mapping[str, Any] | None = None, **more: Any) -> OnnxSource:
    """Return a network as a source; the arguments are those of :func:`network`."""
    return read_model(network(text, constants, **more))


def values(model: ModelProto, name: str) -> Any:
    """Return an initialiser's values."""
    [tensor] = [x for x in model.graph.initializer if x.name == name]
    return numpy_helper.to_array(tensor)


def kinds(model: ModelProto) -> list[str]:
    """Return the types of all nodes, those of other domains as ``domain::Type``."""
    return [f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in model.graph.node]


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


def added(graph: GraphStore) -> list[tuple[str, str, int]]:
    """Return the pairs of backward pass and update, which come after the loss."""
    losses = [graph.number(name) for name in types(graph) if name.endswith(".loss")]
    first = min(losses, default=len(graph.shapes))
    return [p for p in pairs(graph) if max(graph.number(x) for x in p[:2]) >= first]


def trained(graph: GraphStore) -> set[str]:
    """Return the names of the tensors that are updated."""
    return {name.removesuffix(".update") for name in types(graph) if name.endswith(".update")}


@cache
def every_example() -> tuple[Any, ...]:
    """Return the examples, models with inputs and outputs; they are made anew, in seconds.

    Whoever changes a model copies it before.  Results of pools are zeros, as computing them takes
    most of the time, and no test looks at them.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        import onnx.reference.ops  # before, so that evaluators keep what they compute pools by
        from onnx.backend.test.case.node import collect_testcases

        with patch.object(onnx.reference.ops.op_pool_common, "pool", _zeros, create=True):
            return tuple(collect_testcases(None))


def _zeros(
    padded: Array,
    x_shape: Sequence[int],
    kernel: object,
    strides: object,
    out_shape: Sequence[int],
    *_: object,
    **__: object,
) -> Array:
    """Return zeros in the shape of a pool's results."""
    return np.zeros([*x_shape[:2], *out_shape], padded.dtype)
