"""Modes for orders with parts: what follows on blocks, and on a Flatten of axes in another order.

For an order of one operand or result an op has at most one such mode, a product several:

- a view cuts or joins axes of known size, in whatever order they are;
- elementwise ops, and those that name other axes, run on parts as on axes;
- a product of matrices takes the rows of one operand in the order of the other's columns, and
  rows and columns as in each of its modes on whole axes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutopt.conversion.modes import Mode, mode_of
from layoutopt.conversion.rules.axes import REDUCTIONS
from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.conversion.rules.operator import Category, RemapError
from layoutopt.conversion.rules.registry import category_of, operator_of
from layoutopt.conversion.rules.views import Group, flatten_groups, reshape_groups, reshape_sizes
from layoutopt.layout.factors import (
    AxisFactor,
    Form,
    FormDim,
    Item,
    Order,
    axis_of,
    compact,
    dim_size,
    factor_of,
    has_factors,
    is_group,
    items_of,
    main_axis,
    moved_to,
    order_of,
    padded_axes,
    renamed_order,
    rows,
    within,
)


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


VIEWS = frozenset({"Flatten", "Reshape"})
"""Types of views that cut or join axes."""


def further_modes(op: Op, slot: int, order: Order, whole: Sequence[Mode]) -> list[Mode]:
    """Return the modes of an op for an order of an operand or result, no two of equal orders.

    Parameters
    ----------
    op
        The op.
    slot
        The number of the operand, or, behind all operands, of the result.
    order
        Of its own axes.  An order without parts is for views only.
    whole
        Its modes on whole axes.
    """
    if op.layouts is not None or category_of(op) in (Category.HEAVY, Category.OPAQUE):
        return []
    shape = (*op.input_shapes, *op.output_shapes)[slot]
    if shape is None or sum(not isinstance(size, int) for size in shape) > 1:
        return []  # what is cut is written as a Reshape, which leaves one size open
    if op.type in VIEWS:
        found = [None if padded_axes(order, shape) else _view(op, slot, order)]
    elif not has_factors(order):
        found = []
    elif op.type in ("Gemm", "MatMul"):
        padded = padded_axes(order, shape)
        found = [None if padded else _product(op, mode, slot, order, shape) for mode in whole]
    else:
        found = [sliced(op, slot, order)]
    return list({mode.orders: mode for mode in found[::-1] if mode is not None}.values())


def _view(op: Op, slot: int, order: Order) -> Mode | None:
    before, after = op.shape(0), op.output_shapes[0]
    if slot not in (0, len(op.inputs)) or before is None or after is None or 0 in before:
        return None
    try:
        groups = reshape_groups(op, *reshape_sizes(op)) if op.type == "Reshape" else None
    except RemapError:
        return None
    groups = flatten_groups(op) if groups is None else groups
    back = [(new, old) for old, new in groups]
    order_in = _across(back, after, before, order) if slot else order
    order_out = None if order_in is None else _across(groups, before, after, order_in)
    if order_in is None or order_out is None or (slot and order_out != order):
        return None
    if op.type == "Flatten":
        return _flattened(op, order_in, order_out, groups)
    shape = _written(op, order_in, order_out)
    if shape is None:
        return None
    rest = (None,) * (len(op.inputs) - 1)
    return mode_of(op, {**op.attributes, "shape": shape}, (order_in, *rest), (order_out,))


def _across(groups: Sequence[Group], before: Shape, after: Shape, order: Order) -> Order | None:
    """Return an order of axes before a reshape as one of those after it; None if it is none."""
    found: list[Item] = []
    group_of = {axis: group for group in groups for axis in group[0]}
    for item in order:
        axis = axis_of(item)
        if axis not in group_of:
            return None  # one of size 1, which is not known of both shapes
        old, new = group_of[axis]
        if len(old) == len(new) == 1:
            found += renamed_order((item,), {axis: new[0]})
            continue
        row, cells = rows(old, before), rows(new, after)
        if row is None or cells is None:
            return None
        factor, first = factor_of(item, before), next(cell for cell in row if cell.axis == axis)
        parts = within(first.stride * factor.stride, factor.size, cells)
        if parts is None:
            return None
        found += parts
    return order_of(tuple(found), after)


def _flattened(op: Op, before: Order, after: Order, groups: Sequence[Group]) -> Mode | None:
    """Return a Flatten of axes in another order, None if its halves are not side by side."""
    dims: list[FormDim] = [0, 1]
    grouped = compact(after)
    if [main_axis(dim) for dim in grouped] != sorted({main_axis(dim) for dim in after}):
        return None
    for dim in grouped:
        dims[main_axis(dim)] = dim
    left = next((old for old, new in groups if new == (0,)), ())
    count = sum(main_axis(item) in left for item in before)
    return mode_of(op, {**op.attributes, "axis": count}, (before,), (tuple(dims),))


def _written(op: Op, source: Form, target: Form) -> tuple[int, ...] | None:
    """Return the shape of a Reshape between two forms, None if it cannot be written."""
    before, after = op.shape(0) or (), op.output_shapes[0] or ()
    zero = not op.integer("allowzero", 0)
    found = []
    for i, dim in enumerate(target):
        size = dim_size(dim, after)
        if isinstance(size, int):
            found.append(size)
        else:
            like = dim_size(source[i], before) if i < len(source) else None
            found.append(0 if zero and size is not None and like == size else -1)
    return tuple(found) if found.count(-1) < 2 and 0 not in after else None


def _product(op: Op, whole: Mode, slot: int, order: Order, shape: Shape) -> Mode | None:
    """Return a product with parts of the axis that it sums over, or of one that it keeps.

    Otherwise it is as in a mode on whole axes; None if axes are in another order there, or not
    side by side.
    """
    axes = _letters(op)
    if axes is None or slot not in axes:
        return None
    shapes = (*op.input_shapes, *op.output_shapes)
    plain = [
        form or tuple(range(len(own or ())))
        for form, own in zip((*whole.inputs, *whole.outputs), shapes, strict=True)
    ]
    grouped = {main_axis(dim): dim for dim in compact(order)}
    dims = tuple(grouped.get(main_axis(dim), dim) for dim in plain[slot])
    if order_of(dims, shape) != order:
        return None
    letters = axes[slot][len(axes[slot]) - len(shape) :]
    cut = {letters[axis]: dim for axis, dim in grouped.items()}
    forms: list[Form | None] = []
    for n, own in enumerate(shapes):
        known = axes.get(n)
        if known is None or own is None:
            forms.append(None)
            continue
        names = known[len(known) - len(own) :]
        every = tuple(map(main_axis, plain[n]))
        new = tuple(
            moved_to(cut.get(names[a], a), a) if a >= 0 and own[a] != 1 else a for a in every
        )
        forms.append(None if new == tuple(range(len(own))) else new)
    count = len(op.inputs)
    mode = mode_of(op, whole.attributes, tuple(forms[:count]), tuple(forms[count:]))
    return replace(mode, entries=whole.entries, operands=whole.operands, type=whole.type)


def _letters(op: Op) -> dict[int, tuple[str, ...]] | None:
    """Return names of the axes of operands and of the result of a product; None if unknown."""
    left, right, out = op.shape(0), op.shape(1), op.output_shapes[0]
    if left is None or right is None or out is None or min(len(left), len(right)) < 2:
        return None
    rank = max(len(left), len(right))
    batch = tuple(f"batch{i}" for i in range(rank - 2))
    a, b = ("m", "k"), ("k", "n")
    if op.type == "Gemm":
        a = a[::-1] if op.integer("transA", 0) else a
        b = b[::-1] if op.integer("transB", 0) else b
    result = (*batch, "m", "n")
    found = {0: (*batch[rank - len(left) :], *a), 1: (*batch[rank - len(right) :], *b)}
    if op.type == "Gemm" and op.has(2):
        if op.shape(2) is None or len(op.shape(2) or ()) > 2:
            return None
        found[2] = result
    return {**found, len(op.inputs): result}
