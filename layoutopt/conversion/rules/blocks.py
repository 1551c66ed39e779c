"""Rules of ops on axes that are cut into parts: blocks, or what a Flatten made of several axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from layoutopt.conversion.rules.op import Op, Shape
from layoutopt.layout.factors import (
    AxisFactor,
    Form,
    FormDim,
    is_group,
    items_of,
    main_axis,
    moved_to,
)


@dataclass(frozen=True)
class Cut:
    """An op whose axes are cut as those of one operand or result are."""

    op: Op
    dims: Form  # what each dimension of the operands holds then, in the op's own axes
    shape: Shape  # the sizes of these axes in the operand or result whose order is given

    def places(self, axis: int) -> tuple[int, ...]:
        """Return the dimensions that an axis is in."""
        return tuple(i for i, dim in enumerate(self.dims) if main_axis(dim) == axis)

    def place(self, axis: int) -> int | None:
        """Return the dimension that is an axis, None if the axis is cut."""
        return self.dims.index(axis) if axis in self.dims else None

    def form(self, shape: Shape, stretched: int | None = None) -> Form | None:
        """Return the form of an operand or result, None if its sizes do not allow it.

        Its last axis is the op's last one.  Along the axis ``stretched`` it may be longer or
        shorter, by whole outermost parts.
        """
        front, found, seen = len(self.shape) - len(shape), list[FormDim](), set[int]()
        for dim in self.dims:
            axis = main_axis(dim)
            own = axis - front
            if own >= 0 and shape[own] == self.shape[axis] is not None:  # else one may be 1
                found.append(moved_to(dim, own))
            elif own < 0 or (own in seen and shape[own] == 1):
                found.append(-1)
            elif isinstance(dim, int) or shape[own] == 1:
                found.append(own)
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


Outcome: TypeAlias = tuple[Mapping[str, Any], list[Form | None] | None] | None
"""Attributes, and the forms of results; None for forms where results are cut as operands are.

None for both: the op cannot run so.
"""

BlockRule: TypeAlias = Callable[[Cut, bool], Outcome]
"""``(cut, whether a result's order is given)``, returning what becomes of the op."""


def unchanged(cut: Cut, from_result: bool) -> Outcome:
    """Change no attribute: elementwise ops."""
    return {}, None


def refused(cut: Cut, from_result: bool) -> Outcome:
    """Refuse: an op that counts elements, or looks at all of them."""
    return None


def dropout(cut: Cut, from_result: bool) -> Outcome:
    """Refuse a Dropout that may drop elements, by their order."""
    return None if cut.op.has(2) else ({}, None)


def along(default: int | None) -> BlockRule:
    """Return a rule that moves the attribute ``axis`` of an axis that is not cut."""

    def moved(cut: Cut, from_result: bool) -> Outcome:
        place = cut.place(cut.op.axis(default, len(cut.shape)))
        return None if place is None else ({"axis": place}, None)

    return moved


def quantised(cut: Cut, from_result: bool) -> Outcome:
    """Move the axis that scales are given along; change nothing where there is one scale."""
    rank, scale = len(cut.shape), cut.op.rank(1)
    if scale != 1 or cut.op.opset < SCALED_AXIS or not -rank <= cut.op.integer("axis", 1) < rank:
        return ({}, None) if scale == 0 else None
    return along(1)(cut, from_result)


SCALED_AXIS = 13
"""The version of the operator set since which scales may be given along an axis."""


def concat(cut: Cut, from_result: bool) -> Outcome:
    """Join along the outermost part of the axis."""
    places = cut.places(cut.op.axis(None, len(cut.shape)))
    if any(is_group(cut.dims[i]) for i in places):
        return None
    items = list(items_of(cut.dims))
    place = max(
        places, key=lambda i: item.stride if isinstance(item := items[i], AxisFactor) else 1
    )
    return {"axis": place}, None


def reduced(cut: Cut, from_result: bool) -> Outcome:
    """Reduce all parts of each axis."""
    axes = cut.op.axes(len(cut.shape))
    if not axes or from_result:
        return None
    places = tuple(sorted(i for axis in axes for i in cut.places(axis)))
    return {"axes": places}, [_left(cut, axes)]


def reduced_to_index(cut: Cut, from_result: bool) -> Outcome:
    """Look for the largest or smallest along an axis that is not cut."""
    axis = cut.op.axis(0, len(cut.shape))
    place = cut.place(axis)
    return None if place is None or from_result else ({"axis": place}, [_left(cut, (axis,))])


def _left(cut: Cut, axes: tuple[int, ...]) -> Form:
    """Return the form of what a reduction of some axes leaves."""
    kept = [axis for axis in range(len(cut.shape)) if axis not in axes]
    found: list[FormDim] = []
    for i, dim in enumerate(cut.dims):
        axis = main_axis(dim)
        if cut.op.integer("keepdims", 1):
            first = cut.places(axis)[0] == i
            found.append(dim if axis in kept else axis if first else -1)
        elif axis in kept:
            found.append(moved_to(dim, kept.index(axis)))
    return tuple(found)


def padded(cut: Cut, from_result: bool) -> Outcome:
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


def taken(cut: Cut, from_result: bool) -> Outcome:
    """Cut slices from axes that are not in parts."""
    rank, starts = len(cut.shape), cut.op.integers("starts")
    axes = cut.op.axes(rank)
    if axes is None and (cut.op.has(3) or starts is None):
        return None
    return _moved_axes(cut, range(len(starts or ())) if axes is None else axes)


def _moved_axes(cut: Cut, axes: Iterable[int]) -> Outcome:
    places = [cut.place(axis) for axis in axes]
    return None if None in places else ({"axes": tuple(places)}, None)
