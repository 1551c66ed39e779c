"""What methods are given: integers, lists, one entry for each of several things, names."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from operator import index
from typing import Any, TypeVar

from layoutopt.base.errors import InputError
from layoutopt.graphs.ops import Shape
from layoutopt.graphs.tensor import Tensor

Item = TypeVar("Item")


def listed(name: str, given: Iterable[Item]) -> list[Item]:
    """Return an argument as a list, or say that it is none.

    A single tensor, or its name, is no list of tensors.
    """
    if isinstance(given, str | Tensor) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list, not one {type(given).__name__}")
    return list(given)


def integers(values: Any) -> Shape:
    """Return the values, or the only one, as Python integers, or say which are none."""
    try:
        if isinstance(values, Integral):
            return (index(values),)
        if isinstance(values, Tensor):  # which would be sliced into rows
            raise TypeError
        return tuple(map(index, values))
    except TypeError:
        raise InputError(f"{values!r} must be integers") from None


def places(mapping: Iterable[Any]) -> tuple[int | str, ...]:
    """Return the locations that a mapping names, as Python integers and strings."""
    given = listed("mapping", mapping)
    try:
        return tuple(str(where) if isinstance(where, str) else index(where) for where in given)
    except TypeError:
        raise InputError("mapping must hold one integer or string per element") from None


def one_each(
    name: str, given: Iterable[Item] | None, default: Item, count: int, things: str
) -> list[Item]:
    """Return one entry for each of several things: the given ones, or the same for all.

    Parameters
    ----------
    things
        What they are, for an error's text.
    """
    if given is None:
        return [default] * count
    entries = listed(name, given)
    if len(entries) != count:
        raise InputError(f"{name} has {len(entries)} entries for {count} {things}")
    return entries


def part_name(name: str | None, role: str) -> str | None:
    """Return the name of what a helper adds beside the op that has the given name, if any."""
    return None if name is None else f"{name}.{role}"
