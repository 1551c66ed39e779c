"""``layoutopt bench``: words in, tables out."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from layoutopt.bench.row import Row
from layoutopt.bench.store import writing
from tests.bench.support import failed, outcome, row
from tests.cli.conftest import Run


def kept(path: Path, *rows: Row) -> Path:
    with writing(path) as store:
        for one in rows:
            store.add(outcome(one, one.instance_hash))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of two instances, two solvers, and a failure."""
    return kept(
        tmp_path / "b.sqlite",
        row(),
        row(solver="greedy0", status="feasible", score=Decimal(9), bound=None, seed=3),
        row(instance="greedy/hub", instance_hash="bb", repeat=1),
        failed(instance="greedy/hub", instance_hash="bb", solver="greedy0", log="b.logs/x.log"),
    )


def test_show_sums_up(run: Run, store: Path) -> None:
    """By default there is a line for each solver."""
    lines = [line.split() for line in run("bench", "show", store).out.splitlines()]
    assert lines == [
        ["solver", "solves", "optimal", "feasible", "failed"]
        + ["mean", "gap", "seconds", "behind", "mean", "loss"],
        ["auto", "2", "2", "0", "0", "0", "0.250", "0", "0"],
        ["greedy0", "2", "0", "1", "1", "-", "2.708", "2", "25.00%"],
    ]


def test_show_lists_rows(run: Run, store: Path) -> None:
    """``--rows`` shows each solve, patterns choose among them."""
    lines = run("bench", "show", store, "--rows").out.splitlines()
    assert len(lines) == 6
    assert lines[1].split() == [
        "figures/call",
        "auto",
        "optimal",
        "12",
        "12",
        "0",
        "0.250",
        "1,024",
        "0",
    ]
    assert lines[2].split()[1:4] == ["greedy0", "seed", "3"]
    assert lines[3].split()[:3] == ["greedy/hub", "auto", "#2"]
    assert lines[5] == "greedy/hub greedy0: the worker was ended by SIGABRT (b.logs/x.log)"
    some = run("bench", "show", store, "--rows", "--instance", "greedy/*", "--solver", "auto").out
    assert len(some.splitlines()) == 2
    assert len(run("bench", "show", store, "--solver", "greedy0").out.splitlines()) == 2


def test_show_tells_versions_apart(run: Run, tmp_path: Path) -> None:
    """Columns of version and machine appear where there are several."""
    path = kept(tmp_path / "b.sqlite", row(), row(version="2.0"))
    lines = run("bench", "show", path).out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        *(["solver", "version"], ["auto", "1.0"], ["auto", "2.0"])
    ]
    assert len(run("bench", "show", path, "--version", "2.0").out.splitlines()) == 2


def test_diff_of_two_stores(run: Run, store: Path, tmp_path: Path) -> None:
    """What became worse comes first; times are told on the whole as well."""
    slow = row(version="2.0", seconds=2.5)
    mended = row(
        version="2.0", instance="greedy/hub", instance_hash="bb", solver="greedy0", seconds=0.1
    )
    after = kept(tmp_path / "after.sqlite", slow, mended)
    ran = run("bench", "diff", store, after)
    assert ran.code == 0
    lines = [line.split() for line in ran.out.splitlines()]
    assert " ".join(lines[0]).startswith("2 tasks on both sides, 2 only before, 0 only after")
    assert " ".join(lines[0]).endswith("1 worse, 1 better")
    assert lines[3] == ["worse", "figures/call", "auto", "seconds", "0.250", "2.500", "x", "10.00"]
    assert lines[4] == ["better", "greedy/hub", "greedy0", "status", "failed", "optimal"]
    assert lines[-1][:3] == ["auto", "1", "9.964"]
    assert lines[-1][-1] == "noise"  # one task tells nothing on the whole


def test_diff_within_a_store(run: Run, tmp_path: Path) -> None:
    """Two versions, or two machines, of one store are compared when they are named."""
    other = row(version="2.0", score=Decimal(10), status="feasible", machine="m")
    path = kept(tmp_path / "b.sqlite", row(), other)
    ran = run("bench", "diff", path, "--version", "1.0", "--version", "2.0")
    assert "1 tasks on both sides" in ran.out
    assert "worse" in ran.out
    assert run("bench", "diff", path, "--machine", "box", "--machine", "m").out == ran.out
    assert "more than one version: '1.0', '2.0'" in run("bench", "diff", path).err
