"""Layouts in which a backend, or a user, wants an op to run."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TypeAlias

from layoutopt.base.errors import OptionError
from layoutopt.conversion.requirements import Requirements
from layoutopt.conversion.rules.op import Op, OperandLayouts, Shape, unnamed
from layoutopt.conversion.rules.operator import Category, Forms, RemapError, Remapped
from layoutopt.conversion.rules.registry import (
    category_of,
    may_pad,
    operand_axes,
    remap,
    written_layout,
)
from layoutopt.layout.factors import AxisFactor, Form, Item, axis_factors, dim_of, within
from layoutopt.layout.layout import ANY, Dim, Layout

Required: TypeAlias = tuple[Forms, OperandLayouts | None]
"""The forms of operands, then results, and how an op is written then."""


class CutError(OptionError):
    """Required blocks that cut through those that an op is written in."""


def required(op: Op, requirements: Requirements) -> Required | None:
    """Return how an op is to run, None if nothing is required of it.

    That is the form of each operand and of each result, and how the op is written then; its
    attributes stay.  Where a rank is unknown, or there are no elements, an op stays as it is
    written.  Raises ``OptionError`` if a required layout has alignments, packed blocks, axes that
    have no known meaning, or blocks of axes of unknown size.
    """
    inputs, outputs = _asked(op, requirements)
    return in_layouts(op, OperandLayouts(inputs, outputs))


def _asked(op: Op, requirements: Requirements) -> tuple[tuple[Layout, ...], tuple[Layout, ...]]:
    """Return the layouts that are required of an op's operands, and of its results."""
    return (
        tuple(requirements.input_requirement(op, n) for n in range(len(op.inputs))),
        tuple(requirements.result_requirement(op, n) for n in range(len(op.output_shapes))),
    )


def in_order(op: Op, requirements: Requirements, letters: Layout | None) -> Remapped | None:
    """Return an op whose axes have no letters of their own in the order required of it.

    It is elementwise, or its attributes name axes.  Requirements are of operands and results with
    all axes of the op; ``letters`` are its axes as it is written, None if their number is unknown.
    Raises ``OptionError`` if the op cannot run so.
    """
    inputs, outputs = _asked(op, requirements)
    asked = [one for one in (*inputs, *outputs) if not (one.undefined or one.is_any)]
    if not asked:
        return None
    needed = asked[0]
    if any(dim.extensions for dim in needed.dims):
        raise OptionError(f"{op}: {needed} is required; alignments cannot be converted")
    if needed.has_blocks:
        what = f"{needed} is required, in blocks, which only ops whose axes have letters take"
        raise OptionError(f"{op}: {what}")
    if letters is None:
        raise OptionError(f"{op}: {needed} is required of a tensor of unknown rank")
    have, want = _letters(letters), _letters(needed)
    named = [letter for letter in want if letter != ANY]
    if len(have) != len(want) or any(have.count(letter) != 1 for letter in named):
        raise OptionError(f"{op}: the required {needed} is no order of its axes {letters}")
    left = iter([axis for axis, letter in enumerate(have) if letter not in named])
    permutation = tuple(next(left) if letter == ANY else have.index(letter) for letter in want)
    try:
        found = remap(op, permutation)
    except RemapError as error:
        raise OptionError(f"{op}: it cannot run in {needed}: {error}") from None
    kept = tuple(range(len(permutation)))
    for layout, order in zip((*inputs, *outputs), found.forms, strict=True):
        own = layout.undefined or layout.is_any or layout == needed
        if not own or (layout == needed and (order or kept) != permutation):
            what = f"{needed} and {layout}" if not own else f"{needed}"
            raise OptionError(f"{op}: its operands and results cannot be in {what} at once")
    return found


def in_layouts(op: Op, wanted: OperandLayouts) -> Required | None:
    """Return how an op runs in given layouts; see :func:`required`."""
    if _is_open(op, wanted):
        return None
    count, forms = len(op.inputs), list[Form | None]([None] * len(op.shapes))
    found = [written_layout(op, slot) for slot in range(len(op.shapes))]
    for slot, shape in op.slots():
        needed = unnamed(found[slot], wanted.at(op, slot))
        forms[slot] = form = _form(op, found[slot], needed, shape)
        found[slot] = found[slot] if form is None else needed
    if operand_axes(op) is None and op.layouts is None:
        return None
    layouts = op.layouts
    if any(form is not None for form in forms):
        layouts = OperandLayouts(tuple(found[:count]), tuple(found[count:]))
    return tuple(forms), _unless_plain(op, layouts)


def _is_open(op: Op, wanted: OperandLayouts) -> bool:
    """Return whether axes have letters, but of a number that is not known of each required.

    Blocks of what has no elements are none: where sizes are 0, others cannot be left open by -1.
    """
    if category_of(op) is not Category.HEAVY:
        return False
    sides = ((wanted.at(op, slot), shape) for slot, shape in op.slots())
    required = [(layout, shape) for layout, shape in sides if layout and not layout.is_any]
    empty = any(0 in (shape or ()) and layout.has_blocks for layout, shape in required)
    return operand_axes(op) is None or empty or None in [shape for _, shape in required]


def _form(
    op: Op, written: Layout | None, needed: Layout | None, shape: Shape | None
) -> Form | None:
    """Return the form that a layout is, of the axes of the one that is written; None if it is."""
    if needed is None or needed.undefined or needed.is_any or needed == written:
        return None
    if any(dim.extensions for dim in needed.dims):
        raise OptionError(f"{op}: {needed} is required; alignments cannot be converted")
    if any(len(dim.blocks) > 1 for dim in needed.dims):
        raise OptionError(f"{op}: {needed} is required; packed blocks cannot be converted")
    if written is None or written.undefined:
        raise OptionError(f"{op}: layout {needed} is required, but its axes have no known letters")
    if shape is not None and len(written.dims) != len(shape):
        raise OptionError(f"{op}: it is written in {written}, for a tensor of {len(shape)} axes")
    have, want = _letters(written), _letters(needed)
    pairs = zip(written.dims, needed.dims, strict=False)
    single = have.count(ANY) == want.count(ANY) == 1  # the same axis, wherever it is
    if (
        len(have) == len(want)
        and not single
        and all(a.blocks == b.blocks or ANY in (_letter(a), _letter(b)) for a, b in pairs)
    ):
        return None
    unclear = ANY in have and not single
    if unclear or set(have) != set(want) or len(written.axes) != len(set(written.axes)):
        raise OptionError(f"{op}: the required {needed} is no order of its axes {written}")
    if len(have) == len(want) == len(set(have)):
        return tuple(map(have.index, want))
    if shape is None:
        raise OptionError(f"{op}: {needed} is required of a tensor of unknown rank")
    return _blocked(op, written, needed, shape)


def _blocked(op: Op, written: Layout, needed: Layout, shape: Shape) -> Form:
    """Return the form of a layout in blocks, or of one of a tensor that is in blocks."""
    dims: list[list[Item]] = [[] for _ in needed.dims]
    for axis in written.axes:
        places = [d for d, dim in enumerate(written.dims) if _letter(dim) == axis]
        wanted = [d for d, dim in enumerate(needed.dims) for b in dim.blocks if b.axis == axis]
        if len(places) == len(wanted) == 1:
            dims[wanted[0]].append(places[0])
            continue
        for d, items in _digits(op, needed, axis, _cells(op, written, axis, shape)):
            dims[d] += items
    return tuple(dim_of(items, shape) for items in dims)


def _cells(op: Op, written: Layout, axis: str, shape: Shape) -> list[AxisFactor]:
    """Return the dimensions that an axis is written in, and their strides in it."""
    places = [d for d, dim in enumerate(written.dims) if _letter(dim) == axis]
    sizes = [size for d in places if isinstance(size := shape[d], int)]
    if len(sizes) < len(places):
        size = next(shape[d] for d in places if not isinstance(shape[d], int))
        raise OptionError(f"{op}: blocks of axis {axis}, whose size {size!r} is no number")
    own = axis_factors([written.dims[d] for d in places], axis, [prod(sizes)])
    return [AxisFactor(d, f.stride, size) for d, [f], size in zip(places, own, sizes, strict=True)]


def _digits(
    op: Op, needed: Layout, axis: str, cells: list[AxisFactor]
) -> Iterator[tuple[int, tuple[AxisFactor, ...]]]:
    """Yield for each block of an axis its dimension, and where it lies in those written."""
    inner, total = needed.factor_of(axis), prod(cell.size for cell in cells)
    if total % inner:
        if len(cells) > 1 or not may_pad(op):
            what = f"{needed} is required; blocks do not divide axis {axis} of {total}"
            raise OptionError(f"{op}: {what}")
        cells = [cells[0]._replace(size=-(-total // inner) * inner)]
    every = [(d, b) for d, dim in enumerate(needed.dims) for b in dim.blocks if b.axis == axis]
    own = axis_factors([Dim((block,)) for _, block in every], axis, [total])
    for (d, _), [factor] in zip(every, own, strict=True):
        items = within(factor.stride, factor.size, cells)
        if items is None:
            raise CutError(f"{op}: {needed} is required, and its blocks cut through those it has")
        yield d, items


def _letter(dim: Dim) -> str:
    return "".join(block.axis for block in dim.blocks)


def _letters(layout: Layout) -> list[str]:
    return [_letter(dim) for dim in layout.dims]


def _unless_plain(op: Op, layouts: OperandLayouts | None) -> OperandLayouts | None:
    """Return layouts, None if they are those in which ONNX writes the op."""
    axes = operand_axes(op)
    if layouts is None or axes is None:
        return layouts
    pairs = [(layouts.at(op, slot), axes.at(op, slot)) for slot in range(len(op.shapes))]
    own = all(one is None or (plain and one.letters == plain.letters) for one, plain in pairs)
    return None if own else layouts
