"""Rows as tables and documents for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, Protocol

from layoutopt.bench.columns import canonical
from layoutopt.bench.row import Row
from layoutopt.io.files import encode_lines
from layoutopt.pictures.tables import csv_table, markdown_table
from layoutopt.pictures.text import number, ratio

FORMAT = "layoutopt/bench/1"

LONG = ("trace", "pairs")
"""Fields that are left out where a row is a line."""

MEASURED = ("seconds", "cpu_seconds", "phases", "peak_bytes", "started", "trace")
"""Fields that differ from run to run."""


def to_csv(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as CSV: numbers digit by digit, unknown ones empty, mappings as JSON.

    Traces and pairs are left out; the gap is added.

    Parameters
    ----------
    measured
        Whether what was measured, which differs from run to run, is told as well.
    """
    names = [name for name in _names(measured) if name not in LONG]
    values = [[*(_cell(getattr(row, name)) for name in names), row.gap] for row in rows]
    return csv_table([*names, "gap"], values).encode()


def _names(measured: bool) -> list[str]:
    names = (field.name for field in fields(Row))
    return [name for name in names if measured or name not in MEASURED]


def _cell(value: Any) -> Any:
    return canonical(value) if isinstance(value, dict) else value


def to_json(rows: Sequence[Row], *, measured: bool = True) -> bytes:
    """Return rows as a JSON document of format ``layoutopt/bench/1``, with all that is known."""
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
    return markdown_table(head[:width], [_cells(row)[:width] for row in rows], left=3).encode()


def _cells(row: Row) -> tuple[str, ...]:
    memory = "-" if row.peak_bytes is None else f"{row.peak_bytes >> 20:,}"
    numbers = number(row.score), number(row.bound), ratio(row.gap, row.score), f"{row.seconds:.3f}"
    return (row.instance, row.solver, row.status, *numbers, memory)


class Export(Protocol):
    """A way to write rows, with or without what was measured."""

    def __call__(self, rows: Sequence[Row], /, *, measured: bool = True) -> bytes:
        """Return rows as bytes."""


EXPORTS: dict[str, Export] = {
    "csv": to_csv,
    "json": to_json,
    "markdown": to_markdown,
}
"""Ways to write rows, by name."""
