"""Graphs with barrier hooks, against trying all layouts, and by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from layoutopt.base.limits import Limits, Stopped
from layoutopt.base.result import Result, Status
from layoutopt.graphs.locations import hooked
from layoutopt.graphs.ops import Barrier
from layoutopt.graphs.tiling import memory_of, opaque, viewed
from layoutopt.graphs.unwinding import Graph
from layoutopt.machine import simulated
from layoutopt.machine.simulated import solve_hooked
from layoutopt.network.solvers.programme import ProgrammeResult
from layoutopt.tiles.hooks import hook
from layoutopt.tiles.memory import MOST, TileMemory
from layoutopt.unwinding import unwind
from tests.hooked import best_of_all, layouts_of, random_hooked
from tests.support import refused

SEEDS = range(240)
ROUNDS = 6

FEW = 100
"""Rows one by one take long where sinks have more layouts."""


pytestmark = pytest.mark.usefixtures("hooks")


def never(graph: Graph) -> Result:
    """Solve nothing."""
    raise AssertionError("small graphs are solved by rows")


def tried(seeds: Iterator[int]) -> Iterator[tuple[Graph, dict[int, np.ndarray]]]:
    """Yield graphs that are small enough, with all layouts that fit."""
    for seed in seeds:
        graph = random_hooked(seed)
        layouts = layouts_of(graph)
        if layouts is not None:
            yield graph, layouts


@pytest.mark.parametrize("part", range(ROUNDS))
def test_against_all_layouts(part: int) -> None:
    """Score, bound and infeasibility are those of trying all layouts with the hooks' formulas."""
    for graph, layouts in tried(iter(SEEDS[part::ROUNDS])):
        best = best_of_all(graph, layouts)
        result = unwind(graph)
        if best is None:
            assert result.status is Status.INFEASIBLE, graph.name
            continue
        assert (result.status, result.score) == (Status.OPTIMAL, best), graph.name


def test_rows_that_are_added_one_by_one() -> None:
    """Without tables of whole barriers, rows for what the master chose lead to the same optimum."""
    seen: Counter[str] = Counter()
    for graph, layouts in tried(iter(SEEDS[::4])):
        without_views = viewed(graph)
        if hooked(without_views) and len(next(iter(layouts.values()))) <= FEW:
            ops = [without_views.ops[i] for i in hooked(without_views)]
            seen.update({op.hook for op in ops if isinstance(op, Barrier) and op.hook})
            best = best_of_all(graph, layouts)
            result = solve_hooked(graph, Limits(), never, table=0)
            assert bool(result.infeasible) == (best is None), graph.name
            assert (result.objective, result.bound) == (best, best), graph.name
            seen["infeasible"] += best is None
    assert min(seen[what] for what in ("ascending", "crowd", "neighbours", "infeasible")) > 5, seen


def test_what_is_tried() -> None:
    """Of the graphs compared, 220 and more are tried; all hooks, chains and limits are there."""
    seen: Counter[str] = Counter()
    for graph, layouts in tried(iter(SEEDS)):
        memory = memory_of(graph)
        names = [graph.ops[i].hook for i in hooked(graph)]
        seen.update({"graphs", *names, "grain" if memory.grain > 1 else "no grain"})
        need = sum(sink.size * memory.bytes_of(sink.name) for sink in graph.sinks())
        seen["room" if need <= memory.bytes_per_tile else "crowded"] += 1
        seen["two hooks"] += len(names) == 2
        seen["infeasible"] += not len(next(iter(layouts.values())))
        best = best_of_all(graph, layouts)
        seen["hooks matter"] += best != best_of_all(opaque(graph), layouts)
    assert seen["graphs"] >= 220
    assert min(seen.values()) >= 8, seen


def test_opaque_is_as_without_hooks() -> None:
    """With opaque barriers score and bound are those of the graph without hooks."""
    for graph, layouts in tried(iter(SEEDS[::16])):
        shut = opaque(graph)
        result, other = unwind(graph, barriers="opaque"), unwind(shut)
        assert (result.score, result.bound) == (other.score, other.bound)
        assert result.status is other.status
        assert result.layouts == other.layouts
        if result.status is Status.OPTIMAL:
            assert result.score == best_of_all(shut, layouts)
        assert not hooked(result.graph)


def sorted_twice(tiles: int = 3) -> Graph:
    """Return a graph in which sorted tiles are wanted in an order that is not sorted.

    ``x`` wants (2, 1, 0) for 3 each.  Its sorted copy ``b`` wants the same for 2 each, and would
    have it if it could lie anywhere; of sorted tiles only the middle one can be so.
    """
    graph = Graph("sorted")
    x = graph.sink((3,), name="x")
    b = graph.barrier([x], (3,), hook="ascending", name="b")
    wanted = graph.source((3,), [2, 1, 0], name="s")
    graph.valued_pair(x, wanted, 3)
    graph.valued_pair(b, wanted, 2)
    graph.tile_memory = TileMemory(tiles, 1024)
    return graph


def test_what_barriers_are_taken_as() -> None:
    """Hooks are obeyed by default; opaque barriers follow the linear rule, here 0, 1, 2."""
    graph = sorted_twice()
    x = graph.tensor("x")
    graph.valued_pair(graph.tensor("b"), graph.source((3,), [0, 1, 2], name="linear"), 7)
    assert unwind(graph).score == unwind(graph, barriers="simulated").score == 32
    shut = unwind(graph, barriers="opaque", fixed={x: [("s", 2, 0, ((3, 0, 1),))]})
    assert (shut.score, shut.bound) == (3 + 2 + 21, 3 + 2 + 21)  # on tile 0, b lies the same
    with refused("unknown barriers 'open'; known: opaque, simulated"):
        unwind(graph, barriers="open")
    graph.tile_memory = None
    with refused("barriers can be simulated only"):
        unwind(graph, barriers="simulated")
    assert unwind(graph).score == 9  # without tiles hooks say nothing, and no locations are named


def test_fixed_layouts_are_refused() -> None:
    """Layouts that are kept are not solved where hooks are obeyed; a start is beaten or kept."""
    graph = sorted_twice()
    with refused("fixed layouts are not supported for graphs with barrier hooks"):
        unwind(graph, fixed={"x": [("s", 0, 0, ((1, 1, 1),))]})
    assert unwind(graph, start={"x": [("s", 0, 0, ((3, 1, 1),))]}).score == 11


def test_too_large_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the bound lets outputs lie anywhere, and the stop says why."""
    monkeypatch.setattr(simulated, "VARIABLES", 10)
    result = unwind(sorted_twice())
    assert (result.score, result.bound, result.stopped) == (11, 15, Stopped.SIZE_LIMIT)
    assert result.status is Status.FEASIBLE


def test_too_large_and_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit layouts keep to the capacity, and where none can, that is said."""
    monkeypatch.setattr(simulated, "VARIABLES", 10)
    graph = sorted_twice(4)
    graph.tile_memory = TileMemory(4, 4)
    graph.valued_pair(graph.tensor("x"), graph.source((3,), [3, 3, 3], name="t"), 10)
    # Free elements would all be on tile 3, for 30.  One element fits each tile.
    result = unwind(graph)
    assert result.status is Status.FEASIBLE
    assert result.score in (16, 16 + 2)  # hooks did not guide the choice among the layouts of 16
    assert result.bound is not None
    assert result.bound >= 30 + 6
    graph.tile_memory = TileMemory(4, 3)
    assert unwind(graph).status is Status.INFEASIBLE


def test_bounds_of_too_large_graphs_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit no layout earns more than the bound, whatever grains rules look at."""
    monkeypatch.setattr(simulated, "VARIABLES", 0)
    seen: Counter[bool] = Counter()
    for graph, layouts in tried(iter(SEEDS[::4])):
        best, result = best_of_all(graph, layouts), unwind(graph)
        assert (result.status is Status.INFEASIBLE) == (best is None), graph.name
        if best is not None:
            assert result.bound is not None
            assert (result.score or 0) <= best <= result.bound, graph.name
            seen[result.status is Status.OPTIMAL] += 1
    assert min(seen.values()) >= 10, seen


def test_values_too_large_for_the_programme() -> None:
    """Values beyond what CP-SAT adds up leave the bound of free outputs."""
    graph = sorted_twice()
    graph.valued_pair(graph.tensor("x"), graph.tensor("s"), 10**30 + 1)
    result = unwind(graph)
    assert (result.score, result.bound) == (3 * 10**30 + 14, 3 * 10**30 + 18)


def test_large_graphs_with_the_package_s_hooks() -> None:
    """A barrier of a built-in hook is a view: a thousand million elements are solved by classes."""
    graph = Graph("large")
    x = graph.sink((1000, 1000, 1000), name="x")
    rows, columns = ({"kind": "grid", "blocks": b} for b in ([4, 1, 1], [1, 4, 1]))
    graph.valued_pair(x, graph.source(x.shape, rule=rows), 1)
    out = graph.barrier([x], x.shape, hook="normalisation", name="n")
    graph.valued_pair(out, graph.source(x.shape, rule=columns), 3)
    graph.tile_memory = TileMemory(4, MOST)
    result = unwind(graph)
    # All lie by columns, for 3; where rows are of the same quarter, for 4.
    assert result.score == result.bound == 3 * 10**9 + 10**9 // 4


def test_hooks_that_contradict_themselves() -> None:
    """Unequal outputs for equal inputs, and reads that leave out what matters, are refused."""
    count = iter(range(100))
    hook("moody")(lambda inputs, shapes, memory: [np.full(shapes[0], next(count) % memory.tiles)])
    graph = Graph("moody")
    x = graph.sink((2,), name="x")
    b = graph.barrier([graph.source((1,), [0])], (2,), hook="moody", name="b")
    graph.valued_pair(x, b, 1)
    graph.valued_pair(b, graph.source((2,), [2, 2]), 1)
    graph.tile_memory = TileMemory(3, 64)
    with refused("barrier 'b': its hook gave tiles 0 and 1 for an output element"):
        unwind(graph)

    def none(inputs: list[tuple[int, ...]], outputs: list[tuple[int, ...]]) -> list[np.ndarray]:
        return [np.zeros((3, 0), int)]

    hook("ascending", reads=none)(lambda i, s, m: [np.sort(i[0])])
    with refused("barrier 'b': its hook gave tiles 0 and 1 for an output element"):
        unwind(sorted_twice())


def test_no_time() -> None:
    """Without time there are neither layouts nor a traceback."""
    assert unwind(sorted_twice(), time_limit=0).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("answers", "status", "stopped"),
    [
        ([ProgrammeResult()], Status.UNKNOWN, Stopped.TIME_LIMIT),
        ([ProgrammeResult(infeasible=True), ProgrammeResult()], Status.UNKNOWN, Stopped.TIME_LIMIT),
        (
            [ProgrammeResult(infeasible=True), ProgrammeResult(infeasible=True)],
            Status.INFEASIBLE,
            Stopped.FINISHED,
        ),
    ],
)
def test_a_solver_that_finds_no_layout(
    monkeypatch: pytest.MonkeyPatch,
    answers: list[ProgrammeResult],
    status: Status,
    stopped: Stopped,
) -> None:
    """Infeasible is what is proved so; else time was up, and hooks are not to blame."""
    left = iter(answers)
    monkeypatch.setattr(simulated, "solve_programme", lambda *_: next(left))
    result = solve_hooked(sorted_twice(), Limits(), never)
    assert (result.status, result.stopped) == (status, stopped)
    assert (result.objective, result.bound, result.labelling) == (None, None, None)
    assert list(left) == []


def test_a_gap_is_good_enough_where_asked() -> None:
    """A first layout of 11 or less, where outputs anywhere would earn 15, is inside a gap of 1."""
    result = solve_hooked(sorted_twice(), Limits(gap=1.0), never, table=0)
    assert result.stopped is Stopped.GAP_LIMIT
    assert result.objective is not None
    assert result.bound is not None
    assert 15 / 2 <= result.objective <= 11 < result.bound <= 15
    assert result.labelling is not None
