"""Where axes are cut into parts."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise

from layoutopt.conversion.orders import AxisFactor, Form, Item, item_size, items_of
from layoutopt.operators.op import Shape


def digits_of(forms: Iterable[Form], shape: Shape) -> dict[int, list[AxisFactor]]:
    """Return the parts that axes must be cut into, so that all of some forms are made of these.

    Parameters
    ----------
    forms
        The forms; an axis that is padded in one is so in all.
    shape
        The value's.

    Returns
    -------
    dict
        For each axis that one of the forms cuts, its parts, outermost first.

    Raises
    ------
    ValueError
        If the forms cut through each other's parts.
    """
    found: dict[int, list[AxisFactor]] = {}
    for axis, ends in ends_of(item for form in forms for item in items_of(form)).items():
        size = shape[axis]
        if not is_nested(ends) or not isinstance(size, int) or max(ends) < size:
            raise ValueError(f"axis {axis} of size {shape[axis]} cannot be cut at {ends}")
        places = sorted(ends, reverse=True)
        found[axis] = [AxisFactor(axis, low, high // low) for high, low in pairwise(places)]
    return found


def ends_of(items: Iterable[Item]) -> dict[int, set[int]]:
    """Return where axes are cut: the strides of all parts, and of what is behind them."""
    ends: dict[int, set[int]] = {}
    for item in items:
        if isinstance(item, AxisFactor):
            ends.setdefault(item.axis, {1}).update((item.stride, item.stride * item.size))
    return ends


def is_nested(ends: Iterable[int]) -> bool:
    """Return whether an axis can be cut at all of some places: each divides the next."""
    return not any(high % low for low, high in pairwise(sorted(ends)))


def refined(
    form: Form,
    shape: Shape,
    digits: Mapping[int, Sequence[AxisFactor]],
    kept: Container[int] = (),
) -> tuple[Item, ...]:
    """Return the items of a form, cut into given parts; of those of size 1, some axes."""
    found: list[Item] = []
    for item in items_of(form):
        if item_size(item, shape) == 1:
            found += [item] if item in kept else []
            continue
        axis, stride, size = item if isinstance(item, AxisFactor) else (item, 1, shape[item])
        if axis not in digits or not isinstance(size, int):
            found.append(item)
            continue
        top = stride * size
        found += [d for d in digits[axis] if stride <= d.stride and d.stride * d.size <= top]
    return tuple(found)


def within(stride: int, size: int, cells: Iterable[AxisFactor]) -> tuple[Item, ...] | None:
    """Return where a part of a row of elements lies in axes that the row is cut into.

    Parameters
    ----------
    stride, size
        The part: index ``(i // stride) % size`` of element ``i``.
    cells
        The axes: index ``(i // cell.stride) % cell.size`` is that of axis ``cell.axis``.

    Returns
    -------
    tuple or None
        Parts of these axes, outermost first; None if the part cuts through them.
    """
    found: list[Item] = []
    for cell in sorted(cells, key=lambda cell: cell.stride):
        end = cell.stride * cell.size
        if size == 1:
            break
        if stride >= end or cell.size == 1:
            continue
        if stride % cell.stride or end % stride:
            return None
        room = end // stride
        taken = min(size, room)
        if size % taken or room % taken:
            return None
        found.insert(0, AxisFactor(cell.axis, stride // cell.stride, taken))
        stride, size = stride * taken, size // taken
    return tuple(found) if size == 1 else None


def padded_axes(form: Form, shape: Shape) -> dict[int, int]:
    """Return the axes that are padded so that blocks divide them, with their sizes then."""
    found = {}
    for axis, ends in ends_of(items_of(form)).items():
        size = shape[axis]
        if isinstance(size, int) and max(ends) > size:
            found[axis] = max(ends)
    return found
