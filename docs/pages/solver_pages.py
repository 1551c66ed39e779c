"""A page for each solver, of unwinding and of conversion."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from layoutopt.conversion import convert
from layoutopt.conversion.heuristics import HEURISTICS
from layoutopt.network import parts
from layoutopt.network.costs.solve import heuristic_pbqp, solve_pbqp
from layoutopt.registry import SolverKind, find
from layoutopt.unwinding import SOLVERS
from texts import page, ran, summary, table, text_of

PROMISES = {
    SolverKind.EXACT: "a layout and a bound; with enough time, a proof",
    SolverKind.APPROXIMATE: "a layout, no bound",
    SolverKind.GRAPH: "a layout, no bound",
}

WORKS_ON = {
    SolverKind.EXACT: "the [labelling problem](../glossary.md#labelling-problem) of a graph",
    SolverKind.APPROXIMATE: "the [labelling problem](../glossary.md#labelling-problem) of a graph",
    SolverKind.GRAPH: "the graph itself",
}

EXAMPLE = """
import layoutopt as lo

graph = lo.Graph("three wishes")
w = graph.sink((4, 4), name="w")
graph.valued_pair(w, graph.source((4, 4), name="forward"), 3)
graph.valued_pair(w.T, graph.source((4, 4), name="backward"), 2)
state = graph.sink((4, 4), name="state")
graph.valued_pair(w, state, 2)
graph.valued_pair(state, graph.source((4, 4), name="linear"), 2)
result = lo.unwind(graph, "{name}")
str(result.status), str(result.score), str(result.bound)
"""

CONVERSION = """
from layoutopt.conversion.convert import convert_graph
from layoutopt.conversion.graph import ConversionGraph

graph = ConversionGraph("channels last")
y = graph.input("x", (1, 32, 32, 8), "NHWC")
for name in ("a", "b"):
    y = graph.op("Transpose", [y], {{"perm": (0, 3, 1, 2)}})
    y = graph.op("Conv", [y, graph.constant(name, (8, 8, 1, 1))])
    y = graph.op("Relu", [graph.op("Transpose", [y], {{"perm": (0, 2, 3, 1)}})])
graph.output(y)
found = convert_graph(graph, solver="{name}")
str(found.status), found.before.transforms, found.after.transforms
"""


def solver_pages() -> dict[str, str]:
    """Return the page of each solver by its path; those of conversion in a folder."""
    pages = {f"solvers/{name}.md": _page(name) for name in SOLVERS}
    calls: dict[str, Callable[..., Any]] = {
        "auto": solve_pbqp,
        **HEURISTICS,
        "pbqp": heuristic_pbqp,
    }
    return pages | {
        f"solvers/conversion/{name}.md": _of_conversion(name, calls[name])
        for name in convert.SOLVERS
    }


def solver_table() -> str:
    """Return a table of all solvers of unwinding with links to their pages."""
    rows = [
        (f"[`{name}`](solvers/{name}.md)", find(name).kind.value, _told(name).partition("\n")[0])
        for name in SOLVERS
    ]
    return table(["solver", "kind", ""], rows)


def _page(name: str) -> str:
    kind = find(name).kind
    return page(
        f"# `{name}`",
        _told(name),
        table(["", ""], [("finds", PROMISES[kind]), ("works on", WORKS_ON[kind])]),
        "## Example",
        ran(EXAMPLE.format(name=name)),
        f"On the command line: `layoutopt solve INSTANCE --solver {name}`. "
        "[Solvers](../solvers.md) compares all of them, and tells which one to take; "
        "[method](../method.md) tells how bounds are proved.",
    )


def _told(name: str) -> str:
    """Return the docstring of the module that a solver stands in; ``auto`` has two."""
    told = text_of(sys.modules[_inner(find(name).call).__module__])
    return page(text_of(parts), told) if name == "auto" else told


def _inner(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a solver was made of, if it was."""
    inner: Callable[..., Any] = inspect.getclosurevars(call).nonlocals.get("choose", call)
    return inner


def _of_conversion(name: str, call: Callable[..., Any]) -> str:
    proof = "and a bound; with enough time, a proof" if name == "auto" else "no bound"
    return page(
        f"# `{name}` (conversion)",
        text_of(call).partition("\n\nParameters")[0] or summary(call),
        table(
            ["", ""], [("finds", f"modes of all ops, {proof}"), ("works on", "conversion graphs")]
        ),
        "## Example",
        ran(CONVERSION.format(name=name)),
        f"On the command line: `layoutopt convert MODEL.onnx --solver {name}`. "
        "[Heuristics of conversion](../../conversion.md#heuristics) compares them; `auto`, "
        "the default, [proves](../../conversion.md#how-it-is-solved) that none has less.",
    )
