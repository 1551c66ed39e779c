"""Forms: how a value is written in the new graph, and moves from one form to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutopt.conversion.orders import (
    Form,
    Order,
    digits_of,
    dim_size,
    has_parts,
    is_group,
    is_permutation,
    order_of,
    refined,
    same,
    sizes_of,
    spread,
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
class Step:
    """An op that takes a value from one form to another.

    Parameters
    ----------
    type, attributes
        What it is; all but ``Transpose`` move nothing.
    form
        The form afterwards.
    """

    type: str
    attributes: Mapping[str, Any]
    form: Form


def transform(source: Form, target: Form, shape: Shape) -> Iterator[Step]:
    """Yield the steps from one form to another, one of them a Transpose.

    All parts are moved at once; before and after, axes are cut into parts and joined, and axes of
    size 1 that are added come last.

    Parameters
    ----------
    source, target
        Forms of different orders.
    shape
        The value's.
    """
    before, after = source, target
    if not is_permutation(source, shape) or has_parts(target):
        digits = digits_of((source, target), shape)
        before, after = refined(source, shape, digits), refined(target, shape, digits)
    elif not is_permutation(target, shape):
        after = spread(order_of(target, shape), shape)
    yield from moves(source, before, shape)
    yield Step("Transpose", {"perm": tuple(map(before.index, after))}, after)
    yield from moves(after, target, shape)


def moves(source: Form, target: Form, shape: Shape) -> Iterator[Step]:
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
        yield Step("Reshape", {"shape": written}, target)
        return
    gone = tuple(i for i, dim in enumerate(source) if dim_size(dim, shape) == 1)
    if gone:
        source = tuple(dim for i, dim in enumerate(source) if i not in gone)
        yield Step("Squeeze", {"axes": gone}, source)
    added = tuple(i for i, dim in enumerate(target) if dim_size(dim, shape) == 1)
    if added:
        yield Step("Unsqueeze", {"axes": added}, target)


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
