"""Certificates of unwinding on the command line: written, accepted, refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layoutopt.certify import unwinding
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
    monkeypatch.setattr(unwinding, "_candidates", lambda *_: iter(()))  # nothing but all there is
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


def test_conversions_that_end_early_have_no_certificate(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The given network is the answer, and there is nothing to prove of it."""

    def late(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("layoutopt.converting.convert_graph", late)
    model = INSTANCES / "conversion" / "residual.onnx"
    ran = run("convert", model, "--certificate", tmp_path / "c.json", "-q")
    why = "no certificate is written: not all ops were converted (time limit)"
    assert (ran.code, ran.err) == (0, f"layoutopt: {model}: {why}\n")
