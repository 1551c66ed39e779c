"""Arguments that users give, checked: integers, lists of them, words from a few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, get_args

from layoutopt.base.errors import InputError


def least(name: str, given: Any, low: int = 1, *, error: type[InputError] = InputError) -> int:
    """Return an integer of ``low`` or more.

    Parameters
    ----------
    name
        What it is, for the message.
    error
        What is raised where it is none.

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
    """Return a list of integers of ``low`` or more.

    Parameters
    ----------
    count
        How many there must be; any number by default.

    Raises
    ------
    InputError
        If it is none.  Sizes known at run time only, as -1 or None, are none either.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list of integers, got {given!r}")
    entries = enumerate(given)
    numbers = tuple(least(f"{name}[{i}]", entry, low, error=error) for i, entry in entries)
    if count is not None and len(numbers) != count:
        raise error(f"{name} has {len(numbers)} entries, {count} are needed")
    return numbers


def pairs(
    name: str, given: Any, *, error: type[InputError] = InputError
) -> tuple[tuple[int, int], ...]:
    """Return a list of pairs of integers of 0 or more.

    Raises
    ------
    InputError
        If it is none.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise error(f"{name} must be a list of pairs, got {given!r}")
    entries = enumerate(given)
    found = (integers(f"{name}[{i}]", entry, 0, 2, error=error) for i, entry in entries)
    return tuple((a, b) for a, b in found)


def check_word(name: str, given: Any, words: Any, *, error: type[InputError] = InputError) -> None:
    """Check that a word is one of a ``Literal`` type's.

    Raises
    ------
    InputError
        If it is another.
    """
    allowed = get_args(words)
    if given not in allowed:
        raise error(f"{name} must be one of {', '.join(allowed)}; got {given!r}")
