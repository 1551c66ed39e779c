"""``layoutopt bench``: words in, tables out."""

from __future__ import annotations

import csv
import io
import json
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


def test_a_run_and_its_continuation(run: Run, instance: Path, tmp_path: Path) -> None:
    """The command runs without being named, tells what came out, and continues."""
    store = tmp_path / "mine.sqlite"
    words = ("bench", instance, "--store", store, "--in-process", "--time-limit", 5)
    ran = run(*words)
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "solver   solves  optimal  feasible  mean gap  seconds  behind  mean loss",
        ran.out.splitlines()[1],
        ran.out.splitlines()[2],
    ]
    assert ran.out.splitlines()[1].split()[:5] == ["auto", "1", "1", "0", "0"]
    assert ran.out.splitlines()[2].split()[-2:] == ["1", "46.67%"]  # 8 instead of 15
    assert ran.err.startswith(f"{store}: 2 of 2 solves, 0:0")
    ran = run("bench", "run", *words[1:], "--solver", "mip", "--solver", "greedy0")
    assert ran.code == 0
    assert "2 of 2 solves, 1 known before" in ran.err
    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == ["greedy0", "mip"]
    assert run(*words, "--quiet") == (0, "", "")


def test_options_stand_before_suites(run: Run, instance: Path, tmp_path: Path) -> None:
    """An option as first word belongs to the run, too."""
    store = tmp_path / "b.sqlite"
    assert run("bench", "--in-process", "--store", store, "--seed", 4, instance, "-q").code == 0
    assert "seed 4" in run("bench", "show", store, "--rows").out


def test_failures_do_not_fail_the_run(run: Run, tmp_path: Path) -> None:
    """A file that is no instance is a row with a log; the exit code is 0."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.json").write_text("{}")
    store = tmp_path / "b.sqlite"
    ran = run("bench", tmp_path / "in", "--store", store, "--in-process")
    assert ran.code == 0
    assert f"2 failed, 0:00 (see {store}.logs)" in ran.err
    shown = run("bench", "show", store, "--status", "failed").out
    assert "bad auto: " in shown
    assert f"({store.name}.logs/bad-auto-" in shown


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


def test_export(run: Run, store: Path, tmp_path: Path) -> None:
    """Rows go to stdout or to a file, which is not overwritten unless that is wished."""
    table = list(csv.DictReader(io.StringIO(run("bench", "export", store).out)))
    assert [line["status"] for line in table] == ["optimal", "feasible", "optimal", "failed"]
    target = tmp_path / "rows.json"
    words = ("bench", "export", store, "--format", "json", "-o", target, "--solver", "auto")
    assert run(*words) == (0, "", "")
    assert len(json.loads(target.read_text())["rows"]) == 2
    assert run(*words).code == 2
    assert run(*words, "--overwrite").code == 0
    assert run("bench", "export", store, "--format", "markdown").out.startswith("| instance |")


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


WRONG = {
    "no suite": (("none.toml",), "none.toml: no such file"),
    "two ways to solve": ((".", "--in-process", "--jobs", "2"), "give at most one of --jobs"),
    "no jobs": ((".", "--jobs", "0"), "--jobs"),
    "no such solver": (("{instance}", "--in-process", "--solver", "best"), "'best'; known: auto"),
    "bad limit": ((".", "--time-limit", "-1"), "--time-limit -1"),
    "bad memory": (("{instance}", "--in-process", "--memory", "2X"), "invalid size of memory '2X'"),
    "bad store": (("{instance}", "--in-process", "--store", "no/where"), "its directory"),
    "no store": (("show", "none.sqlite"), "none.sqlite: no such store"),
    "no such rows": (("show", "{store}", "--solver", "best"), "no solver fits 'best'"),
    "bad format": (("export", "{store}", "--format", "xml"), "csv, json, markdown"),
    "bad factor": (("diff", "{store}", "--noise", "0.5"), "--noise"),
    "three versions": (("diff", "{store}", *(["--version", "1.0"] * 3)), "--version may be given"),
    "no such version": (("diff", "{store}", "--version", "9"), "no version fits '9'"),
    "no arguments": (("run",), "SUITE"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_one_line(
    run: Run,
    case: str,
    store: Path,
    instance: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bad words end with exit code 2 and one line that says what is wrong."""
    monkeypatch.chdir(tmp_path)
    words, part = WRONG[case]
    ran = run("bench", *(word.format(store=store, instance=instance) for word in words))
    assert (ran.code, ran.out) == (2, "")
    assert part in ran.err
    assert len(ran.err.splitlines()) == 1


def test_help_is_told(run: Run) -> None:
    """Without words, or when asked, the group tells its commands."""
    for words in ((), ("--help",)):
        ran = run("bench", *words)
        assert ran.code == 0
        assert all(name in ran.out for name in ("run", "show", "export", "diff"))
