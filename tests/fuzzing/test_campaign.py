"""The harness finds what it is there for: it is shown a fault of each kind."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from layoutopt.base.errors import InputError
from tests.fuzzing import guard
from tests.fuzzing.campaign import Campaign
from tests.fuzzing.mutations import spoil_bytes
from tests.fuzzing.targets import Target


def breaks(raw: bytes, folder: Path) -> None:
    raise KeyError(raw)


def hangs(raw: bytes, folder: Path) -> None:
    while True:
        pass


def reads_outside(raw: bytes, folder: Path) -> None:
    (folder / ".." / "other" / "file").read_bytes()


def writes_outside(raw: bytes, folder: Path) -> None:
    (folder / ".." / "other" / "new").write_bytes(raw)


def follows_a_link(raw: bytes, folder: Path) -> None:
    link = folder / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(folder / ".." / "other" / "file")
    link.read_bytes()


def says_nothing(raw: bytes, folder: Path) -> None:
    raise InputError("")


def is_refused(raw: bytes, folder: Path) -> None:
    raise InputError("wrong; right is allowed")


def stays_inside(raw: bytes, folder: Path) -> None:
    (folder / "file").write_bytes(raw)
    assert (folder / "file").read_bytes() == raw


FAULTS: dict[Callable[[bytes, Path], None], str] = {
    breaks: "KeyError",
    hangs: "Hang",
    reads_outside: "Escape",
    writes_outside: "Escape",
    follows_a_link: "Escape",
    says_nothing: "AssertionError",
    is_refused: "",
    stays_inside: "",
}


@pytest.mark.parametrize("run", FAULTS, ids=lambda run: run.__name__)
def test_faults_are_findings(
    run: Callable[[bytes, Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fault is written down with the bytes that led to it; refusals and answers are none."""
    monkeypatch.setattr(guard, "SECONDS", 0.2)
    for name in ("inside", "other", "findings"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "file").write_bytes(b"")
    findings = tmp_path / "findings"
    target = Target(run, tuple, (spoil_bytes,))
    Campaign(target, findings, tmp_path / "inside").run(b"long input")
    Campaign(target, findings, tmp_path / "inside").run(b"short")
    if FAULTS[run]:
        [text] = findings.glob("*.txt")
        assert FAULTS[run] in text.read_text()
        assert text.with_suffix(".bin").read_bytes() == b"short"
    else:
        assert not list(findings.iterdir())


def test_imports_during_a_run_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever imports a module first does not write its bytecode beside it, which is outside."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "imported_by_a_run.py").touch()
    fence = guard.Fence(tmp_path / "inside")
    fence.readable += (f"{tmp_path.resolve()}/",)
    with fence.up():
        importlib.import_module("imported_by_a_run")
    assert not list(tmp_path.glob("*/*.pyc*"))
    assert not sys.dont_write_bytecode


def test_a_mutation_that_fails_is_replaced() -> None:
    """What cannot be spoilt in a clever way is spoilt byte by byte."""

    def fails(data: bytes, draw: random.Random) -> bytes:
        raise ValueError

    campaign = Campaign(Target(breaks, tuple, (fails,)), Path(), Path())
    assert campaign.mutated(b"abc", random.Random(1)) != b"abc"


def test_the_command_looks_and_tells(tmp_path: Path) -> None:
    """A second of the layouts' target ends with figures, and with no finding."""
    words = [sys.executable, "-m", "tests.fuzzing", "layout", "--seconds", "1"]
    words += ["--findings", str(tmp_path / "findings"), "--corpus", str(tmp_path / "corpus")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "executions" in ran.stdout
    assert ran.stdout.endswith("no findings\n")
