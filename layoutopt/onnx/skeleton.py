"""The shapes of all tensors of a network, without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from layoutopt.conversion.rules.elementwise import ONE_OPERAND
from layoutopt.onnx.declared import give_back, input_names, ranks_of, take_declared, types_of
from layoutopt.onnx.folding import fold
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.protobuf import DATA_FIELDS, SMALL, copied_except, graphs
from layoutopt.onnx.rules import is_standard
from layoutopt.onnx.types import element_count, types

if TYPE_CHECKING:
    from onnx import (
        GraphProto,
        ModelProto,
        NodeProto,
        TensorProto,
        TensorShapeProto,
        TypeProto,
        ValueInfoProto,
    )

SINCE_OVERRIDABLE = 4
"""Version of the file format since which an initialiser that is an input is only its default."""

UNARY = frozenset(ONE_OPERAND.split())
"""Op types whose result has the shape of their operand."""


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
    for _ in bare.graph.node:  # declared shapes, which may be wrong, tell no operands
        if not tell_operands(bare.graph):
            break
        bare = with_shapes(bare)
    told = types_of(bare.graph)
    give_back(bare.graph, ranks_of(declared, told), told)
    return with_shapes(bare)


def tell_operands(graph: GraphProto) -> bool:
    """Tell sizes of operands by those of results; return whether any were.

    They go through transposes, and through elementwise ops of one operand.

    Parameters
    ----------
    graph
        The graph, with all inside it, and all shapes that are known; it is changed.
    """
    from onnx import TensorShapeProto

    names, told, unknown = input_names(graph), False, [TensorShapeProto.Dimension()]
    for one in graphs(graph):
        kinds = {value.name: value for value in (*one.value_info, *one.output)}
        made = {name for node in one.node for name in node.output}
        for node in reversed(one.node):
            if len(node.input) != 1 or node.input[0] not in made or not is_standard(node.domain):
                continue
            dims = _operand_sizes(node, kinds)
            if dims is None:
                continue
            for name in (node.input[0], node.output[0]):
                if name not in kinds:
                    kinds[name] = one.value_info.add(name=name)
                    kinds[name].type.tensor_type.elem_type = _element_type(node, kinds)
            told |= _tell(kinds[node.input[0]].type, dims, names)
            told |= _tell(kinds[node.output[0]].type, unknown * len(dims), names)
    return told


def _operand_sizes(
    node: NodeProto, kinds: Mapping[str, ValueInfoProto]
) -> list[TensorShapeProto.Dimension] | None:
    """Return the sizes of a node's operand by those of its result; None if they do not tell.

    What has no elements tells nothing: in it, sizes cannot be left open by -1.
    """
    from onnx import TensorShapeProto

    result = kinds.get(node.output[0])
    given = [list(a.ints) for a in node.attribute if a.name == "perm"]
    if result is None or not result.type.tensor_type.HasField("shape"):
        unknown = node.op_type == "Transpose" and given
        return [TensorShapeProto.Dimension()] * len(given[0]) if unknown else None
    dims = list(result.type.tensor_type.shape.dim)
    if any(dim.HasField("dim_value") and not dim.dim_value for dim in dims):
        return None
    if node.op_type != "Transpose":
        known = node.op_type in UNARY and node.input[0] in kinds
        return dims if known else None
    order = given[0] if given else list(range(len(dims)))[::-1]
    if sorted(order) != list(range(len(dims))):
        return None
    return [dims[order.index(axis)] for axis in range(len(dims))]


def _element_type(node: NodeProto, kinds: Mapping[str, ValueInfoProto]) -> int:
    """Return the type of the elements of a transpose's operand and result; 0 if it is unknown."""
    found = (kinds[name].type.tensor_type for name in (*node.input, *node.output) if name in kinds)
    return max((kind.elem_type for kind in found), default=0)


def _tell(kind: TypeProto, dims: list[TensorShapeProto.Dimension], names: set[str]) -> bool:
    """Fill in what is not known of a type; return whether there was anything."""
    if kind.WhichOneof("value") != "tensor_type":
        return False
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        tensor.shape.dim.extend(dims)
        return True
    told = False
    for own, right in zip(tensor.shape.dim, dims, strict=False):
        if right.dim_value > 0 and not own.dim_value and own.dim_param not in names:
            own.dim_value = right.dim_value
            told = True
    return told


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
