"""Forms: how a value is written in the new graph, and free moves from one form to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from layoutopt.conversion.values import Order, order_of
from layoutopt.operators.op import Shape

Form: TypeAlias = tuple[int, ...]
"""For each axis of a tensor that of the value; -1 for one of size 1 that is added."""


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
        return tuple(1 if axis < 0 else self.shape[axis] for axis in form)


def same(form: Form, shape: Shape) -> Form:
    """Return what forms of the same sizes and elements have in common: axes other than of 1."""
    return tuple(axis if axis >= 0 and shape[axis] != 1 else -1 for axis in form)


@dataclass(frozen=True)
class Step:
    """An op that moves nothing.

    Parameters
    ----------
    type, attributes
        What it is.
    form
        The form afterwards.
    """

    type: str
    attributes: Mapping[str, Any]
    form: Form


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
    written = _written(source, target, shape)
    if written is not None:
        yield Step("Reshape", {"shape": written}, target)
        return
    gone = tuple(i for i, axis in enumerate(source) if axis < 0 or shape[axis] == 1)
    if gone:
        source = tuple(axis for i, axis in enumerate(source) if i not in gone)
        yield Step("Squeeze", {"axes": gone}, source)
    added = tuple(i for i, axis in enumerate(target) if axis < 0 or shape[axis] == 1)
    if added:
        yield Step("Unsqueeze", {"axes": added}, target)


def _written(source: Form, target: Form, shape: Shape) -> tuple[int, ...] | None:
    """Return a shape as Reshape takes it, None if it cannot be written."""
    found: list[int] = []
    for i, axis in enumerate(target):
        size = 1 if axis < 0 else shape[axis]
        if size == 0:
            return None
        if isinstance(size, int):
            found.append(size)
        else:
            found.append(0 if i < len(source) and source[i] == axis else -1)
    return tuple(found) if found.count(-1) < 2 else None
