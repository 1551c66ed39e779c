"""Shapes of results, as ONNX's own inference tells them of one op."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from layoutopt.base.errors import InputError, LazyModule, needed
from layoutopt.conversion.requirements import axis_sizes
from layoutopt.conversion.rules.op import LATEST, Op, OperandLayouts, Shape, Size
from layoutopt.conversion.rules.operator import Category, ShapeLike
from layoutopt.conversion.rules.registry import (
    operand_axes,
    operator_of,
    type_facts,
    written_layout,
)
from layoutopt.layout.factors import elements_of
from layoutopt.layout.layout import Layout

if TYPE_CHECKING:
    import onnx as onnx
else:
    onnx = LazyModule("onnx")

LONGEST = 1024
"""Elements of vectors that ONNX may follow, which it does one by one."""


def infer(op: Op) -> list[Shape | None]:
    """Return the shape of each result, None where it is not known.

    Raises ``InputError`` if operands do not fit each other, or attributes do not fit the op; or
    ``onnx`` is needed and not installed.
    """
    if op.layouts is not None:
        return _in_layouts(op, op.layouts)
    first, known, count = op.shape(0), operator_of(op), len(op.outputs)
    facts = type_facts(op.type)
    if first is not None and is_misread_product(op.type, op.input_shapes):
        return [(*first[:-1], None) if n == 0 else (None,) * 4 for n in range(count)]
    opaque = known.category is Category.OPAQUE and facts.like is None and facts.shape is None
    if opaque or first is None:
        return [None] * count
    if known.keeps_shape:
        return [first] * count
    if facts.like is not None:
        op = _like(op, facts.like)
    if first and op.integer("channels_last", 0):
        others = {name: x for name, x in op.attributes.items() if name != "channels_last"}
        shapes = (first[0], first[-1], *first[1:-1]), *op.input_shapes[1:]
        found = infer(replace(op, input_shapes=shapes, attributes=others))
        return [s and (s[0], *s[2:], s[1]) for s in found]
    own = None if facts.shape is None else facts.shape(op, first)
    if own is not None:
        return [own] * count
    rank = len(first) if facts.same_rank else None
    if op.type == "Reshape" and op.rank(1) == 1:
        [length] = op.shape(1) or ()
        rank = length if isinstance(length, int) and length <= LONGEST else None
    found = [(None,) * rank if rank and s is None else s for s in _inferred(op)]
    if facts.same_rank:
        kept = _sizes_kept(op, first)
        found = [s and tuple(map(_known, s, kept)) for s in found]
    for n in facts.like.also if facts.like is not None else ():
        found[n : n + 1] = found[:1] if n < count else []
    counts = {elements_of(first), elements_of(found[0])} - {None}
    if op.type == "Reshape" and len(counts) > 1:
        raise InputError(f"{op}: {first} cannot have shape {found[0]}")
    return found


def _in_layouts(op: Op, layouts: OperandLayouts) -> list[Shape | None]:
    """Return the shapes of an op's results in its layouts, inferred from ONNX's order of axes."""
    axes, shapes = operand_axes(op) or OperandLayouts(), list(op.input_shapes)
    for n, shape in enumerate(shapes):
        plain = axes.input(n)
        if plain is not None and shape is not None:
            sizes = axis_sizes(written_layout(op, n), shape)
            shapes[n] = tuple(sizes.get(dim.name) for dim in plain.dims)
    found = infer(replace(op, layouts=None, input_shapes=tuple(shapes)))
    return [_laid(x, axes.output(n), layouts.output(n)) for n, x in enumerate(found)]


def _laid(shape: Shape | None, plain: Layout | None, written: Layout | None) -> Shape | None:
    """Return a shape in ONNX's order of axes, ``plain``, as that of a tensor in another layout."""
    if plain is None or written is None:
        return shape
    sizes = dict(zip((dim.name for dim in plain.dims), shape or (), strict=False))
    found = list[Size]()
    for dim in written.dims:
        [block, *more] = dim.blocks
        size, factor = sizes.get(block.axis), written.factor_of(block.axis)
        whole = -(-size // factor) if isinstance(size, int) else size if factor == 1 else None
        found.append(None if more else block.size or whole)
    return tuple(found)


def _sizes_kept(op: Op, first: Shape) -> Shape:
    """Return the sizes of the first operand along axes that an op leaves as they are; else None.

    ONNX tells none of them where it does not know where a Slice begins or ends, as an example.
    """
    rank, starts = len(first), op.shape(1)
    changed = (op.axis(0, rank),) if op.type == "Split" else op.axes(rank)
    if changed is None and op.type == "Slice" and not op.has(3) and starts:
        changed = tuple(range(starts[0])) if isinstance(starts[0], int) else None
    changed = tuple(range(rank)) if changed is None else changed
    return tuple(None if axis in changed else size for axis, size in enumerate(first))


def _known(size: Size, other: Size) -> Size:
    return other if size is None else size


def is_misread_product(kind: str, shapes: Sequence[Shape | None]) -> bool:
    """Return whether ONNX's inference makes up sizes of the results of an op, by its operands.

    It takes features of an Attention that are not known for 0, and unknown ranks for 0 as well.
    """
    features = (s[-1] if s and len(s) == 3 else None if s is None else 0 for s in shapes[:3])
    return kind == "Attention" and not all(isinstance(size, int) for size in features)


def _like(op: Op, other: ShapeLike) -> Op:
    """Return the op of ONNX whose results have the shape of those of another op."""
    places = [n for n in range(len(op.inputs)) if n in other.operands]
    shapes = other.shapes(op) if other.shapes else tuple(op.shape(n) for n in places)
    names = tuple(op.inputs[n] for n in places)
    return replace(op, type=other.type, inputs=names, input_shapes=shapes, opset=LATEST)


def _inferred(op: Op) -> list[Shape | None]:
    """Return what ONNX infers of an op of its own."""
    needed("onnx", f"telling the shape of {op}")
    version, known = _schema(op)
    if known is None:
        return [None] * len(op.outputs)
    names = [f"x{n}" if op.has(n) else "" for n in range(len(op.inputs))]
    tensors = dict(_parameters(op, known))
    for place, tensor in tensors.items():
        names += [""] * (place + 1 - len(names))
        names[place] = tensor.name
    there = enumerate(op.outputs[: known.max_output])
    outputs = [f"y{n}" if name else "" for n, name in there]
    node = onnx.helper.make_node(op.type, names, outputs)
    try:
        node.attribute.extend(_attributes(op, known))
        inputs = [_value(op, n) for n, name in enumerate(names) if name == f"x{n}"]
        results = [onnx.ValueInfoProto(name=name) for name in outputs if name]
        graph = onnx.helper.make_graph([node], "one", inputs, results, list(tensors.values()))
        own = [onnx.helper.make_opsetid("", version)]
        model = onnx.helper.make_model(graph, opset_imports=own)
        short = all((elements_of(s) or 0) <= LONGEST for s in op.input_shapes if s and len(s) == 1)
        found = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=short)
    except (onnx.shape_inference.InferenceError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).strip().rpartition("] ")[2].partition("\n")[0]
        raise InputError(f"{op}: {reason}") from None
    named = {size for shape in op.input_shapes for size in shape or () if isinstance(size, str)}
    shapes = {value.name: _shape(value, named) for value in found.graph.output}
    return [shapes.get(f"y{n}") for n in range(len(op.outputs))]


def _schema(op: Op) -> tuple[int, onnx.defs.OpSchema | None]:
    """Return what ONNX says of an op, with the version that it is of; None if that is nothing.

    It is that of the op's operator set, or of a later one where rules know an op that this lacks.
    """
    latest = onnx.defs.onnx_opset_version()
    for version in (op.opset, LATEST, latest) if onnx.defs.has(op.type) else ():
        with suppress(onnx.defs.SchemaError):
            return version, onnx.defs.get_schema(op.type, version)
    return latest, None


def _parameters(op: Op, known: onnx.defs.OpSchema) -> Iterator[tuple[int, onnx.TensorProto]]:
    """Yield the values of inputs that stand among an op's attributes, with their positions."""
    for name, place in operator_of(op).parameters.items():
        if name in op.attributes and name not in known.attributes and name != "indices":
            kind = np.float32 if name in ("roi", "scales") else np.int64
            values = np.asarray(op.attributes[name], kind)
            yield place, onnx.numpy_helper.from_array(np.atleast_1d(values), name)


def _attributes(op: Op, known: onnx.defs.OpSchema) -> Iterator[onnx.AttributeProto]:
    """Yield an op's attributes, but for the type of its result: operands are floats here."""
    kinds: Any = known.attributes
    for name, value in op.attributes.items():
        if name in kinds and name != "output_dtype":
            given = list(value) if isinstance(value, tuple) else value
            yield onnx.helper.make_attribute(name, given, attr_type=int(kinds[name].type.value))
    if "num_outputs" in kinds and not (op.has(1) or {"num_outputs", "split"} & set(op.attributes)):
        yield onnx.helper.make_attribute("num_outputs", len(op.outputs))


def _value(op: Op, n: int) -> onnx.ValueInfoProto:
    """Return an operand of floats; vectors of axes and sizes have one axis."""
    shape = op.shape(n)
    vectors = {place for name, place in operator_of(op).parameters.items() if name != "indices"}
    if shape is None and n in vectors:
        shape = (None,)  # ONNX would take what has no known rank for what is not there
    if op.type == "Resize" and n > 1 and shape is not None and len(shape) == 1:
        axes = op.attributes.get("axes")  # and a vector of unknown length for an empty one
        shape = (len(axes) if axes else op.rank(0),)
    return onnx.helper.make_tensor_value_info(f"x{n}", onnx.TensorProto.FLOAT, shape)


def _shape(value: onnx.ValueInfoProto, named: set[str]) -> Shape | None:
    if not value.type.tensor_type.HasField("shape"):
        return None

    def size(dim: onnx.TensorShapeProto.Dimension) -> Size:
        known = dim.dim_param if dim.dim_param in named else None
        return dim.dim_value if dim.HasField("dim_value") else known

    return tuple(map(size, value.type.tensor_type.shape.dim))
