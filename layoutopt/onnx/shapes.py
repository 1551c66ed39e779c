"""The shapes of all tensors of a model, and the values of those that shapes depend on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from layoutopt.base.errors import InputError
from layoutopt.graphs.ops import Array, Shape
from layoutopt.onnx.declared import (
    Declared,
    contradictions,
    give_back,
    take_declared,
    types_of,
)
from layoutopt.onnx.folding import fold, known_values
from layoutopt.onnx.inference import with_shapes
from layoutopt.onnx.protobuf import graphs

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


@dataclass(frozen=True, eq=False)
class Shaped:
    """A model all of whose shapes are as known as they will be.

    Parameters
    ----------
    model
        The model; nodes that compute shapes have become constants.
    shapes
        By tensor name; only what is known completely.
    values
        Small constants by name.
    others
        Names of what is no tensor: sequences, maps and optional values.
    notes
        What a user should know of how shapes were found; a line each.
    unmeasured
        Why no run of the network told the shapes that are not known.
    declared
        Names of tensors whose shapes follow from no node, but are declared.
    guessed
        Names of tensors with sizes that nothing tells, taken for 1.
    """

    model: ModelProto
    shapes: Mapping[str, Shape]
    values: Mapping[str, Array]
    others: Collection[str]
    notes: tuple[str, ...] = ()
    unmeasured: str = ""
    declared: frozenset[str] = frozenset()
    guessed: frozenset[str] = frozenset()

    def why(self) -> str:
        """Return what strict shape inference has to say, or nothing."""
        try:
            with_shapes(self.model, strict=True)
        except InputError as error:
            return error.reason.removesuffix(")").rpartition("] ")[2]
        return ""


def infer(model: ModelProto, dims: Mapping[str, int]) -> Shaped:
    """Infer shapes, folding what computes them, until nothing more is found.

    Parameters
    ----------
    dims
        Sizes of symbolic dimensions by name; ``"x.0"`` names dimension 0 of input ``x``,
        which every dimension without a name or size can be called.

    Raises
    ------
    InputError
        If a dimension that is read remains open, a size fits no dimension, or the model is
        not well-formed.
    """
    set_dims(model, dims)
    _check_inputs(model)
    declared = take_declared(model.graph)
    shaped = settled(model)
    told = types_of(shaped.model.graph)
    notes = _contradictions(declared, told)
    needed = {name: kind for name, kind in declared.items() if name not in shaped.shapes}
    if any(needed.values()):
        give_back(shaped.model.graph, needed, told)
        shaped = settled(shaped.model)
    return replace(shaped, notes=notes, declared=frozenset(needed))


def settled(model: ModelProto) -> Shaped:
    """Return a model with what follows from the shapes that it has.

    Raises
    ------
    InputError
        If it is not well-formed.
    """
    while True:
        model = with_shapes(model)
        shapes = _known_shapes(model)
        if not fold(model, shapes):
            return Shaped(model, shapes, known_values(model.graph), _no_tensors(model))


def _contradictions(declared: Declared, told: Declared) -> tuple[str, ...]:
    """Return a line, or none, on declared shapes that contradict what follows from the nodes."""
    lines = list(contradictions(declared, told))
    more = f"; and {len(lines) - 1} more" if len(lines) > 1 else ""
    return tuple(f"declared shapes that give way: {line}{more}" for line in lines[:1])


def set_dims(model: ModelProto, dims: Mapping[str, int]) -> None:
    """Write the given sizes down, and forget all other symbols but those of inputs."""
    names: dict[str, None] = {}
    for name, size in dims.items():
        if not isinstance(size, int) or size < 0:
            raise InputError(f"dimension {name!r}: size {size!r} is no integer of 0 or more")
    for graph in graphs(model.graph):
        inputs = {x.name for x in graph.input}
        for value in (*graph.input, *graph.value_info, *graph.output):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                name = dim.dim_param or f"{value.name}.{axis}"
                if dim.HasField("dim_value") and dim.dim_value >= 0:
                    continue
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


def _check_inputs(model: ModelProto) -> None:
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
        open_dims = _open_dims(value)
        if open_dims:
            flags = " ".join(f"--dim {name}=SIZE" for name in open_dims)
            names = ", ".join(map(repr, open_dims))
            raise InputError(f"input {value.name!r}: the size of {names} is open; give {flags}")


def _open_dims(value: ValueInfoProto) -> list[str]:
    names = [
        dim.dim_param or f"{value.name}.{axis}"
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if not (dim.HasField("dim_value") and dim.dim_value >= 0)
    ]
    return list(dict.fromkeys(names))


def _known_shapes(model: ModelProto) -> dict[str, Shape]:
    graph = model.graph
    shapes: dict[str, Shape] = {}
    for value in (*graph.value_info, *graph.output, *graph.input):
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.HasField("shape") and not _open_dims(value):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    shapes.update((x.name, tuple(x.dims)) for x in graph.initializer)
    return shapes


def _no_tensors(model: ModelProto) -> set[str]:
    values = (*model.graph.value_info, *model.graph.output)
    kinds = ("sequence_type", "map_type", "optional_type")
    return {value.name for value in values if value.type.WhichOneof("value") in kinds}
