"""Lists of sizes, and words from a few, checked where they come in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from layoutopt.base.errors import InputError
from layoutopt.layout.parts import LayoutError
from layoutopt.tiles.arguments import integers, least


def sizes(name: str, given: Any, low: int = 0, count: int | None = None) -> tuple[int, ...]:
    """Return a list of integers of ``low`` or more as a tuple.

    Parameters
    ----------
    name
        What they are, for the message.
    count
        How many there must be; any number by default.

    Raises
    ------
    LayoutError
        If it is none.  Sizes known at run time only, as -1 or None, are none either.
    """
    try:
        return integers(name, given, low, count)
    except InputError as error:
        raise LayoutError(str(error)) from None


def pairs(name: str, given: Any) -> tuple[tuple[int, int], ...]:
    """Return a list of pairs of integers of 0 or more.

    Raises
    ------
    LayoutError
        If it is none.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise LayoutError(f"{name} must be a list of pairs, got {given!r}")
    every = enumerate(given)
    return tuple((a, b) for a, b in (sizes(f"{name}[{at}]", pair, 0, 2) for at, pair in every))


def size(name: str, given: Any, low: int) -> int:
    """Return one integer of ``low`` or more.

    Raises
    ------
    LayoutError
        If it is none.
    """
    try:
        return least(name, given, low)
    except InputError as error:
        raise LayoutError(str(error)) from None


def check_word(name: str, given: Any, words: Any) -> None:
    """Check that a word is one of a ``Literal`` type's.

    Raises
    ------
    LayoutError
        If it is another.
    """
    allowed = get_args(words)
    if given not in allowed:
        raise LayoutError(f"{name} must be one of {', '.join(allowed)}; got {given!r}")
