"""Results belong to an instance: other files are refused, and times can be left out."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from layoutopt import write_instance
from layoutopt.generate.random_graphs import random_graph
from tests.cli.conftest import Run, unbind
from tests.cli.test_bad_input import refused
from tests.rewriting.exports import random_export

OTHER = "$.instance_hash: belongs to another instance, or was made with other options"


@pytest.fixture
def result(run: Run, instance: Path) -> Path:
    """Return the result file of the instance."""
    target = instance.with_name("result.json")
    assert run("solve", instance, "--json", target, "-q").code == 0
    return target


@pytest.fixture
def other(instance: Path) -> Path:
    """Return an instance of the same name that differs in one value; layouts of both fit."""
    path = instance.with_name("other.json")
    path.write_text(instance.read_text().replace('"value": 8', '"value": 9').replace(":8}", ":9}"))
    assert path.read_text() != instance.read_text()
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["check", "OTHER", "RESULT"],
        ["explain", "OTHER", "RESULT", "--sink", "x"],
        ["show", "RESULT", "--instance", "OTHER", "--svg", "-"],
        ["solve", "OTHER", "--start", "RESULT"],
        ["solve", "OTHER", "--fixed", "RESULT"],
    ],
)
def test_results_of_another_instance_are_refused(
    run: Run, other: Path, result: Path, words: list[str]
) -> None:
    """One line names the file and the key; without the key all goes as it did before."""
    words = [str({"OTHER": other, "RESULT": result}.get(word, word)) for word in words]
    line = refused(run(*words))
    assert f"{result}: {OTHER} (hash sha256:" in line
    unbind(result)
    assert run(*words).code == (1 if words[0] == "check" else 0)


def test_the_same_instance_in_another_file(run: Run, instance: Path, result: Path) -> None:
    """Written otherwise, with another description, and packed, it is the same."""
    document = json.loads(instance.read_text()) | {"description": "told otherwise"}
    packed = instance.with_name("packed.json.gz")
    packed.write_bytes(gzip.compress(json.dumps(document, indent=2).encode()))
    assert run("check", packed, result).code == 0


def test_a_wrong_hash_is_told_by_its_place(run: Run, instance: Path, result: Path) -> None:
    """What is no hash is bad input, too."""
    document = json.loads(result.read_text())
    for wrong in ("sha256:12", 3, document["instance_hash"].upper()):
        result.write_text(json.dumps(document | {"instance_hash": wrong}))
        assert "instance_hash" in refused(run("check", instance, result))
    result.write_text(json.dumps(document | {"instance_hash": None}))
    assert run("check", instance, result).code == 0


def test_results_on_tiles_and_of_networks(run: Run, instance: Path, tmp_path: Path) -> None:
    """Options that make another instance of a file make another hash."""
    network = tmp_path / "net.onnx"
    network.write_bytes(random_export(3, 12).SerializeToString())
    machine = tmp_path / "machine.json"
    machine.write_text('{"tiles": 4, "bytes_per_tile": 65536}')
    for path, words in [(instance, ["--tiles", machine]), (network, ["--training", "sgd"])]:
        hashes = []
        for options in ([], words):
            ran = run("solve", path, *options, "--json", "-", "-q")
            hashes.append(json.loads(ran.out)["instance_hash"])
        assert len(set(hashes)) == 2
        target = tmp_path / f"{path.stem}.result.json"
        run("solve", path, *words, "--json", target, "-q")
        assert run("check", path, target, *words).code == 0
        assert OTHER in refused(run("check", path, target))


def test_reports_of_conversions_have_the_hash_of_the_network(run: Run, tmp_path: Path) -> None:
    """It does not depend on options."""
    network = tmp_path / "net.onnx"
    network.write_bytes(random_export(3, 12).SerializeToString())
    found = [
        json.loads(run("convert", network, "--json", "-", *words).out)["instance_hash"]
        for words in ([], ["--free-io"], ["--objective", "bytes"])
    ]
    assert len(set(found)) == 1
    assert found[0].startswith("sha256:")


def test_results_without_seconds(run: Run, instance: Path, result: Path) -> None:
    """The file says nothing of time, the summary and the page a dash, and all else is as it was."""
    target, page = instance.with_name("plain.json"), instance.with_name("plain.html")
    ran = run("solve", instance, "--json", target, "--html", page, "--no-seconds")
    assert "  seconds         -" in ran.out
    document, timed = json.loads(target.read_text()), json.loads(result.read_text())
    assert timed.pop("seconds")
    assert document.pop("seconds") == {}
    assert document == timed
    assert '<th class="number">share</th>' not in page.read_text()
    assert run("show", target).code == 0
    assert run("check", instance, target).code == 0


def test_comparisons_without_seconds(run: Run, instance: Path) -> None:
    """Tables have an empty place, or a dash."""
    table, page = instance.with_name("c.csv"), instance.with_name("c.html")
    ran = run("compare", instance, "--csv", table, "--html", page, "--no-seconds")
    assert [line.split()[-2] for line in ran.out.splitlines()[1:]] == ["-", "-"]
    with table.open() as file:
        assert [row["seconds"] for row in csv.DictReader(file)] == ["", ""]
    timed = run("compare", instance, "--csv", "-").out.splitlines()
    assert all(float(row["seconds"]) > 0 for row in csv.DictReader(timed))


def test_exports_without_seconds(run: Run, tmp_path: Path) -> None:
    """What is measured has no columns; all else is there."""
    instance, store = tmp_path / "a.json", tmp_path / "s.sqlite"
    write_instance(random_graph(1), instance)
    words = "bench", "run", instance, "--store", store, "--in-process", "-q"
    assert run(*words).code == 0
    for form in ("csv", "json", "markdown"):
        timed, plain = (
            run("bench", "export", store, "--format", form, *more).out
            for more in ([], ["--no-seconds"])
        )
        assert "seconds" in timed
        assert "seconds" not in plain
        assert "optimal" in plain
    fields = json.loads(run("bench", "export", store, "--format", "json", "--no-seconds").out)
    whole = json.loads(run("bench", "export", store, "--format", "json").out)
    left_out = whole["rows"][0].keys() - fields["rows"][0].keys()
    measured = {"seconds", "cpu_seconds", "phases", "peak_bytes", "started", "trace"}
    assert left_out == measured
