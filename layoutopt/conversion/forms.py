"""Forms: how a value is written in the new graph, and moves from one form to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutopt.conversion.cuts import digits_of, padded_axes, refined
from layoutopt.conversion.orders import (
    AxisFactor,
    Form,
    Order,
    dim_size,
    has_parts,
    is_group,
    is_permutation,
    order_of,
    same,
    sizes_of,
    spread,
    whole_axes,
)
from layoutopt.operators.op import Shape


@dataclass
class Laid:
    """The forms in which a value is there.

    Parameters
    ----------
    shape
        The value's shape.
    forms
        In the order in which they came about.
    """

    shape: Shape
    forms: list[Form] = field(default_factory=list)
    _names: dict[Form, str] = field(default_factory=dict)
    _by_order: dict[Order, Form] = field(default_factory=dict)

    def name(self, form: Form) -> str | None:
        """Return the name of the tensor of a form, or of one that is the same, if there is one."""
        return self._names.get(same(form, self.shape))

    def like(self, form: Form) -> Form | None:
        """Return a form that differs in axes of size 1 only, if there is one."""
        return self._by_order.get(order_of(form, self.shape))

    def add(self, form: Form, name: str) -> None:
        """Say that a tensor has a form."""
        self.forms.append(form)
        self._names.setdefault(same(form, self.shape), name)
        self._by_order.setdefault(order_of(form, self.shape), form)

    def sizes(self, form: Form) -> Shape:
        """Return the shape of a tensor of a form."""
        return sizes_of(form, self.shape)


@dataclass(frozen=True)
class FormStep:
    """An op that takes a value from one form to another.

    Parameters
    ----------
    type, attributes
        What it is; all but ``Transpose``, ``Pad`` and ``Slice`` move nothing.
    form
        The form afterwards.
    """

    type: str
    attributes: Mapping[str, Any]
    form: Form


def transform(source: Form, target: Form, shape: Shape) -> Iterator[FormStep]:
    """Yield the steps from one form to another.

    All parts are moved at once, by a Transpose; before and after, axes are cut into parts and
    joined, and axes of size 1 that are added come last.  Axes that blocks do not divide are padded
    with zeros first, or are cut off last.

    Parameters
    ----------
    source, target
        Forms of different orders.
    shape
        The value's.
    """
    before, after = padded_axes(source, shape), padded_axes(target, shape)
    wide = {axis: size for axis, size in after.items() if axis not in before}
    narrow = {axis: size for axis, size in before.items() if axis not in after}
    start, end = source, target
    if wide:
        own = _items(source, shape, wide)
        yield from moves(source, own, shape)
        start = _padded(own, wide)
        yield FormStep("Pad", {"pads": _pads(own, shape, wide)}, start)
    if narrow:
        end = _items(target, shape, narrow)
    yield from _moved(start, _padded(end, narrow), shape)
    if narrow:
        yield FormStep("Slice", _cuts(end, shape, narrow), end)
        yield from moves(end, target, shape)


def _items(form: Form, shape: Shape, wide: Iterable[int]) -> Form:
    """Return a form with a dimension for each item, and those to be padded, whatever their size."""
    found = refined(form, shape, digits_of((form,), shape), set(whole_axes(form)))
    return (*(axis for axis in wide if axis not in found), *found)


def _padded(form: Form, sizes: Mapping[int, int]) -> Form:
    return tuple(
        AxisFactor(dim, 1, sizes[dim]) if isinstance(dim, int) and dim in sizes else dim
        for dim in form
    )


def _pads(form: Form, shape: Shape, sizes: Mapping[int, int]) -> tuple[int, ...]:
    """Return how many zeros come in front of each axis, none, and then how many behind it."""
    ends = [sizes[d] - int(shape[d] or 0) if isinstance(d, int) and d in sizes else 0 for d in form]
    return (*(0 for _ in form), *ends)


def _cuts(form: Form, shape: Shape, sizes: Mapping[int, int]) -> dict[str, tuple[int, ...]]:
    """Return what is left of padded axes, as Slice has it."""
    axes = [i for i, dim in enumerate(form) if isinstance(dim, int) and dim in sizes]
    ends = [int(shape[dim] or 0) for dim in form if isinstance(dim, int) and dim in sizes]
    return {"starts": (0,) * len(axes), "ends": tuple(ends), "axes": tuple(axes)}


def _moved(source: Form, target: Form, shape: Shape) -> Iterator[FormStep]:
    before, after = source, target
    if not is_permutation(source, shape) or has_parts(target):
        digits = digits_of((source, target), shape)
        kept = {*whole_axes(source)} & {*whole_axes(target)}
        before, after = (refined(form, shape, digits, kept) for form in (source, target))
    elif not is_permutation(target, shape):
        after = spread(order_of(target, shape), shape)
    yield from moves(source, before, shape)
    if before != after:
        yield FormStep("Transpose", {"perm": tuple(map(before.index, after))}, after)
    yield from moves(after, target, shape)


def moves(source: Form, target: Form, shape: Shape) -> Iterator[FormStep]:
    """Yield free steps from one form to another of the same order.

    A Reshape, if its shape can be written down; else axes of size 1 are taken away, and added.

    Parameters
    ----------
    source, target
        The forms.
    shape
        The value's.
    """
    if same(source, shape) == same(target, shape):
        return
    written = _written(source, target, shape)
    if written is not None:
        yield FormStep("Reshape", {"shape": written}, target)
        return
    gone = tuple(i for i, dim in enumerate(source) if dim_size(dim, shape) == 1)
    if gone:
        source = tuple(dim for i, dim in enumerate(source) if i not in gone)
        yield FormStep("Squeeze", {"axes": gone}, source)
    added = tuple(i for i, dim in enumerate(target) if dim_size(dim, shape) == 1)
    if added:
        yield FormStep("Unsqueeze", {"axes": added}, target)


def _written(source: Form, target: Form, shape: Shape) -> tuple[int, ...] | None:
    """Return a shape as Reshape takes it, None if it cannot be written."""
    found: list[int] = []
    for i, dim in enumerate(target):
        size = dim_size(dim, shape)
        if size == 0:
            return None
        if isinstance(size, int):
            found.append(size)
        else:
            copied = i < len(source) and source[i] == dim and not is_group(dim)
            found.append(0 if copied else -1)
    return tuple(found) if found.count(-1) < 2 else None
