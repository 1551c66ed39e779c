"""The curated sets of instances: their files, their tables, and the numbers in both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path

import onnx
import pytest

from benchmarks import instances
from benchmarks.transposed import NETWORKS
from layoutopt.base.files import read_bytes
from layoutopt.base.limits import Limits
from layoutopt.base.result import Status
from layoutopt.bench.executors import InProcess
from layoutopt.bench.row import Row
from layoutopt.bench.run import batch
from layoutopt.converting import convert
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, read_instance
from layoutopt.lowering.lower import lower
from layoutopt.network.parts import left_over
from layoutopt.network.problem import Labelling
from tests.bench.support import row

FOLDER = instances.FOLDER
LARGEST = 200_000
SUFFIXES = (".json", ".json.gz", ".onnx")
FILES = [(name, file) for name, entries in instances.SETS.items() for file in entries]


def cells(folder: str, name: str) -> dict[str, list[str]]:
    """Return a table of a page, its lines by what stands first."""
    text = (FOLDER / folder / "README.md").read_text("utf-8")
    [table] = re.findall(rf"<!-- results: {name} -->\n\n((?:\|[^\n]*\n)+)", text)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    return {line[0].strip("`"): line for line in lines[2:]}


@cache
def shipped() -> dict[str, Path]:
    """Return all files by what tables call them."""
    files = [path for path in FOLDER.rglob("*") if path.name.endswith(SUFFIXES)]
    return {
        re.sub(r"\.(json(\.gz)?|onnx)$", "", f.relative_to(FOLDER).as_posix()): f for f in files
    }


def problem_of(graph: Graph) -> Labelling:
    """Return the whole labelling problem of a graph."""
    return lower(graph, Limits()).problem


@pytest.mark.parametrize(("name", "file"), FILES)
def test_files_are_what_is_written(name: str, file: str) -> None:
    """Every file is small, and holds what its builder makes, byte by byte."""
    path = FOLDER / name / file
    assert read_bytes(path) == instance_bytes(instances.SETS[name][file].build())
    assert path.stat().st_size < LARGEST


@pytest.mark.parametrize("name", instances.SETS)
def test_sets_hold_nothing_else(name: str) -> None:
    """No file without a builder and a line in the table of its set, and the other way round."""
    files = {path.name for path in (FOLDER / name).iterdir()} - {"README.md"}
    assert files == set(instances.SETS[name]) == set(cells(name, name))


def test_one_command_writes_all_files(tmp_path: Path) -> None:
    """The files of all sets and networks are written where they are asked for."""
    instances.write_files(tmp_path)
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    networks = {Path("conversion", f"{name}.onnx") for name in NETWORKS}
    assert written == {Path(name, file) for name, file in FILES} | networks


def test_known_values(tmp_path: Path) -> None:
    """All instances are solved, and the table of all of them has what is known, proofs included."""
    with InProcess() as executor:
        report = batch([FOLDER], tmp_path / "b.sqlite", executor)
    assert report.progress.failed == 0
    own = instances.known(report.rows)
    assert set(own) == set(shipped())
    table = cells("", "all")
    assert {name: table[name] for name in own} == own
    proved = {row.instance for row in report.rows if row.status == "optimal"}
    assert set(own) - proved == {"tiles/transformer"}


def test_all_tables_say_the_same() -> None:
    """What stands in the table of a set stands in that of all instances, too."""
    table = cells("", "all")
    for name, file in FILES:
        _, told, *numbers = cells(name, name)[file]
        assert told == instances.SETS[name][file].told
        assert numbers == table[f"{name}/{file.partition('.json')[0]}"][1:]
    for folder, name in (("onnx", "networks"), ("training", "transformers")):
        part = cells(folder, name)
        assert part == {one: table[one] for one in part}
    large = set(cells("onnx", "networks")) | set(cells("training", "transformers"))
    assert set(table) == set(shipped()) | large


def test_every_set_has_a_page() -> None:
    """The page of all sets leads to each of them."""
    text = (FOLDER / "README.md").read_text("utf-8")
    for folder in FOLDER.iterdir():
        if folder.is_dir():
            assert f"| [{folder.name}]({folder.name}/README.md) |" in text
            assert (folder / "README.md").is_file()


@pytest.mark.parametrize("file", instances.SETS["hard"])
def test_no_reduction_decides_a_hard_core(file: str) -> None:
    """Reductions leave every element of a hard core open."""
    problem = problem_of(read_instance(FOLDER / "hard" / file))
    assert [part.nodes for part in left_over(problem)] == [problem.nodes]


def test_networks_are_what_is_written() -> None:
    """The files of networks hold what their builders make, and there are no others."""
    folder = FOLDER / "conversion"
    assert {path.stem for path in folder.glob("*.onnx")} == set(NETWORKS)
    for name, build in NETWORKS.items():
        assert onnx.load(str(folder / f"{name}.onnx")) == build()


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_converted(name: str) -> None:
    """Each is rewritten with as many transforms and bytes as the table says, proved."""
    _, _, *told, status = cells("conversion", "conversion")[f"{name}.onnx"]
    path = FOLDER / "conversion" / f"{name}.onnx"
    result = convert(path, check=True)
    before, after = result.before, result.after
    nodes = len(onnx.load(str(path)).graph.node)
    numbers = (nodes, before.transforms, before.bytes, after.transforms, after.bytes)
    assert told == [f"{number:,}" for number in numbers]
    assert result.status is Status.OPTIMAL
    assert (str(result.status), after.transforms < before.transforms) == (status, True)


def test_best_of_several_rows() -> None:
    """The highest score and the lowest bound count, whoever found them."""

    def best(rows: Sequence[Row]) -> list[str]:
        return instances.known(rows)["a"][3:]

    rows = [
        row(instance="a", solver="greedy0", score=Decimal(5), bound=None),
        row(instance="a", solver="auto", score=Decimal(6), bound=Decimal(9)),
        row(instance="a", solver="mip", score=Decimal(7), bound=Decimal(10)),
    ]
    assert best(rows) == ["5", "7", "9"]
    assert best(rows[:1]) == ["5", "5", "-"]
    assert best(rows[1:]) == ["-", "7", "9"]
