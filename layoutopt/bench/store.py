"""The results of batch runs in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from layoutopt.base.errors import InputError
from layoutopt.bench.job import Outcome, Solve
from layoutopt.bench.row import COLUMNS, KINDS, Row, canonical, row_of, written

SCHEMA = 1  # version of the tables; kept in the file as its ``user_version``
APPLICATION = 0x4C41594F  # marks the file as a store of results: its ``application_id``

Key: TypeAlias = tuple[str, str, str, int, int, str, str]
"""Instance hash, solver, parameters as text, seed, repeat, version, machine."""

KEY = ("instance_hash", "solver", "parameters", "seed", "repeat", "version", "machine")

TABLES = f"""
CREATE TABLE results (
  {", ".join(f"{name} {KINDS.get(name, 'TEXT')}" for name in COLUMNS)},
  PRIMARY KEY ({", ".join(KEY)}));
CREATE TABLE sources (identity TEXT PRIMARY KEY, instance_hash TEXT NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
"""

INSERT = f"""
INSERT INTO results ({", ".join(COLUMNS)}) VALUES ({", ".join("?" * len(COLUMNS))})
ON CONFLICT ({", ".join(KEY)}) DO UPDATE SET
  instance = min(instance, excluded.instance), family = min(family, excluded.family)
"""
"""Existing rows are kept.  A graph with two names gets the alphabetically first one."""


def key(row: Row) -> Key:
    """Return the key of a row."""
    return solve_key(row.instance_hash, row, row.version, row.machine)


def solve_key(graph: str, solve: Row | Solve, version: str, machine: str) -> Key:
    """Return the key of a solve of the graph with a hash."""
    text = canonical(solve.parameters)
    return graph, solve.solver, text, solve.seed, solve.repeat, version, machine


class Store:
    """An open file of results."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection
        self._hashes: dict[str, str] | None = None

    @property
    def logs(self) -> Path:
        """The folder of the logs of failures, beside the file."""
        return self.path.with_name(f"{self.path.name}.logs")

    def known(self, outcome: Outcome) -> Outcome:
        """Return an outcome with the hash of its graph, if known from an earlier one.

        A worker that could not build the graph does not know its hash.
        """
        if outcome.row.instance_hash != outcome.identity:
            return outcome
        digest = self.instances().get(outcome.identity, outcome.identity)
        return replace(outcome, row=replace(outcome.row, instance_hash=digest))

    def add(self, outcome: Outcome, *, again: bool = False) -> None:
        """Store an outcome durably; replace a row of the same key if it is solved again."""
        row, identity = outcome.row, outcome.identity
        new = self.instances().get(identity) != row.instance_hash
        stale = [key(row)] if again else []
        named = new and row.instance_hash != identity  # the graph was not known before
        if named:
            stale.append((identity, *key(row)[1:]))
        with located(self.path), self.connection as connection:
            where = " AND ".join(f"{name} = ?" for name in KEY)
            connection.executemany(f"DELETE FROM results WHERE {where}", stale)
            if named:  # other failures are now known to be of this graph
                move = "UPDATE OR IGNORE results SET instance_hash = ? WHERE instance_hash = ?"
                connection.execute(move, (row.instance_hash, identity))
                connection.execute("DELETE FROM results WHERE instance_hash = ?", (identity,))
            connection.execute(INSERT, [written(name, getattr(row, name)) for name in COLUMNS])
            if new:
                pair = identity, row.instance_hash
                connection.execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", pair)
        self.instances()[identity] = row.instance_hash

    def instances(self) -> dict[str, str]:
        """Return instance hashes by the identities of sources, those of added outcomes too."""
        if self._hashes is None:
            with located(self.path):
                found = self.connection.execute("SELECT identity, instance_hash FROM sources")
                self._hashes = dict(found)
        return self._hashes

    def keys(self, *, failed: bool = True) -> set[Key]:
        """Return the keys of all rows, failures included or not."""
        where = "" if failed else "WHERE status != 'failed'"
        with located(self.path):
            return set(self.connection.execute(f"SELECT {', '.join(KEY)} FROM results {where}"))

    def rows(self) -> list[Row]:
        """Return all rows, by name of the instance and then by key."""
        order = ", ".join(("instance", *KEY))
        query = f"SELECT {', '.join(COLUMNS)} FROM results ORDER BY {order}"
        with located(self.path):
            return [row_of(values) for values in self.connection.execute(query)]


@contextmanager
def located(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of invalid contents into an InputError with the file's name."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"the store cannot be used ({reason})", file=str(path)) from None
    except InputError as error:
        raise error.located(file=str(path)) from None


@contextmanager
def reading(path: str | Path) -> Iterator[Store]:
    """Open an existing store for reading, also while a run writes to it."""
    path = Path(path)
    if not path.is_file():
        raise InputError("no such store", file=str(path))
    with located(path):
        connection = _connect(path, "ro")
    try:
        if not _checked(connection, path):
            raise InputError("is empty, a store of results is needed", file=str(path))
        yield Store(path, connection)
    finally:
        connection.close()


@contextmanager
def writing(path: str | Path) -> Iterator[Store]:
    """Open a store for exclusive writing by a run; create it if it does not exist."""
    path = Path(path)
    if path.is_dir():
        raise InputError("is a directory, a file is needed", file=str(path))
    if not path.parent.is_dir():
        raise InputError("its directory does not exist", file=str(path))
    with _alone(path):
        with located(path):
            connection = _connect(path, "rwc")
        try:
            with located(path):
                if not _checked(connection, path):
                    connection.executescript(f"BEGIN; {TABLES} COMMIT;")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            yield Store(path, connection)
        finally:
            _settle(connection)


def _settle(connection: sqlite3.Connection) -> None:
    """Close a store, and merge its journal into the file unless it is being read."""
    with suppress(sqlite3.Error, UnicodeDecodeError):
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode={mode}", uri=True, timeout=10)


def _checked(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether the tables exist; refuse databases with others."""
    with located(path):
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [application] = connection.execute("PRAGMA application_id").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not version:
        return False
    if application != APPLICATION:
        raise InputError("is a database, but no store of results", file=str(path))
    if version != SCHEMA:
        reason = f"is a store of version {version}; this layoutopt reads version {SCHEMA}"
        raise InputError(reason, file=str(path))
    return True


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, which is released when the process ends."""
    import fcntl

    lock = path.with_name(f"{path.name}.lock")
    while True:
        with located(path):
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            reason = "is used by another run, which must end first"
            raise InputError(reason, file=str(path)) from None
        if lock.exists() and os.path.samestat(os.fstat(handle), lock.stat()):
            break
        os.close(handle)  # the run that held it has just ended and removed the file
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
