"""``layoutopt generate``: instances of named families, and the files that it wrote."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from layoutopt.base.result import Status
from layoutopt.generate.families import FAMILIES, parameters, summary
from layoutopt.io.instance import read_instance
from layoutopt.unwinding import unwind
from tests.cli.conftest import Run

INSTANCES = Path(__file__).parents[2] / "instances" / "families"
TABLE = re.findall(
    r"\| `layoutopt (generate .* -o (.*))` \| ([\d.,]+) \|", (INSTANCES / "README.md").read_text()
)
LARGEST = 100_000


@pytest.mark.parametrize(("command", "file", "optimum"), TABLE, ids=[row[1] for row in TABLE])
def test_the_files_are_what_the_commands_write(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, file: str, optimum: str
) -> None:
    """Every file of the set is small, comes out again byte by byte, and has the optimum told."""
    monkeypatch.chdir(tmp_path)
    assert run(*command.split()).code == 0
    assert Path(file).read_bytes() == (INSTANCES / file).read_bytes()
    assert (INSTANCES / file).stat().st_size < LARGEST
    result = unwind(read_instance(file))
    assert result.status is Status.OPTIMAL
    assert result.score == Decimal(optimum.replace(",", ""))


def test_every_file_is_told() -> None:
    """The table of the set holds all of its files."""
    assert {file for _, file, _ in TABLE} == {path.name for path in INSTANCES.glob("*.json")}


def test_families_are_listed(run: Run) -> None:
    """Without a family, or with --list, each has a line, and one with its parameters."""
    ran = run("generate")
    assert ran == run("generate", "--list") == run("generate", "resnet", "--list")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert len(lines) == 2 * len(FAMILIES)
    for n, family in enumerate(FAMILIES):
        assert lines[2 * n].split(maxsplit=1) == [family, summary(family)]
        names = [entry.partition("=")[0] for entry in lines[2 * n + 1].split()]
        assert names == list(parameters(family))
    assert "blocks=3,4,6,3 width=64 bottleneck=true" in ran.out


def test_a_listed_default_can_be_given(run: Run) -> None:
    """What the list shows may be given back as it stands."""
    lines = run("generate").out.splitlines()
    for family, line in zip(FAMILIES, lines[1::2], strict=True):
        if family not in ("gpt2-xl", "llama-70b"):
            words = [word for entry in line.split() for word in ("--set", entry)]
            assert run("generate", family, *words, "-o", "-").code == 0
