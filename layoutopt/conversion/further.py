"""Modes for orders with parts: what follows on blocks, and on a Flatten of axes in another order.

An op has one such mode for an order of one operand or result, where there is one:

- a view cuts or joins axes of known size, in whatever order they are;
- elementwise ops, and those that name other axes, run on parts as on axes;
- a product of matrices takes the rows of one operand in the order of the other's columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutopt.conversion.cuts import padded_axes, within
from layoutopt.conversion.modes import Mode, mode_of
from layoutopt.conversion.orders import (
    AxisFactor,
    Form,
    FormDim,
    Item,
    Order,
    compact,
    dim_size,
    has_parts,
    main_axis,
    moved_to,
    order_of,
)
from layoutopt.conversion.sliced import sliced
from layoutopt.operators.op import Op, Shape
from layoutopt.operators.operator import Category
from layoutopt.operators.registry import category_of
from layoutopt.operators.remapping import RemapError
from layoutopt.operators.views import Group, flatten_groups, reshape_groups, reshape_sizes

VIEWS = frozenset({"Flatten", "Reshape"})
"""Types of views that cut or join axes."""


def further_mode(op: Op, slot: int, order: Order) -> Mode | None:
    """Return the mode of an op for an order of an operand or result, None if there is none.

    Parameters
    ----------
    op
        The op.
    slot
        The number of the operand, or, behind all operands, of the result.
    order
        Of its own axes.  An order without parts is for views only.
    """
    if op.layouts is not None or category_of(op) in (Category.HEAVY, Category.OPAQUE):
        return None
    shape = (*op.input_shapes, *op.output_shapes)[slot]
    if shape is None or sum(not isinstance(size, int) for size in shape) > 1:
        return None  # what is cut is written as a Reshape, which leaves one size open
    if op.type in VIEWS:
        return None if padded_axes(order, shape) else _view(op, slot, order)
    if not has_parts(order):
        return None
    if op.type in ("Gemm", "MatMul"):
        return None if padded_axes(order, shape) else _product(op, slot, order, shape)
    return sliced(op, slot, order)


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
        axis = item.axis if isinstance(item, AxisFactor) else item
        if axis not in group_of:
            return None  # one of size 1, which is not known of both shapes
        old, new = group_of[axis]
        if len(old) == len(new) == 1:
            found.append(item._replace(axis=new[0]) if isinstance(item, AxisFactor) else new[0])
            continue
        rows, cells = _strides(old, before), _strides(new, after)
        if rows is None or cells is None:
            return None
        row = next(row for row in rows if row.axis == axis)
        stride, size = (item.stride, item.size) if isinstance(item, AxisFactor) else (1, row.size)
        parts = within(row.stride * stride, size, cells)
        if parts is None:
            return None
        found += parts
    return order_of(tuple(found), after)


def _strides(axes: Sequence[int], shape: Shape) -> list[AxisFactor] | None:
    """Return where axes lie in their elements, None if a size is unknown."""
    found: list[AxisFactor] = []
    stride = 1
    for axis in reversed(axes):
        size = shape[axis]
        if not isinstance(size, int):
            return None
        found.append(AxisFactor(axis, stride, size))
        stride *= size
    return found


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


def _product(op: Op, slot: int, order: Order, shape: Shape) -> Mode | None:
    """Return a product with parts of the axis that it sums over, or of one that it keeps."""
    axes = _letters(op)
    if axes is None or slot not in axes:
        return None
    rank = len(shape)
    dims: list[FormDim] = [-1] * rank
    grouped = {main_axis(dim): dim for dim in compact(order)}
    for axis in range(rank):
        dims[axis] = grouped.get(axis, axis)
    if order_of(tuple(dims), shape) != order:
        return None  # axes are not in the order in which they are written, or not side by side
    letters = axes[slot][len(axes[slot]) - rank :]
    cut = {letters[axis]: dims[axis] for axis in range(rank) if axis in grouped}
    forms: list[Form | None] = []
    for n, own in enumerate((*op.input_shapes, *op.output_shapes)):
        known = axes.get(n)
        if known is None or own is None:
            forms.append(None)
            continue
        new = tuple(
            moved_to(cut.get(letter, a), a) if own[a] != 1 else a
            for a, letter in enumerate(known[len(known) - len(own) :])
        )
        forms.append(None if new == tuple(range(len(own))) else new)
    count = len(op.inputs)
    return mode_of(op, dict(op.attributes), tuple(forms[:count]), tuple(forms[count:]))


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
