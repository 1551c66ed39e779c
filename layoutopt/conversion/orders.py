"""Orders and forms: how the elements of a value follow each other, and how a tensor shows them.

An *order* lists axes, from the outermost to the innermost.  A layout in blocks, and one that a
reshape leaves, moves parts of axes: of ``NCHW16c`` the parts are ``C / 16`` and the 16 channels
inside; behind a Flatten of C, H and W the parts of its one axis are these.  A *form* is an order
cut into the dimensions of a tensor; a dimension may hold several parts side by side.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple, TypeAlias, TypeGuard

from layoutopt.conversion.rules.op import Shape, Size
from layoutopt.layout.permutations import Permutation


class AxisFactor(NamedTuple):
    """A part of an axis: index ``(i // stride) % size`` of index ``i``."""

    axis: int
    stride: int
    size: int


Item: TypeAlias = int | AxisFactor
"""An axis, or a part of one; -1 for an axis of size 1 that is added."""

Order: TypeAlias = tuple[Item, ...]
"""Items that are not of size 1, outermost first; no two neighbours could be one."""

Group: TypeAlias = tuple[Item, ...]
"""Items that are one dimension together."""

FormDim: TypeAlias = Item | Group

Form: TypeAlias = tuple[FormDim, ...]
"""What each dimension of a tensor holds."""


def group_of(dim: FormDim) -> Group:
    """Return the items of a dimension."""
    return (dim,) if isinstance(dim, int | AxisFactor) else dim


def is_group(dim: FormDim) -> bool:
    """Return whether a dimension holds several items, or none."""
    return len(group_of(dim)) != 1


def items_of(form: Form) -> Iterator[Item]:
    """Yield the items of a form, outermost first."""
    for dim in form:
        yield from group_of(dim)


def has_parts(form: Iterable[FormDim]) -> bool:
    """Return whether a form or order has anything but whole axes, each a dimension."""
    return not {int}.issuperset(map(type, form))


def is_whole(form: Form) -> TypeGuard[Permutation]:
    """Return whether each dimension of a form is a whole axis, or -1."""
    return not has_parts(form)


def order_of(form: Form, shape: Shape) -> Order:
    """Return the order in which a form has the elements.

    Parameters
    ----------
    form
        The form.
    shape
        The shape of the value, or of the tensor whose axes it names.
    """
    if is_whole(form):
        return tuple([axis for axis in form if axis >= 0 and shape[axis] != 1])
    found: list[Item] = []
    for item in items_of(form):
        if item_size(item, shape) != 1:
            found.append(item)
            while len(found) > 1 and (one := _joined(found[-2], found[-1])) is not None:
                found[-2:] = [one]
    return tuple(_whole(item, shape) for item in found)


def _joined(outer: Item, inner: Item) -> AxisFactor | None:
    """Return the part that two neighbours are together, None if they are not one."""
    if (
        not (isinstance(outer, AxisFactor) and isinstance(inner, AxisFactor))
        or outer.axis != inner.axis
    ):
        return None
    fits = outer.stride == inner.stride * inner.size
    return AxisFactor(outer.axis, inner.stride, outer.size * inner.size) if fits else None


def _whole(item: Item, shape: Shape) -> Item:
    """Return the axis, if an item is all of it."""
    if isinstance(item, AxisFactor) and item.stride == 1 and item.size == shape[item.axis]:
        return item.axis
    return item


def item_size(item: Item, shape: Shape) -> Size:
    """Return the size of an item."""
    if isinstance(item, AxisFactor):
        return item.size
    return 1 if item < 0 else shape[item]


def dim_size(dim: FormDim, shape: Shape) -> Size:
    """Return the size of a dimension; None where several items are open."""
    sizes = [size for item in group_of(dim) if (size := item_size(item, shape)) != 1]
    product = 1
    for size in sizes:
        if not isinstance(size, int):
            return size if len(sizes) == 1 else None
        product *= size
    return product


def sizes_of(form: Form, shape: Shape) -> Shape:
    """Return the shape of a tensor of a form."""
    return tuple(dim_size(dim, shape) for dim in form)


def same(form: Form, shape: Shape) -> Form:
    """Return what forms of the same sizes and elements have in common.

    Dimensions of size 1 are alike, whatever axis they stand for.
    """
    if is_whole(form):
        return tuple([axis if axis >= 0 and shape[axis] != 1 else -1 for axis in form])
    return tuple(_common(dim, shape) for dim in form)


def _common(dim: FormDim, shape: Shape) -> FormDim:
    order = order_of((dim,), shape)
    return order[0] if len(order) == 1 else order or -1


def renamed(form: Form, axes: Sequence[int]) -> Form:
    """Return a form of other axes: ``axes[a]`` for ``a``."""
    if is_whole(form):
        return tuple([axes[axis] if axis >= 0 else -1 for axis in form])
    found = (tuple(_renamed(item, axes) for item in group_of(dim)) for dim in form)
    return tuple(group[0] if len(group) == 1 else group for group in found)


def _renamed(item: Item, axes: Sequence[int]) -> Item:
    if isinstance(item, AxisFactor):
        return item._replace(axis=axes[item.axis])
    return axes[item] if item >= 0 else -1


def renamed_order(order: Order, axes: Sequence[int]) -> Order:
    """Return an order of other axes: ``axes[a]`` for ``a``."""
    return tuple(
        [
            item._replace(axis=axes[item.axis]) if isinstance(item, AxisFactor) else axes[item]
            for item in order
        ]
    )


def compact(order: Order) -> Form:
    """Return a form with one dimension for neighbouring parts of an axis."""
    found: list[FormDim] = []
    for _, run in groupby(order, lambda item: item.axis if isinstance(item, AxisFactor) else item):
        items = tuple(run)
        found.append(items[0] if len(items) == 1 else items)
    return tuple(found)


def sort_key(order: Order) -> tuple[tuple[int, ...], ...]:
    """Return what orders can be sorted by."""
    return tuple(item if isinstance(item, AxisFactor) else (item,) for item in order)


def main_axis(dim: FormDim) -> int:
    """Return the axis of a dimension, the first one of several."""
    item = group_of(dim)[0]
    return item.axis if isinstance(item, AxisFactor) else item


def moved_to(dim: FormDim, axis: int) -> FormDim:
    """Return a dimension of one axis as one of another."""
    if isinstance(dim, int):
        return axis
    if isinstance(dim, AxisFactor):
        return dim._replace(axis=axis)
    return tuple(p._replace(axis=axis) if isinstance(p, AxisFactor) else axis for p in dim)


def spread(order: Order, shape: Shape) -> Form:
    """Return a form of an order that has all axes; those of size 1 stand in their places.

    With parts, those of size 1 stand in front.
    """
    if has_parts(order):
        ones = tuple(axis for axis, size in enumerate(shape) if size == 1)
        return (*ones, *order)
    left = iter(order)
    return tuple(axis if size == 1 else next(left) for axis, size in enumerate(shape))


def is_permutation(form: Form, shape: Shape) -> bool:
    """Return whether a form has a dimension for each axis."""
    return len(form) == len(shape) and not has_parts(form) and -1 not in form


def whole_axes(form: Form) -> Permutation:
    """Return the axes of a form that has a dimension for each of some."""
    return tuple(axis for axis in form if isinstance(axis, int) and axis >= 0)


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
