"""Weights and other constants: networks without them, their values, and these in other layouts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.conversion.result import TransformedConstant
from layoutopt.graphs.ops import Array
from layoutopt.layout.factors import steps
from layoutopt.onnx.protobuf import (
    DATA_FIELDS,
    SMALL,
    array,
    copied,
    copied_except,
    drop_data,
    graphs,
    is_standard,
    names_read,
    onnx,
    set_items,
    sparse_as_inputs,
    type_of,
    versions_of,
)
from layoutopt.onnx.types import type_of_tensor

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

    Constant: TypeAlias = TensorProto | NodeProto
    """An initialiser, or a node that makes a tensor of known values."""


SINCE_OVERRIDABLE = 4
"""Version of the file format since which an initialiser that is an input is only its default."""


def variable_initialisers(model: ModelProto) -> set[str]:
    """Return the initialisers that are no constants: inputs as well, or read or set in training."""
    held = {x.name for x in model.graph.input if model.ir_version >= SINCE_OVERRIDABLE}
    for training in model.training_info:
        held |= names_read((*training.initialization.node, *training.algorithm.node))
        held |= {x.key for x in (*training.initialization_binding, *training.update_binding)}
    return held & initialisers(model)


def initialisers(model: ModelProto) -> set[str]:
    """Return the names of a network's initialisers, sparse ones included."""
    graph = model.graph
    return {x.name for x in graph.initializer} | {x.values.name for x in graph.sparse_initializer}


def unlist_initialisers(model: ModelProto, given: ModelProto) -> None:
    """Take initialisers of a given network out of the inputs, where old files had to list them."""
    if model.ir_version < SINCE_OVERRIDABLE:
        names = initialisers(given)
        set_items(model.graph.input, [x for x in model.graph.input if x.name not in names])
        model.ir_version = SINCE_OVERRIDABLE


def bare_model(model: ModelProto) -> ModelProto:
    """Return a network without the data of large tensors.

    What is no constant though it has an initialiser, being an input as well, trained or sparse, is
    an input.
    """
    bare = _without_initialisers(model, ("metadata_props", "training_info"))
    held, inputs = variable_initialisers(model), {x.name for x in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name not in held:
            large = prod(tensor.dims) > SMALL
            copied_except(tensor, bare.graph.initializer.add(), *(DATA_FIELDS if large else ()))
        elif tensor.name not in inputs:
            bare.graph.input.add(name=tensor.name, type=type_of_tensor(tensor))
    for graph in graphs(bare.graph):
        drop_data(graph)
    sparse_as_inputs(bare.graph)
    return bare


def _without_initialisers(
    model: ModelProto, fields: Sequence[str] = (), graph_fields: Sequence[str] = ()
) -> ModelProto:
    """Return a copy without initialisers, and without some fields of the model and its graph."""
    light = onnx.ModelProto()
    copied_except(model, light, "graph", *fields)
    copied_except(model.graph, light.graph, "initializer", *graph_fields)
    return light


def without_weights(model: ModelProto) -> ModelProto:
    """Return a network with inputs in place of large weights, of the same types and shapes."""
    fields = ("metadata_props", "training_info"), ("node", "quantization_annotation")
    light = _without_initialisers(model, *fields)
    light.ir_version = min(max(model.ir_version, SINCE_OVERRIDABLE), onnx.IR_VERSION)
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= SMALL:
            light.graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            light.graph.input.add(name=tensor.name, type=type_of_tensor(tensor))
    for node in model.graph.node:
        large = _large_value(node)
        if large is None:
            light.graph.node.append(node)
        else:
            light.graph.input.add(name=node.output[0], type=type_of_tensor(large))
    return light


SINCE_SPARSE_CONSTANTS = 11
"""The operator set since which Constant takes sparse values."""


def light_model(model: ModelProto, weights: dict[str, TensorProto]) -> ModelProto:
    """Return a copy of a network without large weights, and note these."""
    light = _without_initialisers(model, (), ("node",))
    held = variable_initialisers(model)
    for tensor in model.graph.initializer:
        if tensor.name in held or prod(tensor.dims) <= SMALL:
            light.graph.initializer.append(tensor)
        else:
            add_weight(light.graph, tensor.name, tensor, weights)
    add_nodes(light.graph, model.graph.node, weights)
    unlist_initialisers(light, model)
    return light


def add_nodes(
    graph: GraphProto, nodes: Iterable[NodeProto], weights: dict[str, TensorProto]
) -> None:
    """Add nodes; those that make large constants become weights."""
    outputs = {value.name for value in graph.output}
    for node in nodes:
        tensor = _large_value(node)
        if tensor is None or node.output[0] in outputs:
            graph.node.append(node)
        else:
            add_weight(graph, node.output[0], tensor, weights)


def dense_constants(model: ModelProto, graph: GraphProto) -> None:
    """Give small sparse constants their zeros, and let nodes make those that are large."""
    version = versions_of(model)[""]
    inputs = {value.name for value in graph.input}
    kept, made = list[Any](), list[Any]()
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        if name in inputs or model.training_info:
            kept.append(sparse)
        elif prod(sparse.dims) <= SMALL:
            graph.initializer.append(onnx.numpy_helper.from_array(read_values(sparse, name), name))
        elif version < SINCE_SPARSE_CONSTANTS:
            kept.append(sparse)
        else:
            made.append(onnx.helper.make_node("Constant", [], [name], sparse_value=sparse))
    set_items(graph.sparse_initializer, kept)
    set_items(graph.node, [*made, *graph.node])
    for node in graph.node:
        sparse = sparse_value(node)
        if sparse is not None and prod(sparse.dims) <= SMALL:
            dense = onnx.numpy_helper.from_array(read_values(node, node.output[0]))
            set_items(node.attribute, [onnx.helper.make_attribute("value", dense)])


def read_values(constant: Constant | SparseTensorProto, name: str) -> NDArray[Any]:
    """Return the values of a constant, or tell that they cannot be read."""
    try:
        return array_of(constant)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise InputError(f"tensor {name!r} has broken data ({error})") from None


def _large_value(node: NodeProto) -> TensorProto | None:
    """Return the value of a node that makes a large constant, else None."""
    attribute = _constant_attribute(node, "value")
    large = attribute is not None and prod(attribute.t.dims) > SMALL
    return attribute.t if large else None


def add_weight(
    graph: GraphProto, name: str, tensor: TensorProto, weights: dict[str, TensorProto]
) -> None:
    """Add a large weight without its data, and note it."""
    graph.initializer.add(name=name, data_type=tensor.data_type, dims=tensor.dims)
    weights[name] = tensor


def transform_constant(constant: Constant, how: TransformedConstant, name: str) -> TensorProto:
    """Return a constant in another layout, as an initialiser.

    Raises ``InputError`` if its values cannot be read.
    """
    try:
        values = array_of(constant)
        if values.size == 1:  # that of each element, where a shape is filled
            values = np.broadcast_to(values, [int(size or 0) for size in how.shape])
        for step in steps(tuple(range(values.ndim)), how.form, values.shape):
            values = step.apply(values)
        tensor = onnx.numpy_helper.from_array(np.ascontiguousarray(values))
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"constant {how.source!r} cannot be re-laid ({error})") from None
    if isinstance(constant, onnx.TensorProto) and tensor.data_type != constant.data_type:
        raise InputError(f"constant {how.source!r} cannot be re-laid: its type is not read")
    if isinstance(constant, onnx.TensorProto):
        tensor.doc_string = constant.doc_string
        tensor.metadata_props.extend(constant.metadata_props)
    tensor.name = name
    return tensor


def transform_fill(node: NodeProto, shape: TensorProto, name: str) -> NodeProto:
    """Return a node that fills another shape with the same value."""
    new = copied(node)
    new.name = name if node.name else ""
    new.input[0], new.output[0] = shape.name, name
    return new


def sparse_value(node: NodeProto) -> SparseTensorProto | None:
    """Return the value of a node that makes a sparse constant, else None."""
    attribute = _constant_attribute(node, "sparse_value")
    return None if attribute is None else attribute.sparse_tensor


def _constant_attribute(node: NodeProto, name: str) -> Any:
    """Return an attribute of a node that makes a constant, None if there is none."""
    if type_of(node) != "Constant":
        return None
    return next((a for a in node.attribute if a.name == name), None)


def array_of(constant: Constant | SparseTensorProto) -> NDArray[Any]:
    """Return the values of an initialiser, sparse or not, or of a constant node."""
    if isinstance(constant, onnx.TensorProto):
        return np.asarray(onnx.numpy_helper.to_array(constant))
    if isinstance(constant, onnx.SparseTensorProto):
        return _filled(constant)
    [attribute] = constant.attribute
    if attribute.name == "value":
        return np.asarray(onnx.numpy_helper.to_array(attribute.t))
    if attribute.name == "sparse_value":
        return _filled(attribute.sparse_tensor)
    kinds = {"f": np.float32, "i": np.int64, "s": np.object_}
    kind = kinds[attribute.name.removeprefix("value_")[0]]
    return np.array(onnx.helper.get_attribute_value(attribute), kind)


def _filled(sparse: SparseTensorProto) -> NDArray[Any]:
    """Return a sparse tensor with its zeros; places are flat, or a row of indices each."""
    values, places = (
        onnx.numpy_helper.to_array(sparse.values),
        onnx.numpy_helper.to_array(sparse.indices),
    )
    found = np.zeros(tuple(sparse.dims), values.dtype)
    if places.ndim == 2:
        found[tuple(places.T)] = values
    else:
        found.reshape(-1)[places] = values
    return found


def known_values(graph: GraphProto) -> dict[str, Array]:
    """Return the small constants of a graph by name: initialisers and constant nodes."""
    found = {x.name: array(x) for x in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and is_standard(node.domain):
            found[node.output[0]] = _small_value(node)
    return {name: value for name, value in found.items() if value is not None}


def _small_value(node: NodeProto) -> Array | None:
    """Return the value of a constant node, if it is small and numeric."""
    names = [a.name for a in node.attribute]
    if names == ["value"]:
        return array(node.attribute[0].t)
    numeric = len(names) == 1 and names[0].startswith(("value_int", "value_float"))
    return array_of(node) if numeric else None
