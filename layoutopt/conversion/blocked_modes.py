"""Modes for orders with parts: what follows on blocks, and on a Flatten of axes in another order.

For an order of one operand or result an op has at most one such mode, a product several:

- a view cuts or joins axes of known size, in whatever order they are;
- elementwise ops, and those that name other axes, run on parts as on axes;
- a product of matrices takes the rows of one operand in the order of the other's columns, and
  rows and columns as in each of its modes on whole axes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from layoutopt.conversion.modes import Mode, mode_of
from layoutopt.conversion.rules.blocks import Cut, unchanged
from layoutopt.conversion.rules.op import NARROW, Op, Shape
from layoutopt.conversion.rules.operator import Category, RemapError
from layoutopt.conversion.rules.products import permuted_equation
from layoutopt.conversion.rules.registry import category_of, operator_of
from layoutopt.conversion.rules.views import flatten_groups, reshape_groups, reshape_sizes
from layoutopt.layout.factors import (
    Form,
    FormDim,
    Item,
    Order,
    axis_of,
    compact,
    dim_size,
    factor_of,
    has_factors,
    main_axis,
    moved_to,
    order_of,
    padded_axes,
    renamed_order,
    rows,
    spread,
    whole_axes,
    within,
)
from layoutopt.layout.reshape import Group


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
    rule = known.blocks or (unchanged if known.category is Category.AGNOSTIC else None)
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
    cut = Cut(op, dims, (1,) * front + shape)
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
    if not operator_of(op).keeps_zeros:
        return False
    axes = [axis - rank for axis in wide]
    shapes = [shape for n, shape in enumerate(op.input_shapes) if op.has(n)]
    return all(
        shape is not None and -min(axes) <= len(shape) and all(shape[a] != 1 for a in axes)
        for shape in shapes
    )


def _operand(cut: Cut, shape: Shape | None, ones: Sequence[int], along: int | None) -> Form | None:
    """Return the form of an operand, ``()`` if it may stay as it is; None if it cannot be had."""
    if shape is None or len(shape) > len(cut.shape):
        return None
    if along is None and all(size == 1 for size in shape):
        return ()
    front = len(cut.shape) - len(shape)
    if any(axis >= front and shape[axis - front] != 1 for axis in ones):
        return None  # an axis that the given order does not tell of
    return cut.form(shape, along)


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
    if op.element_type in NARROW:
        return []
    shape = (*op.input_shapes, *op.output_shapes)[slot]
    if shape is not None and operator_of(op).each_alone:
        return [] if has_factors(order) else _alone(op, slot, spread(order, shape), whole)
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


def _alone(op: Op, slot: int, form: Form, known: Sequence[Mode]) -> list[Mode]:
    """Return modes of an Einsum with one operand, or the result, in another form."""
    count, found = len(op.inputs), []
    for mode in known:
        forms = [*mode.inputs, *mode.outputs]
        forms[slot] = form
        try:
            equation = permuted_equation(op, [f if f is None else whole_axes(f) for f in forms])
        except RemapError:
            continue
        changed = {**op.attributes, "equation": equation}
        found.append(mode_of(op, changed, tuple(forms[:count]), tuple(forms[count:])))
    return found


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
