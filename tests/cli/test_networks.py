"""Cost networks in commands."""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from layoutopt.network import CostNetwork, read, solve, write
from tests.cli.conftest import Run

CFN = """{"problem": {"name": "t", "mustbe": "<10.0"}, "variables": {"x": 2, "y": ["a", "b"]},
 "functions": {"f": {"scope": ["x"], "costs": [0.5, 0.7]},
               "g": {"scope": ["x", "y"], "costs": [1, 2, 3, 0]}}}"""

WCSP = "t 2 2 2 100 2 2 1 0 0 1 1 5 2 0 1 1 1 0 0 9\n"

UAI = "MARKOV 2 2 2 1 2 0 1 4 0.1 0.2 0.3 0.9\n"

IOPDDL = {
    "problem": {
        "name": "small",
        "nodes": {
            "intervals": [[0, 2], [1, 4]],
            "costs": [[4, 7], [1, 0]],
            "usages": [[6, 2], [5, 9]],
        },
        "edges": {"nodes": [[0, 1]], "costs": [[1, 5, 2, 0]]},
        "usage_limit": 10,
    }
}


def step(path: Path, *, high: int = 64) -> Path:
    """Write a small network with a row."""
    net = CostNetwork("step")
    d = net.domain(["NCHW", "NHWC"])
    x, y = net.node("conv", d, [2, Fraction(1, 3)]), net.node("relu", d)
    net.table(x, y, [[0, 2], [1, None]])
    net.row({(x, "NHWC"): 40, (x, "NCHW"): 40, (y, "NHWC"): 8}, high=high, name="t=17")
    write(net.build(), path)
    return path


def files(folder: Path) -> dict[str, str]:
    """Write networks in all formats, and return their optima as results write them."""
    step(folder / "n.json")
    step(folder / "n.npz")
    (folder / "n.cfn").write_text(CFN)
    (folder / "n.wcsp").write_text(WCSP)
    (folder / "n.uai").write_text(UAI)
    (folder / "p.json.gz").write_bytes(gzip.compress(json.dumps(IOPDDL).encode()))
    return {
        "n.json": "4/3",
        "n.npz": "4/3",
        "n.cfn": "0.7",
        "n.wcsp": "1",
        "n.uai": "0.105361",
        "p.json.gz": "10",
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def solved(run: Run, *words: str) -> tuple[int, Any]:
    """Return a solve's exit code and its JSON."""
    done = run("solve", *words, "--json", "-")
    return done.code, json.loads(done.out, parse_float=str)


def test_every_format_is_solved_and_checked(folder: Path, run: Run) -> None:
    """Status, objective, bound, labels and names; the certificate proves the bound."""
    for name, optimum in files(folder).items():
        code, found = solved(run, name)
        assert code == 0, name
        assert found["status"] == "optimal", name
        assert [str(found[key]) for key in ("objective", "bound")] == [optimum] * 2, name
        network = read(name)
        assert len(found["labels"]) == len(network), name
        assert list(found["names"]) == list(network.nodes), name
        run("solve", name, "-o", "r.json", "--certificate", "c.json", "--overwrite", "-q")
        done = run("check", name, "r.json", "--certificate", "c.json")
        assert done.code == 0, done.out + done.err
        assert "nothing is unverified" in done.out


def test_people_are_told(folder: Path, run: Run) -> None:
    """What is proved, and some labels."""
    step(folder / "n.json")
    text = run("solve", "n.json").out
    assert text.startswith("step: 2 nodes, 1 edge, 1 row\n")
    for line in ("status     optimal", "bound      4/3", "conv  NHWC", "relu  NCHW"):
        assert line in text


def test_infeasible_networks_say_why(folder: Path, run: Run) -> None:
    """The exit code is 3, and the line names nodes and rows; the claim can be checked."""
    step(folder / "n.json", high=39)
    done = run("solve", "n.json", "-o", "r.json", "--certificate", "c.json", "-q")
    assert done.code == 3
    assert done.err.startswith("layoutopt: n.json: infeasible: ")
    assert "conv" in done.err
    assert "t=17" in done.err
    assert json.loads(Path("r.json").read_text())["labels"] is None
    assert run("check", "n.json", "r.json", "--certificate", "c.json").code == 0


def test_a_start_is_never_lost(folder: Path, run: Run) -> None:
    """A solve begins with the labels of a solution, and stops where it is told to."""
    step(folder / "n.json")
    assert run("solve", "n.json", "-o", "r.json", "-q").code == 0
    code, found = solved(run, "n.json", "--start", "r.json", "--time-limit", "5", "--seed", "3")
    assert (code, found["labels"], found["seed"]) == (0, [1, 0], 3)
    code, found = solved(run, "n.json", "--no-seconds", "--gap", "0.1")
    assert (code, found["seconds"]) == (0, {})


def test_wrong_results_are_refused(folder: Path, run: Run) -> None:
    """Labels that are forbidden, and costs, bounds and certificates that are not so."""
    step(folder / "n.json")
    run("solve", "n.json", "-o", "r.json", "--certificate", "c.json", "-q")
    good = json.loads(Path("r.json").read_text())
    for change, text in (
        ({"labels": [1, 1]}, "is forbidden"),
        ({"labels": [1]}, "2 nodes need as many"),
        ({"labels": [0, 0]}, "the labels cost 2"),
        ({"objective": 1}, "the labels cost 4/3"),
        ({"bound": 2}, "better than the bound"),
        ({"bound": 0}, "the status is 'optimal'"),
    ):
        Path("w.json").write_text(json.dumps(good | change))
        done = run("check", "n.json", "w.json")
        assert done.code == 1, change
        assert text in done.out
    wrong = json.loads(Path("c.json").read_text())
    wrong["bound"] = 2
    Path("w.json").write_text(json.dumps(wrong))
    assert run("check", "n.json", "--certificate", "w.json").code == 1


def test_solvers_are_compared(folder: Path, run: Run) -> None:
    """Exact and heuristic ones in one table; heuristics prove nothing."""
    net = CostNetwork("ring", "max")
    d = net.domain(["a", "b", "c"])
    names = [net.node(f"n{k}", d, [k % 3, 2, 1]) for k in range(7)]
    for k in range(7):
        net.equal(names[k], names[k - 1], 2)
    write(net.build(), folder / "ring.json")
    (folder / "n.cfn").write_text(CFN)
    done = run("compare", "ring.json", "n.cfn", "--json", "-", "--no-seconds")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert {"auto", "greedy", "alpha-expansion"} <= {each["solver"] for each in found}
    best = solve(net).objective
    assert all(x["objective"] <= best for x in found if x["network"] == "ring")
    text = run("compare", "ring.json", "--solver", "auto", "--solver", "greedy").out
    assert "to best bound" in text.splitlines()[0]
    assert [line.split()[1] for line in text.splitlines()[1:] if line] == ["auto", "greedy"]


def test_networks_are_rows_of_batches(folder: Path, run: Run) -> None:
    """Beside other instances; costs that are minimised have their sign turned."""
    step(folder / "n.json")
    (folder / "n.cfn").write_text(CFN)
    assert run("bench", ".", "--solver", "auto", "--store", "s.sqlite", "-q").code == 0
    rows = json.loads(run("bench", "export", "s.sqlite", "--format", "json").out)["rows"]
    found = {row["instance"]: (row["status"], row["score"], row["bound"]) for row in rows}
    assert [found["n"][0], found["n.cfn"][0]] == ["optimal", "optimal"]
    assert sorted(row["score"] for row in rows) == pytest.approx([-4 / 3, -0.7])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["solve", "n.json", "--solver", "magic"],
            "have no solver 'magic'; there are auto, greedy",
        ),
        (["solve", "n.json", "--solver", "greedy"], "keeps no rows"),
        (["solve", "n.json", "--tiles", "ipu-mk2"], "--tiles does not apply to cost networks"),
        (["solve", "n.json", "--html", "a.html"], "--html does not apply to cost networks"),
        (["solve", "n.json", "--start", "s.json"], "has 1 labels, the network has 2 nodes"),
        (["solve", "bad.json"], "$.nodes"),
        (["solve", "missing.npz"], "missing.npz: no such file"),
        (["check", "n.json", "n.json"], "$.format"),
        (["compare", "n.json", "u.json"], "is not a cost network"),
    ],
)
def test_bad_input_is_one_line(folder: Path, run: Run, words: list[str], text: str) -> None:
    """The exit code is 2, and the line names the option or the file."""
    step(folder / "n.json")
    run("solve", "n.json", "-o", "s.json", "-q")
    short = json.loads(Path("s.json").read_text()) | {"labels": [0]}
    Path("s.json").write_text(json.dumps(short))
    Path("bad.json").write_text('{"format": "layoutopt/network/1", "nodes": [1], "domains": []}')
    Path("u.json").write_text('{"format": "layoutopt/unwinding/1", "ops": []}')
    done = run(*words)
    assert done.code == 2
    assert done.out == ""
    assert text in done.err
    assert len(done.err.splitlines()) == 1
