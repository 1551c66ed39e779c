"""Rows as tables and documents for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import Any

from layoutopt.bench.row import Row
from layoutopt.bench.store import canonical
from layoutopt.io.files import encode_lines
from layoutopt.pictures.tables import csv_table, markdown_table
from layoutopt.pictures.text import number, ratio

FORMAT = "layoutopt/bench/1"

LONG = ("trace", "pairs")
"""Fields that are left out where a row is a line."""

NAMES = tuple(field.name for field in fields(Row) if field.name not in LONG)


def to_csv(rows: Sequence[Row]) -> bytes:
    """Return rows as CSV: numbers digit by digit, unknown ones empty, mappings as JSON.

    Traces and pairs are left out; the gap is added.
    """
    values = [[*(_cell(getattr(row, name)) for name in NAMES), row.gap] for row in rows]
    return csv_table([*NAMES, "gap"], values).encode()


def _cell(value: Any) -> Any:
    return canonical(value) if isinstance(value, dict) else value


def to_json(rows: Sequence[Row]) -> bytes:
    """Return rows as a JSON document of format ``layoutopt/bench/1``, with all that is known."""
    entries = [asdict(row) | {"gap": row.gap} for row in rows]
    return encode_lines({"format": FORMAT, "rows": entries})


def to_markdown(rows: Sequence[Row]) -> bytes:
    """Return rows as a table in Markdown, one line for each."""
    head = ("instance", "solver", "status", "score", "bound", "gap", "seconds", "MiB")
    return markdown_table(head, map(_cells, rows), left=3).encode()


def _cells(row: Row) -> tuple[str, ...]:
    memory = "-" if row.peak_bytes is None else f"{row.peak_bytes >> 20:,}"
    numbers = number(row.score), number(row.bound), ratio(row.gap), f"{row.seconds:.3f}"
    return (row.instance, row.solver, row.status, *numbers, memory)


EXPORTS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    "csv": to_csv,
    "json": to_json,
    "markdown": to_markdown,
}
"""Ways to write rows, by name."""
