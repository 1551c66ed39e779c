"""``layoutopt generate``: instances of named families, and the files that it wrote."""

from __future__ import annotations

import gzip
import re
from decimal import Decimal
from pathlib import Path

import pytest

from layoutopt.base.result import Status
from layoutopt.generate.families import FAMILIES, generate, parameters, summary
from layoutopt.io.instance import instance_bytes, read_instance
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


def test_settings_and_seed(run: Run, tmp_path: Path) -> None:
    """Settings and seed arrive, and the instance tells them; packed files are packed."""
    target = tmp_path / "views.json.gz"
    ran = run("generate", "strides", "--set", "size=30", "--seed", 4, "-o", target)
    graph = generate("strides", {"size": "30", "seed": "4"})
    assert ran == (0, f"{target}: {len(graph.ops)} ops, 5 pairs, 120 free\n", "")
    assert gzip.decompress(target.read_bytes()) == instance_bytes(graph)
    assert graph.name == "strides-size=30-seed=4"
    assert graph.description.endswith("size=30 columns=4 seed=4")
    assert read_instance(target) == graph


def test_a_negative_or_repeated_seed(run: Run) -> None:
    """A seed may be negative, and stands for the parameter of that name."""
    one = run("generate", "random", "--seed", -3, "-o", "-")
    other = run("generate", "random", "--set", "seed=-3", "-o", "-")
    assert one.code == 0
    assert one.out == other.out


def test_stdout_holds_the_instance_alone(run: Run) -> None:
    """With ``-`` the bytes of the instance go to stdout, and nothing else."""
    ran = run("generate", "resnet", "-o", "-")
    assert ran == (0, instance_bytes(generate("resnet", {})).decode(), "")


def test_a_file_is_overwritten_only_when_asked(run: Run, tmp_path: Path) -> None:
    """A file that exists is left alone without --overwrite, and --quiet says nothing."""
    target = tmp_path / "a.json"
    target.write_text("mine")
    ran = run("generate", "aliases", "-o", target)
    assert ran.code == 2
    assert "--overwrite" in ran.err
    assert target.read_text() == "mine"
    assert run("generate", "aliases", "-o", target, "--overwrite", "-q") == (0, "", "")
    assert read_instance(target) == generate("aliases", {})


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("resnt -o -", "no family 'resnt'; allowed: transformer"),
        ("--set a=1", "give a family; allowed: transformer"),
        ("resnet", "give --output FILE"),
        ("resnet --set width -o -", "--set width: must be NAME=VALUE"),
        ("resnet --set =3 -o -", "must be NAME=VALUE"),
        ("resnet --set width=3 --set width=4 -o -", "width is given twice"),
        ("random --seed 1 --set seed=2 -o -", "seed is given twice"),
        ("resnet --seed 1 -o -", "no parameter 'seed'; allowed: blocks"),
        ("resnet --set width=three -o -", "width=three: must be an integer"),
        ("resnet -o resnet.txt", "must end in .json or .json.gz"),
        ("resnet -o nowhere/resnet.json", "its directory does not exist"),
        ("random --seed x -o -", "--seed"),
    ],
)
def test_bad_input(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    """What cannot be done ends with exit code 2 and one line, and writes nothing."""
    monkeypatch.chdir(tmp_path)
    ran = run("generate", *words.split())
    assert ran.code == 2
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""
    assert list(tmp_path.iterdir()) == []
