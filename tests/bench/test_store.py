from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from layoutopt.bench.store import SCHEMA, key, reading, writing
from tests.bench.support import failed, outcome, row
from tests.support import refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bench.sqlite"


def test_rows_come_back_as_they_were(path: Path) -> None:
    """Every field survives: digits of decimals, what is unknown, traces, pairs, odd names."""
    rows = [
        row(instance="ä 'quoted'\n", score=Decimal("0.1000"), bound=Decimal("1e-30")),
        row(solver="greedy0", bound=None, peak_bytes=None, cpu_seconds=None, trace=(), pairs=()),
        failed(solver="mip", log="x.log"),
    ]
    with writing(path) as store:
        for one in rows:
            store.add(outcome(one))
        assert store.rows() == sorted(rows, key=lambda r: (r.instance, r.solver))
    with reading(path) as store:
        [_, _, last] = store.rows()
    assert str(last.score) == "0.1000"
    assert [type(x) for x in (last.trace, last.pairs[0])] == [tuple, tuple]


KEYS = {
    "instance_hash": "bb",
    "solver": "mip",
    "parameters": {"gap": 0.1},
    "seed": 1,
    "repeat": 1,
    "version": "2",
    "machine": "other",
}


@pytest.mark.parametrize("field", KEYS)
def test_rows_with_another_key_are_other_rows(path: Path, field: str) -> None:
    """Whatever of the key differs, there are two rows, and both are known."""
    rows = [row(), row(**{field: KEYS[field]})]
    with writing(path) as store:
        for one in rows:
            store.add(outcome(one, one.instance_hash))
        assert len(store.rows()) == 2
        assert store.keys() == {key(one) for one in rows}


def test_what_is_known_stays(path: Path) -> None:
    """A second row of the same key changes nothing but the name, to the first of the alphabet."""
    with writing(path) as store:
        for name, seconds in (("m", 1.0), ("z", 2.0), ("b", 3.0)):
            store.add(outcome(row(instance=name, family="f", seconds=seconds)))
        [one] = store.rows()
    assert (one.instance, one.seconds) == ("b", 1.0)


def test_failures_can_be_done_again(path: Path) -> None:
    """With ``failed=False`` failures are not known, and ``again`` puts a row in their place."""
    with writing(path) as store:
        store.add(outcome(failed()))
        assert store.keys() == {key(row())}
        assert store.keys(failed=False) == set()
        store.add(outcome(row()), again=True)
        assert store.rows() == [row()]


def test_failures_before_a_graph_was_known_become_rows_of_it(path: Path) -> None:
    """Rows that only knew a source's identity get the graph's hash, but for what it has already."""
    with writing(path) as store:
        for solver in ("auto", "mip", "own"):
            store.add(outcome(failed(instance_hash="source", solver=solver)))
        assert store.instances() == {"source": "source"}
        store.add(replace(outcome(row(solver="own")), identity="copy"))
        store.add(outcome(row()))
        assert store.rows() == [row(), failed(solver="mip"), row(solver="own")]
        assert store.instances() == {"copy": "aa", "source": "aa"}


def test_a_failure_to_make_a_known_graph_is_one_of_that_graph(path: Path) -> None:
    """What a worker could not tell, because it died too early, the store tells."""
    with writing(path) as store:
        early = outcome(failed(instance_hash="source", solver="mip"))
        assert store.known(early).row.instance_hash == "source"
        store.add(outcome(row()))
        assert store.known(early).row.instance_hash == "aa"
        assert store.known(outcome(row(instance_hash="bb"))).row.instance_hash == "bb"
    with writing(path) as store:
        assert store.known(early).row.instance_hash == "aa"


def test_a_second_run_is_refused(path: Path) -> None:
    """While a run has the store, another cannot open it to write; afterwards it can."""
    with writing(path) as store:
        store.add(outcome(row()))
        with refused(str(path), "another run"), writing(path):
            pass
    with writing(path) as store:
        assert len(store.rows()) == 1
    assert sorted(path.parent.iterdir()) == [path]  # nothing lies beside it


HOLD = """
import sys
from layoutopt.bench.store import writing
from tests.bench.support import outcome, row
with writing(sys.argv[1]) as store:
    store.add(outcome(row()))
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_killed_run_leaves_the_store_open_to_others(path: Path) -> None:
    """A process that is killed loses its lock, and no row that it had added."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        with refused("another run"), writing(path):
            pass
        process.kill()
    with writing(path) as store:
        assert store.rows() == [row()]


def test_a_store_is_read_while_it_is_written(path: Path) -> None:
    """Readers see each row as soon as it is added, and do not stand in the way."""
    with writing(path) as store, reading(path) as other:
        assert other.rows() == []
        for seed in range(3):
            store.add(outcome(row(seed=seed)))
            assert len(other.rows()) == seed + 1
        slow = other.connection.execute("SELECT seed FROM results")
        slow.fetchone()  # and it is not done yet
        store.add(outcome(row(seed=3)))
        slow.close()
        assert len(other.rows()) == 4


def test_a_full_disk_loses_nothing(path: Path) -> None:
    """When no more can be written, one line says so, and all rows so far are there."""
    with writing(path) as store:
        [pages] = store.connection.execute("PRAGMA page_count").fetchone()
        store.connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        with refused(str(path), "full"):
            for seed in range(1000):
                store.add(outcome(row(seed=seed)))
        kept = len(store.rows())
    assert 10 < kept < 1000
    with reading(path) as store:
        assert [one.seed for one in store.rows()] == list(range(kept))


def test_what_is_no_store_is_refused(path: Path, tmp_path: Path) -> None:
    """Files of another form, of another version, and missing ones are refused by name."""
    for open_it in (reading, writing):
        with refused(str(tmp_path)), open_it(tmp_path):
            pass
        with refused("nowhere"), open_it(tmp_path / "nowhere" / "b.sqlite"):
            pass
    with refused(str(path), "no such store"), reading(path):
        pass
    path.write_text("no database, but long enough to be taken for one" * 40)
    for open_it in (reading, writing):
        with refused(str(path), "not a database"), open_it(path):
            pass
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
    for open_it in (reading, writing):
        with refused(str(path), "no store of results"), open_it(path):
            pass


def test_a_store_of_another_version_is_refused(path: Path) -> None:
    """The version of the tables is told, and the one that is read."""
    with writing(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    for open_it in (reading, writing):
        with refused(f"version {SCHEMA + 1}", f"reads version {SCHEMA}"), open_it(path):
            pass


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    """A run that was killed before its tables were made does not stand in the way."""
    path.touch()
    with refused("is empty"), reading(path):
        pass
    with writing(path) as store:
        store.add(outcome(replace(row(), seed=3)))
        assert [one.seed for one in store.rows()] == [3]


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
def test_cells_that_hold_something_else(column: str, cell: Any, told: str, path: Path) -> None:
    """The line names the store, the column and what stands there."""
    with writing(path) as store:
        store.add(outcome(row()))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE results SET {column} = ?", (cell,))
    with reading(path) as store, refused("bench.sqlite", told):
        store.rows()


def test_names_in_another_encoding(path: Path) -> None:
    """A database whose own tables have names that are no text is refused, read or written."""
    with writing(path) as store:
        store.add(outcome(row()))
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE sources", b"CREATE TABLE s\xffurces"))
    with refused("bench.sqlite", "cannot be used"), reading(path):
        pass
    with refused("bench.sqlite", "cannot be used"), writing(path):
        pass
