from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from layoutopt import Evaluation, Graph, SolverError, write_instance
from layoutopt.generate.random_graphs import random_graph
from layoutopt.unwinding import SOLVERS
from tests.cli.conftest import Run
from tests.support import swap_solver

SOLVE_KEYS = {
    *("format", "instance", "problem", "status", "score", "bound", "gap", "max_score", "solver"),
    *("instance_hash", "version", "seed", "size", "seconds", "pairs", "layouts", "order"),
}


def test_solve_prints_a_summary_and_writes_the_result(run: Run, instance: Path) -> None:
    target = instance.with_name("result.json")
    ran = run("solve", instance, "--json", target)
    assert ran.code == 0
    assert "optimal" in ran.out
    document = json.loads(target.read_text())
    assert set(document) == SOLVE_KEYS
    assert (document["status"], document["score"], document["bound"]) == ("optimal", 15, 15)
    assert document["layouts"] == {"x": [["b", 0, 0, [[1, 1, 1]]]]}
    assert {"read", "trace", "solve", "check", "total"} <= set(document["seconds"])


def test_solve_writes_json_alone_to_stdout(run: Run, instance: Path) -> None:
    ran = run("solve", instance, "--json", "-")
    assert ran.code == 0
    assert json.loads(ran.out)["score"] == 15


def test_solve_takes_several_instances(run: Run, instance: Path) -> None:
    """Each has a file of its own; one that cannot be read stops none of the others."""
    folder, other = instance.parent / "results", instance.with_name("random.json")
    folder.mkdir()
    write_instance(random_graph(1), other)
    ran = run("solve", instance, "missing.json", other, "-o", folder, "--html", folder)
    assert (ran.code, ran.err) == (2, "layoutopt: missing.json: no such file\n")
    assert ran.out.count("status") == 2
    assert {path.name for path in folder.iterdir()} == {
        *("aliases.json", "aliases.html", "random.json", "random.html")
    }
    assert run("check", instance, folder / "aliases.json").code == 0
    assert "exists already" in run("solve", instance, other, "-o", folder).err
    twins = run("solve", instance, instance, "-o", folder, "--overwrite")
    assert (twins.code, "two instances have this name" in twins.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["solve", "{}", "-o", "out.json"], '{"format": "layoutopt/result/1"'),
        (["solve", "{}", "-o", "out.html"], "<!DOCTYPE html>"),
        (["compare", "{}", "-o", "out.md"], "| instance"),
        (["compare", "{}", "-o", "out.csv"], "instance,"),
        (["show", "{}", "-o", "out.svg"], "<svg"),
        (
            ["explain", "{}", "--sink", "x", "-o", "out.json"],
            '{"format": "layoutopt/expl',
        ),
        (["layout", "offsets", "NHWC", "1,2,2,2", "-o", "out.svg"], "<svg"),
        (["generate", "random", "-o", "out.json"], '{"format": "layoutopt/unwinding/1"'),
        (["schema", "-o", "out.json"], "{"),
    ],
)
def test_whatever_is_written_goes_where_o_says(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], start: str
) -> None:
    monkeypatch.chdir(instance.parent)
    assert run(*(word.format(instance) for word in words)).code == 0
    assert Path(words[-1]).read_text().startswith(start)


@pytest.mark.parametrize("command", ["check", "bench diff", "layout parse"])
def test_help_is_as_manuals_have_it(run: Run, command: str) -> None:
    usage = {"check": "INSTANCE [RESULT]", "bench diff": "BEFORE [AFTER]", "layout parse": "LAYOUT"}
    told = run(*command.split(), "-h")
    assert told.out.startswith(f"Usage: layoutopt {command} [OPTIONS] {usage[command]}\n")
    assert "<" not in told.out


def test_quiet_says_nothing(run: Run, instance: Path) -> None:
    assert run("solve", instance, "--quiet") == (0, "", "")


def test_unknown_numbers_are_null(run: Run, instance: Path) -> None:
    document = json.loads(run("solve", instance, "--time-limit", "0", "--json", "-").out)
    assert (document["status"], document["bound"]) == ("unknown", 23)
    assert document["score"] is None
    assert document["gap"] is None


def test_heuristics_have_the_bound_of_the_values(run: Run, instance: Path) -> None:
    document = json.loads(run("solve", instance, "--solver", "greedy0", "--json", "-").out)
    assert (document["status"], document["score"], document["bound"]) == ("feasible", 8, 23)


def test_a_file_is_overwritten_only_when_asked(run: Run, instance: Path) -> None:
    target = instance.with_name("result.json")
    target.write_text("mine")
    ran = run("solve", instance, "--json", target)
    assert ran.code == 2
    assert target.read_text() == "mine"
    assert "--overwrite" in ran.err
    assert run("solve", instance, "--json", target, "--overwrite").code == 0
    assert json.loads(target.read_text())["score"] == 15


def test_time_ran_out_with_no_solution(run: Run, instance: Path) -> None:
    target = instance.with_name("result.json")
    ran = run("solve", instance, "--solver", "greedy0", "--time-limit", 0, "--json", target)
    assert ran.code == 4
    document = json.loads(target.read_text())
    assert document["status"] == "unknown"
    assert document["score"] is None
    assert document["layouts"] is None
    assert run("check", instance, target).code == 0


def test_compare_shows_the_loss(run: Run, instance: Path) -> None:
    ran = run("compare", instance, "--solver", "all")
    assert ran.code == 0
    rows = [line.split() for line in ran.out.splitlines()]
    assert rows[0][-1] == "loss"
    assert [row[1] for row in rows[1:]] == list(SOLVERS)
    assert {row[-1] for row in rows[1:] if row[1] != "greedy0"} == {"0"}
    assert rows[-1][-1] == "46.67%"


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_help_names_every_solver(run: Run, command: str) -> None:
    told = run(command, "--help").out.replace(".", ",").split()
    assert {f"{name}," for name in SOLVERS} <= set(told)


def test_compare_takes_several_instances_and_writes_results(run: Run, instance: Path) -> None:
    other = instance.with_name("random.json")
    write_instance(random_graph(1), other)
    ran = run("compare", instance, other, "--json", "-")
    documents = json.loads(ran.out)
    assert [(d["instance"], d["solver"]) for d in documents] == [
        ("aliases", "auto"),
        ("aliases", "greedy0"),
        ("random-1", "auto"),
        ("random-1", "greedy0"),
    ]


@pytest.mark.parametrize("seed", range(12))
def test_check_agrees_with_solve(run: Run, tmp_path: Path, seed: int) -> None:
    path, target = tmp_path / "random.json.gz", tmp_path / "result.json.gz"
    write_instance(random_graph(seed), path)
    assert run("solve", path, "--json", target, "--quiet").code == 0
    assert gzip.decompress(target.read_bytes()).startswith(b'{"format"')
    ran = run("check", path, target)
    assert ran.code == 0
    assert "legal" in ran.out


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("score", 14, "score"),
        ("bound", 14, "bound"),
        ("status", "feasible", "status"),
        ("status", "infeasible", "status"),
        ("gap", 0.5, "gap"),
        ("max_score", 24, "max_score"),
        ("instance", "other", "instance"),
        ("size", {"tensors": 7}, "size"),
        ("layouts", {"x": [["a", 0, 0, [[1, 1, 1]]]]}, "score"),
        ("layouts", {"x": []}, "pieces set 0 elements of 1"),
        ("layouts", {}, "has no layout"),
        ("layouts", {"x": [["z", 0, 0, [[1, 1, 1]]]]}, "origin"),
        ("layouts", {"x": [["a", 1, 0, [[1, 1, 1]]]]}, "within 0..0"),
        ("layouts", None, "without layouts"),
        ("order", ["y"], "not a sink"),
        ("order", ["x", "x"], "twice"),
        ("pairs", [], None),
        ("pairs", [{"a": "x", "b": "a", "value": 8, "elements": 1, "matched": 0}], "pairs"),
    ],
)
def test_check_finds_every_false_claim(
    run: Run, instance: Path, key: str, value: object, told: str | None
) -> None:
    document = json.loads(run("solve", instance, "--json", "-").out)
    target = instance.with_name("result.json")
    target.write_text(json.dumps(document | {key: value}))
    ran = run("check", instance, target)
    assert ran.code == (0 if told is None else 1)
    assert told is None or told in ran.out


def test_show_instance_and_result(run: Run, instance: Path) -> None:
    target = instance.with_name("result.json")
    run("solve", instance, "--json", target)
    shown = run("show", instance).out
    assert "5 identity" in shown
    assert "left by reductions" in shown
    shown = run("show", target).out
    assert "optimal" in shown
    assert "b: 1 from 0 to 0" in shown


@pytest.mark.parametrize("which", ["instance", "result"])
def test_schema_names_every_field(run: Run, which: str) -> None:
    schema = json.loads(run("schema", which).out)
    (title,) = {"instance": ["InstanceDocument"], "result": ["ResultDocument"]}[which]
    fields = schema["$defs"][title]["properties"]
    if which == "result":
        assert set(fields) == SOLVE_KEYS
        assert fields["score"]["type"] == ["number", "null"]
    else:
        assert set(fields) == {
            *("format", "name", "description", "ops", "valued_pairs", "tile_memory")
        }
        assert schema["$defs"]["PairEntry"]["properties"]["value"]["type"] == "number"


def test_schema_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "schema.json"
    assert run("schema", "--output", target).code == 0
    assert json.loads(target.read_text())["$ref"] == "#/$defs/InstanceDocument"


def test_layouts_of_a_sink_set_in_parts(run: Run, tmp_path: Path) -> None:
    """Half of the sink takes the locations of a barrier that reads the other half."""
    graph = Graph("halves")
    x = graph.sink((4,), name="x")
    read = graph.barrier([graph.slice(x, [0], [2])], (2,), name="b")
    graph.valued_pair(graph.slice(x, [2], [4]), read, 1)
    path, target = tmp_path / "halves.json", tmp_path / "result.json"
    write_instance(graph, path)
    run("solve", path, "--json", target)
    document = json.loads(target.read_text())
    assert document["score"] == 2
    pieces = document["layouts"]["x"]
    parts = {piece[0]: n for n, piece in enumerate(pieces)}
    assert document["order"] == [["x", parts["x"]], ["x", parts["b"]]]
    assert run("check", path, target).code == 0
    document["order"].reverse()
    target.write_text(json.dumps(document))
    assert run("check", path, target).code == 1


def test_a_wrong_answer_is_never_given(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("layoutopt.unwinding.evaluate", lambda *_: Evaluation(("broken",), None, 0))
    ran = run("solve", instance)
    assert (ran.code, ran.out) == (70, "")
    assert "internal error" in ran.err


def test_pairs_of_an_instance_without_pairs(run: Run, tmp_path: Path) -> None:
    graph = Graph("alone")
    graph.sink((1,), name="x")
    path, target = tmp_path / "alone.json", tmp_path / "result.json"
    write_instance(graph, path)
    document = json.loads(run("solve", path, "--json", "-").out)
    document["pairs"] = [{"a": "x", "b": "x", "value": 1, "elements": 1, "matched": 1}]
    target.write_text(json.dumps(document))
    ran = run("check", path, target)
    assert ran.code == 1
    assert "the instance has 0, the result 1" in ran.out


def test_a_solver_that_fails_is_told_in_one_line(
    run: Run, instance: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise SolverError("it failed")

    swap_solver(monkeypatch, "mip", fail)
    ran = run("solve", instance, "--solver", "mip")
    assert (ran.code, ran.out) == (70, "")
    assert ran.err == "layoutopt: internal error, no result: it failed\n"


def test_fixed_layouts_are_kept(run: Run, instance: Path) -> None:
    """With ``x`` at ``a``, as greedy0 has it, 8 is proved to be all that can be earned."""
    greedy, kept = instance.with_name("greedy.json"), instance.with_name("kept.json")
    assert run("solve", instance, "--solver", "greedy0", "--json", greedy).code == 0
    ran = run("solve", instance, "--fixed", greedy, "--json", kept)
    assert ran.code == 0
    assert "optimal with 1 elements given" in ran.out
    document = json.loads(kept.read_text())
    assert (document["status"], document["score"], document["bound"]) == ("optimal", 8, 8)
    assert document["size"]["given"] == 1
    assert run("check", instance, kept).code == 0


def test_a_start_is_used(run: Run, instance: Path) -> None:
    """Without time the answer is the start's."""
    start = instance.with_name("start.json")
    assert run("solve", instance, "--json", start).code == 0
    ran = run("solve", instance, "--start", start, "--time-limit", 0, "--json", "-")
    assert (ran.code, json.loads(ran.out)["score"]) == (0, 15)


def test_fixed_without_layouts_is_refused(run: Run, instance: Path) -> None:
    """A result that has no layouts, and a file that is no result, are refused in one line."""
    empty = instance.with_name("empty.json")
    run("solve", instance, "--solver", "greedy0", "--time-limit", 0, "--json", empty)
    for name, reason in ((empty, "$.layouts: has no layouts"), (instance, "$.format")):
        ran = run("solve", instance, "--fixed", name)
        assert ran.code == 2
        assert f"{name}: {reason}" in ran.err
