"""Types and shapes of tensors, as ONNX writes them, and as a file declares them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import BYTE_FLOATS, NARROW, Shape, Size
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.onnx.protobuf import (
    copied,
    graphs,
    is_standard,
    names_read,
    onnx,
    set_items,
    type_of,
)

TEXT_BYTES = 8
"""What a text counts for, of which only a reference is moved."""


UNSQUEEZED = NARROW | BYTE_FLOATS
"""Types of elements whose axes of size 1 runtimes neither take away nor add."""


class TensorType(NamedTuple):
    """Type and shape of a tensor."""

    shape: Shape | None  # None where not even the rank is known
    element_bytes: int
    element_type: str = ""  # what ONNX calls it, `float` or `int64`; "" if unknown


def types(graph: onnx.GraphProto) -> dict[str, TensorType]:
    """Return what is known of the tensors of a graph; what is no tensor has no rank."""
    return {name: typed(kind) for name, kind in own_types(graph).items()}


def own_types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """Return the types that a graph tells of its own tensors, of initialisers what they are."""
    kinds = {x.name: x.type for x in (*graph.value_info, *graph.output, *graph.input)}
    return kinds | {x.name: type_of_tensor(x) for x in graph.initializer}


def typed(kind: onnx.TypeProto) -> TensorType:
    """Return what a type tells: sizes are numbers, names, or None."""
    if not kind.HasField("tensor_type"):
        return TensorType(None, TEXT_BYTES)
    element = kind.tensor_type.elem_type
    return TensorType(shape_of(kind), element_bytes(element), type_name(element))


def shape_of(kind: onnx.TypeProto | None) -> Shape | None:
    """Return the shape that a type tells, None if it tells no rank or there is no type."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else dim.dim_param or None
        for dim in kind.tensor_type.shape.dim
    )


def in_names(shape: Shape | None, names: Container[Size]) -> Shape | None:
    """Return a shape in numbers and some names; other names tell nothing."""
    return shape and tuple(x if isinstance(x, int) or x in names else None for x in shape)


def type_of_tensor(tensor: onnx.TensorProto) -> onnx.TypeProto:
    """Return the type of an initialiser."""
    return onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)


def set_shape(kind: onnx.TypeProto, shape: Shape) -> None:
    """Declare a shape in place of another one, which may have another rank, or be missing."""
    kind.tensor_type.shape.SetInParent()
    dims = kind.tensor_type.shape.dim
    if len(dims) != len(shape):
        set_items(dims, [onnx.TensorShapeProto.Dimension() for _ in shape])
    for dim, size in zip(dims, shape, strict=True):
        dim.ClearField("value")
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size


def turned_axes(node: onnx.NodeProto, rank: int) -> list[int]:
    """Return the order in which a Transpose of so many axes has these, reversed by default."""
    given = [list(a.ints) for a in node.attribute if a.name == "perm"]
    return given[0] if given else list(range(rank))[::-1]


def transposed_from(node: onnx.NodeProto, shape: Shape | None) -> Shape | None:
    """Return the shape of a Transpose's operand by that of its result; None if it does not fit."""
    order = turned_axes(node, len(shape or ()))
    if shape is None or sorted(order) != list(range(len(shape))):
        return None
    return tuple(shape[order.index(axis)] for axis in range(len(shape)))


MOST_ROUNDS = 2**31
"""From so many rounds on, a Loop has no limit but its condition."""


def rounds_of(
    node: onnx.NodeProto, values: Mapping[str, Any], shape: Callable[[str], Shape | None]
) -> int:
    """Return how often a graph inside a node runs at most; 2 if that is unknown."""
    if node.op_type == "If":
        return 1
    rounds: Size = None
    if node.op_type == "Loop" and node.input[0] in values:
        rounds = int(values[node.input[0]].max(initial=0))
    if node.op_type == "Scan":
        count = sum(a.i for a in node.attribute if a.name == "num_scan_inputs")
        axes = [axis for a in node.attribute if a.name == "scan_input_axes" for axis in a.ints]
        sizes = shape(node.input[-count]) if 0 < count <= len(node.input) else None
        rounds = sizes[(*axes, 0)[0] % len(sizes)] if sizes else None
    return rounds if isinstance(rounds, int) and 0 < rounds < MOST_ROUNDS else 2


def type_name(kind: int) -> str:
    """Return what ONNX calls a type of elements, "" if unknown."""
    known = kind in onnx.TensorProto.DataType.values() and kind != onnx.TensorProto.UNDEFINED
    return onnx.TensorProto.DataType.Name(kind).lower() if known else ""


def element_bytes(kind: int) -> int:
    """Return the bytes of an element of an ONNX type; of those below a byte, 1."""
    if kind in (onnx.TensorProto.STRING, onnx.TensorProto.UNDEFINED):
        return TEXT_BYTES if kind == onnx.TensorProto.STRING else 4
    try:
        return int(onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize)
    except KeyError:
        raise InputError(f"unknown ONNX element type {kind}") from None


def differ(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes cannot be the same, whatever is not known of them."""
    pairs = zip(shape, other, strict=False)
    return len(shape) != len(other) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
    )


def fill_type(kind: onnx.TypeProto, other: onnx.TypeProto) -> bool:
    """Fill in what is not known of a tensor's type; return whether there was anything."""
    element = 0 if kind.tensor_type.elem_type else other.tensor_type.elem_type
    if element:
        kind.tensor_type.elem_type = element
    own, known = shape_of(kind), shape_of(other)
    if known is None or (own is not None and len(own) != len(known)):
        return bool(element)
    filled = known if own is None else tuple(map(_better_known, own, known))
    set_shape(kind, filled)
    return bool(element) or filled != own


def _better_known(size: Size, other: Size) -> Size:
    """Return the first of two sizes, unless more is known of the other one: a number, or a name."""
    more = size is None or (isinstance(other, int) and not isinstance(size, int))
    return other if more else size


Declared = dict[str, "onnx.TypeProto | None"]
"""Types by name; None for a name that several graphs declare otherwise."""


def types_of(graph: onnx.GraphProto) -> Declared:
    """Return the types of the tensors of a graph, and of all inside it."""
    found: Declared = {}
    for one in graphs(graph):
        # an output may be an input or a constant, declared otherwise
        inputs = {value.name for value in one.input}
        outputs = {value.name for value in one.output} - inputs
        held = {x.name: x for x in one.initializer if x.name in outputs}
        made = (x for x in (*one.value_info, *one.output) if x.name not in {*inputs, *held})
        for name, kind in _joined((*made, *one.input)).items():
            _add(found, name, kind)
        for name, tensor in held.items():
            _add(found, name, type_of_tensor(tensor))
    return found


def take_declared(graph: onnx.GraphProto) -> Declared:
    """Take away, and return, the types declared for results of ops, in all graphs of a network.

    Outputs that are inputs or constants get the types of these.  What nodes do not tell stays:
    types of elements of outputs; types of elements and ranks of results of ops that inference does
    not know.  Sizes of these results may be wrong, and nothing may be computed from them.
    """
    found: Declared = {}
    for one in graphs(graph):
        _tell_before_transposes(one)
        made = {x for node in one.node if _is_inferred(node) for x in node.output}
        others = results_of_unknown_ops(one)
        inputs = {value.name: value.type for value in one.input}
        dims = {x.name: tuple(x.dims) for x in one.initializer}
        results = made | others
        every = {value.name: value.type for value in one.value_info if value.name in results}
        for name, kind in _joined(one.output).items():
            told = name not in every or shape_of(kind) is not None
            if told and name in {*results, *inputs, *dims}:
                every[name] = kind
        for name, kind in every.items():
            _add(found, name, kind)
        for value in (*one.value_info, *one.output):
            if value.name in others:
                _open(value.type)
        own = {x.name for x in one.initializer}  # which have types themselves
        left = {x for node in one.node for x in node.output} - made - own
        kept = [value for value in one.value_info if value.name in left]
        set_items(one.value_info, kept)
        for value in one.output:
            tensor = value.type.HasField("tensor_type")
            if value.name in made and tensor:
                value.type.tensor_type.ClearField("shape")
            elif value.name in inputs:
                value.type.CopyFrom(inputs[value.name])
            elif value.name in dims and tensor:
                set_shape(value.type, dims[value.name])
    return found


def results_of_unknown_ops(graph: onnx.GraphProto) -> set[str]:
    """Return the results of a graph's nodes whose shapes do not follow from operands."""
    return {x for node in graph.node if not _is_inferred(node) for x in node.output}


def _open(kind: onnx.TypeProto) -> None:
    """Leave the sizes of a type of tensors open."""
    for dim in kind.tensor_type.shape.dim if kind.HasField("tensor_type") else ():
        dim.Clear()


def _is_inferred(node: onnx.NodeProto) -> bool:
    """Return whether shapes of a node's results follow from those of its operands."""
    return is_standard(node.domain) or type_facts(type_of(node)).like is not None


def ranks_of(declared: Mapping[str, onnx.TypeProto | None], told: Declared) -> Declared:
    """Return the types of tensors whose rank nodes do not tell, without sizes."""
    found: Declared = {}
    for name, kind in declared.items():
        other = told.get(name)
        if kind is not None and shape_of(other) is None:
            new = found[name] = copied(kind)
            _open(new)
    return found


def _tell_before_transposes(graph: onnx.GraphProto) -> None:
    """Declare results that nothing is known of as their transposes are declared."""
    kinds = {value.name: value.type for value in (*graph.value_info, *graph.output)}
    makers = {x: node for node in graph.node for x in node.output if x}
    for node in reversed(graph.node):
        kind = kinds.get(node.output[0]) if node.output else None
        if node.op_type != "Transpose" or not is_standard(node.domain) or kind is None:
            continue
        name, shape = node.input[0], transposed_from(node, shape_of(kind))
        if shape is not None and name in makers and name not in kinds:
            kinds[name] = new = copied(kind)
            set_shape(new, shape)
            if not _is_inferred(makers[name]):
                graph.value_info.add(name=name).type.CopyFrom(new)


def without_declared(model: onnx.ModelProto, unknown: bool) -> tuple[onnx.ModelProto, list[str]]:
    """Return a copy of a network without declared shapes of results.

    Beside it come the types of the ops that these are of, none if nothing was declared.  If
    ``unknown``, only results of ops are meant that are not ONNX's own.
    """
    new = copied(model)
    types: dict[str, None] = {}
    for one in graphs(new.graph):
        meant = (node for node in one.node if not (unknown and is_standard(node.domain)))
        makers = {x: node for node in meant for x in node.output}
        for value in (*one.value_info, *one.output):
            kind = value.type.tensor_type
            if value.name in makers and kind.HasField("shape"):
                kind.ClearField("shape")
                types[type_of(makers[value.name])] = None
    return new, list(types)


def declare_outputs(
    model: onnx.ModelProto,
    given: onnx.ModelProto,
    freed: Container[str],
    known: Mapping[str, Sequence[int | str | None] | None],
) -> None:
    """Give outputs without a shape the one that a given network declares, or that is known.

    The declarations do not apply to the outputs that are ``freed``.  Sizes that nobody tells are
    left open, of tensors inside and of outputs that nodes read: if they are wrong, they spread to
    other nodes now.
    """
    shapes = {value.name: value for value in given.graph.output}
    read = names_read(model.graph.node)
    open_sizes(model.graph.value_info, known)
    for value in model.graph.output:
        kind = value.type.tensor_type
        if value.name in shapes and value.name not in freed and not kind.HasField("shape"):
            value.type.CopyFrom(shapes[value.name].type)
        sizes, kind = known.get(value.name), value.type.tensor_type
        if sizes is None or not value.type.HasField("tensor_type"):
            continue
        if not kind.HasField("shape"):
            kind.CopyFrom(onnx.helper.make_tensor_type_proto(kind.elem_type, sizes).tensor_type)
        elif value.name in read:
            open_sizes([value], known)


def open_sizes(
    values: Iterable[onnx.ValueInfoProto], known: Mapping[str, Sequence[int | str | None] | None]
) -> None:
    """Leave declared sizes open that are not known, as wrong ones would spread; correct others."""
    for value in values:
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, known.get(value.name) or (), strict=False):
            if isinstance(size, int):
                if dim.HasField("dim_value"):
                    dim.dim_value = size
            elif size != dim.dim_param:
                dim.Clear()


def give_back(
    graph: onnx.GraphProto, declared: Mapping[str, onnx.TypeProto | None], told: Declared
) -> None:
    """Declare types again, but for those that contradict what follows from the nodes, ``told``."""
    names = input_names(graph)
    for one in graphs(graph):
        outputs = {value.name for value in one.output}
        results = (name for node in one.node for name in node.output if name not in outputs)
        own = {value.name: value for value in one.value_info}
        inner = [
            own.get(name) or one.value_info.add(name=name) for name in results if declared.get(name)
        ]
        inputs = {value.name for value in one.input}  # whose own types tell as much
        for value in (*inner, *(value for value in one.output if value.name not in inputs)):
            kind, other = declared.get(value.name), told.get(value.name)
            if kind is not None:
                value.type.CopyFrom(other if other is not None and _differ(kind, other) else kind)
                dims = other.tensor_type.shape.dim if other is not None else ()
                for dim, right in zip(value.type.tensor_type.shape.dim, dims, strict=False):
                    if right.dim_param in names:  # a caller chooses that size
                        dim.CopyFrom(right)


def input_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of sizes that a caller chooses."""
    kinds = (value.type.tensor_type for value in graph.input)
    return {dim.dim_param for kind in kinds for dim in kind.shape.dim} - {""}


def contradictions(declared: Mapping[str, onnx.TypeProto | None], told: Declared) -> Iterator[str]:
    """Yield a line for each declared shape that contradicts what follows from the nodes."""
    for name, kind in declared.items():
        other = told.get(name)
        if kind is not None and other is not None and _differ(kind, other):
            own, right = _written(kind), _written(other)
            yield f"{name!r} is declared with shape {own}; {right} follows from its node, and holds"


def _joined(values: Iterable[onnx.ValueInfoProto]) -> dict[str, onnx.TypeProto]:
    """Return types by name, of what is declared several times all that is told."""
    found: dict[str, onnx.TypeProto] = {}
    for value in values:
        if value.name in found:
            fill_type(found[value.name], value.type)
        else:
            found[value.name] = copied(value.type)
    return found


def _add(found: Declared, name: str, kind: onnx.TypeProto) -> None:
    if name in found and found[name] != kind:
        found[name] = None
    else:
        found[name] = copied(kind)


def _differ(kind: onnx.TypeProto, other: onnx.TypeProto) -> bool:
    own, right = shape_of(kind), shape_of(other)
    return own is not None and right is not None and differ(own, right)


def _written(kind: onnx.TypeProto) -> str:
    return f"[{', '.join('?' if x is None else str(x) for x in shape_of(kind) or ())}]"
