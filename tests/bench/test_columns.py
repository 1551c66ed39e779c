"""A store that somebody else has written into is refused where a row is none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from layoutopt.bench.store import reading, writing
from tests.bench.support import outcome, row
from tests.support import refused

CELLS: list[tuple[str, Any, str]] = [
    ("score", "NaN", "no score, but 'NaN'"),
    ("bound", "high", "no bound, but 'high'"),
    ("max_score", b"\x00", "no max_score"),
    ("trace", "[[0.1]]", "no trace"),
    ("pairs", "[[1, 2]]", "no pairs"),
    ("size", None, "no size, but None"),
    ("phases", "{", "no phases"),
    ("phases", '{"read": -1}', "times that are none"),
    ("seconds", float("inf"), "times that are none"),
    ("seconds", "soon", "$.seconds"),
    ("seed", None, "$.seed"),
    ("solver", b"\x00", "$.solver"),
    ("status", "perfect", "no status, but 'perfect'"),
]


@pytest.mark.parametrize(("column", "cell", "told"), CELLS)
def test_cells_that_hold_something_else(column: str, cell: Any, told: str, tmp_path: Path) -> None:
    """The line names the store, the column and what stands there."""
    path = tmp_path / "bench.sqlite"
    with writing(path) as store:
        store.add(outcome(row()))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE results SET {column} = ?", (cell,))
    with reading(path) as store, refused("bench.sqlite", told):
        store.rows()


def test_names_in_another_encoding(tmp_path: Path) -> None:
    """A database whose own tables have names that are no text is refused, read or written."""
    path = tmp_path / "bench.sqlite"
    with writing(path) as store:
        store.add(outcome(row()))
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE sources", b"CREATE TABLE s\xffurces"))
    with refused("bench.sqlite", "cannot be used"), reading(path):
        pass
    with refused("bench.sqlite", "cannot be used"), writing(path):
        pass
