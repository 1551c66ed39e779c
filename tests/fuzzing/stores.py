"""Ways to spoil a store of results: a cell, a row, a table, or the form of the file."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from pathlib import Path

from layoutopt.bench.row import COLUMNS
from tests.fuzzing.mutations import INTERESTING, spoil_bytes

CELLS = (
    *(value for value in INTERESTING if value is None or isinstance(value, int | float | str)),
    *("{}", "[]", "[[]]", "null", "NaN", "1e999999", "-Infinity", "sNaN", '{"a": 1}', b"\x00\xff"),
    *("optimal", "failed", "feasible", "[[0.1, 1, 2]]", '[["a", "b", "1", 4, 2]]', "auto"),
)
"""What may stand in a cell."""

STATEMENTS = (
    *("DROP TABLE sources", "DROP TABLE results", "DELETE FROM results", "CREATE TABLE x (y)"),
    *(
        "ALTER TABLE results DROP COLUMN pairs",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode=WAL",
    ),
    *("ALTER TABLE results RENAME TO r", "CREATE VIEW results AS SELECT * FROM r"),
    "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM sources; END",
    "CREATE TRIGGER t BEFORE INSERT ON results BEGIN SELECT RAISE(ABORT, 'no'); END",
    "INSERT INTO results SELECT * FROM results",
)


def spoil_store(data: bytes, draw: random.Random) -> bytes:
    """Spoil one thing in a store; what is none, byte by byte."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        path.write_bytes(data)
        connection = sqlite3.connect(path)
        try:
            with connection:
                if draw.random() < 0.2:
                    connection.execute(draw.choice(STATEMENTS))
                else:
                    column, cell = draw.choice(COLUMNS), draw.choice(CELLS)
                    where = f"rowid = {draw.randrange(1, 4)}"
                    connection.execute(f"UPDATE results SET {column} = ? WHERE {where}", (cell,))
        except (sqlite3.Error, OverflowError, UnicodeEncodeError):
            return spoil_bytes(data, draw)
        finally:
            connection.close()
        return path.read_bytes()
