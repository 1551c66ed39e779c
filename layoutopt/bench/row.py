"""Rows of batch runs: one solve each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import msgspec

from layoutopt.base.errors import InputError
from layoutopt.base.files import encode_lines
from layoutopt.base.limits import Point
from layoutopt.base.numbers import number, ratio
from layoutopt.base.result import Result, Status
from layoutopt.base.table import Table

PairRow: TypeAlias = tuple[str, str, str, int, int]
"""Names of both tensors, value as text, number of elements, and how many of them match."""

FAILED = "failed"  # status of a solve without a result: an error, a crash, or a hard limit


@dataclass(frozen=True, kw_only=True)
class Row:
    """One solve of one instance by a solver, as in a store of results.

    Scores and bounds are exact, ``None`` where unknown.  Seconds are wall-clock ones of the whole
    call; CPU seconds and peak memory those of the worker, all threads and loaded modules included.
    """

    instance: str
    instance_hash: str  # of the graph's instance file without the description
    solver: str
    version: str
    machine: str
    status: str  # of Status, or FAILED
    seconds: float
    started: str  # ISO 8601, UTC
    family: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)  # options, without seed
    seed: int = 0
    repeat: int = 0
    score: Decimal | None = None
    bound: Decimal | None = None
    max_score: Decimal | None = None
    cpu_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)  # "read" is not in ``seconds``
    size: Mapping[str, int] = field(default_factory=dict)  # counts: ops, pairs, ...
    peak_bytes: int | None = None
    stopped: str = ""  # of Stopped
    error: str = ""  # reason of a failure in one line
    log: str = ""  # path of the log of a failure, relative to the store's folder
    trace: tuple[Point, ...] = ()  # score and bound over time
    pairs: tuple[PairRow, ...] = ()  # those with the largest losses

    @property
    def gap(self) -> float | None:
        """``(bound - score) / max(|score|, 1e-9)``; ``None`` if either is unknown."""
        return Result(objective=self.score, bound=self.bound).gap


COLUMNS = tuple(field.name for field in fields(Row))

JSON: dict[str, Any] = {
    "parameters": dict[str, Any],
    "phases": dict[str, float],
    "size": dict[str, int],
    "trace": tuple[Point, ...],
    "pairs": tuple[PairRow, ...],
}
"""Columns of JSON, with their decoded types."""

MOST_DIGITS = 5000  # of scores: costs of networks have up to 4,000, sums of them more

DECIMAL = ("score", "bound", "max_score")  # columns of exact decimals as text

KINDS = {"seed": "INTEGER", "repeat": "INTEGER", "peak_bytes": "INTEGER"} | dict.fromkeys(
    ("seconds", "cpu_seconds"), "REAL"
)
"""Types of columns other than text."""


def canonical(parameters: object) -> str:
    """Return parameters as text for keys."""
    return msgspec.json.encode(parameters, order="sorted").decode()


def written(name: str, value: Any) -> Any:
    """Encode a value for a column."""
    if name in JSON:
        return canonical(value)
    return str(value) if name in DECIMAL and value is not None else value


def row_of(values: Sequence[Any]) -> Row:
    """Return a row of the table, or refuse invalid values."""
    members = dict(zip(COLUMNS, values, strict=True))
    for name in (*JSON, *DECIMAL):
        try:
            members[name] = _read(name, members[name])
        except (msgspec.MsgspecError, InvalidOperation, TypeError, RecursionError):
            raise InputError(f"a row holds no {name}, but {members[name]!r}") from None
    try:
        row = msgspec.convert(members, Row)
    except msgspec.ValidationError as error:
        raise InputError(f"invalid row ({error})") from None
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
    if number is not None and not (number.is_finite() and abs(number.adjusted()) <= MOST_DIGITS):
        raise TypeError
    return number


def select(rows: Sequence[Row], **patterns: Sequence[str]) -> list[Row]:
    """Return the rows whose fields match shell patterns, by name, such as ``figures/*``.

    One of several must match, and without any all match; a pattern that no row matches is refused,
    unless it is that of a status that rows may have.
    """
    chosen = list(rows)
    for name, wanted in patterns.items():
        values = dict.fromkeys(str(getattr(row, name)) for row in rows)
        values |= dict.fromkeys([*map(str, Status), FAILED] if name == "status" else [])
        fit = {value for value in values for pattern in wanted if fnmatchcase(value, pattern)}
        for pattern in wanted:
            if rows and not any(fnmatchcase(value, pattern) for value in values):
                raise InputError(f"no {name} fits {pattern!r}; there are {_listed(list(values))}")
        if wanted:
            chosen = [row for row in chosen if str(getattr(row, name)) in fit]
    return chosen


def side(rows: Sequence[Row], version: str | None, machine: str | None) -> list[Row]:
    """Return the rows of one version on one machine; if there are several, one must be chosen."""
    given = {"version": version, "machine": machine}
    chosen = select(rows, **{name: [x] for name, x in given.items() if x is not None})
    for name in ("version", "machine"):
        values = list(dict.fromkeys(str(getattr(row, name)) for row in chosen))
        if len(values) > 1:
            reason = f"there is more than one {name}: {_listed(values)}; choose by --{name}"
            raise InputError(reason)
    return chosen


def _listed(values: Sequence[str], limit: int = 8) -> str:
    more = f", ... ({len(values) - limit} more)" if len(values) > limit else ""
    return ", ".join(map(repr, values[:limit])) + more


FORMAT = "layoutopt/bench/1"

LONG = ("trace", "pairs")  # fields omitted in CSV and Markdown

MEASURED = ("seconds", "cpu_seconds", "phases", "peak_bytes", "started", "trace")
"""Fields that differ from run to run."""


def to_csv(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as CSV: exact numbers, unknown ones empty, mappings as JSON.

    Traces and pairs are omitted, and measured fields if wanted; the gap is added.
    """
    names = [name for name in _names(measured) if name not in LONG]
    values = [[*(written(name, getattr(row, name)) for name in names), row.gap] for row in rows]
    return Table([*names, "gap"], values).csv().encode()


def _names(measured: bool) -> list[str]:
    return [name for name in COLUMNS if measured or name not in MEASURED]


def to_json(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as a JSON document of format ``layoutopt/bench/1``."""
    names = _names(measured)
    entries = [{name: getattr(row, name) for name in (*names, "gap")} for row in rows]
    return encode_lines({"format": FORMAT, "rows": entries})


def to_markdown(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as a table in Markdown, one line for each."""
    head = ("instance", "solver", "status", "score", "bound", "gap", "seconds", "MiB")
    width = len(head) if measured else len(head) - 2
    return Table(head[:width], [cells(row)[:width] for row in rows], 3).markdown().encode()


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row's line: names, status, numbers, seconds and memory."""
    numbers = number(row.score), number(row.bound), ratio(row.gap, row.score), f"{row.seconds:.3f}"
    return (row.instance, way(row), row.status, *numbers, mebibytes(row))


def way(row: Row, solver: str = "") -> str:
    """Return a solver's name, with seed and repetition unless 0."""
    seed = f" seed {row.seed}" if row.seed else ""
    return f"{solver or row.solver}{seed}" + (f" #{row.repeat + 1}" if row.repeat else "")


def mebibytes(row: Row) -> str:
    """Return the peak memory of a solve in MiB, rounded down; ``-`` if unknown."""
    return "-" if row.peak_bytes is None else f"{row.peak_bytes >> 20:,}"


EXPORTS: dict[str, Callable[..., bytes]] = {"csv": to_csv, "json": to_json, "markdown": to_markdown}
"""Writers of rows by format."""
