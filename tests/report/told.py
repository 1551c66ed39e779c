"""Results, runs and their pages by name, for the calls that say what is told of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from xml.etree import ElementTree

from benchmarks.figures import FIGURES
from layoutopt import Comparison, Graph, UnwindingResult, compare, unwind
from layoutopt.bench.row import Row
from layoutopt.pictures.chart import ChartAxis, scale
from layoutopt.report.batch import runs
from layoutopt.report.layouts import around
from tests.examples.graphs import graph_of
from tests.report.samples import batch, empty, many, nothing, row

SVG = "{http://www.w3.org/2000/svg}"

RUN = ((0.0, None, None), (1.0, None, 20.0), (2.0, 8.0, 20.0), (3.0, 10.0, 12.0), (4.0, 10.0, 10.0))

GRAPHS: dict[str, Callable[[], Graph]] = {
    "calls": FIGURES["chained_calls_copies"],
    "matmul": FIGURES["matmul"],
    "many": many,
    "empty": empty,
}


@cache
def solved(graph: str) -> UnwindingResult:
    """Return the best layouts of a graph, by its name or line by line."""
    return unwind(GRAPHS[graph]() if graph in GRAPHS else graph_of(graph.replace("; ", "\n")))


@cache
def compared(*names: str) -> list[Comparison]:
    """Return comparisons of graphs by name."""
    return [compare(GRAPHS[name](), ["auto", "cpsat", "greedy0"]) for name in names]


def tensors(graph: str, *pairs: int) -> list[str]:
    """Return the tensors that are drawn around some pairs."""
    found = solved(graph)
    assert found.graph is not None
    assert found.layouts is not None
    chosen = around(found.graph, [found.pairs[i] for i in pairs], found.layouts)
    return [found.graph.tensor_name(t) for t in chosen]


def texts(drawn: str) -> list[str]:
    """Return the words of a chart, but for what the pointer shows."""
    root = ElementTree.fromstring(drawn.encode())
    return [str(text.text) for text in root.iter(f"{SVG}text")]


def paths(drawn: str) -> list[str]:
    """Return the lines of a chart as commands."""
    root = ElementTree.fromstring(drawn.encode())
    return [str(p.get("d")) for p in root.findall(f"{SVG}g[@fill='none']/{SVG}g/{SVG}path")]


def steps(drawn: str, line: int) -> list[tuple[float, float]]:
    """Return the corners of a line of a chart of shares: places across, and shares."""
    root = ElementTree.fromstring(drawn.encode())
    at = {text.text: float(str(text.get("y"))) - 3.5 for text in root.iter(f"{SVG}text")}
    bottom, top = at["0%"], at["100%"]
    corners = paths(drawn)[line].replace("M", "").replace("V", " ").split("H")
    pairs = [tuple(map(float, corner.split())) for corner in corners]
    return [(x, round((bottom - y) / (bottom - top), 2)) for x, y in pairs]


def heights(drawn: str, line: int) -> list[float]:
    """Return the values of a line, without those that repeat."""
    return list(dict.fromkeys(y for _, y in steps(drawn, line)))


def places(axis: ChartAxis, given: list[float], *values: float) -> list[float]:
    """Return both ends of an axis of given values, and where some values stand on it."""
    found = scale(axis, given)
    return [found.low, found.high, *(round(found.at(value), 3) for value in values)]


def solve(instance: str, solver: str, seconds: float, gap: str = "0", **fields: object) -> Row:
    """Return a row of a score of 100 and a bound so much above it."""
    bound = 100 + 100 * Decimal(gap)
    status = "optimal" if bound == 100 else "feasible"
    known = {"score": Decimal(100), "bound": bound, "status": status}
    return row(**({"instance": instance, "solver": solver, "seconds": seconds} | known | fields))


FOUR = [
    *(solve("1", "a", 1.0), solve("1", "b", 2.0), solve("2", "a", 1.0), solve("2", "b", 8.0)),
    *(solve("3", "a", 9.0, "0.5"), solve("3", "b", 4.0, "0")),
    *(solve("4", "a", 9.0, "0.1"), solve("4", "b", 9.0, "0.01")),
]
"""Four instances: ``a`` is fastest on two, ``b`` on one, and nobody proves the last."""

TRACED = ((1.0, 50.0, 100.0), (3.0, 80.0, 100.0))

OPEN = [
    solve("quick", "a", 4, trace=TRACED),
    solve("late", "a", 40, trace=TRACED),
    solve("late", "b", 90, trace=((1.0, 50.0, None), (2.0, 60.0, None))),
]


def share(score: str, bound: str) -> float:
    """Return which share of what can be had a score lacks."""
    found = runs([row(score=Decimal(score), bound=Decimal(bound), status="feasible")])
    return found.missing(found.instances[0], "auto")


BATCH, NONE = batch(), nothing()
