"""A page for each solver, of unwinding and of conversion."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from layoutopt.base.entries import Entry, Takes, entries
from layoutopt.network import parts
from layoutopt.registry import find
from layoutopt.unwinding import SOLVERS
from texts import page, ran, summary, table, text_of

WORKS_ON = {
    Takes.LABELLING: "the [labelling problem](../glossary.md#labelling-problem) of a graph",
    Takes.GRAPH: "the graph itself",
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
    return pages | {
        f"solvers/conversion/{name}.md": _of_conversion(entry)
        for name, entry in entries(Takes.TABLES, Takes.MODES).items()
    }


def solver_table() -> str:
    """Return a table of all solvers of unwinding with links to their pages."""
    rows = [
        (f"[`{name}`](solvers/{name}.md)", _kind(find(name)), _text(name).partition("\n")[0])
        for name in SOLVERS
    ]
    return table(["solver", "kind", ""], rows)


def _kind(entry: Entry) -> str:
    return "exact" if entry.proves else "heuristic"


def _page(name: str) -> str:
    entry = find(name)
    result = "layouts and a bound; with enough time, a proof"
    if not entry.proves:
        result = "layouts, no bound"
    return page(
        f"# `{name}`",
        _text(name),
        table(["", ""], [("result", result), ("works on", WORKS_ON[entry.takes])]),
        "## Example",
        ran(EXAMPLE.format(name=name)),
        f"On the command line: `layoutopt solve INSTANCE --solver {name}`. "
        "[Solvers](../solvers.md) compares all of them; "
        "[method](../method.md) explains how bounds are proved.",
    )


def _text(name: str) -> str:
    """Return the docstring of a solver's module, or of its function if several share a module."""
    homes = {one: sys.modules[_inner(find(one).load()).__module__] for one in SOLVERS}
    if [*homes.values()].count(homes[name]) > 1:
        return text_of(_inner(find(name).load())).partition("\n\nParameters")[0]
    text = text_of(homes[name])
    return page(text_of(parts), text) if name == "auto" else text


def _inner(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a solver was made of, if it was."""
    inner: Callable[..., Any] = inspect.getclosurevars(call).nonlocals.get("choose", call)
    return inner


def _of_conversion(entry: Entry) -> str:
    name, call = entry.name, entry.load()
    proof = "and a bound; with enough time, a proof" if entry.proves else "no bound"
    return page(
        f"# `{name}` (conversion)",
        text_of(call).partition("\n\nParameters")[0] or summary(call),
        table(
            ["", ""], [("result", f"modes of all ops, {proof}"), ("works on", "conversion graphs")]
        ),
        "## Example",
        ran(CONVERSION.format(name=name)),
        f"On the command line: `layoutopt convert MODEL.onnx --solver {name}`. "
        "[Heuristics of conversion](../../conversion.md#heuristics) compares them; `auto`, "
        "the default, [proves](../../conversion.md#how-it-is-solved) the optimum.",
    )
