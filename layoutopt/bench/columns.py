"""Rows of results as columns of a table, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from layoutopt.bench.row import FAILED, PairRow, Row
from layoutopt.errors import InputError
from layoutopt.result import Status
from layoutopt.trace import Point

COLUMNS = tuple(field.name for field in fields(Row))

JSON: dict[str, Any] = {
    "parameters": dict[str, Any],
    "phases": dict[str, float],
    "size": dict[str, int],
    "trace": tuple[Point, ...],
    "pairs": tuple[PairRow, ...],
}
"""Columns that hold JSON, with the types that come out of it."""

DECIMAL = ("score", "bound", "max_score")
"""Columns that hold exact decimals as text."""

KINDS = {"seed": "INTEGER", "repeat": "INTEGER", "peak_bytes": "INTEGER"} | dict.fromkeys(
    ("seconds", "cpu_seconds"), "REAL"
)
"""Types of columns that are no text."""


def canonical(parameters: object) -> str:
    """Return parameters as the text that stands in keys."""
    return msgspec.json.encode(parameters, order="sorted").decode()


def written(name: str, value: Any) -> Any:
    """Return what stands in a column for a value."""
    if name in JSON:
        return canonical(value)
    return str(value) if name in DECIMAL and value is not None else value


def row_of(values: Sequence[Any]) -> Row:
    """Return a row of the table.

    Raises
    ------
    InputError
        If a column holds something else than it is for.
    """
    members = dict(zip(COLUMNS, values, strict=True))
    for name in (*JSON, *DECIMAL):
        try:
            members[name] = _read(name, members[name])
        except (msgspec.MsgspecError, TypeError, InvalidOperation, RecursionError):
            raise InputError(f"a row holds no {name}, but {members[name]!r}") from None
    try:
        row = msgspec.convert(members, Row)
    except msgspec.ValidationError as error:
        raise InputError(f"a row is none ({error})") from None
    if row.status not in {*Status, FAILED}:
        raise InputError(f"a row holds no status, but {row.status!r}")
    numbers = (*row.phases.values(), row.seconds, row.cpu_seconds or 0.0)
    if not all(0 <= seconds < math.inf for seconds in numbers):
        raise InputError(f"a row holds times that are none: {numbers}")
    return row


def _read(name: str, value: Any) -> Any:
    if name in JSON:
        return msgspec.json.decode(value, type=JSON[name])
    number = None if value is None else Decimal(value)
    if number is not None and not number.is_finite():
        raise TypeError
    return number
