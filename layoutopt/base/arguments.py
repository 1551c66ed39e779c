"""Checks of users' arguments: integers, lists of integers, words of an enumeration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, get_args

from layoutopt.base.errors import InputError


def least(name: str, given: Any, low: int = 1, *, error: type[InputError] = InputError) -> int:
    """Return a user's argument as an integer of at least ``low``, or raise ``error``."""
    try:
        number = index(given)
    except TypeError:
        number = low - 1
    if isinstance(given, bool) or number < low:
        raise error(f"{name} must be an integer of {low} or more, got {given!r}")
    return number


def integers(
    name: str,
    given: Any,
    low: int = 1,
    count: int | None = None,
    *,
    error: type[InputError] = InputError,
) -> tuple[int, ...]:
    """Return a user's argument as a tuple of ``count`` integers of at least ``low``."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list of integers, got {given!r}")
    entries = enumerate(given)
    numbers = tuple(least(f"{name}[{i}]", entry, low, error=error) for i, entry in entries)
    if count is not None and len(numbers) != count:
        raise error(f"{name} must have {count} entries, got {len(numbers)}")
    return numbers


def pairs(
    name: str, given: Any, *, error: type[InputError] = InputError
) -> tuple[tuple[int, int], ...]:
    """Return a user's argument as a tuple of pairs of integers of at least 0."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list of pairs, got {given!r}")
    entries = enumerate(given)
    found = (integers(f"{name}[{i}]", entry, 0, 2, error=error) for i, entry in entries)
    return tuple((a, b) for a, b in found)


def check_word(name: str, given: Any, words: Any, *, error: type[InputError] = InputError) -> None:
    """Check that an argument is one of the words of a ``Literal`` type."""
    allowed = get_args(words)
    if given not in allowed:
        raise error(f"{name} must be one of {', '.join(allowed)}; got {given!r}")
