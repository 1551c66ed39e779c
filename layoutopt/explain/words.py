"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from layoutopt.base import numbers
from layoutopt.base.numbers import number

NAMED = 3
"""Largest number of names in a sentence."""


def paired(a: str, b: str) -> str:
    """Return the name of a pair."""
    return f"({a}, {b})"


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Join names with commas and "and"; of more than ``most``, the rest is counted."""
    left = len(names) - most
    if left > 1:
        return f"{', '.join(names[:most])} and {left:,} more"
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def costs(losses: Sequence[tuple[Decimal, str]], most: int = NAMED) -> str:
    """Return the total loss, and the losses by pair, as text.

    Parameters
    ----------
    losses
        Loss and name of each pair.
    """
    if not losses:
        return "cost nothing"
    total = numbers.total(loss for loss, _ in losses)
    if len(losses) == 1:
        return f"cost {number(total)} of {losses[0][1]}"
    return f"cost {number(total)}: {listed([f'{number(x)} of {name}' for x, name in losses], most)}"


def positions(count: int, more: bool = False) -> str:
    """Format a number of positions."""
    return f"{count:,} {'more ' if more else ''}position{'' if count == 1 else 's'}"


def sure(proved: bool) -> str:
    """Return the suffix of statements that are not proved."""
    return "" if proved else " (not proved)"
