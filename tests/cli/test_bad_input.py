"""One clear line on stderr and exit code 2, whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran, Run

SINK = {"type": "sink", "id": "x", "inputs": [], "shape": [2, 2]}
SOURCE = {"type": "source", "id": "s", "inputs": [], "shape": [2, 2]}
PAIR = {"a": "x", "b": "s", "value": 1}


def document(*ops: dict[str, Any], pairs: Any = (), **more: Any) -> str:
    """Return the text of an instance file."""
    head = {"format": "layoutopt/unwinding/1", "ops": [SINK, SOURCE, *ops]}
    return json.dumps(head | {"valued_pairs": list(pairs)} | more)


def view(kind: str, **attributes: Any) -> dict[str, Any]:
    """Return a view of ``x``."""
    return {"type": kind, "id": "v", "inputs": ["x"]} | attributes


def refused(ran: Ran) -> str:
    """Return the one line that a command ended with."""
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err
    return ran.err


INSTANCES = {
    "shapes differ": (
        document(view("flatten"), pairs=[{"a": "v", "b": "s", "value": 1}]),
        ["$.valued_pairs[0]", "[4]", "[2, 2]"],
    ),
    "unknown op": (document(view("rotate")), ["$.ops[2]", "rotate", "dim_shuffle"]),
    "unknown attribute": (document(view("reverse", dims=[0], axis=1)), ["$.ops[2]", "axis"]),
    "missing attribute": (document(view("reverse")), ["$.ops[2]", "dims"]),
    "wrong rank": (document(view("dim_shuffle", permutation=[0])), ["$.ops[2]", "permutation"]),
    "wrong bounds": (
        document(view("slice", lower=[0, 0], upper=[3, 2])),
        ["$.ops[2]", "slice", "dimension 0", "<= 2"],
    ),
    "wrong size": (document(view("reshape", shape=[3])), ["$.ops[2]", "[3]"]),
    "forward": (document(view("flatten") | {"inputs": ["v"]}), ["$.ops[2]", "cycle"]),
    "unknown input": (document(view("flatten") | {"inputs": ["y"]}), ["$.ops[2]", "'y'"]),
    "unknown in pair": (document(pairs=[PAIR | {"b": "t"}]), ["$.valued_pairs[0]", "'t'"]),
    "taken id": (document(SINK), ["$.ops[2]", "taken"]),
    "NaN": (document(pairs=[PAIR | {"value": float("nan")}]), ["NaN", "line 1"]),
    "infinite": (document(pairs=[PAIR | {"value": float("-inf")}]), ["inf"]),
    "too many digits": (
        document(pairs=[PAIR]).replace('"value": 1', '"value": 1e999'),
        ["$.valued_pairs[0]", "400 digits"],
    ),
    "value is text": (document(pairs=[PAIR | {"value": "1"}]), ["$.valued_pairs[0]", "number"]),
    "mapping too short": (
        document(SOURCE | {"id": "t", "mapping": [1, 2]}),
        ["$.ops[2]", "mapping", "2", "4"],
    ),
    "negative size": (document(SINK | {"id": "y", "shape": [-1]}), ["$.ops[2]", "[-1]"]),
    "huge size": (document(SINK | {"id": "y", "shape": [2**40, 2**40]}), ["$.ops[2]", "2^62"]),
    "huge number": (document(SINK | {"id": "y", "shape": [2**70]}), ["$.ops[2]"]),
    "truncated": (document()[:-20], ["too early"]),
    "not JSON": ("layout: yes", ["not JSON", "line 1, column 1"]),
    "empty file": ("", ["is empty"]),
    "a list": ("[]", ["object"]),
    "nested too deeply": ("[" * 100_000, [""]),
    "another format": (document(format="layoutopt/unwinding/9"), ["$.format", "unwinding/1"]),
    "no ops": (json.dumps({"format": "layoutopt/unwinding/1", "ops": []}), ["no ops"]),
    "tile memory": (document(tile_memory={"tiles": 0, "bytes_per_tile": 64}), ["$.tile_memory"]),
}


@pytest.mark.parametrize("title", INSTANCES)
def test_bad_instances(run: Run, tmp_path: Path, title: str) -> None:
    text, told = INSTANCES[title]
    path = tmp_path / "bad.json"
    path.write_text(text)
    line = refused(run("solve", path))
    assert all(word in line for word in told), line
    assert "bad.json" in line


def test_the_good_instance_is_good(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    path.write_text(document(pairs=[PAIR]))
    assert run("solve", path).code == 0


def test_bad_files(run: Run, tmp_path: Path) -> None:
    assert "no such file" in refused(run("solve", tmp_path / "none.json"))
    assert "directory" in refused(run("solve", tmp_path))
    packed = tmp_path / "bad.json.gz"
    packed.write_bytes(b"\x1f\x8bnothing")
    assert "gzip" in refused(run("solve", packed))
    text = tmp_path / "notes.txt"
    text.write_text("{}")
    assert ".onnx" in refused(run("solve", text))
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "not JSON" in refused(run("solve", binary))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--solver", "magic"], "greedy0"),
        (["--time-limit", "-1"], "--time-limit"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--time-limit", "soon"], "valid number"),
        (["--gap", "-0.1"], "--gap"),
        (["--workers", "0"], "--workers"),
        (["--fast"], "--fast"),
        (["--dim", "batch"], "--dim"),
        (["--dim", "batch=2"], ".onnx"),
        (["--training", "adam"], ".onnx"),
        (["--json", "missing/result.json"], "directory"),
        (["missing.json", "--json", "result.json"], "there are several instances"),
        (["--output", "result.txt"], ".json, .json.gz, .html, or be -"),
        (["-o", "a.json", "--json", "b.json"], "give -o or --json, not both"),
    ],
)
def test_bad_usage(run: Run, instance: Path, words: list[str], told: str) -> None:
    assert told in refused(run("solve", instance, *words))


@pytest.mark.parametrize("words", [["frob"], ["solve"], ["check", "one"], ["schema", "colours"]])
def test_bad_commands(run: Run, words: list[str]) -> None:
    assert "--help" in refused(run(*words))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"score": "fifteen"}, "$.score"),
        ({"status": "perfect"}, "optimal"),
        ({"layouts": {"x": [["b", 0]]}}, "$.layouts"),
        ({"format": "layoutopt/result/9"}, "result/1"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_results(run: Run, instance: Path, change: dict[str, Any], told: str) -> None:
    good = json.loads(run("solve", instance, "--json", "-").out)
    target = instance.with_name("result.json")
    target.write_text(json.dumps(good | change))
    line = refused(run("check", instance, target))
    assert told in line
    assert "result.json" in line


def test_an_instance_is_no_result(run: Run, instance: Path) -> None:
    assert "layoutopt/result/1" in refused(run("check", instance, instance))
