"""Sizes that nodes compute, and small values, as far as they are known.

Sizes are known entry by entry: exporters compute with shapes of which one size is open, a batch,
and the others are numbers.  ``Gather(Shape(x), 1)`` is known although ``Shape(x)`` is not, and a
Reshape to ``(batch, 12, 64)`` is one to ``(-1, 12, 64)``.  So are products: a Reshape of
``(batch, 4, 12, 64)`` to ``(4 batch, -1, 64)`` is one to ``(-1, 12, 64)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import sliced
from layoutopt.conversion.rules.operator import FoldingEffort
from layoutopt.conversion.rules.registry import type_facts
from layoutopt.graphs.ops import Array, size
from layoutopt.layout.factors import Shape as AnyShape
from layoutopt.layout.factors import elements_of, numbers_of
from layoutopt.layout.reshape import written_sizes
from layoutopt.onnx.inference import SINCE_AXES_FROM_THE_LAST, result_shapes
from layoutopt.onnx.protobuf import SMALL, bodies, is_standard, onnx, type_of, versions_of
from layoutopt.onnx.types import element_bytes, fill_type, shape_of, type_name

INTEGERS = ("int32", "int64")
"""Types of elements that hold sizes."""

EXACT = ("Add", "Cast", "Ceil", "Div", "Floor", "Mul", "Sub")
"""Op types with which exporters compute sizes in floats, in which all runtimes agree."""

WINDOW = {"dilations", "kernel_shape", "sampling_ratio", "strides"}
"""Attributes of windows by which these grow."""

LARGEST_KERNEL = 2**12
"""Product of the sizes of a kernel, and strides and dilations, of windows that are computed."""

LARGEST_PRODUCT = 2**26
"""Most bytes of a product or window that is computed, and of a sparse constant that is read."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Known:
    """A constant."""

    kind: int  # the type of its elements, by ONNX's number
    shape: tuple[int, ...]
    own: bool  # whether it is of the graph itself, and goes if nobody reads it

    @property
    def large(self) -> bool:
        """Whether it has more elements than shapes have."""
        return prod(self.shape) > SMALL

    @property
    def bytes(self) -> int:
        """How many bytes it has."""
        return prod(self.shape) * element_bytes(self.kind)


@dataclass(frozen=True)
class ProductOfSizes:
    """A number times open sizes, whose names are sorted."""

    number: int
    names: tuple[str, ...]


Entry: TypeAlias = int | str | ProductOfSizes | None
"""A number, the name of an open size, a product of such, or None if nothing is known."""

Entries: TypeAlias = NDArray[Any]
"""An array of such objects with at most one axis."""


@dataclass
class KnownSizes:
    """What is known of sizes of tensors, and of results that nodes make of sizes, in order."""

    model: onnx.ModelProto
    types: Mapping[str, onnx.TypeProto | None]  # in which open sizes are filled in
    constants: Mapping[str, Known]
    values: dict[str, NDArray[Any]]  # small constants and results by name
    entries: dict[str, Entries] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)  # tensors of which more is known than types told

    def note(self, name: str, value: NDArray[Any]) -> NDArray[Any]:
        """Note a value that was found, and return it."""
        self.values[name] = value
        self.told.add(name)
        return value

    def add(self, node: onnx.NodeProto) -> NDArray[Any] | None:
        """Follow the results of the next node, and return its value if that is known and short."""
        self._tell(node)
        if not is_standard(node.domain) or not node.input or len(node.output) != 1:
            return None
        entries, kind = self._result(node), self.types.get(node.output[0])
        if entries is None or entries.size > SMALL:
            return None
        self.entries[node.output[0]] = entries
        if not all(isinstance(size, int) for size in entries.reshape(-1)):
            return None
        element = type_name(kind.tensor_type.elem_type) if kind is not None else ""
        return entries.astype(element if element in INTEGERS else "int64")

    def _tell(self, node: onnx.NodeProto) -> None:
        """Tell what follows for the shapes of results, where more is known of what a node reads."""
        if self.told.isdisjoint(node.input):
            return
        versions = versions_of(self.model)
        if versions.get("", SINCE_AXES_FROM_THE_LAST) < SINCE_AXES_FROM_THE_LAST:
            return
        op, shapes = result_shapes(node, self._shape, self.values, versions)
        for name, shape in zip(op.outputs, shapes, strict=False):
            kind = self.types.get(name)
            if kind is None or not kind.tensor_type.elem_type or shape is None:
                continue
            if fill_type(kind, onnx.helper.make_tensor_type_proto(0, shape)):
                self.told.add(name)

    def _shape(self, name: str) -> AnyShape | None:
        known = self.values.get(name, self.constants.get(name))
        return shape_of(self.types.get(name)) if known is None else known.shape

    def known_value(self, node: onnx.NodeProto) -> NDArray[Any] | None:
        """Follow the results of the next node, and return its value if that is known exactly."""
        value = self.add(node)
        return self._exact_value(node) if value is None else value

    def _exact_value(self, node: onnx.NodeProto) -> NDArray[Any] | None:
        """Return a small result that is computed from known values exactly, and not copied.

        It is one of whole numbers, of truth values, or a single number on the way to these.
        """
        kind = self.types.get(node.output[0])
        element = "" if kind is None else type_name(kind.tensor_type.elem_type)
        exact = element in (*INTEGERS, "bool") or (
            element == "float" and node.op_type in EXACT and elements_of(shape_of(kind)) == 1
        )
        exact &= node.op_type != "Identity"  # which outputs that are constants are made by
        found = (
            self.evaluated(node) if exact and len(node.output) == 1 and may_compute(node) else None
        )
        return None if found is None else found[node.output[0]]

    def evaluated(self, node: onnx.NodeProto) -> Arrays | None:
        """Return a node's results by name, or nothing if they are not known or not small."""
        if node.op_type in ("Shape", "Size") and is_standard(node.domain):
            value = shape_value(node, self._shape(node.input[0]))
            return None if value is None else {node.output[0]: value}
        inputs = {name: self.values[name] for name in node.input if name in self.values}
        known, names = type_facts(type_of(node)), [*filter(None, node.output)]
        barred = known.random or known.takes_room
        barred = barred or any(bodies(node)) or not is_standard(node.domain)
        if barred or len(inputs) < len({*node.input} - {""}):
            return None
        counts = [elements_of(self._shape(name)) for name in names]
        if not known.shrinks and any(count is None or count > SMALL for count in counts):
            return None
        results = run_alone(self.model, node, inputs)
        if results is None:
            return None
        named = {k: np.asarray(v) for k, v in zip(names, results, strict=True)}
        return named if all(v.size <= SMALL for v in named.values()) else None

    def reshape_target(self, node: onnx.NodeProto) -> NDArray[np.int64] | None:
        """Return the constant that a Reshape may take for a shape that is partly open.

        Open sizes are 0 where the operand has the same ones in their places, else one is -1.
        """
        wanted = self._of(node.input[1], constant=False) if len(node.input) > 1 else None
        if node.op_type != "Reshape" or wanted is None or wanted.ndim != 1:
            return None
        if any(a.name == "allowzero" and a.i for a in node.attribute):
            return None
        given = shape_of(self.types.get(node.input[0])) or ()
        filled = _filled([*wanted], given)
        target = written_sizes(filled, given)
        pairs = zip(target or (), filled, strict=False)
        opened = [new for new, size in pairs if not isinstance(size, int)]
        if target is None or not opened or (-1 in opened and 0 in target):
            return None  # beside a size that may be 0, one cannot be left open
        return np.array(target, np.int64)

    def _result(self, node: onnx.NodeProto) -> Entries | None:
        """Return what is known of a node's result; None if it does not hold sizes."""
        attributes = {a.name: a.i for a in node.attribute}
        if node.op_type == "Shape":
            shape = shape_of(self.types.get(node.input[0]))
            if shape is None:
                return None
            part = shape[attributes.get("start", 0) : attributes.get("end", len(shape))]
            return _array(part)
        if node.op_type == "Concat":
            parts = [self._of(name) for name in node.input]
            if any(part is None or part.ndim != 1 for part in parts):
                return None
            found = np.concatenate([part for part in parts if part is not None])
            return found if any(size is not None for size in found) else None
        if node.op_type in ("Max", "Mul") and len(node.input) == 2:
            first, second = map(self._of, node.input)
            if first is None or second is None or first.shape != second.shape:
                return None
            joined = _largest if node.op_type == "Max" else _product
            pairs = zip(first.flat, second.flat, strict=True)
            return _array([joined(pair) for pair in pairs]).reshape(first.shape)
        data = self.entries.get(node.input[0])
        if data is None:
            return None
        others = [self.values.get(name) if name else None for name in node.input[1:]]
        if any(name and other is None for name, other in zip(node.input[1:], others, strict=True)):
            return None
        if node.op_type == "Gather" and data.ndim == 1 and others[0] is not None:
            indices = others[0]
            inside = indices.ndim <= 1 and np.all((indices >= -len(data)) & (indices < len(data)))
            if not inside:
                return None
            return _array([data[int(k)] for k in indices.reshape(-1)]).reshape(indices.shape)
        if node.op_type == "Slice" and data.ndim == 1 and 2 <= len(others) <= 4:
            if any(other is not None and other.size != 1 for other in others):
                return None if others[0] is None or others[0].size else data
            bounds = [None if other is None else int(other.reshape(-1)[0]) for other in others]
            start, stop, _, step = [*bounds, None, None][:4]
            if start is None or stop is None:
                return None
            return data[[*sliced(len(data), start, stop, step or 1)]]
        if node.op_type == "Cast":
            kind = type_name(attributes["to"])
            if kind not in INTEGERS:
                return None
            numbers = [size for size in data.flat if isinstance(size, int)]
            return data if all(abs(size) <= np.iinfo(kind).max for size in numbers) else None
        if node.op_type == "ReduceProd" and data.ndim == 1 and len(data):
            told = "axes" in attributes or any(x is not None and x.size for x in others)
            if attributes.get("noop_with_empty_axes", 0) and not told:
                return data
            found = _array([_product(data)])
            return found if attributes.get("keepdims", 1) else found.reshape(())
        if node.op_type == "Squeeze" and data.size == 1:
            return data.reshape(())
        return data.reshape(1) if node.op_type == "Unsqueeze" and data.ndim == 0 else None

    def _of(self, name: str, constant: bool = True) -> Entries | None:
        """Return what is known of a list of sizes, at least how many there are.

        Values of a ``constant`` count if asked for.
        """
        if name in self.entries:
            return self.entries[name]
        if constant and name in self.values:
            value = self.values[name]
            return value.astype(object) if value.dtype.name in INTEGERS else None
        shape = shape_of(self.types.get(name)) or ()
        count = elements_of(shape)
        is_list = count is not None and count <= SMALL and len(shape) == 1
        return _array([None] * (count or 0)) if is_list else None


def _factors(sizes: Iterable[Entry]) -> ProductOfSizes | None:
    """Return the number and the open sizes that a product consists of, None if one is unknown."""
    number, names = 1, list[str]()
    for factor in sizes:
        if factor is None:
            return None
        if isinstance(factor, int):
            number *= factor
        elif isinstance(factor, str):
            names.append(factor)
        else:
            number *= factor.number
            names += factor.names
    return ProductOfSizes(number, tuple(sorted(names)))


def _product(sizes: Iterable[Entry]) -> Entry:
    """Return the product of sizes, None if one is unknown, or runtimes may not count so far."""
    found = _factors(sizes)
    if found is None or abs(found.number) > np.iinfo(np.int32).max:
        return None
    if not found.names or not found.number:
        return found.number
    return found.names[0] if (found.number, len(found.names)) == (1, 1) else found


def _largest(sizes: Iterable[Entry]) -> Entry:
    """Return the largest of sizes, None if that is unknown."""
    different = set(sizes)
    numbers = [size for size in different if isinstance(size, int)]
    if len(different) == 1:
        return different.pop()
    return max(numbers) if len(numbers) == len(different) else None


def _filled(wanted: Sequence[Entry], given: AnyShape) -> list[int | str | None]:
    """Return the sizes that a Reshape wants; -1 is told where the other sizes tell it."""
    sizes = [given[k] if size == 0 and k < len(given) else size for k, size in enumerate(wanted)]
    whole, part = _factors(given), _factors(size for size in sizes if size != -1)
    left = 0
    if given and whole and part and whole.names == part.names and sizes.count(-1) == 1:
        left = whole.number // part.number if part.number else 0
    told = (left if left and size == -1 else size for size in wanted)
    return [None if isinstance(size, ProductOfSizes) else size for size in told]


def _array(sizes: Sequence[Entry]) -> Entries:
    found = np.empty(len(sizes), object)
    found[:] = sizes
    return found


def run_alone(
    model: onnx.ModelProto, node: onnx.NodeProto, inputs: Mapping[str, Array]
) -> list[Array] | None:
    """Return the outputs of a node of a model, None if they cannot be told."""
    from onnx.reference import ReferenceEvaluator

    graph = onnx.helper.make_graph(
        [node],
        "node",
        [onnx.ValueInfoProto(name=name) for name in inputs],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
    )
    if _slices_from_before(node, inputs) or _overflows(node, inputs):
        return None
    alone = onnx.helper.make_model(graph, opset_imports=model.opset_import)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return list(ReferenceEvaluator(alone).run(None, dict(inputs)))
    except Exception:  # whatever it is, the value is not known; shape inference may know more
        return None


def _slices_from_before(node: onnx.NodeProto, inputs: Mapping[str, Array]) -> bool:
    """Return whether a slice goes backwards from before its start, where ONNX's evaluator errs."""
    if node.op_type != "Slice" or len(node.input) < 5 or not node.input[4]:
        return False
    data, starts, steps = (inputs[node.input[n]] for n in (0, 1, 4))
    axes = inputs[node.input[3]] if node.input[3] else range(len(starts))
    bounds = zip(axes, starts, steps, strict=False)
    return any(step < 0 and start < -data.shape[axis] for axis, start, step in bounds)


def _overflows(node: onnx.NodeProto, inputs: Mapping[str, Array]) -> bool:
    """Return whether a reduction or power may leave its integer type: runtimes stop at its end."""
    data = inputs.get(node.input[0]) if node.op_type.startswith(("Reduce", "Pow")) else None
    if data is None or data.dtype.kind not in "iu":
        return False
    size = np.abs(data.astype(np.float64))
    with np.errstate(all="ignore"):
        match node.op_type:
            case "Pow":
                most = np.max(np.maximum(size, 1) ** inputs[node.input[1]], initial=0)
            case "ReduceProd":
                most = np.prod(np.maximum(size, 1))
            case "ReduceSumSquare" | "ReduceL2":
                most = np.sum(size**2)
            case _:
                most = np.sum(size)
    return bool(most >= np.iinfo(data.dtype).max)


def shape_value(node: onnx.NodeProto, shape: AnyShape | None) -> Array | None:
    """Return what ``Shape`` or ``Size`` of a tensor of some shape gives, if all of it is known."""
    bounds = {a.name: a.i for a in node.attribute}
    sizes = numbers_of(shape and shape[bounds.get("start", 0) : bounds.get("end", len(shape))])
    if sizes is None:
        return None
    return np.array(size(sizes) if node.op_type == "Size" else sizes, np.int64)


def may_compute(node: onnx.NodeProto) -> bool:
    """Return whether a node's results are a function of its inputs that is known.

    A Constant is one already; DequantizeLinear says in which numbers a network computes.
    """
    known = type_facts(node.op_type)
    barred = node.op_type in ("Constant", "DequantizeLinear", "Dropout") or known.random
    barred = barred or known.effort is FoldingEffort.UNBOUNDED
    sizes = [n for a in node.attribute if a.name in WINDOW for n in a.ints or [max(a.i, 1)]]
    bounded = min(sizes, default=1) > 0 and prod(sizes) <= LARGEST_KERNEL
    bounded = bounded or known.effort is not FoldingEffort.WINDOW
    return is_standard(node.domain) and not barred and bounded and not any(bodies(node))
