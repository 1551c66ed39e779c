"""Measured costs of ops in each layout, and of transforms, in time.

::

    [transform]
    us = 2.5                # each, in microseconds
    us_per_megabyte = 60    # and per million bytes that it moves

    [[op]]
    type = "Conv"           # or name = "conv1"
    layouts = "NHWC,HWIO"   # as for desired layouts
    us = 4
    us_per_megabyte = 15    # per million bytes of its operands and results
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from layoutopt.base.errors import InputError, errors_at
from layoutopt.base.files import named, parse_toml, read_utf8
from layoutopt.base.numbers import exact_decimal
from layoutopt.conversion.desired import Desired, parse_desired
from layoutopt.conversion.rules.op import Op

PER_MICROSECOND = 10**9
"""Femtoseconds, in which times are counted, of a microsecond."""

PER_BYTE = 10**3
"""Femtoseconds a byte at one microsecond for a million bytes."""


@dataclass(frozen=True)
class CostLine:
    """Cost of an op type in some layouts."""

    desired: Desired  # the ops that it is for, and the layouts
    # `fixed`, `per_byte`: femtoseconds of each op, and per byte of its operands and results
    fixed: int
    per_byte: int

    def suits(self, op: Op) -> bool:
        """Return whether it is for an op, and its blocks divide the op's axes."""
        return self.desired.layouts(op) is not None and self.desired.divides(op)


@dataclass(frozen=True)
class OpCosts:
    """Costs of ops in each layout."""

    # in order; of an op that is named, those for its type do not count
    lines: tuple[CostLine, ...]
    fixed: int  # `fixed`, `per_byte`: femtoseconds of each transform, and per byte that it moves
    per_byte: int

    def of(self, op: Op) -> list[CostLine]:
        """Return the lines for an op."""
        suiting = [line for line in self.lines if line.suits(op)]
        named = [line for line in suiting if line.desired.names]
        return named or suiting


def read_costs(path: str | Path) -> OpCosts:
    """Read a table of costs from a TOML file, as at the top of this module.

    Raises ``InputError`` if the file cannot be read, or says something else; the text names the
    place.
    """
    file = str(path)
    document = parse_toml(read_utf8(named(path)), file, Decimal)
    with errors_at(file=file):
        return costs_from(document)


def costs_from(document: Mapping[str, Any]) -> OpCosts:
    """Return the table of costs that a document of TOML holds; see :func:`read_costs`."""
    _only(document, {"transform", "op"}, "")
    transform, ops = document.get("transform", {}), document.get("op", [])
    if not isinstance(transform, Mapping) or not isinstance(ops, list):
        raise InputError("must have a table [transform] and tables [[op]]")
    _only(transform, {"us", "us_per_megabyte"}, "transform")
    lines = tuple(_line(one, f"op {n}") for n, one in enumerate(ops, 1))
    fixed, per_byte = _times(transform, "transform")
    return OpCosts(lines, fixed, per_byte)


def _line(given: Any, place: str) -> CostLine:
    if not isinstance(given, Mapping):
        raise InputError("must be a table", place)
    _only(given, {"type", "name", "layouts", "us", "us_per_megabyte"}, place)
    kind, name, layouts = (given.get(key) for key in ("type", "name", "layouts"))
    if (kind is None) == (name is None) or not isinstance(kind or name, str):
        raise InputError("needs either a type of op or the name of one", place)
    if not isinstance(layouts, str):
        raise InputError('needs layouts, as in "NHWC,HWIO"', place)
    with errors_at(place):
        desired = parse_desired(f"{kind}={layouts}" if kind else f"@{name}={layouts}")
    return CostLine(desired, *_times(given, place))


def _times(given: Mapping[str, Any], place: str) -> tuple[int, int]:
    """Return the femtoseconds that a table tells."""
    found = []
    for key, scale in (("us", PER_MICROSECOND), ("us_per_megabyte", PER_BYTE)):
        value = given.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise InputError(f"{key} must be a number, not {value!r}", place)
        try:
            scaled = Fraction(exact_decimal(value)) * scale
        except InputError as error:
            raise InputError(f"{key}: {error.reason}", place) from None
        if scaled < 0 or scaled.denominator != 1:
            digits = len(str(scale)) - 1
            raise InputError(f"{key} must be 0 or more, with up to {digits} decimals", place)
        found.append(scaled.numerator)
    return found[0], found[1]


def _only(given: Mapping[str, Any], known: set[str], place: str) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"there is no {key!r}; known: {', '.join(sorted(known))}", place)
