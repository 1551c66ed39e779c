"""Certificates of unwinding on the command line: written, accepted, refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from layoutopt.base.numbers import exact
from layoutopt.certify import ordering
from layoutopt.cli import check
from tests.cli.conftest import Run

INSTANCES = Path(__file__).parents[2] / "instances"


@pytest.fixture
def certificate(run: Run, instance: Path) -> Path:
    """Return the certificate of the instance's best layouts."""
    path = instance.with_name("certificate.json")
    ran = run("solve", instance, "--certificate", path, "-q")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    return path


def test_a_bound_that_is_not_proved_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a search's bound is better than what the certificate proves, the command says so."""
    instance, path = INSTANCES / "hard" / "signed-12x4.json", tmp_path / "certificate.json"
    result = tmp_path / "result.json"
    asked = ("solve", instance, "--gap", 0.5, "--certificate", path, "--json", result, "-q")
    assert run(*asked).err == ""
    monkeypatch.setattr(ordering, "_candidates", lambda *_: iter(()))  # nothing but all there is
    ran = run(*asked, "--overwrite")
    document, answer = json.loads(path.read_text()), json.loads(result.read_text())
    assert ran.code == 0
    assert document["bound"] > answer["bound"] > answer["score"]
    assert ran.err == (
        f"layoutopt: {path}: proves a bound of {document['bound']:,} only; "
        f"the search's, {answer['bound']:,.0f}, is not certified\n"
    )
    assert run("check", instance, result, "--certificate", path).code == 1
    assert run("check", instance, "--certificate", path).code == 0


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Fraction(15), "15"),
        (Fraction(-12345), "-12,345"),
        (Fraction(3, 8), "0.375"),
        (10**30 + Fraction(1, 2), f"{10**30:,}.5"),
        (10**40 - Fraction(1, 10**20), f"{10**40 - 1:,}." + "9" * 20),
        (Fraction(1, 3), "1/3 (about 0.333333)"),
    ],
)
def test_numbers_are_told_in_full(value: Fraction, told: str) -> None:
    """No digit of a score or bound is left out, however many there are."""
    assert exact(value) == told


def test_checking_ends_in_time(
    run: Run, instance: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence that takes for ever is neither accepted nor refused when the time is over."""

    def endless(*_: object) -> int:
        while True:
            pass

    asked = ("check", instance, "--certificate", certificate, "--time-limit")
    assert run(*asked, 60).code == 0
    monkeypatch.setattr(check, "unwinding", endless)
    ran = run(*asked, 0.3)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err == f"layoutopt: {certificate}: check not finished: time limit\n"
    wrong = run(*asked, -1)
    assert (wrong.code, wrong.out) == (2, "")
    assert "--time-limit -1.0: must be" in wrong.err
