"""ONNX files as protobuf messages, without the weights' data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutopt.errors import InputError
from layoutopt.extras import needed
from layoutopt.graphs.op import Array
from layoutopt.io.files import read_bytes

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

SMALL = 1024
"""Tensors of up to so many elements keep their data, which may be shapes or axes."""

DATA_FIELDS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "uint64_data",
    "double_data",
    "string_data",
)


def load_model(path: str | Path) -> ModelProto:
    """Read a model with its large tensors' data dropped.

    Data in other files is not looked at.

    Raises
    ------
    InputError
        If the ``onnx`` package is missing, or the file holds no model.
    """
    model = parse_model(path)
    for graph in graphs(model.graph):
        _drop_data(graph)
    _fill_sparse(model.graph)
    return model


def parse_model(path: str | Path) -> ModelProto:
    """Read a model as it is; data in other files is not looked at.

    Raises
    ------
    InputError
        If the ``onnx`` package is missing, or the file holds no model.
    """
    onnx = needed("onnx", "reading a network", str(path))
    raw = read_bytes(Path(path))
    model: ModelProto = onnx.ModelProto()
    try:
        model.ParseFromString(raw)
    except Exception:  # protobuf's own error class has no types
        raise InputError("is no ONNX model, or only part of one", file=str(path)) from None
    if not _has_texts(model):
        raise InputError("is no ONNX model: a text in it is not UTF-8", file=str(path))
    if not model.graph.node and not model.graph.output:
        raise InputError("is no ONNX model: it has no graph with nodes", file=str(path))
    if not model.graph.output:
        raise InputError("the network has no outputs", file=str(path))
    return model


def _has_texts(message: Any) -> bool:
    """Return whether all texts are UTF-8; protobuf hands out the bytes of others as they are."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else (value,)
        if field.message_type is not None:
            if not all(map(_has_texts, values)):
                return False
        elif field.type == field.TYPE_STRING and not all(isinstance(v, str) for v in values):
            return False
    return True


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, else its type."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for body in bodies(node):
            yield from graphs(body)


def bodies(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs that a node holds itself."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def copied_except(message: Any, target: Any, *left_out: str) -> None:
    """Copy all fields of a protobuf message but those that are named."""
    for field, value in message.ListFields():
        if field.name in left_out:
            continue
        if field.is_repeated:
            getattr(target, field.name).extend(value)
        elif field.message_type is not None:
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)


def captured(node: NodeProto) -> set[str]:
    """Return the names that the graphs inside a node read from outside."""
    return {name for body in bodies(node) for name in _free_names(body)}


def _free_names(graph: GraphProto) -> set[str]:
    read = {name for node in graph.node for name in (*node.input, *captured(node))}
    read.update(x.name for x in graph.output)
    return read - defined(graph) - {""}


def defined(graph: GraphProto) -> set[str]:
    """Return the names that a graph gives to tensors of its own."""
    own = {x.name for x in (*graph.input, *graph.initializer)}
    own.update(x.values.name for x in graph.sparse_initializer)
    return own.union(*(node.output for node in graph.node))


def array(tensor: TensorProto) -> Array | None:
    """Return a tensor's value if it is small and in the file itself."""
    from onnx import TensorProto, numpy_helper

    external = tensor.data_location == TensorProto.EXTERNAL
    if external or np.prod(tensor.dims, dtype=object) > SMALL:
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        raise InputError(f"tensor {tensor.name!r} has broken data ({error})") from None
    except KeyError:
        kind = tensor.data_type
        raise InputError(f"tensor {tensor.name!r}: element type {kind} is none of ONNX") from None


def _drop_data(graph: GraphProto) -> None:
    """Empty large tensors, of which only shapes matter."""
    values = (a for node in graph.node for a in node.attribute if a.HasField("t"))
    for tensor in (*graph.initializer, *(a.t for a in values)):
        if np.prod(tensor.dims, dtype=object) > SMALL:
            for field in DATA_FIELDS:
                tensor.ClearField(field)


def _fill_sparse(graph: GraphProto) -> None:
    """Turn sparse initialisers into inputs, of which shape inference knows the shape."""
    from onnx import helper

    for x in graph.sparse_initializer:
        kind = x.values.data_type
        graph.input.append(helper.make_tensor_value_info(x.values.name, kind, list(x.dims)))
    del graph.sparse_initializer[:]
