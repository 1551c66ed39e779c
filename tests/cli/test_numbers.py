"""Numbers of any magnitude through the whole command line, each with a twin in its last digit."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from layoutopt.base.numbers import to_integers
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from layoutopt.tiles.memory import TileMemory
from layoutopt.unwinding import SOLVERS
from models.exhaustive import maximum
from models.statement import state
from tests.cli.conftest import Run
from tests.models.instances import FAMILIES
from tests.support import hard_graph

SIZE = 3

TWINS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "tenths": (["0.1", "0.2"], ["0.30000000000000001"], ["0.29999999999999999"]),
    "beyond 2^53": (["9007199254740992", "1"], ["9007199254740994"], ["9007199254740992"]),
    "beyond 2^63": (
        ["9223372036854775807"] * 3,
        ["27670116110564327422"],
        ["27670116110564327420"],
    ),
    "1e-9 beside 1e9": (["1e9", "5e-9"], ["1000000000.000000006"], ["1000000000.000000004"]),
    "1e-30 beside 1e300": (["1e300", "5e-30"], ["1e300", "6e-30"], ["1e300", "4e-30"]),
    "beyond doubles": (["1e308", "1e308", "5e-324"], ["2e308", "6e-324"], ["2e308", "4e-324"]),
    "the largest": (["9e399", "5e-400"], ["9e399", "6e-400"], ["9e399", "4e-400"]),
    "other spellings": (["1E+2"], ["100.00000000000000000001"], ["99.99999999999999999999"]),
    "cancelling": (["1e30", "-1e30", "5e-9"], ["6e-9"], ["4e-9"]),
    "negative": (["-1e9", "1e9", "-0"], ["0.0", "1e-30"], ["-0.0", "-1e-30"]),
}
"""What elements earn at one place and at another, and there with another last digit."""


def written(path: Path, graph: Graph, values: Sequence[str]) -> Path:
    """Write an instance with the texts of its pairs' values as they are given."""
    text = instance_bytes(graph).decode()
    for n, value in enumerate(values):
        assert f'"value":{n + 1}}}' in text
        text = text.replace(f'"value":{n + 1}}}', f'"value":{value}}}', 1)
    path.write_text(text)
    return path


def answered(run: Run, instance: Path, *options: object) -> dict[str, Any]:
    """Solve an instance, have the result checked, and return it with exact numbers."""
    result = instance.with_suffix(".result.json")
    ran = run("solve", instance, "--json", result, "--overwrite", *options)
    assert ran.code == 0, ran
    checked = run("check", instance, result)
    assert checked.code == 0, checked
    document: dict[str, Any] = json.loads(result.read_text(), parse_float=Fraction)
    return document


def seesaw(one: Sequence[str], other: Sequence[str]) -> Graph:
    """Return a sink that is drawn to two sources by some pairs each, their values 1, 2, ..."""
    graph = Graph("seesaw")
    x = graph.sink((SIZE,), name="x")
    ends = [graph.source((SIZE,), name=name) for name in ("one", "other")]
    where = [ends[0]] * len(one) + [ends[1]] * len(other)
    for n, end in enumerate(where, 1):
        graph.valued_pair(x, end, n)
    return graph


@pytest.mark.parametrize("solver", ["auto", "cpsat", "mip", "greedy0"])
@pytest.mark.parametrize("name", TWINS)
def test_the_last_digit_decides(run: Run, tmp_path: Path, name: str, solver: str) -> None:
    """All elements go where the exact sum is larger, and the score is that sum times three.

    Exact methods prove it at any magnitude where they can, and are never wrong elsewhere; the
    twin's elements go to the other place.
    """
    one, *others = TWINS[name]
    homes = []
    for n, other in enumerate(others):
        values = [*one, *other]
        path = written(tmp_path / f"{n}.json", seesaw(one, other), values)
        found = answered(run, path, "--solver", solver)
        sums = [sum(map(Fraction, side)) for side in (one, other)]
        if solver == "auto":
            assert found["status"] == "optimal"
        if found["status"] == "optimal":
            assert found["score"] == found["bound"] == SIZE * max(*sums, 0)
            homes.append([piece[0] for piece in found["layouts"]["x"]])
        assert found["score"] <= SIZE * max(*sums, 0)
        assert found["bound"] is None or found["bound"] >= SIZE * max(*sums, 0)
    if solver == "auto":
        assert homes[0] == ["other"]
        assert homes[1] != ["other"]


@pytest.mark.parametrize("name", TWINS)
def test_check_sees_the_last_digit(run: Run, tmp_path: Path, name: str) -> None:
    """A score that is wrong by the smallest digit that any value has is a violation."""
    one, other, _ = TWINS[name]
    path = written(tmp_path / "a.json", seesaw(one, other), [*one, *other])
    answered(run, path)
    result = tmp_path / "a.result.json"
    document = json.loads(result.read_text(), parse_float=Decimal, parse_int=Decimal)
    last = min(int(Decimal(value).as_tuple().exponent) for value in [*one, *other])
    wrong = Fraction(document["score"]) + Fraction(10) ** last
    places = max(1, -last)
    whole, part = divmod(int(wrong * 10**places), 10**places)
    text = result.read_text()
    start = text.index('"score": ') + len('"score": ')
    claimed = f"{whole}.{part:0{places}d}"
    result.write_text(text[:start] + claimed + text[text.index(",", start) :])
    ran = run("check", path, result)
    assert ran.code == 1
    assert "score: the layouts have" in ran.out


def rivals(first: str, second: str) -> tuple[Graph, list[str]]:
    """Return two barriers of which only one can lend its output to what the other reads."""
    graph = Graph("rivals")
    x, y = graph.sink((SIZE,), name="x"), graph.sink((SIZE,), name="y")
    graph.valued_pair(x, graph.barrier([y], (SIZE,), name="b"), 1)
    graph.valued_pair(y, graph.barrier([x], (SIZE,), name="c"), 2)
    return graph, [first, second]


def crowd(first: str, second: str) -> tuple[Graph, list[str]]:
    """Return two sinks that want a tile which holds one of them."""
    graph = Graph("crowd")
    for n, name in enumerate("xy", 1):
        sink = graph.sink((SIZE,), name=name)
        graph.valued_pair(sink, graph.source((SIZE,), [0] * SIZE, name=f"at {name}"), n)
    graph.tile_memory = TileMemory(2, SIZE, element_bytes={"default": 1})
    return graph, [first, second]


@pytest.mark.parametrize("build", [rivals, crowd])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("9007199254740993", "9007199254740992"),
        ("1000000000.000000001", "1e9"),
        ("27670116110564327421", "27670116110564327420"),
        ("1e300", f"{10**300 - 1}"),
        ("2e-30", "1.9999999999999999999999999e-30"),
    ],
)
def test_order_and_capacity(run: Run, tmp_path: Path, build: Any, first: str, second: str) -> None:
    """Barrier order and capacity prefer what is worth more by the last digit, and prove it.

    Only barrier order with values of more than 55 bits may be left open by a few of these digits.
    """
    [more, less], _ = to_integers([Decimal(first), Decimal(second)])
    rounded = build is rivals and more + less >= 2**55
    for turned in (False, True):
        graph, values = build(*((second, first) if turned else (first, second)))
        found = answered(run, written(tmp_path / f"{turned}.json", graph, values))
        assert found["score"] == SIZE * Fraction(first)
        assert found["status"] == "optimal" or rounded
        assert found["score"] <= found["bound"] < found["score"] * (1 + Fraction(1, 2**40))
        won = [pair["matched"] for pair in found["pairs"]]
        assert won == ([0, SIZE] if turned else [SIZE, 0])


@pytest.mark.parametrize("build", [rivals, crowd])
@pytest.mark.parametrize("solver", SOLVERS)
def test_beyond_doubles(run: Run, tmp_path: Path, build: Any, solver: str) -> None:
    """No solver minds sums that no double holds, neither under barrier order nor on full tiles."""
    graph, values = build("1e399", "1e-399")
    path = written(tmp_path / "a.json", graph, values)
    ran = run("solve", path, "--solver", solver, "--json", path.with_suffix(".result.json"))
    assert ran.code in (0, 4), ran  # heuristics know nothing of capacity, and may find nothing
    found = json.loads(path.with_suffix(".result.json").read_text(), parse_float=Fraction)
    best = SIZE * 10**399
    assert found["score"] is None or found["score"] <= best
    assert found["bound"] is None or found["bound"] >= best
    if solver == "auto":
        assert found["score"] == best
        assert found["bound"] - best <= SIZE * 10**390
    assert ran.code == 0 or build is crowd


@pytest.mark.parametrize("family", FAMILIES)
def test_random_graphs(run: Run, tmp_path: Path, family: str) -> None:
    """Scores and bounds of random graphs of mixed magnitudes are those of trying everything.

    A twin whose value of a pair that matches is larger in its last digit has another optimum.
    """
    seen: Counter[str] = Counter()
    for seed in range(12):
        draw, graph = random.Random(seed), FAMILIES[family](seed)
        if not graph.pairs:
            continue
        magnitudes = [-30, -9, 0, 9, 30] if seed % 2 else [-9, 0]
        graph.pairs = [
            (a, b, Decimal(f"{value}e{draw.choice(magnitudes)}")) for a, b, value in graph.pairs
        ]
        path = tmp_path / f"{seed}.json"
        path.write_bytes(instance_bytes(graph))
        found = answered(run, path)
        best = maximum(state(path.read_text()))
        assert found["score"] <= best <= found["bound"], seed
        seen[found["status"]] += 1
        matched = [n for n, pair in enumerate(found["pairs"]) if pair["matched"]]
        if found["status"] == "optimal" and matched:
            n = draw.choice(matched)
            a, b, value = graph.pairs[n]
            graph.pairs[n] = (a, b, value + Decimal((0, (1,), value.as_tuple().exponent)))
            path.write_bytes(instance_bytes(graph))
            twin = answered(run, path)
            other = maximum(state(path.read_text()))
            assert other > best
            assert twin["score"] <= other <= twin["bound"], seed
            seen["twins"] += twin["status"] == "optimal"
    assert seen["optimal"] >= 9
    assert seen["twins"] >= 7


def test_what_needs_search(run: Run, tmp_path: Path) -> None:
    """A component that needs bounds and search is proved whatever its values' common factor is."""
    graph = hard_graph(3, 4)
    path = tmp_path / "hard.json"
    path.write_bytes(instance_bytes(graph))
    small = answered(run, path)
    assert small["status"] == "optimal"
    for exponent in (-40, 25, 300):
        scaled = graph.copy()
        scaled.pairs = [(a, b, Decimal(f"{value}e{exponent}")) for a, b, value in graph.pairs]
        path.write_bytes(instance_bytes(scaled))
        found = answered(run, path)
        assert found["score"] == found["bound"] == small["score"] * Fraction(10) ** exponent
