"""Certificates of unwinding on the command line: written, accepted, refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from layoutopt import Graph, write_instance
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


def test_a_certificate_is_accepted(run: Run, instance: Path, certificate: Path) -> None:
    """The line says what is proved, and on whose word; ``--quiet`` says nothing."""
    ran = run("check", instance, "--certificate", certificate)
    assert ran.code == 0, ran.err
    assert ran.out == (
        f"{certificate}: accepted: score 15, bound 15, which is optimal; 1 classes of 1 copies; "
        "nothing is unverified\n"
    )
    assert run("check", instance, "--certificate", certificate, "-q") == (0, "", "")


def test_a_certificate_that_proves_less(run: Run, instance: Path, certificate: Path) -> None:
    """A weaker bound is told as it is, a solver's word as well."""
    document = json.loads(certificate.read_text())
    document["bound"] = 23
    document["classes"][0]["evidence"] = {"kind": "earned"}
    certificate.write_text(json.dumps(document))
    ran = run("check", instance, "--certificate", certificate)
    assert ran.code == 0
    assert "score 15, bound 23; 1 classes" in ran.out
    document["classes"][0]["evidence"] = {"kind": "word", "bound": 15}
    certificate.write_text(json.dumps(document))
    ran = run("check", instance, "--certificate", certificate)
    assert "which is optimal; " in ran.out
    assert "1 of 1 classes are unverified (a solver gave their bounds)" in ran.out


def test_a_wrong_certificate_is_refused(run: Run, instance: Path, certificate: Path) -> None:
    """The exit code is 1, the line names the mistake."""
    document = json.loads(certificate.read_text())
    for change, reason in (
        ({"bound": 14}, "the evidence proves the bound 15, not the claimed one"),
        ({"score": 16}, "the layouts score 15, but another score is claimed"),
        ({"score": 15.5}, "'15.5' is neither an integer"),
        ({"classes": []}, "which does not exist"),
        ({"sinks": {}}, "sink 'x' must be a list"),
    ):
        certificate.write_text(json.dumps(document | change))
        ran = run("check", instance, "--certificate", certificate)
        assert ran.code == 1
        assert ran.err == ""
        assert ran.out.startswith(f"{certificate}: refused: ")
        assert reason in ran.out
        assert len(ran.out.splitlines()) == 1


def test_results_are_held_against_certificates(run: Run, instance: Path, certificate: Path) -> None:
    """A result must have the score that a certificate is of, and no better bound."""
    result, greedy = instance.with_name("result.json"), instance.with_name("greedy.json")
    assert run("solve", instance, "--json", result, "-q").code == 0
    ran = run("check", instance, result, "--certificate", certificate)
    assert ran.code == 0, ran.err
    assert [line.split(": ")[1] for line in ran.out.splitlines()][1] == "accepted"
    assert run("solve", instance, "--solver", "greedy0", "--json", greedy, "-q").code == 0
    ran = run("check", instance, greedy, "--certificate", certificate)
    assert ran.code == 1
    assert "refused: its score is 15, that of the result 8" in ran.out
    modest = json.loads(result.read_text()) | {"bound": None, "gap": None, "status": "feasible"}
    greedy.write_text(json.dumps(modest))  # what claims no bound has nothing else to be proved
    assert run("check", instance, greedy, "--certificate", certificate).code == 0
    document = json.loads(certificate.read_text())
    document["bound"], document["classes"][0]["evidence"] = 23, {"kind": "earned"}
    certificate.write_text(json.dumps(document))
    ran = run("check", instance, result, "--certificate", certificate)
    assert ran.code == 1
    assert "refused: it proves the bound 23, the result has 15" in ran.out


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


def test_certificates_of_something_else(run: Run, instance: Path, certificate: Path) -> None:
    """Those of another instance, or problem, and files that are none are bad input."""
    other = Graph("other")
    other.valued_pair(other.sink((1,)), other.source((1,)), 1)
    path = instance.with_name("other.json")
    write_instance(other, path)
    ran = run("check", path, "--certificate", certificate)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    for text in ("{", "[]", "{}", '{"format": "layoutopt/result/1"}', "\x00"):
        certificate.write_text(text)
        ran = run("check", instance, "--certificate", certificate)
        assert (ran.code, ran.out) == (2, "")
        assert len(ran.err.splitlines()) == 1
        assert "certificate.json" in ran.err
    missing = run("check", instance, "--certificate", instance.with_name("none.json"))
    assert missing.code == 2
    assert "none.json" in missing.err
    assert run("check", instance).code == 2


def test_a_result_without_certificate_says_why(run: Run, instance: Path) -> None:
    """No file is written, and the reason is told."""
    path = instance.with_name("certificate.json")
    ran = run("solve", instance, "--solver", "greedy0", "--certificate", path)
    assert ran.code == 0
    assert "no certificate is written: greedy0 proves no bound" in ran.err
    assert not path.exists()
    path.write_text("mine")
    again = run("solve", instance, "--certificate", path)
    assert again.code == 2
    assert path.read_text() == "mine"
    assert run("solve", instance, "--certificate", path, "--overwrite", "-q").code == 0
    assert json.loads(path.read_text())["score"] == 15
