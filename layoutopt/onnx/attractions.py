"""The values of an imported network's pairs: a shipped table, and a user's changes to it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files as resources
from pathlib import Path
from typing import TypeAlias

from layoutopt.errors import InputError
from layoutopt.graphs.values import exact_decimal
from layoutopt.io.files import read_utf8

Attractions: TypeAlias = Mapping[str, Decimal]
"""Value per element by table and key, for instance ``"matmul.lhs"``."""


def read_attractions(path: str | Path | None = None) -> Attractions:
    """Return the shipped values, some of them replaced by a user's.

    Parameters
    ----------
    path
        A TOML file in the form of the shipped ``attractions.toml``; it may hold any part
        of it.

    Raises
    ------
    InputError
        If the file cannot be read, names an entry that does not exist, or holds a value
        that is no finite number.
    """
    shipped = resources("layoutopt.onnx").joinpath("attractions.toml").read_bytes()
    values = _entries(shipped, "attractions.toml")
    if path is None:
        return values
    changes = _entries(read_utf8(Path(path)), str(path))
    for key in changes:
        if key not in values:
            raise InputError(f"there is no such entry; known: {', '.join(values)}", key, str(path))
    return values | changes


def _entries(raw: bytes, file: str) -> dict[str, Decimal]:
    """Return the entries of a TOML document by dotted key."""
    try:
        document = tomllib.loads(raw.decode(), parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML ({error})", file=file) from None
    except RecursionError:
        raise InputError("the TOML is nested too deeply", file=file) from None
    entries: dict[str, Decimal] = {}
    for table, members in document.items():
        if not isinstance(members, dict):
            raise InputError("must stand in a table, as in [matmul]", table, file)
        for key, value in members.items():
            place = f"{table}.{key}"
            if isinstance(value, str):  # "1.5" would be a number to exact_decimal
                raise InputError(f"value {value!r} is not a decimal number", place, file)
            try:
                entries[place] = exact_decimal(value)
            except InputError as error:
                raise error.located(place, file) from None
    return entries
