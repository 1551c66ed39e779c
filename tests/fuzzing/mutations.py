"""Ways to spoil a file: its bytes, its words, the tree of a JSON document, a store of results."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from layoutopt.bench.row import COLUMNS

Mutation: TypeAlias = Callable[[bytes, random.Random], bytes]
"""From a file to another one, by a source of random choices."""

WORD = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[A-Za-z_]+|\d+|\s+|.', re.DOTALL)

INTERESTING: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 255, 10**6, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *(0.5, -0.0, 1e308, 1e-320, True, False, None, "", "x", "x:1", ":", "0", "a\nb", "\u0000"),
    *("\u202e", "\ud800", "../x", "/etc/passwd", "n" * 5000, [], [[]], [0, 0], {}, {"": 0}),
)
"""Values on the edge of something."""


def spoil_bytes(data: bytes, draw: random.Random) -> bytes:
    """Flip, cut out, repeat or put in some bytes."""
    at = draw.randrange(len(data) + 1)
    end = min(len(data), at + draw.choice((1, 1, 2, 4, 16, 64)))
    kind = draw.randrange(5)
    if kind == 0 and at < len(data):
        return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
    if kind == 1:
        return data[:at] + data[end:]
    if kind == 2:
        return data[:end] + data[at:end] * draw.choice((1, 1, 8)) + data[end:]
    if kind == 3:
        return data[:at]
    return data[:at] + draw.randbytes(draw.choice((1, 2, 4))) + data[at:]


def spoil_words(data: bytes, draw: random.Random) -> bytes:
    """Take out, repeat, exchange or replace a word, number, text or sign."""
    words: list[bytes] = WORD.findall(data)
    if not words:
        return spoil_bytes(data, draw)
    at = draw.randrange(len(words))
    other = draw.choice((draw.choice(words), json.dumps(draw.choice(INTERESTING)).encode()))
    kind = draw.randrange(4)
    if kind == 0:
        del words[at]
    elif kind == 1:
        words.insert(at, other)
    elif kind == 2:
        words[at] = other
    else:
        to = draw.randrange(len(words))
        words[at], words[to] = words[to], words[at]
    return b"".join(words)


def spoil_tree(data: bytes, draw: random.Random) -> bytes:
    """Replace, take out or repeat a value of a JSON document, or move one elsewhere."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return spoil_words(data, draw)
    places = list(_places(document))
    if not places:
        return spoil_words(data, draw)
    parent, key = draw.choice(places)
    source, other = draw.choice(places)
    value = draw.choice((source[other], draw.choice(INTERESTING), _near(parent[key], draw)))
    kind = draw.randrange(4)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(key, json.loads(json.dumps(value)))
    else:
        parent[key] = json.loads(json.dumps(value))
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of each value in a document."""
    pairs: Sequence[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


def _near(value: Any, draw: random.Random) -> Any:
    """Return a value like another one."""
    if isinstance(value, int | float):
        return draw.choice((value + 1, value - 1, -value, value * 2, value * 10**9))
    if isinstance(value, str):
        return draw.choice((value[1:], value + value, value.upper(), f"{value}:0", [value]))
    return [value, value]


CELLS = (
    *(value for value in INTERESTING if value is None or isinstance(value, int | float | str)),
    *("{}", "[]", "[[]]", "null", "NaN", "1e999999", "-Infinity", "sNaN", '{"a": 1}', b"\x00\xff"),
    *("optimal", "failed", "feasible", "[[0.1, 1, 2]]", '[["a", "b", "1", 4, 2]]', "auto"),
)
"""What may stand in a cell."""

STATEMENTS = (
    *("DROP TABLE sources", "DROP TABLE results", "DELETE FROM results", "CREATE TABLE x (y)"),
    *("ALTER TABLE results DROP COLUMN pairs", "PRAGMA user_version = 7"),
    *("PRAGMA journal_mode=WAL", "INSERT INTO results SELECT * FROM results"),
    *("ALTER TABLE results RENAME TO r", "CREATE VIEW results AS SELECT * FROM r"),
    "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM sources; END",
    "CREATE TRIGGER t BEFORE INSERT ON results BEGIN SELECT RAISE(ABORT, 'no'); END",
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
