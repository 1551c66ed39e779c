"""The shapes of all tensors of a model, and the values of those that shapes depend on."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import least
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.graphs.ops import Array, Shape
from layoutopt.layout.factors import numbers_of
from layoutopt.onnx.folding import fold
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.protobuf import copied, graphs, is_standard, onnx
from layoutopt.onnx.types import (
    contradictions,
    give_back,
    input_names,
    own_types,
    ranks_of,
    results_of_unknown_ops,
    shape_of,
    take_declared,
    turned_axes,
    types_of,
)
from layoutopt.onnx.validate import sort_nodes
from layoutopt.onnx.weights import bare_model, known_values


@dataclass(frozen=True, eq=False)
class ShapedModel:
    """A model all of whose shapes are as known as they will be."""

    model: onnx.ModelProto  # nodes that compute shapes have become constants
    shapes: Mapping[str, Shape]  # by tensor name; only what is known completely
    values: Mapping[str, Array]  # small constants by name
    others: Collection[str]  # names of what is no tensor: sequences, maps and optional values
    notes: tuple[str, ...] = ()  # what a user should know of how shapes were found; a line each
    unmeasured: str = ""  # why no run of the network told the shapes that are not known
    declared: frozenset[str] = frozenset()  # tensors whose shapes follow from no node
    guessed: frozenset[str] = frozenset()  # tensors with sizes that nothing tells, taken for 1
    weights: tuple[str, ...] = ()  # names of what training may change, as the file has them

    def why(self) -> str:
        """Return what strict shape inference has to say, or nothing."""
        try:
            with_shapes(self.model, strict=True)
        except InputError as error:
            return error.reason.removesuffix(")").rpartition("] ")[2]
        return ""


def infer(model: onnx.ModelProto, dims: Mapping[str, int]) -> ShapedModel:
    """Infer shapes, folding what computes them, until nothing more is found.

    ``dims`` has sizes of symbolic dimensions by name; ``"x.0"`` names dimension 0 of input ``x``,
    which every dimension without a name or size can be called.  Raises ``InputError`` if a
    dimension that is read remains open, a size fits no dimension, or the model is not well-formed.
    """
    set_dims(model, dims)
    _check_inputs(model)
    declared = take_declared(model.graph)
    shaped = with_known_shapes(model)
    told = types_of(shaped.model.graph)
    lines = list(contradictions(declared, told))
    more = f"; and {len(lines) - 1} more" if len(lines) > 1 else ""
    notes = tuple(f"declared shapes that give way: {line}{more}" for line in lines[:1])
    needed = {name: kind for name, kind in declared.items() if name not in shaped.shapes}
    if any(needed.values()):
        give_back(shaped.model.graph, needed, told)
        shaped = with_known_shapes(shaped.model)
    return replace(shaped, notes=notes, declared=frozenset(needed))


def with_known_shapes(model: onnx.ModelProto) -> ShapedModel:
    """Return a model with what follows from the shapes that it has."""
    while True:
        model = with_shapes(model)
        graph = model.graph
        types = own_types(graph)
        if not fold(model, types):
            sizes = {name: numbers_of(shape_of(kind)) for name, kind in types.items()}
            shapes = {name: shape for name, shape in sizes.items() if shape is not None}
            values = (*graph.value_info, *graph.output)
            others = {x.name for x in values if x.type.WhichOneof("value") in NO_TENSORS}
            return ShapedModel(model, shapes, known_values(model.graph), others)


NO_TENSORS = ("sequence_type", "map_type", "optional_type")


def set_dims(model: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    """Write the given sizes down, and forget all other symbols but those of inputs."""
    names: dict[str, None] = {}
    if not isinstance(dims, Mapping):
        raise InputError(f"dims must be sizes by name, not {type(dims).__name__}")
    dims = {name: least(f"dimension {name!r}", dims[name], 0, 2**62) for name in dims}
    for graph in graphs(model.graph):
        inputs = {x.name for x in graph.input}
        for value in (*graph.input, *graph.value_info, *graph.output):
            for name, dim in _open_dims(value):
                if value.name in inputs:
                    names[name] = None
                if name in dims:
                    dim.dim_value = dims[name]
                elif value.name not in inputs:
                    dim.Clear()
    for name in dims:
        if name not in names:
            known = ", ".join(names) or "none"
            raise InputError(f"no input has an open dimension {name!r}; open ones: {known}")


def _check_inputs(model: onnx.ModelProto) -> None:
    """Refuse inputs whose shape is not known, if they are read."""
    graph = model.graph
    constant = {x.name for x in graph.initializer}
    read = {name for part in graphs(graph) for node in part.node for name in node.input}
    read.update(x.name for part in graphs(graph) for x in part.output)
    for value in graph.input:
        if value.name in constant or value.name not in read:
            continue
        if not value.type.HasField("tensor_type"):
            raise InputError(f"input {value.name!r} is no tensor, but a sequence, map or optional")
        if not value.type.tensor_type.HasField("shape"):
            raise InputError(f"input {value.name!r} has no shape, not even a rank")
        open_dims = dict(_open_dims(value))
        if open_dims:
            flags = " ".join(f"--dim {name}=SIZE" for name in open_dims)
            names = ", ".join(map(repr, open_dims))
            raise InputError(f"input {value.name!r}: the size of {names} is open; give {flags}")


def _open_dims(value: onnx.ValueInfoProto) -> Iterator[tuple[str, onnx.TensorShapeProto.Dimension]]:
    """Yield the dimensions of a tensor without a size, and what a caller may call them."""
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if not (dim.HasField("dim_value") and dim.dim_value >= 0):
            yield dim.dim_param or f"{value.name}.{axis}", dim


def skeleton(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a network with all shapes that can be told, without the data of large tensors.

    What computes shapes from shapes has become constants.  Declared shapes count where nothing
    else follows from the nodes, but nothing is computed from them.  See :func:`bare_model` for
    what becomes of initialisers.
    """
    bare = bare_model(model)
    sort_nodes(bare.graph)
    declared = take_declared(bare.graph)
    bare = with_known_shapes(bare).model
    for _ in bare.graph.node:  # declared shapes, which may be wrong, tell no operands
        if not tell_operands(bare.graph):
            break
        bare = with_shapes(bare)
    told = types_of(bare.graph)
    unknown = {name for one in graphs(bare.graph) for name in results_of_unknown_ops(one)}
    sizes = {name: copied(kind) for name, kind in declared.items() if name in unknown and kind}
    for kind in sizes.values():
        for dim in kind.tensor_type.shape.dim:
            if dim.dim_value == 1:  # left open, as it says that the axis may go anywhere
                dim.Clear()
    give_back(bare.graph, ranks_of(declared, told) | sizes, told)
    return with_shapes(bare)


def tell_operands(graph: onnx.GraphProto) -> bool:
    """Tell sizes of operands by those of results, in all graphs; return whether any were.

    They go through transposes, elementwise ops of one operand, and reshapes of which one size is
    open.  The result of a transpose has the sizes of its operand, and at least the rank of the
    permutation: ONNX infers nothing in the body of a loop that is given what it does not know.
    """
    names, told, unknown = input_names(graph), False, [onnx.TensorShapeProto.Dimension()]
    types = types_of(graph)
    for one in graphs(graph):
        inputs = list(one.input) if one is graph else []
        kinds = {value.name: value for value in (*inputs, *one.value_info, *one.output)}
        made = {name for node in one.node for name in node.output}.union(x.name for x in inputs)
        for node in reversed(one.node):
            if not is_standard(node.domain) or (len(node.input) != 1 and node.op_type != "Reshape"):
                continue
            dims = _operand_sizes(node, kinds, always=one is graph)
            if dims is None:
                continue
            result = _turned_sizes(node, types) or unknown * len(dims)
            for name, sizes in ((node.input[0], dims), (node.output[0], result)):
                if name not in made:  # inputs of bodies and constants stay as they are declared
                    continue
                if name not in kinds:
                    known = (kinds[x].type for x in (*node.input, *node.output) if x in kinds)
                    element = max((kind.tensor_type.elem_type for kind in known), default=0)
                    kinds[name] = one.value_info.add(name=name)
                    kinds[name].type.tensor_type.elem_type = element
                told |= _tell(kinds[name].type, sizes, names)
    return told


def _operand_sizes(
    node: onnx.NodeProto, kinds: Mapping[str, onnx.ValueInfoProto], *, always: bool
) -> list[onnx.TensorShapeProto.Dimension] | None:
    """Return the sizes of a node's operand by those of its result; None if they do not tell.

    What has no elements tells nothing: in it, sizes cannot be left open by -1.  A reshape that does
    not ``always`` run says nothing of a tensor that is there without it.
    """
    result = kinds.get(node.output[0])
    if result is None or not result.type.tensor_type.HasField("shape"):
        given = turned_axes(node, 0) if node.op_type == "Transpose" else []
        return [onnx.TensorShapeProto.Dimension()] * len(given) or None
    dims = list(result.type.tensor_type.shape.dim)
    if any(dim.HasField("dim_value") and not dim.dim_value for dim in dims):
        return None
    if node.op_type == "Reshape":
        return _open_size(kinds.get(node.input[0]), dims) if always else None
    if node.op_type != "Transpose":
        known = type_facts(node.op_type).keeps_shape and node.input[0] in kinds
        return dims if known else None
    order = turned_axes(node, len(dims))
    if sorted(order) != list(range(len(dims))):
        return None
    return [dims[order.index(axis)] for axis in range(len(dims))]


def _open_size(
    operand: onnx.ValueInfoProto | None, result: list[onnx.TensorShapeProto.Dimension]
) -> list[onnx.TensorShapeProto.Dimension] | None:
    """Return the sizes of an operand of which one is open, by those that it is reshaped to.

    The open size is the number of elements of the result, divided by the other sizes.
    """
    if operand is None:
        return None
    new = copied(operand.type).tensor_type.shape.dim
    opened = [dim for dim in new if not dim.HasField("dim_value")]
    others = math.prod(dim.dim_value for dim in new if dim.HasField("dim_value"))
    size = math.prod(dim.dim_value for dim in result)  # 0 if one is not known
    if len(opened) != 1 or not size or not others or size % others:
        return None
    opened[0].dim_value = size // others
    return list(new)


def _turned_sizes(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto | None]
) -> list[onnx.TensorShapeProto.Dimension]:
    """Return the sizes of a transpose's result by those of its operand; none if it has no rank."""
    kind = types.get(node.input[0])
    dims = [] if kind is None else list(kind.tensor_type.shape.dim)
    order = turned_axes(node, len(dims)) if node.op_type == "Transpose" else []
    return [dims[axis] for axis in order] if sorted(order) == [*range(len(dims))] else []


def _tell(
    kind: onnx.TypeProto, dims: list[onnx.TensorShapeProto.Dimension], names: set[str]
) -> bool:
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
