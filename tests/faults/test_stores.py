"""Stores of results that are damaged, locked or somewhere where nothing can be written."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.faults.support import files


@pytest.fixture
def store(easy: Path, tmp_path: Path, run: Run) -> Path:
    """Return a store with results."""
    path = tmp_path / "b.sqlite"
    assert run("bench", easy, "--store", path, "--in-process", "--quiet").code == 0
    return path


def damaged(raw: bytes) -> Iterator[bytes]:
    """Yield what can become of the bytes of a store."""
    draw = random.Random(0)
    yield raw[: len(raw) // 2]
    yield raw[:100]
    yield bytes(len(raw))
    for _ in range(24):
        spoilt = bytearray(raw)
        for _ in range(draw.choice([1, 4, 400])):
            spoilt[draw.randrange(len(raw))] = draw.randrange(256)
        yield bytes(spoilt)


def test_damaged_stores_are_told_in_a_line(store: Path, easy: Path, run: Run) -> None:
    """Whatever bytes of a store were lost, reading it and going on with it end in plain words.

    A row that is damaged may still be one; then there is no error.
    """
    refused = 0
    for raw in list(damaged(store.read_bytes())):
        for words in (("bench", "show", store), ("bench", easy, "--store", store, "--in-process")):
            store.write_bytes(raw)
            found = run(*words, "--rows") if words[1] == "show" else run(*words, "--quiet")
            assert found.code in (0, 2), found.err
            if found.code == 2:
                refused += 1
                assert found.err.startswith(f"layoutopt: {store}: ")
                assert len(found.err.splitlines()) == 1
    assert refused > 10
    assert set(files(store.parent)) <= {store.name, f"{store.name}-journal"}


def test_a_store_that_another_program_holds(
    store: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for, and then named; what it holds stays as it was."""
    before = store.read_bytes()
    other = sqlite3.connect(store, timeout=0, isolation_level=None)
    connect, waits = sqlite3.connect, list[float]()

    def soon(*given: Any, timeout: float, **more: Any) -> sqlite3.Connection:
        waits.append(timeout)
        return connect(*given, timeout=0.1, **more)

    monkeypatch.setattr("sqlite3.connect", soon)
    try:
        other.execute("BEGIN EXCLUSIVE")
        found = run("bench", "show", store)
    finally:
        other.close()
    assert set(waits) == {10}
    assert found.code == 2
    assert found.err == f"layoutopt: {store}: the store cannot be used (database is locked)\n"
    assert store.read_bytes() == before


@pytest.mark.parametrize("place", ["/proc/b.sqlite", "/dev/full/b.sqlite", "none/b.sqlite"])
def test_places_where_no_store_can_be(
    place: str, easy: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot be made is refused before anything is solved."""
    monkeypatch.chdir(tmp_path)
    found = run("bench", easy, "--store", place, "--in-process")
    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"layoutopt: {place}: ")
    assert len(found.err.splitlines()) == 1
    assert os.listdir(tmp_path) == []
