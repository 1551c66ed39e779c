"""The shapes of all tensors of a network, without its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import Shape
from layoutopt.onnx.declared import give_back, take_declared, types_of
from layoutopt.onnx.folding import fold
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.protobuf import DATA_FIELDS, SMALL, copied_except, graphs

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, TensorProto, TypeProto

SINCE_OVERRIDABLE = 4
"""Version of the file format since which an initialiser that is an input is only its default."""

TEXT_BYTES = 8
"""What a text counts for, of which only a reference is moved."""


NARROW = {"float4e2m1", "int2", "int4", "uint2", "uint4"}
"""Types of elements below a byte: runtimes transpose them, but neither reshape nor copy them."""


class Typed(NamedTuple):
    """Type and shape of a tensor.

    Parameters
    ----------
    shape
        Its shape, None where not even the rank is known.
    element_bytes
        Bytes of an element.
    element_type
        What ONNX calls their type, ``float`` or ``int64``; "" if unknown.
    """

    shape: Shape | None
    element_bytes: int
    element_type: str = ""


def overridable(model: ModelProto) -> set[str]:
    """Return the initialisers that a caller may replace, as they are inputs as well."""
    if model.ir_version < SINCE_OVERRIDABLE:
        return set()
    return {x.name for x in model.graph.input} & {x.name for x in model.graph.initializer}


def skeleton(model: ModelProto) -> ModelProto:
    """Return a network with all shapes that can be told, without the data of large tensors.

    What computes shapes from shapes has become constants.  Declared shapes count where nothing
    else follows from the nodes.

    Parameters
    ----------
    model
        The network; see :func:`bare_model` for what becomes of its initialisers.

    Raises
    ------
    InputError
        If the network is not well-formed.
    """
    bare = bare_model(model)
    declared = take_declared(bare.graph)
    while True:
        bare = with_shapes(bare)
        shapes = {
            name: shape
            for name, (shape, *_) in types(bare.graph).items()
            if shape is not None and all(isinstance(size, int) for size in shape)
        }
        if not fold(bare, shapes):  # type: ignore[arg-type]  # sizes are numbers
            break
    give_back(bare.graph, declared, types_of(bare.graph))
    return with_shapes(bare)


def bare_model(model: ModelProto) -> ModelProto:
    """Return a network without the data of large tensors.

    What is no constant though it has an initialiser, being an input as well or sparse, is an
    input.
    """
    from onnx import ModelProto

    bare = ModelProto()
    copied_except(model, bare, "graph", "metadata_props", "training_info")
    copied_except(model.graph, bare.graph, "initializer", "sparse_initializer")
    _add_initialisers(model, bare.graph)
    for graph in graphs(bare.graph):
        values = (a for node in graph.node for a in node.attribute if a.HasField("t"))
        for tensor in (*graph.initializer, *(a.t for a in values)):
            _drop_data(tensor)
    return bare


def types(graph: GraphProto) -> dict[str, Typed]:
    """Return what is known of the tensors of a graph; what is no tensor has no rank."""
    found = {
        value.name: typed(value.type) for value in (*graph.value_info, *graph.output, *graph.input)
    }
    found.update(
        (x.name, Typed(tuple(x.dims), element_bytes(x.data_type), type_name(x.data_type)))
        for x in graph.initializer
    )
    return found


def typed(kind: TypeProto) -> Typed:
    """Return what a type tells: sizes are numbers, names, or None."""
    if not kind.HasField("tensor_type"):
        return Typed(None, TEXT_BYTES)
    tensor = kind.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value
            if dim.HasField("dim_value") and dim.dim_value >= 0
            else dim.dim_param or None
            for dim in tensor.shape.dim
        )
    return Typed(shape, element_bytes(tensor.elem_type), type_name(tensor.elem_type))


def type_name(kind: int) -> str:
    """Return what ONNX calls a type of elements, "" if unknown."""
    from onnx import TensorProto

    known = kind in TensorProto.DataType.values() and kind != TensorProto.UNDEFINED
    return TensorProto.DataType.Name(kind).lower() if known else ""


def element_bytes(kind: int) -> int:
    """Return the bytes of an element of an ONNX type; of those below a byte, 1."""
    from onnx import TensorProto, helper

    if kind in (TensorProto.STRING, TensorProto.UNDEFINED):
        return TEXT_BYTES if kind == TensorProto.STRING else 4
    try:
        return int(helper.tensor_dtype_to_np_dtype(kind).itemsize)
    except KeyError:
        raise InputError(f"element type {kind} is none of ONNX") from None


def _add_initialisers(model: ModelProto, bare: GraphProto) -> None:
    from onnx import helper

    kept = overridable(model)
    inputs = {x.name for x in bare.input}
    for tensor in model.graph.initializer:
        if tensor.name not in kept:
            new = bare.initializer.add()
            large = element_count(tensor) > SMALL
            copied_except(tensor, new, *(DATA_FIELDS if large else ()))
    for x in model.graph.sparse_initializer:
        kind = x.values.data_type
        if x.values.name not in inputs:
            bare.input.append(helper.make_tensor_value_info(x.values.name, kind, list(x.dims)))


def _drop_data(tensor: TensorProto) -> None:
    if element_count(tensor) > SMALL:
        for field in DATA_FIELDS:
            tensor.ClearField(field)


def element_count(tensor: TensorProto) -> int:
    """Return the number of elements of a tensor."""
    count = 1
    for size in tensor.dims:
        count *= size
    return count
