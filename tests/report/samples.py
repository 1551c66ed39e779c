"""Results, comparisons and batch runs of all kinds, and their pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from benchmarks.figures import FIGURES
from layoutopt import Graph, UnwindingResult, compare, unwind
from layoutopt.base.limits import Stopped
from layoutopt.bench.row import Row
from layoutopt.report.batch import bench_html
from layoutopt.report.comparison import comparison_html
from layoutopt.report.pages import whole
from layoutopt.report.result import report_html
from layoutopt.tiles.memory import TileMemory

LONG = "x" * 200
"""A name that no line can hold."""

MARKUP = "<script>alert(1)</script>&\"'"
"""A name that looks like markup."""

TRACE = ((0.1, None, 900.0), (0.2, 40.0, 400.0), (1.5, 124.0, 160.0), (3.0, 130.0, 130.0))


def awkward() -> Graph:
    """Return a small graph in which names are long, or look like markup."""
    graph = Graph(MARKUP + LONG, MARKUP)
    x, y = graph.sink((2, 3), name=LONG), graph.sink((2, 3), name=MARKUP)
    first, second = graph.source((2, 3), name="s" + LONG), graph.source((2, 3), name="s" + MARKUP)
    known = graph.barrier([x], (2, 3), name="b" + MARKUP)
    graph.valued_pair(x, first, 5)
    graph.valued_pair(x, second, 4)
    graph.valued_pair(x, y, "0.5")
    graph.valued_pair(y, known, 3)
    return graph


def many() -> Graph:
    """Return a graph of more tensors than a picture has, with pairs that lose, alike."""
    graph = Graph("many", "sixty sinks, each wanted at two places")
    for i in range(60):
        x = graph.sink((30, 20), name=f"x{i}")
        graph.valued_pair(x, graph.source((30, 20), name=f"near{i}"), 3)
        graph.valued_pair(x, graph.source((30, 20), name=f"far{i}"), 1)
    return graph


def tiled() -> Graph:
    """Return a product on a machine of 16 tiles."""
    graph = Graph("tiled")
    x, w = graph.sink((8, 8), name="x"), graph.sink((8, 4), name="w")
    graph.grow_matmul(x, w, name="y")
    graph.tile_memory = TileMemory(16, 100)
    return graph


def nothing() -> UnwindingResult:
    """Return a result without layouts, bound and pairs."""
    return replace(unwind(FIGURES["matmul"](), "greedy0", time_limit=0), stopped=Stopped.TIME_LIMIT)


def infeasible() -> UnwindingResult:
    """Return a proof that there is no solution."""
    graph = tiled()
    graph.tile_memory = TileMemory(2, 10)
    return unwind(graph)


def empty() -> Graph:
    """Return a graph with neither sinks nor pairs."""
    graph = Graph()
    graph.source((3,))
    return graph


def row(**fields: object) -> Row:
    """Return a row of a batch run."""
    plain: dict[str, object] = {
        "instance": "i",
        "instance_hash": "0",
        "solver": "auto",
        "version": "1.0",
        "machine": "a machine",
        "status": "optimal",
        "seconds": 1.0,
        "started": "2026-01-01T00:00:00+00:00",
    }
    if "instance" in fields:
        plain["instance_hash"] = str(fields["instance"])
    return Row(**(plain | fields))  # type: ignore[arg-type]


def batch() -> list[Row]:
    """Return a batch run of all statuses, awkward names among them."""
    rows = []
    for i, name in enumerate(["a", LONG, MARKUP, "d"]):
        rows += [
            row(
                instance=name,
                score=Decimal(100),
                bound=Decimal(100),
                seconds=1.0 + i,
                trace=((0.1, 50.0, 300.0), (1.0 + i, 100.0, 100.0)),
                pairs=(("p", MARKUP, "10", 6, 6), (LONG, LONG, "1", 6, 6)),
                peak_bytes=10**8,
                parameters={"time_limit": 60.0},
            ),
            row(
                instance=name,
                solver="greedy" + LONG,
                status="feasible",
                score=Decimal(100 - 10 * i),
                seconds=0.1,
                pairs=(("p", MARKUP, "10", 6, 6 - i), (LONG, LONG, "1", 6, 6)),
                parameters={"time_limit": 60.0},
            ),
        ]
    rows.append(row(instance="e", status="infeasible", parameters={"time_limit": 60.0}))
    rows.append(row(instance="f", status="unknown", parameters={"time_limit": 60.0}))
    limit = {"time_limit": 60.0}
    rows.append(row(instance="g", status="failed", error=MARKUP + LONG, log="g", parameters=limit))
    return rows


def _result(graph: Graph) -> str:
    result = unwind(graph)
    return report_html(result, TRACE, f"layoutopt solve {MARKUP} {LONG}")


PAGES: dict[str, Callable[[], str]] = {
    "figure": lambda: _result(FIGURES["chained_calls_copies"]()),
    "barrier": lambda: _result(FIGURES["chained_calls_barrier"]()),
    "awkward": lambda: _result(awkward()),
    "many": lambda: _result(many()),
    "tiled": lambda: _result(tiled()),
    "empty": lambda: _result(empty()),
    "alone": lambda: report_html(replace(unwind(many()), graph=None)),
    "nothing": lambda: report_html(nothing()),
    "infeasible": lambda: report_html(infeasible()),
    "comparison": lambda: comparison_html(compare(awkward()), "layoutopt compare"),
    "comparisons": lambda: comparison_html(
        [compare(awkward()), compare(FIGURES["chained_calls_copies"]()), compare(empty())]
    ),
    "batch": lambda: bench_html(batch(), f"layoutopt bench show {LONG}"),
    "no batch": lambda: bench_html([]),
    "instance": lambda: whole("awkward", awkward().to_html()),
    "large instance": lambda: whole("many", many().to_html()),
}
"""Pages by name."""
