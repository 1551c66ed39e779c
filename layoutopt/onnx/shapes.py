"""The shapes of all tensors of a model, and the values of those that shapes depend on."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from layoutopt.base.errors import InputError
from layoutopt.base.numbers import least
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.graphs.ops import Array, Shape
from layoutopt.layout.factors import Shape as AnyShape
from layoutopt.layout.factors import Size, elements_of, numbers_of, open_sizes
from layoutopt.onnx.folding import fold
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.layout_functions import known_layouts
from layoutopt.onnx.protobuf import all_nodes, copied, graphs, is_standard, onnx
from layoutopt.onnx.types import (
    contradictions,
    give_back,
    input_names,
    own_types,
    ranks_of,
    results_of_unknown_ops,
    set_shape,
    shape_of,
    take_declared,
    transposed_from,
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
    layouts = known_layouts(bare)
    calls = (node for node in all_nodes(bare.graph) if (node.domain, node.op_type) in layouts)
    for name in sizes.keys() - {x for node in calls for x in node.output}:
        for dim in sizes[name].tensor_type.shape.dim:
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
    names, types, told = input_names(graph), types_of(graph), False
    for one in graphs(graph):
        inputs = list(one.input) if one is graph else []
        kinds = {value.name: value.type for value in (*inputs, *one.value_info, *one.output)}
        made = {name for node in one.node for name in node.output}.union(x.name for x in inputs)
        for node in reversed(one.node):
            if not is_standard(node.domain) or (len(node.input) != 1 and node.op_type != "Reshape"):
                continue
            before = _operand_shape(node, kinds, always=one is graph)
            if before is None:
                continue
            after = _turned_shape(node, types) or (None,) * len(before)
            for name, shape in ((node.input[0], before), (node.output[0], after)):
                if name not in made:  # inputs of bodies and constants stay as they are declared
                    continue
                if name not in kinds:
                    known = (kinds[x] for x in (*node.input, *node.output) if x in kinds)
                    element = max((kind.tensor_type.elem_type for kind in known), default=0)
                    kinds[name] = one.value_info.add(name=name).type
                    kinds[name].tensor_type.elem_type = element
                told |= _tell(kinds[name], shape, names)
    return told


def _operand_shape(
    node: onnx.NodeProto, kinds: Mapping[str, onnx.TypeProto], *, always: bool
) -> AnyShape | None:
    """Return the shape of a node's operand by that of its result; None if that does not tell.

    What has no elements tells nothing: in it, sizes cannot be left open by -1.  A reshape that does
    not ``always`` run says nothing of a tensor that is there without it.
    """
    shape = shape_of(kinds.get(node.output[0]))
    if shape is None:
        given = turned_axes(node, 0) if node.op_type == "Transpose" else []
        return (None,) * len(given) or None
    if 0 in shape:
        return None
    if node.op_type == "Transpose":
        return transposed_from(node, shape)
    if node.op_type == "Reshape":
        return _with_open_size(shape_of(kinds.get(node.input[0])), shape) if always else None
    known = type_facts(node.op_type).keeps_shape and node.input[0] in kinds
    return shape if known else None


def _with_open_size(operand: AnyShape | None, result: AnyShape) -> AnyShape | None:
    """Return the shape of an operand of which one size is open, by that it is reshaped to.

    The open size is the number of elements of the result, divided by the other sizes.
    """
    others = math.prod(size for size in operand or () if isinstance(size, int))
    count = elements_of(result)
    if operand is None or open_sizes(operand) != 1 or not count or not others or count % others:
        return None
    return tuple(size if isinstance(size, int) else count // others for size in operand)


def _turned_shape(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto | None]) -> AnyShape:
    """Return the shape of a transpose's result by that of its operand; empty if it has no rank."""
    shape = shape_of(types.get(node.input[0])) or ()
    order = turned_axes(node, len(shape)) if node.op_type == "Transpose" else []
    return tuple(shape[axis] for axis in order) if sorted(order) == [*range(len(shape))] else ()


def _tell(kind: onnx.TypeProto, shape: AnyShape, names: set[str]) -> bool:
    """Fill in what is not known of a type; return whether there was anything.

    Sizes by ``names`` are those that a caller chooses.
    """
    if kind.WhichOneof("value") != "tensor_type":
        return False
    own = shape_of(kind)
    if own is not None and len(own) != len(shape):
        return False

    def told(size: Size, other: Size) -> Size:
        is_open = not isinstance(size, int) and size not in names
        return other if is_open and isinstance(other, int) else size

    new = shape if own is None else tuple(map(told, own, shape))
    set_shape(kind, new)
    return new != own
