"""Types and shapes of tensors, as ONNX writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from layoutopt.base.errors import InputError
from layoutopt.conversion.rules.op import BYTE_FLOATS, NARROW, Shape, Size

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TypeProto

TEXT_BYTES = 8
"""What a text counts for, of which only a reference is moved."""


UNSQUEEZED = NARROW | BYTE_FLOATS
"""Types of elements whose axes of size 1 runtimes neither take away nor add."""


class TensorType(NamedTuple):
    """Type and shape of a tensor."""

    shape: Shape | None  # None where not even the rank is known
    element_bytes: int
    element_type: str = ""  # what ONNX calls it, `float` or `int64`; "" if unknown


def types(graph: GraphProto) -> dict[str, TensorType]:
    """Return what is known of the tensors of a graph; what is no tensor has no rank."""
    found = {
        value.name: typed(value.type) for value in (*graph.value_info, *graph.output, *graph.input)
    }
    found.update(
        (x.name, TensorType(tuple(x.dims), element_bytes(x.data_type), type_name(x.data_type)))
        for x in graph.initializer
    )
    return found


def typed(kind: TypeProto) -> TensorType:
    """Return what a type tells: sizes are numbers, names, or None."""
    if not kind.HasField("tensor_type"):
        return TensorType(None, TEXT_BYTES)
    tensor = kind.tensor_type
    shape = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value
            if dim.HasField("dim_value") and dim.dim_value >= 0
            else dim.dim_param or None
            for dim in tensor.shape.dim
        )
    return TensorType(shape, element_bytes(tensor.elem_type), type_name(tensor.elem_type))


def shape_of(kind: TypeProto | None) -> Shape | None:
    """Return the shape that a type tells, None if it tells no rank or there is no type."""
    return None if kind is None else typed(kind).shape


def set_shape(kind: TypeProto, shape: Shape) -> None:
    """Declare a shape in place of another one, which may have another rank, or be missing."""
    if shape_of(kind) == shape:
        return
    kind.tensor_type.ClearField("shape")
    kind.tensor_type.shape.SetInParent()
    for size in shape:
        dim = kind.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size


def turned_axes(node: NodeProto, rank: int) -> list[int]:
    """Return the order in which a Transpose of so many axes has these, reversed by default."""
    given = [list(a.ints) for a in node.attribute if a.name == "perm"]
    return given[0] if given else list(range(rank))[::-1]


MOST_ROUNDS = 2**31
"""From so many rounds on, a Loop has no limit but its condition."""


def rounds_of(
    node: NodeProto, values: Mapping[str, Any], shape: Callable[[str], Shape | None]
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
        raise InputError(f"unknown ONNX element type {kind}") from None


def differ(shape: Shape, other: Shape) -> bool:
    """Return whether two shapes cannot be the same, whatever is not known of them."""
    pairs = zip(shape, other, strict=False)
    return len(shape) != len(other) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
    )


def fill_type(kind: TypeProto, other: TypeProto) -> bool:
    """Fill in what is not known of a tensor's type; return whether there was anything."""
    own, known = kind.tensor_type, other.tensor_type
    if not own.elem_type and known.elem_type:
        own.elem_type = known.elem_type
        return fill_type(kind, other) or True
    if not known.HasField("shape"):
        return False
    if not own.HasField("shape"):
        own.shape.CopyFrom(known.shape)
        return True
    pairs = list(zip(own.shape.dim, known.shape.dim, strict=False))
    open_sizes = [
        (dim, new)
        for dim, new in pairs
        if (new.HasField("dim_value") and not dim.HasField("dim_value"))
        or (new.dim_param and not dim.WhichOneof("value"))
    ]
    for dim, new in open_sizes if len(own.shape.dim) == len(known.shape.dim) else ():
        dim.CopyFrom(new)
    return len(own.shape.dim) == len(known.shape.dim) and bool(open_sizes)
