"""Elementwise ops, and ops whose attributes name axes, on axes that are cut into parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layoutopt.conversion.cuts import padded_axes
from layoutopt.conversion.modes import Mode, mode_of
from layoutopt.conversion.orders import (
    AxisFactor,
    Form,
    FormDim,
    Order,
    compact,
    is_group,
    items_of,
    main_axis,
    moved_to,
)
from layoutopt.operators.axes import REDUCTIONS
from layoutopt.operators.op import Op, Shape
from layoutopt.operators.operator import Category
from layoutopt.operators.registry import operator_of


@dataclass(frozen=True)
class _Cut:
    """An op whose axes are cut as those of one operand or result are.

    Parameters
    ----------
    op
        The op.
    dims
        What each dimension of the operands holds then, in the op's own axes.
    shape
        The sizes of these axes in the operand or result whose order is given.
    """

    op: Op
    dims: Form
    shape: Shape

    def places(self, axis: int) -> tuple[int, ...]:
        """Return the dimensions that an axis is in."""
        return tuple(i for i, dim in enumerate(self.dims) if main_axis(dim) == axis)

    def place(self, axis: int) -> int | None:
        """Return the dimension that is an axis, None if the axis is cut."""
        return self.dims.index(axis) if axis in self.dims else None

    def form(self, shape: Shape, stretched: int | None = None) -> Form | None:
        """Return the form of an operand or result, None if its sizes do not allow it.

        Parameters
        ----------
        shape
            Its shape; its last axis is the op's last one.
        stretched
            The axis along which it may be longer or shorter, by whole outermost parts.
        """
        front, found, seen = len(self.shape) - len(shape), list[FormDim](), set[int]()
        for dim in self.dims:
            axis = main_axis(dim)
            own = axis - front
            if own < 0 or (own in seen and shape[own] == 1):
                found.append(-1)
            elif isinstance(dim, int) or shape[own] == 1:
                found.append(own)
            elif shape[own] == self.shape[axis]:
                found.append(moved_to(dim, own))
            else:
                longer = self._stretched(dim, shape[own]) if axis == stretched else None
                if longer is None:
                    return None
                found.append(moved_to(longer, own))
            seen.add(own)
        return tuple(found)

    def _stretched(self, dim: FormDim, size: Any) -> FormDim | None:
        """Return a part of an axis of another size."""
        if not isinstance(dim, AxisFactor):
            return None
        longest = max(
            (d for d in self.dims if isinstance(d, AxisFactor) and d.axis == dim.axis),
            key=lambda part: part.stride,
        )
        if dim != longest:
            return dim
        fits = isinstance(size, int) and size % dim.stride == 0
        return dim._replace(size=size // dim.stride) if fits else None


def sliced(op: Op, slot: int, order: Order) -> Mode | None:
    """Return the mode in which an op runs on cut axes, None if there is none.

    Parameters
    ----------
    op
        The op.
    slot
        The number of the operand, or, behind all operands, of the result.
    order
        Of its own axes, with parts.
    """
    known = operator_of(op)
    rule = RULES.get(op.type) or (_unchanged if known.category is Category.AGNOSTIC else None)
    rank, shapes = known.rank(op), (*op.input_shapes, *op.output_shapes)
    operands = tuple(range(len(op.inputs))) if known.operands is None else known.operands
    shape = shapes[slot]
    if rule is None or rank is None or shape is None or len(shape) > rank:
        return None
    if slot < len(op.inputs) and slot not in operands:
        return None
    front = rank - len(shape)
    ones = tuple(a for a in range(rank) if a < front or shape[a - front] == 1)
    dims = (*ones, *(moved_to(dim, main_axis(dim) + front) for dim in compact(order)))
    cut = _Cut(op, dims, (1,) * front + shape)
    wide = padded_axes(cut.dims, cut.shape)
    if wide and not _keeps_zeros(op, wide, rank):
        return None
    results = rule(cut, slot >= len(op.inputs))
    if results is None:
        return None
    attributes, outputs = results
    along = op.axis(None, rank) if op.type == "Concat" else None
    inputs = list[Form | None]()
    for n in range(len(op.inputs)):
        form = _operand(cut, op.shape(n), ones, along) if op.has(n) and n in operands else None
        if op.has(n) and n in operands and form is None:
            return None
        inputs.append(form or None)
    if outputs is None:
        found = [_operand(cut, own, ones, along) for own in op.output_shapes]
        if None in found:
            return None
        outputs = [form or None for form in found]
    return mode_of(op, {**op.attributes, **attributes}, tuple(inputs), tuple(outputs))


def _keeps_zeros(op: Op, wide: Collection[int], rank: int) -> bool:
    """Return whether zeros behind axes stay zeros: then a convolution may read on."""
    if op.type not in KEEPS_ZEROS:
        return False
    axes = [axis - rank for axis in wide]
    shapes = [shape for n, shape in enumerate(op.input_shapes) if op.has(n)]
    return all(
        shape is not None and -min(axes) <= len(shape) and all(shape[a] != 1 for a in axes)
        for shape in shapes
    )


KEEPS_ZEROS = frozenset(
    {"Abs", "Add", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Elu", "Erf", "Floor", "Identity"}
    | {"LeakyRelu", "Max", "Mean", "Min", "Mul", "Neg", "Relu", "Round", "Selu", "Sign", "Sin"}
    | {"Sinh", "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh"}
)
"""Elementwise ops that give zero where all operands are zero."""


def _operand(cut: _Cut, shape: Shape | None, ones: Sequence[int], along: int | None) -> Form | None:
    """Return the form of an operand, ``()`` if it may stay as it is; None if it cannot be had."""
    if shape is None or len(shape) > len(cut.shape):
        return None
    if along is None and all(size == 1 for size in shape):
        return ()
    front = len(cut.shape) - len(shape)
    if any(axis >= front and shape[axis - front] != 1 for axis in ones):
        return None  # an axis that the given order does not tell of
    return cut.form(shape, along)


Rule = Callable[[_Cut, bool], tuple[Mapping[str, Any], list[Form | None] | None] | None]
"""``(cut, whether a result's order is given)``, returning attributes, and the forms of results.

None for forms: results are cut as operands are.  None: the op cannot run so.
"""


def _unchanged(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], None] | None:
    return None if cut.op.type in _NOT_BY_ELEMENT or _is_random(cut.op) else ({}, None)


_NOT_BY_ELEMENT = {"Size", "DynamicQuantizeLinear"}


def _is_random(op: Op) -> bool:
    return op.type == "Dropout" and op.has(2)


def _quantised(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], None] | None:
    return ({}, None) if cut.op.rank(1) == 0 else None


def _along(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], None] | None:
    """Move the attribute ``axis`` of an axis that is not cut."""
    if operator_of(cut.op).since < 13 and cut.op.type in ("Softmax", "LogSoftmax"):
        return None
    place = cut.place(cut.op.axis(_DEFAULT_AXIS[cut.op.type], len(cut.shape)))
    return None if place is None else ({"axis": place}, None)


_DEFAULT_AXIS = {"Softmax": -1, "LogSoftmax": -1, "Split": 0}


def _concat(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], None] | None:
    """Join along the outermost part of the axis."""
    places = cut.places(cut.op.axis(None, len(cut.shape)))
    if any(is_group(cut.dims[i]) for i in places):
        return None
    items = list(items_of(cut.dims))
    place = max(
        places, key=lambda i: item.stride if isinstance(item := items[i], AxisFactor) else 1
    )
    return {"axis": place}, None


def _reduced(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], list[Form | None]] | None:
    """Reduce all parts of each axis."""
    op, rank = cut.op, len(cut.shape)
    axes = (op.axis(0, rank),) if op.type in ("ArgMax", "ArgMin") else op.axes(rank)
    if not axes or from_result:
        return None
    if op.type in ("ArgMax", "ArgMin"):
        place = cut.place(axes[0])
        attributes: Mapping[str, Any] = {"axis": place}
        if place is None:
            return None
    else:
        attributes = {"axes": tuple(sorted(i for axis in axes for i in cut.places(axis)))}
    kept = [axis for axis in range(rank) if axis not in axes]
    found: list[FormDim] = []
    for i, dim in enumerate(cut.dims):
        axis = main_axis(dim)
        if op.integer("keepdims", 1):
            first = cut.places(axis)[0] == i
            found.append(dim if axis in kept else axis if first else -1)
        elif axis in kept:
            found.append(moved_to(dim, kept.index(axis)))
    return attributes, [tuple(found)]


def _padded(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], None] | None:
    """Pad axes that are not cut."""
    pads, rank = cut.op.integers("pads"), len(cut.shape)
    axes = cut.op.axes(rank)
    if axes is not None:
        return _moved_axes(cut, axes)
    if pads is None or cut.op.has(3) or len(pads) != 2 * rank:
        return None
    ends = [pads[:rank], pads[rank:]]
    if any(ends[0][a] or ends[1][a] for a in range(rank) if cut.place(a) is None):
        return None
    new = [[end[d] if isinstance(d, int) else 0 for d in cut.dims] for end in ends]
    return {"pads": (*new[0], *new[1])}, None


def _taken(cut: _Cut, from_result: bool) -> tuple[Mapping[str, Any], None] | None:
    """Cut slices from axes that are not in parts."""
    rank, starts = len(cut.shape), cut.op.integers("starts")
    axes = cut.op.axes(rank)
    if axes is None and (cut.op.has(3) or starts is None):
        return None
    return _moved_axes(cut, range(len(starts or ())) if axes is None else axes)


def _moved_axes(cut: _Cut, axes: Iterable[int]) -> tuple[Mapping[str, Any], None] | None:
    places = [cut.place(axis) for axis in axes]
    return None if None in places else ({"axes": tuple(places)}, None)


RULES: dict[str, Rule] = {
    "Concat": _concat,
    "DequantizeLinear": _quantised,
    "LogSoftmax": _along,
    "Pad": _padded,
    "QuantizeLinear": _quantised,
    "Slice": _taken,
    "Softmax": _along,
    "Split": _along,
    **dict.fromkeys([*REDUCTIONS.split(), "ArgMax", "ArgMin"], _reduced),
}
"""What becomes of attributes, by type of op; elementwise ops need no entry."""
