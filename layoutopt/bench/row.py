"""Rows of batch runs: one solve each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
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
    """One solve of one instance, as in a store of results.

    Parameters
    ----------
    instance
        The instance's name.
    instance_hash
        SHA-256, in hexadecimal, of the graph's canonical document: its instance file without
        the description.
    family
        The family that the instance was generated from; "" for one from a file.
    solver
        Its name.
    parameters
        Options of the solver by name, without seed: ``time_limit``, ``gap``, ...
    seed, repeat
        Seed of everything random; number of the repetition, from 0.
    version, machine
        Version of layoutopt; name and processor of the machine.
    status
        A value of :class:`~layoutopt.base.result.Status`, or ``"failed"``.
    score, bound, max_score
        Exact; ``None`` where unknown.
    seconds
        Wall-clock seconds of the whole call.
    cpu_seconds
        CPU seconds of the worker, all threads together.
    phases
        Wall-clock seconds by phase; ``read``, building the graph, is not included in ``seconds``.
    size
        Counts by name: ``ops``, ``pairs``, and those of
        :attr:`~layoutopt.base.result.UnwindingResult.size`.
    peak_bytes
        Largest resident memory of the worker during the solve, loaded modules included;
        ``None`` where unknown.
    started
        When the solve began: ISO 8601, UTC.
    stopped
        A value of :class:`~layoutopt.base.result.Stopped`; "" for a failure.
    error
        Reason of a failure in one line; otherwise "".
    log
        Path of the log of a failure, relative to the store's folder; "" without one.
    trace
        Score and bound over time, at most 200 points, in order.
    pairs
        Scores of the pairs with the largest losses, at most 30.
    """

    instance: str
    instance_hash: str
    solver: str
    version: str
    machine: str
    status: str
    seconds: float
    started: str
    family: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0
    repeat: int = 0
    score: Decimal | None = None
    bound: Decimal | None = None
    max_score: Decimal | None = None
    cpu_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    size: Mapping[str, int] = field(default_factory=dict)
    peak_bytes: int | None = None
    stopped: str = ""
    error: str = ""
    log: str = ""
    trace: tuple[Point, ...] = ()
    pairs: tuple[PairRow, ...] = ()

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
        except (msgspec.MsgspecError, TypeError, InvalidOperation, RecursionError):
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
    if number is not None and not number.is_finite():
        raise TypeError
    return number


def select(rows: Sequence[Row], **patterns: Sequence[str]) -> list[Row]:
    """Return the rows whose fields match shell patterns, by name, such as ``figures/*``.

    One of several must match, and without any all match; a pattern that no row matches is refused.
    """
    chosen = list(rows)
    for name, wanted in patterns.items():
        values = dict.fromkeys(str(getattr(row, name)) for row in rows)
        fit = {value for value in values for pattern in wanted if fnmatchcase(value, pattern)}
        for pattern in wanted:
            if rows and not any(fnmatchcase(value, pattern) for value in values):
                raise InputError(f"no {name} fits {pattern!r}; there are {_listed(list(values))}")
        if wanted:
            chosen = [row for row in chosen if str(getattr(row, name)) in fit]
    return chosen


def side(rows: Sequence[Row], version: str | None, machine: str | None) -> list[Row]:
    """Return the rows of one version on one machine; if there are several, one must be chosen."""
    chosen = select(
        rows,
        version=[] if version is None else [version],
        machine=[] if machine is None else [machine],
    )
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
    values = [[*(_cell(getattr(row, name)) for name in names), row.gap] for row in rows]
    return Table([*names, "gap"], values).csv().encode()


def _names(measured: bool) -> list[str]:
    names = (field.name for field in fields(Row))
    return [name for name in names if measured or name not in MEASURED]


def _cell(value: Any) -> Any:
    return canonical(value) if isinstance(value, dict) else value


def to_json(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as a JSON document of format ``layoutopt/bench/1``."""
    names = _names(measured)
    entries = []
    for row in rows:
        whole = asdict(row)
        entries.append({name: whole[name] for name in names} | {"gap": row.gap})
    return encode_lines({"format": FORMAT, "rows": entries})


def to_markdown(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as a table in Markdown, one line for each."""
    head = ("instance", "solver", "status", "score", "bound", "gap", "seconds", "MiB")
    width = len(head) if measured else len(head) - 2
    return Table(head[:width], [_cells(row)[:width] for row in rows], 3).markdown().encode()


def _cells(row: Row) -> tuple[str, ...]:
    numbers = number(row.score), number(row.bound), ratio(row.gap, row.score), f"{row.seconds:.3f}"
    return (row.instance, row.solver, row.status, *numbers, mebibytes(row))


def mebibytes(row: Row) -> str:
    """Return the peak memory of a solve in MiB, rounded down; ``-`` if unknown."""
    return "-" if row.peak_bytes is None else f"{row.peak_bytes >> 20:,}"


EXPORTS: dict[str, Callable[..., bytes]] = {
    "csv": to_csv,
    "json": to_json,
    "markdown": to_markdown,
}
"""Writers of rows by format."""
