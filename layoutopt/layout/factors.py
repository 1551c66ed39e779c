"""Axes cut into factors: what each dimension of a tensor holds, and how to get from form to form.

Of index ``i`` along an axis, a *factor* is ``i // stride % size``.  ``NCHW16c`` has the factors
``C // 16`` and ``C % 16``; behind a Flatten of C, H and W these are factors of its one axis.  A
*form* tells what each dimension holds, one factor or several.  An *order* is a form without its
dimensions: axes and factors from the outermost to the innermost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import prod
from typing import Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from layoutopt.layout.parts import Dim
from layoutopt.layout.permutations import Permutation

AnyArray = NDArray[np.generic]

Size: TypeAlias = int | str | None
"""Of an axis: a number, the name of a symbolic one, or None where nothing is known."""

Shape: TypeAlias = tuple[Size, ...]


def numbers_of(shape: Shape | None) -> tuple[int, ...] | None:
    """Return a shape all of whose sizes are numbers, None for others."""
    sizes = tuple(size for size in shape or () if isinstance(size, int))
    return None if shape is None or len(sizes) < len(shape) else sizes


def open_sizes(shape: Shape | None) -> int:
    """Return how many sizes of a shape are no numbers."""
    return sum(not isinstance(size, int) for size in shape or ())


def elements_of(shape: Shape | None) -> int | None:
    """Return the number of elements of a tensor of a shape, None if it is not known."""
    sizes = numbers_of(shape)
    return None if sizes is None else prod(sizes)


OPEN = 2**61 - 1
"""The size of the outermost factor of an axis whose size is no number: all that is left."""


class AxisFactor(NamedTuple):
    """A factor of an axis: ``i // stride % size`` of index ``i``."""

    axis: int
    stride: int
    size: int

    @property
    def end(self) -> int:
        """The stride of the next outer factor."""
        return OPEN if self.size == OPEN else self.stride * self.size


Item: TypeAlias = int | AxisFactor
"""A whole axis, or a factor of one; -1 for an axis of size 1 that is added."""

AnyItem = TypeVar("AnyItem", AxisFactor, Item)

Order: TypeAlias = tuple[Item, ...]
"""Items that are not of size 1, outermost first; no two neighbours could be one."""

FormDim: TypeAlias = Item | tuple[Item, ...]

Form: TypeAlias = tuple[FormDim, ...]
"""What each dimension of a tensor holds."""


def group_of(dim: FormDim) -> tuple[Item, ...]:
    """Return the items of a dimension."""
    return (dim,) if isinstance(dim, int | AxisFactor) else dim


def is_group(dim: FormDim) -> bool:
    """Return whether a dimension holds several items, or none."""
    return len(group_of(dim)) != 1


def items_of(form: Form) -> Iterator[Item]:
    """Yield the items of a form, outermost first."""
    for dim in form:
        yield from group_of(dim)


def has_factors(form: Iterable[FormDim]) -> bool:
    """Return whether a form or order has anything but whole axes, each a dimension."""
    return not {int}.issuperset(map(type, form))


def is_whole(form: Form) -> TypeGuard[Permutation]:
    """Return whether each dimension of a form is a whole axis, or -1."""
    return not has_factors(form)


def is_permutation(form: Form, shape: Shape) -> bool:
    """Return whether a form has a dimension for each axis."""
    return len(form) == len(shape) and not has_factors(form) and -1 not in form


def whole_axes(form: Form) -> Permutation:
    """Return the axes that are dimensions of a form."""
    return tuple(axis for axis in form if isinstance(axis, int) and axis >= 0)


def factor_of(item: Item, shape: Shape) -> AxisFactor:
    """Return an item as a factor."""
    if isinstance(item, AxisFactor):
        return item
    size = shape[item]
    return AxisFactor(item, 1, size if isinstance(size, int) else OPEN)


def axis_of(item: Item) -> int:
    """Return the axis of an item."""
    return item.axis if isinstance(item, AxisFactor) else item


def main_axis(dim: FormDim) -> int:
    """Return the axis of a dimension, the first one of several."""
    return axis_of(group_of(dim)[0])


def item_size(item: Item, shape: Shape) -> Size:
    """Return the size of an item."""
    if isinstance(item, AxisFactor):
        return None if item.size == OPEN else item.size
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


def order_of(form: Form, shape: Shape) -> Order:
    """Return the order in which a form of a tensor of this shape has the elements."""
    if is_whole(form):
        return tuple([axis for axis in form if axis >= 0 and shape[axis] != 1])
    long = (item for item in items_of(form) if item_size(item, shape) != 1)
    return tuple(_whole(item, shape) for item in joined(long))


def joined(items: Iterable[AnyItem]) -> list[AnyItem]:
    """Return items with neighbouring factors of an axis that are one put together."""
    found: list[AnyItem] = []
    for item in items:
        outer = found[-1] if found else None
        if (
            isinstance(outer, AxisFactor)
            and isinstance(item, AxisFactor)
            and outer[:2] == (item.axis, item.end)
        ):
            size = OPEN if outer.size == OPEN else outer.size * item.size
            found[-1] = AxisFactor(item.axis, item.stride, size)
        else:
            found.append(item)
    return found


def _whole(item: Item, shape: Shape) -> Item:
    """Return the axis, if an item is all of it."""
    whole = isinstance(item, AxisFactor) and item.stride == 1
    return axis_of(item) if whole and item == factor_of(axis_of(item), shape) else item


def dim_of(items: Iterable[Item], shape: Shape) -> FormDim:
    """Return the dimension that holds some items, -1 for none."""
    found = tuple(_whole(item, shape) for item in items)
    return found[0] if len(found) == 1 else found or -1


def same(form: Form, shape: Shape) -> Form:
    """Return what forms of the same sizes and elements have in common; axes of size 1 are alike."""
    if is_whole(form):
        return tuple([axis if axis >= 0 and shape[axis] != 1 else -1 for axis in form])
    return tuple(dim_of(order_of((dim,), shape), shape) for dim in form)


def renamed_order(order: Order, axes: Sequence[int] | Mapping[int, int]) -> Order:
    """Return an order of other axes: ``axes[a]`` for ``a``."""
    return tuple(
        [
            item._replace(axis=axes[item.axis])
            if isinstance(item, AxisFactor)
            else (axes[item] if item >= 0 else -1)
            for item in order
        ]
    )


def renamed(form: Form, axes: Sequence[int]) -> Form:
    """Return a form of other axes: ``axes[a]`` for ``a``."""
    if is_whole(form):
        return renamed_order(form, axes)
    dims = ((dim, renamed_order(group_of(dim), axes)) for dim in form)
    return tuple(items if is_group(dim) else items[0] for dim, items in dims)


def moved_to(dim: FormDim, axis: int) -> FormDim:
    """Return a dimension of one axis as one of another."""
    if isinstance(dim, int):
        return axis
    if isinstance(dim, AxisFactor):
        return dim._replace(axis=axis)
    return tuple(i._replace(axis=axis) if isinstance(i, AxisFactor) else axis for i in dim)


def compact(order: Order) -> Form:
    """Return a form with one dimension for neighbouring factors of an axis."""
    runs = (tuple(run) for _, run in groupby(order, axis_of))
    return tuple(run[0] if len(run) == 1 else run for run in runs)


def sort_key(order: Order) -> tuple[tuple[int, ...], ...]:
    """Return what orders can be sorted by."""
    return tuple(item if isinstance(item, AxisFactor) else (item,) for item in order)


def spread(order: Order, shape: Shape) -> Form:
    """Return a form of an order with all axes; those of size 1 in place, or in front of factors."""
    if has_factors(order):
        ones = tuple(axis for axis, size in enumerate(shape) if size == 1)
        return (*ones, *order)
    left = iter(order)
    return tuple(axis if size == 1 else next(left) for axis, size in enumerate(shape))


def ends_of(items: Iterable[Item]) -> dict[int, set[int]]:
    """Return where axes are cut: the strides of all factors, and of what is behind them."""
    ends: dict[int, set[int]] = {}
    for item in items:
        if isinstance(item, AxisFactor):
            ends.setdefault(item.axis, {1}).update((item.stride, item.end))
    return ends


def is_nested(ends: Collection[int]) -> bool:
    """Return whether an axis can be cut at all of some places: each divides the next, none is 0."""
    cuts = sorted(end for end in ends if end != OPEN)
    return 0 not in cuts and not any(high % low for low, high in pairwise(cuts))


def padded_axes(form: Form, shape: Shape) -> dict[int, int]:
    """Return the axes that are padded so that blocks divide them, with their sizes then."""
    found = {}
    for axis, ends in ends_of(items_of(form)).items():
        size = shape[axis]
        if isinstance(size, int) and max(ends) > size:
            found[axis] = max(ends)
    return found


def rows(axes: Iterable[int], shape: Shape) -> list[AxisFactor] | None:
    """Return neighbouring axes as factors of the row that they are together, innermost first.

    None if a size is unknown, but for the outermost.
    """
    found: list[AxisFactor] = []
    stride = 1
    for axis in reversed(list(axes)):
        if stride >= OPEN:
            return None
        found.append(factor_of(axis, shape)._replace(stride=stride))
        stride *= found[-1].size
    return found


def within(stride: int, size: int, cells: Iterable[AxisFactor]) -> tuple[AxisFactor, ...] | None:
    """Return the factor ``i // stride % size`` of a row in the axes that the row is cut into.

    Element ``i`` has index ``i // cell.stride % cell.size`` along axis ``cell.axis``.  The answer
    has factors of these axes, outermost first, or is None if the factor cuts through them.
    """
    found: list[AxisFactor] = []
    for cell in sorted(cells, key=lambda cell: cell.stride):
        end = cell.end
        if size == 1:
            break
        if stride >= end or cell.size == 1:
            continue
        if stride % cell.stride or (end % stride and end != OPEN):
            return None
        room = OPEN if end == OPEN else end // stride
        taken = min(size, room)
        if (size % taken and size != OPEN) or (room % taken and room != OPEN):
            return None
        found.insert(0, AxisFactor(cell.axis, stride // cell.stride, taken))
        stride *= taken
        size = OPEN if size == OPEN != taken else size // taken
    return tuple(found) if size == 1 else None


def names_of(form: Form, letters: Sequence[str]) -> list[str]:
    """Return what each dimension of a form holds, in letters.

    ``C`` is an axis or its outermost factor, ``16c`` another one, ``[4o4i]`` are several in one
    dimension; of names that are no letters, ``(1/16%4)`` is a factor.  An axis of size 1 that is
    added has no name.
    """
    tops = set(outermost(form).values())

    def name(at: int, item: Item) -> str:
        letter = "" if item == -1 else letters[axis_of(item)]
        if isinstance(item, AxisFactor) and not letter.isalpha():
            rest = "" if item.size == OPEN else f"%{item.size}"
            return f"({letter}/{item.stride}{rest})"
        if isinstance(item, AxisFactor) and at not in tops:
            return f"{item.size}{letter.lower()}"
        return letter

    names = iter([name(at, item) for at, item in enumerate(items_of(form))])
    dims = ([next(names) for _ in group_of(dim)] for dim in form)
    return [own[0] if len(own) == 1 else f"[{''.join(own)}]" for own in dims]


def outermost(form: Form) -> dict[int, int]:
    """Return for each axis the place of its outermost factor among the items of a form."""
    found: dict[int, tuple[int, bool, int]] = {}
    for at, item in enumerate(items_of(form)):
        _, stride, size = item if isinstance(item, AxisFactor) else (item, 1, 0)
        key = stride, size != 1
        if axis_of(item) not in found or key > found[axis_of(item)][:2]:
            found[axis_of(item)] = *key, at
    return {axis: at for axis, (*_, at) in found.items()}


def axis_factors(
    dims: Sequence[Dim], axes: str, sizes: Sequence[int]
) -> tuple[tuple[AxisFactor, ...], ...]:
    """Return the blocks of each dimension as factors of axes, which have letters and sizes.

    The block without a size takes what the others of its axis leave; a last block that does not
    divide the axis is padded.
    """
    strides = [1] * len(axes)
    found = dict[tuple[int, int], AxisFactor]()
    every = [(d, n, block) for d, dim in enumerate(dims) for n, block in enumerate(dim.blocks)]
    for d, n, block in sorted(every, key=lambda one: (one[2].size is None, -one[0], -one[1])):
        axis = axes.index(block.axis)
        size = -(-sizes[axis] // strides[axis]) if block.size is None else block.size
        found[d, n] = AxisFactor(axis, strides[axis], size)
        strides[axis] *= size
    return tuple(tuple(found[d, n] for n in range(len(dim.blocks))) for d, dim in enumerate(dims))


Kind: TypeAlias = Literal["view", "pad", "split", "permute", "merge", "crop", "align"]


@dataclass(frozen=True)
class TransformStep:
    """One step of a transform.

    Parameters
    ----------
    kind
        ``"pad"`` (by zeros, at the end of dimensions), ``"crop"``, ``"split"`` (dimensions into
        several), ``"merge"`` (several into one), ``"permute"``, ``"align"`` (the strides), or
        ``"view"`` (the same elements one after the other in another shape).
    form
        What each dimension holds afterwards.
    numbers
        The axes as for ``numpy.transpose`` of a permutation, the strides in elements of an
        alignment, the shape afterwards of all others.
    """

    kind: Kind
    form: Form
    numbers: Shape

    def apply(self, array: AnyArray) -> AnyArray:
        """Return what the step makes of an array; a view of it where that can be."""
        numbers = [int(n or 0) for n in self.numbers]
        if self.kind == "permute":
            return array.transpose(numbers)
        if self.kind == "crop":
            return array[tuple(map(slice, numbers))]
        if self.kind == "pad":
            padded = np.zeros(numbers, array.dtype)
            padded[tuple(map(slice, array.shape))] = array
            return padded
        if self.kind == "align":
            return strided(array, numbers)
        return array.reshape(numbers)


def steps(source: Form, target: Form, shape: Shape) -> Iterator[TransformStep]:
    """Yield the steps from one form of a tensor to another.

    All axes are cut at the ends of all factors of both forms, permuted, and joined again.  Where
    of two such ends neither divides the other, as from blocks of 6 to blocks of 4, the way leads
    through whole axes.  Axes of size 1 that only one of the forms has come and go by reshapes.
    """
    if order_of(source, shape) == order_of(target, shape):
        yield from view(source, target, shape)
        return
    cells = _cells(source, target, shape)
    if cells is None:
        whole = tuple(range(len(shape)))
        yield from steps(source, whole, shape)
        yield from steps(whole, target, shape)
        return
    have, want = (
        (*(axis for axis in cells if axis not in map(axis_of, items_of(form))), *form)
        for form in (source, target)
    )
    before, after = _refined(have, cells), _refined(want, cells)
    if before == source:  # then axes of size 1 that are not wanted need not be taken away first
        after = (*(i for i in before if item_size(i, shape) == 1 and i not in after), *after)
    else:
        before = tuple(i for i in before if item_size(i, shape) != 1 or i in after)
    after = tuple(i for i in after if item_size(i, shape) != 1 or i in before)
    moves: list[tuple[Kind, Form, Form]] = [("permute", before, after)]
    if (narrow := _single(have, cells, before)) != (wide := _widened(narrow, cells, shape)):
        moves.insert(0, ("pad", narrow, wide))
    if (narrow := _single(want, cells, after)) != (wide := _widened(narrow, cells, shape)):
        moves.append(("crop", wide, narrow))
    at = source
    for kind, start, end in moves:
        if start != end:
            yield from _reshape(at, start, shape)
            permute = kind == "permute"
            yield TransformStep(
                kind, end, tuple(map(start.index, end)) if permute else sizes_of(end, shape)
            )
            at = end
    yield from _reshape(at, target, shape)


def view(source: Form, target: Form, shape: Shape) -> Iterator[TransformStep]:
    """Yield the step from one form to another of the same order, none if their sizes are equal."""
    for step in _reshape(source, target, shape):
        yield TransformStep("view", step.form, step.numbers)


def _reshape(source: Form, target: Form, shape: Shape) -> Iterator[TransformStep]:
    before, after = sizes_of(source, shape), sizes_of(target, shape)
    known = all(isinstance(size, int) for size in before)
    if not (before == after if known else same(source, shape) == same(target, shape)):
        yield TransformStep("split" if len(after) > len(before) else "merge", target, after)


Cells: TypeAlias = Mapping[int, Sequence[AxisFactor]]
"""The factors that axes are cut into, outermost first."""


def _cells(source: Form, target: Form, shape: Shape) -> Cells | None:
    """Return the factors that both forms are made of, None if they cut through each other's.

    An axis that is padded in one of them is as long as it needs to be for both.
    """
    strides: dict[int, set[int]] = {}
    ends: dict[int, set[int]] = {}
    for form in (source, target):
        for item in items_of(form):
            if isinstance(item, AxisFactor):
                strides.setdefault(item.axis, {1}).add(item.stride)
                ends.setdefault(item.axis, set()).add(item.end)
    found = {}
    for axis, own in strides.items():
        size = shape[axis]
        if not is_nested(own):
            return None
        top, *_ = cuts = sorted(own, reverse=True)
        width = OPEN * top
        if isinstance(size, int):
            width = -(-max(size, *ends[axis]) // top) * top if size else 0
        found[axis] = [AxisFactor(axis, low, high // low) for high, low in pairwise([width, *cuts])]
    return found


def _refined(form: Form, cells: Cells) -> tuple[Item, ...]:
    """Return the items of a form, cut into given factors; its outermost ones are as long."""
    found: list[Item] = []
    tops = outermost(form).values()
    for at, item in enumerate(items_of(form)):
        own = cells.get(axis_of(item))
        if own is None:
            found += [item] if item != -1 else []
            continue
        _, low, size = item if isinstance(item, AxisFactor) else (item, 1, 1)
        found += [c for c in own if low <= c.stride and (at in tops or c.stride < low * size)]
    return tuple(found)


def _single(form: Form, cells: Cells, kept: Collection[Item]) -> tuple[Item, ...]:
    """Return the items of a form, each a dimension: those of cut axes, and those to be kept."""
    return tuple(item for item in items_of(form) if axis_of(item) in cells or item in kept)


def _widened(items: Form, cells: Cells, shape: Shape) -> tuple[Item, ...]:
    """Return items of which the outermost of each axis is as long as its factors together."""
    found = list(items_of(items))
    for axis, at in outermost(items).items():
        if axis in cells:
            stride, top = factor_of(found[at], shape).stride, cells[axis][0]
            size = OPEN if top.size == OPEN else top.end // stride
            wide = AxisFactor(axis, stride, size)
            found[at] = wide if wide != factor_of(found[at], shape) else found[at]
    return tuple(found)


def strided(array: AnyArray, strides: Sequence[int]) -> AnyArray:
    """Return an array with given strides, in elements, over memory that is zero elsewhere."""
    if array.strides == tuple(stride * array.itemsize for stride in strides):
        return array
    found = spaced_zeros(array.shape, strides, array.dtype)
    found[...] = array
    return found


def spaced_zeros(extents: Sequence[int], strides: Sequence[int], dtype: DTypeLike) -> AnyArray:
    """Return an array of zeros with given strides, in elements; its flat memory is ``.base``."""
    kind = np.dtype(dtype)
    size = 0 if 0 in extents else extents[0] * strides[0] if extents else 1
    memory = np.zeros(size, kind)
    return np.ndarray(extents, kind, memory, strides=[kind.itemsize * step for step in strides])
