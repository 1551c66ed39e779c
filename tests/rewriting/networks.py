"""Small networks for the tests, and conversions made by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper, parser

from layoutopt.base.result import Stopped
from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Conversion, StatedProblem, Tally, TransformedConstant
from layoutopt.conversion.rules.op import Op
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
