"""Checks of the numbers that name an instance."""

from __future__ import annotations

from layoutopt.errors import InputError


def at_least(least: int, **numbers: int) -> None:
    """Refuse numbers that are too small.

    Raises
    ------
    InputError
        That names the first of them.
    """
    for name, number in numbers.items():
        if number < least:
            raise InputError(f"{name} is {number}; it must be at least {least}")


def divides(**numbers: int) -> None:
    """Refuse two numbers of which the first does not divide the second.

    Raises
    ------
    InputError
        That names both.
    """
    (name, part), (whole_name, whole) = numbers.items()
    if whole % part:
        raise InputError(f"{name} is {part}; it must divide {whole_name}, which is {whole}")
