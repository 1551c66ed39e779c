"""Refusals of certificates, and checked access to plain data."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

T = TypeVar("T")

RATIO = re.compile("(-?[0-9]{1,4300})(?:/([0-9]{1,4300}))?")


class Refused(Exception):
    """Refusal of a certificate, with the reason in one line."""

    def __init__(self, why: str, about: Sequence[str] = ()) -> None:
        super().__init__(why + (f": {', '.join(about[:6])}" if about else ""))
        self.about = about


def number(given: object) -> Fraction | int:
    """Return a number: an integer, or a string such as ``-3/7``."""
    found = RATIO.fullmatch(given) if isinstance(given, str) else None
    if found and int(found[2] or 1):
        return Fraction(int(found[1]), int(found[2] or 1))
    if type(given) is not int:
        shown = repr(given)[:40] if isinstance(given, str | float) else type(given).__name__
        raise Refused(f"{shown} is neither an integer nor a ratio such as '3/7'")
    return given


def listed(given: object, length: int | None, what: str) -> list[Any]:
    """Return a list, after checking its length if one is given."""
    if not isinstance(given, list) or length not in (None, len(given)):
        raise Refused(f"{what} must be a list" + ("" if length is None else f" of {length}"))
    return given


def numbered(given: object, ends: Sequence[int], what: str) -> list[int]:
    """Return a list of integers, each from 0 and below its end."""
    for x, end in zip(listed(given, len(ends), what), ends, strict=True):
        if type(x) is not int or not 0 <= x < end:
            raise Refused(f"{what} must be integers from 0 to {end - 1}")
    return listed(given, None, what)


def message(given: object, width: int, node: int, read: Callable[[object], T]) -> list[T]:
    """Return a message to a node, as ``read`` takes each number.

    Given is a number per label, or an object: ``put`` for the labels ``at``, and ``rest`` for all
    others, 0 by default.
    """
    what = f"one to node {node}"
    if not isinstance(given, dict):
        return [*map(read, listed(given, width, what))]
    at = listed(given.get("at"), None, f"labels of {what}")
    labels = numbered(at, [width] * len(at), f"labels of {what}")
    found = [read(given.get("rest", 0))] * width
    for label, put in zip(labels, listed(given.get("put"), len(at), what), strict=True):
        found[label] = read(put)
    return found


def entry(given: object, key: str) -> Any:
    """Return the value of a required key."""
    if not isinstance(given, dict) or key not in given:
        raise Refused(f"there is no {key!r}, which is required")
    return given[key]
