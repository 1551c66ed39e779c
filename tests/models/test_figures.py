"""The shipped figures and traps: their files, their tables, and the numbers in both."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.figures import FIGURES, chained_calls
from benchmarks.traps import TRAPS, aliases
from layoutopt.base.result import Piece, Status
from layoutopt.check.elements import evaluate
from layoutopt.graphs.ops import Source
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes, read_instance
from layoutopt.unwinding import unwind
from models import exhaustive, minizinc, textbook_mip
from models.statement import Statement, state
from tests.check.large import whole
from tests.support import EXACT

INSTANCES = Path(__file__).parents[2] / "instances"
BUILDERS = {"figures": FIGURES, "greedy": TRAPS}


def rows(folder: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield name and cells of each row of the table in a set's README."""
    lines = (INSTANCES / folder / "README.md").read_text().splitlines()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    for cells in table[2:]:
        name = re.fullmatch(r"`(\w+)\.json`", cells[0])
        assert name is not None, cells
        yield name[1], dict(zip(table[0], cells, strict=True))


CASES = [
    pytest.param(INSTANCES / folder / f"{name}.json", cells, id=f"{folder}/{name}")
    for folder in BUILDERS
    for name, cells in rows(folder)
]


@pytest.mark.parametrize("folder", BUILDERS)
def test_table_builders_and_files_name_the_same_instances(folder: str) -> None:
    """No instance without its row and its builder, and none of these without its file."""
    files = {path.stem for path in (INSTANCES / folder).glob("*.json")}
    assert files == set(BUILDERS[folder]) == {name for name, _ in rows(folder)}


@pytest.mark.parametrize(
    ("folder", "build"),
    [pytest.param(f, build, id=f"{f}/{n}") for f in BUILDERS for n, build in BUILDERS[f].items()],
)
def test_shipped_file_is_what_its_builder_writes(folder: str, build: Callable[[], Graph]) -> None:
    """The files are the builders' output, byte by byte."""
    graph = build()
    assert (INSTANCES / folder / f"{graph.name}.json").read_bytes() == instance_bytes(graph)


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(("path", "cells"), CASES)
def test_optimum_by_every_method(path: Path, cells: dict[str, str], method: str) -> None:
    """Each method proves the optimum that the table states."""
    result = unwind(read_instance(path), method)
    assert result.status is Status.OPTIMAL
    assert result.objective == Decimal(cells["optimum"])


@pytest.mark.parametrize(("path", "cells"), CASES)
def test_score_of_greedy0(path: Path, cells: dict[str, str]) -> None:
    """The heuristic scores what the table states."""
    assert unwind(read_instance(path), "greedy0").objective == Decimal(cells["greedy0"])


@pytest.mark.parametrize(
    "maximum", [exhaustive.maximum, textbook_mip.maximum], ids=["exhaustive", "textbook_mip"]
)
@pytest.mark.parametrize(("path", "cells"), CASES)
def test_optimum_by_models(
    path: Path, cells: dict[str, str], maximum: Callable[[Statement], Fraction]
) -> None:
    """Trying everything and the textbook rows find the optimum that the table states."""
    assert maximum(state(path.read_text())) == Decimal(cells["optimum"])


@pytest.mark.skipif(
    shutil.which("minizinc") is None,
    reason="the minizinc command is not on this machine, so its model is not compared",
)
@pytest.mark.parametrize(
    ("path", "cells"),
    # Gecode does not see that their elements are independent, and needs up to minutes.
    [case for case in CASES if "chained_calls" not in str(case.id)],
)
def test_optimum_by_minizinc(path: Path, cells: dict[str, str]) -> None:
    """The MiniZinc model finds the optimum that the table states."""
    assert minizinc.maximum(state(path.read_text())) == Decimal(cells["optimum"])


@pytest.mark.parametrize("build", FIGURES.values(), ids=FIGURES)
def test_description_states_the_optimum(build: Callable[[], Graph]) -> None:
    """A figure's number stands in its description."""
    graph = build()
    optimum = dict(rows("figures"))[graph.name]["optimum"]
    assert re.search(rf"\b{optimum}\b", graph.description)


@pytest.mark.parametrize("build", TRAPS.values(), ids=TRAPS)
def test_greedy0_loses_on_every_trap(build: Callable[[], Graph]) -> None:
    """The table of traps holds no instance that greedy0 solves."""
    cells = dict(rows("greedy"))[build().name]
    assert Decimal(cells["greedy0"]) < Decimal(cells["optimum"])


def test_loss_on_aliases_grows_without_limit() -> None:
    """With n names greedy0 earns 1.1 where n can be had."""
    for copies in (2, 10, 50):
        graph = aliases(copies)
        assert unwind(graph, "greedy0").objective == Decimal("1.1")
        assert unwind(graph).objective == copies


@pytest.mark.parametrize(
    ("name", "pairs", "elements"),
    [("matmul", 2, 12), ("unbroadcast_add", 3, 16), ("broadcast_add", 1, 2), ("call", 9, 48)],
)
def test_all_pairs_are_satisfied(name: str, pairs: int, elements: int) -> None:
    """Where the notes say so, every position of every pair matches."""
    result = unwind(FIGURES[name]())
    assert len(result.pairs) == pairs
    assert sum(pair.elements for pair in result.pairs) == elements
    assert all(pair.matched == pair.elements for pair in result.pairs)


def single(*places: tuple[str, int]) -> tuple[Piece, ...]:
    """Return a layout element by element."""
    return tuple((origin, start, to, ()) for to, (origin, start) in enumerate(places))


def test_layout_drawn_in_valued_pair_scores_20() -> None:
    """The two tensors match at their first and last element."""
    id1 = single(("id0", 0), ("id1", 1), ("id1", 2), ("id0", 1), ("id1", 1), ("id0", 5))
    drawn = evaluate(FIGURES["valued_pair"](), {"id0": whole("id0", 6), "id1": id1})
    assert (drawn.violations, drawn.score, drawn.max_score) == ((), 20, 60)


@pytest.mark.parametrize(
    ("name", "yellow", "score"),
    [("objective_function", 2, 43), ("objective_function_distinct", 1, 32)],
)
def test_layout_drawn_in_objective_function(name: str, yellow: int, score: int) -> None:
    """The drawing scores 43; the notes' 32 is what it scores where A and D share no yellow.

    B is magenta (which is in neither source), violet, and A's yellow and pink; C is dark red
    and violet in both rows.
    """
    b = single(("B", 0), ("D", 1), ("A", 2), ("A", 3))
    c = single(("D", 0), ("D", 1), ("D", 0), ("D", 1))
    drawn = evaluate(FIGURES[name](), {"B": b, "C": c})
    matched = {(pair.a, pair.b): pair.matched for pair in drawn.pairs}
    assert matched == {("A", "B"): 2, ("C", "D"): 2, ("C", "E"): 1, ("D", "E"): yellow}
    assert (drawn.violations, drawn.score) == ((), score)


def test_layout_drawn_in_unwinding2_flows_to_its_end() -> None:
    """The sink's colours as drawn become the colours drawn at the end of the chain."""
    graph = FIGURES["unwindable_ops"]()
    source = graph.ops[-1]
    assert isinstance(source, Source)
    target = source.mapping or ()
    top = ["orange", "yellow", "pink", "lavender", "blue", "green"]
    middle = ["grey", "pale", "magenta", "pink", "green", "blue"]
    bottom = ["white", "white", "white", "blue", "pink", "yellow"]
    colours = [*top, *middle, *bottom]
    x = single(
        *(("target", target.index(c)) if c in target else ("x", i) for i, c in enumerate(colours))
    )
    assert evaluate(graph, {"x": x}).score == 12


CALLED = {"a": whole("matmul", 6), "b": whole("matmul", 6), "c": whole("matmul", 6)}
SOLUTIONS = {
    1: CALLED
    | {"w": whole("target_w", 4), "x": whole("target_x", 6), "input": whole("target_x", 6)},
    2: CALLED | {"w": whole("target_w", 4), "x": whole("matmul", 6), "input": whole("matmul", 6)},
}
"""The layouts drawn in figure fixedpoint1."""


@pytest.mark.parametrize(
    ("target", "chain", "copy"),
    [(10, 5, 1), (5, 10, 1), (10, 9, 1), (10, 8, 1), (7, 1, 3), (7, 1, 4), (3, 3, 0), (1, 9, 9)],
)
def test_two_solutions_of_chained_calls_trade_places(target: int, chain: int, copy: int) -> None:
    """The drawn solutions score as the notes say, and the better one is the optimum."""
    graph = chained_calls(target, chain, copy)
    first, second = (evaluate(graph, SOLUTIONS[n]) for n in (1, 2))
    assert not first.violations
    assert not second.violations
    assert first.score == 10 * target + 24 * copy
    assert second.score == 4 * target + 6 * chain + 36 * copy
    assert unwind(graph).objective == max(first.score, second.score)
    better = 6 * (target - chain) > 12 * copy
    assert (first.score > second.score) is better


def test_barrier_forbids_the_second_solution() -> None:
    """With a barrier for the product its input would wait for its output."""
    graph = FIGURES["chained_calls_barrier"]()
    assert not evaluate(graph, SOLUTIONS[1]).violations
    (violation,) = evaluate(graph, SOLUTIONS[2]).violations
    assert violation.startswith("barrier order: 'matmul'")
