"""A network that passes change in place, and what they know of its tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layoutopt.conversion.rules.op import NARROW
from layoutopt.conversion.rules.operator import Category
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.layout.factors import numbers_of
from layoutopt.onnx.equal_nodes import NodeKeys, attributes_key
from layoutopt.onnx.inference import count_from_the_first, with_shapes
from layoutopt.onnx.names import NetworkNames, unshadow
from layoutopt.onnx.protobuf import SMALL, graphs, is_standard, onnx, set_items
from layoutopt.onnx.sizes import LARGEST_PRODUCT, Known
from layoutopt.onnx.types import Declared, shape_of, type_name, types_of
from layoutopt.onnx.weights import (
    add_weight,
    bare_model,
    known_values,
    sparse_value,
    variable_initialisers,
)


@dataclass
class Scope:
    """Values that a graph may read: constants, small ones with values, and their keys."""

    constants: dict[str, Known] = field(default_factory=dict)
    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    keys: dict[str, Hashable] = field(default_factory=dict)


class EditedNetwork:
    """A network while passes simplify it; the data of its large weights are held beside it."""

    def __init__(self, model: onnx.ModelProto, weights: dict[str, onnx.TensorProto]) -> None:
        self.model, self.weights = model, weights
        self.names = NetworkNames(model)
        unshadow(model.graph, self.names)
        self.keys = NodeKeys(model)
        self.held = variable_initialisers(model)
        self.inputs = {value.name for value in model.graph.input}
        self.types: Declared = {}
        self.changed = False  # whether another round of passes may find more
        self.barred: set[str] = set()  # results that could not be computed
        self.followed: set[str] = set()  # names of known values that readers do not use any more
        self.pinned = {  # names that must stay besides those of outputs
            name
            for one in graphs(model.graph)
            for x in one.quantization_annotation
            for name in (x.tensor_name, *(e.value for e in x.quant_parameter_tensor_names))
        }
        if model.training_info:  # reads and sets tensors of the network by their names
            self.pinned |= self.names.taken

    def infer(self) -> None:
        """Infer the types of all tensors anew."""
        bare = bare_model(self.model)
        held = {x.name for x in bare.graph.initializer}
        every = list(bare.graph.output)
        set_items(bare.graph.output, [x for x in every if x.name not in held])
        found = with_shapes(bare).graph  # which does not read the values of outputs
        found.output.extend(x for x in every if x.name in held)
        self.types = types_of(found)
        count_from_the_first(self.model, self.types)

    def scope(self, graph: onnx.GraphProto, outside: Scope) -> Scope:
        """Return the constants of a graph, and those that it may capture."""
        scope = Scope(
            {name: Known(x.kind, x.shape, False) for name, x in outside.constants.items()},
            {**outside.values, **known_values(graph)},
            dict(outside.keys),
        )
        tensors = {x.name: x for x in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and is_standard(node.domain):
                scope.keys[node.output[0]] = attributes_key(node)
                for attribute in node.attribute:
                    if attribute.name == "value":
                        tensors[node.output[0]] = attribute.t
                if (sparse := sparse_value(node)) is not None:
                    known = Known(sparse.values.data_type, tuple(sparse.dims), True)
                    if known.bytes <= LARGEST_PRODUCT:
                        scope.constants[node.output[0]] = known
                if node.output[0] not in tensors and node.output[0] in scope.values:
                    tensors[node.output[0]] = onnx.numpy_helper.from_array(
                        scope.values[node.output[0]]
                    )
        if graph is self.model.graph:
            for name in self.held:
                tensors.pop(name, None)
                scope.values.pop(name, None)
        alike = Counter((x.data_type, tuple(x.dims)) for x in tensors.values())
        for name, x in tensors.items():
            if x.data_location == x.EXTERNAL:
                continue
            scope.constants[name] = Known(x.data_type, tuple(x.dims), True)
            if alike[x.data_type, tuple(x.dims)] > 1:
                scope.keys[name] = self.keys.tensor(name, self.weights.get(name, x))
        return scope

    def fixed(self, graph: onnx.GraphProto) -> set[str]:
        """Return the names that must stay in a graph."""
        return {value.name for value in graph.output} | self.pinned

    def new_constant(self, graph: onnx.GraphProto, wish: str, value: NDArray[Any]) -> str:
        """Return the name of a new constant."""
        name = self.names.fresh(wish)
        self.add_constant(graph, name, value)
        return name

    def add_constant(self, graph: onnx.GraphProto, name: str, value: NDArray[Any]) -> None:
        """Add a constant to a graph."""
        tensor = onnx.numpy_helper.from_array(
            np.ascontiguousarray(value).reshape(value.shape), name
        )
        if graph is self.model.graph and value.size > SMALL:
            add_weight(graph, name, tensor, self.weights)
        else:
            graph.initializer.append(tensor)

    def may_copy(self, name: str) -> bool:
        """Return whether Identity takes a value: before operator set 14, tensors alone."""
        kind = self.types.get(name)
        if kind is None or not kind.HasField("tensor_type"):
            return kind is None
        return type_name(kind.tensor_type.elem_type) not in NARROW

    def same_shape(self, one: str, other: str) -> bool:
        """Return whether two tensors are known to have the same sizes."""
        sizes = numbers_of(shape_of(self.types.get(one)))
        return sizes is not None and sizes == shape_of(self.types.get(other))


def is_view(node: onnx.NodeProto) -> bool:
    """Return whether a result has the elements of the first operand in another shape."""
    return type_facts(node.op_type).category is Category.VIEW


def identity(source: str, result: str) -> onnx.NodeProto:
    """Return a node that passes on a tensor under another name."""
    return onnx.helper.make_node("Identity", [source], [result])


def type_number(array: NDArray[Any]) -> int:
    """Return ONNX's number of the type of an array's elements."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
