"""What-if answers on the command line, and instances that do not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layoutopt import Graph, read_result, write_instance
from layoutopt.tiles.hooks import hook
from layoutopt.tiles.memory import TileMemory
from tests.cli.conftest import Run
from tests.cli.test_bad_input import refused
from tests.machine.test_capacitated import full
from tests.machine.test_whatif import wanted


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return an instance: two sinks that want one tile of 4 bytes."""
    path = tmp_path / "wanted.json"
    write_instance(wanted(), path)
    return path


@pytest.fixture
def crammed(tmp_path: Path) -> Path:
    """Return an instance: 6 bytes on two tiles of 2."""
    path = tmp_path / "full.json"
    write_instance(full(room=2), path)
    return path


def lines(text: str) -> list[str]:
    """Return lines with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_sweep(run: Run, small: Path) -> None:
    """After the summary a line for each capacity, ascending, and the smallest machine."""
    plain = lines(run("solve", small).out)
    ran = run("solve", small, "--capacity-sweep", "2,0.5,1, 1.25")
    assert ran.code == 0
    found = lines(ran.out)
    assert len(found) > len(plain)
    assert found[: len(plain)][1] == "status optimal"
    assert found[len(plain) :] == [
        "",
        "bytes per tile of own score bound status",
        "2 50.00% - - infeasible",
        "4 100.00% 18 18 optimal",
        "5 125.00% 23 23 optimal",
        "8 200.00% 31 31 optimal",
        "the unconstrained optimum needs 7 bytes per tile",
    ]


def test_a_sweep_in_a_file(run: Run, small: Path) -> None:
    """Columns are named; unknown numbers are empty; stdout and quiet work as for results."""
    target = small.with_name("sweep.csv")
    words = ["solve", small, "--capacity-sweep", "0.5,1", "--sweep-csv"]
    assert run(*words, target, "--quiet").out == ""
    text = "bytes_per_tile,score,bound,status\n2,,,infeasible\n4,18.0,18.0,optimal\n"
    assert target.read_text() == text
    assert "exists already" in refused(run(*words, target))
    assert run(*words, target, "--overwrite").code == 0
    assert run(*words, "-").out == text
    ran = run(*words, target, "--overwrite", "--json", "-")
    assert json.loads(ran.out)["score"] == 18
    assert target.read_text() == text


def test_prices(run: Run, small: Path) -> None:
    """Tiles and sinks, the dearest first, and what is proved."""
    found = lines(run("solve", small, "--prices").out)
    start = found.index("proved by prices: no score above 19")
    assert found[start:] == [
        "proved by prices: no score above 19",
        "",
        "tile bytes of one more is worth at most",
        "0 4 4 4",
        "... and 1 tiles on which bytes are worth nothing",
        "",
        "sink bytes cost",
        "x 3 8",
        "y 4 8",
    ]


def test_prices_of_grains_and_of_room(run: Run, tmp_path: Path) -> None:
    """Multiples are told; where nothing is short, that is told."""
    for graph, told in (
        (full(grain=3), "no score above 15; tiles hold multiples of 3 bytes"),
        (full(room=6), "no score above 30; no tile's capacity limits the score"),
    ):
        path = tmp_path / "some.json"
        write_instance(graph, path)
        assert told in run("solve", path, "--prices").out


def test_what_does_not_fit(run: Run, crammed: Path) -> None:
    """Exit code 3, and on stderr one line that says why; what-if answers are given all the same."""
    result = crammed.with_name("result.json")
    ran = run("solve", crammed, "--json", result, "--quiet")
    assert ran.code == 3
    assert ran.out == ""
    assert ran.err == (
        f"layoutopt: {crammed}: infeasible: sinks need 6 bytes, 2 more than all 2 tiles hold; "
        "the heaviest: 'x' 6\n"
    )
    ran = run("solve", crammed, "--capacity-sweep", "1,1.5", "--prices")
    assert ran.code == 3
    found = lines(ran.out)
    assert "status infeasible" in found
    assert "no prices without layouts" in found
    assert found[-3:-1] == ["2 100.00% - - infeasible", "3 150.00% 15 15 optimal"]
    assert read_result(result).status == "infeasible"
    assert "status infeasible" in lines(run("show", result).out)


def test_checking_what_does_not_fit(run: Run, crammed: Path) -> None:
    """Bytes are counted from the files; that no packing fits cannot be seen; lies can."""
    result = crammed.with_name("result.json")
    run("solve", crammed, "--json", result, "--quiet")
    ran = run("check", crammed, result)
    assert ran.code == 0
    assert "infeasible, as the result says: sinks need 6 bytes, 2 more" in ran.out
    write_instance(full(room=29), crammed)
    lie = json.loads(result.read_text())
    del lie["instance_hash"]  # which would tell that it is of another instance
    result.write_text(json.dumps(lie))
    ran = run("check", crammed, result)
    assert ran.code == 1
    assert "the sinks fit the tiles, the result says infeasible" in ran.out
    graph = Graph("odd")
    graph.tile_memory = TileMemory(2, 4, {"x": 3, "y": 2})
    graph.sink((2,), name="x")
    graph.sink((1,), name="y")
    write_instance(graph, crammed)
    ran = run("solve", crammed, "--json", result, "--overwrite", "--quiet")
    assert ran.code == 3
    assert "infeasible: total capacity suffices, but no assignment" in ran.err
    ran = run("check", crammed, result)
    assert ran.code == 0
    assert "cannot be checked" in ran.out


def test_comparing_what_does_not_fit(run: Run, crammed: Path, small: Path) -> None:
    """The proof counts, a heuristic has nothing to say; another instance without proof is 4."""
    ran = run("compare", crammed)
    assert ran.code == 3
    assert lines(ran.out)[1].startswith("full auto infeasible - - -")
    assert lines(ran.out)[2].startswith("full greedy0 unknown - 30 -")
    assert run("compare", crammed, small).code == 3
    assert run("compare", small).code == 0
    assert run("compare", crammed, small, "--solver", "greedy0").code == 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--capacity-sweep", "0.8,0"], "--capacity-sweep 0.8,0: must be numbers above 0, such as"),
        (["--capacity-sweep", "-1"], "--capacity-sweep -1: must be numbers above 0"),
        (["--capacity-sweep", "a,b"], "--capacity-sweep a,b: must be numbers above 0"),
        (["--capacity-sweep", ""], "must be numbers above 0"),
        (["--capacity-sweep", "1,,2"], "must be numbers above 0"),
        (["--capacity-sweep", "nan"], "must be numbers above 0"),
        (["--capacity-sweep", "0.1"], "scale 0.1: makes 0 bytes per tile"),
        (["--sweep-csv", "-"], "--sweep-csv FILE requires --capacity-sweep"),
        (["--capacity-sweep", "1", "--sweep-csv", "-", "--json", "-"], "name the same file"),
        (["--capacity-sweep", "1", "--sweep-csv", "no/where"], "directory does not exist"),
    ],
)
def test_bad_usage(run: Run, small: Path, words: list[str], told: str) -> None:
    """One line that names the option, before anything is solved."""
    assert told in refused(run("solve", small, *words))


def test_what_does_not_go_together(run: Run, small: Path, instance: Path) -> None:
    """A machine is needed; kept layouts are not looked at; hooks that are no views are refused."""
    for word in (["--prices"], ["--capacity-sweep", "1"]):
        line = refused(run("solve", instance, *word))
        assert f"{word[0]} requires a tile memory; give one by --tiles PRESET|FILE" in line
        result = small.with_name("result.json")
        run("solve", small, "--json", result, "--overwrite", "--quiet")
        line = refused(run("solve", small, *word, "--fixed", result))
        assert f"{word[0]} cannot be combined with --fixed" in line


def test_hooks_that_are_no_views(run: Run, tmp_path: Path) -> None:
    """The solution is told first, then one line; opaque barriers have no hooks."""
    hook("cli-what-if")(lambda inputs, shapes, memory: [inputs[0] * 0 for _ in shapes])
    graph = full()
    odd = graph.barrier([graph.sink((2,), name="z")], (2,), hook="cli-what-if", name="odd")
    graph.valued_pair(odd, graph.source((2,), [0, 0], name="u"), 7)
    path = tmp_path / "hooked.json"
    write_instance(graph, path)
    ran = run("solve", path, "--prices")
    assert ran.code == 2
    assert "barrier 'odd': its hook is no view" in ran.err
    assert run("solve", path, "--prices", "--barriers", "opaque").code == 0
