"""Numbers that rules take, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from layoutopt.base.errors import InputError


def least(name: str, given: Any, low: int = 1) -> int:
    """Return an integer of ``low`` or more.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        number = index(given)
    except TypeError:
        number = low - 1
    if isinstance(given, bool) or number < low:
        raise InputError(f"{name} must be an integer of {low} or more, got {given!r}")
    return number


def integers(name: str, given: Any, low: int = 1, count: int | None = None) -> tuple[int, ...]:
    """Return a list of integers of ``low`` or more.

    Parameters
    ----------
    count
        How many there must be; any number by default.

    Raises
    ------
    InputError
        If it is none.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list of integers, got {given!r}")
    numbers = tuple(least(f"{name}[{i}]", entry, low) for i, entry in enumerate(given))
    if count is not None and len(numbers) != count:
        raise InputError(f"{name} has {len(numbers)} entries, {count} are needed")
    return numbers
