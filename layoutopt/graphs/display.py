"""Graphs as pictures, coloured by the locations of their elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from layoutopt.graphs import drawing
from layoutopt.graphs.drawing import Layouts
from layoutopt.graphs.layouts import check_layouts
from layoutopt.graphs.op import Kind, type_name
from layoutopt.graphs.store import Store
from layoutopt.graphs.tensor import Tensor
from layoutopt.picture import Picture
from layoutopt.pictures import html
from layoutopt.pictures.summary import summary
from layoutopt.pictures.text import shortened
from layoutopt.result import UnwindingResult

TENSORS = 40
"""A picture shows no more tensors than that."""

ROWS = 30
"""Length of a table of ops."""


def draw(
    graph: Store,
    layouts: Layouts | UnwindingResult | None = None,
    tensors: Iterable[Tensor | str] | Tensor | str | None = None,
) -> Picture:
    """Draw tensors as grids, a cell for each element, coloured by location.

    Equal colours are equal locations.  Elements that lie at a location of their own, which
    nothing else shares, are pale.  Without layouts sinks are white, and so is what depends on
    them.  ValuedPairs are dashed lines.

    Parameters
    ----------
    layouts
        A result, or what lies where by sink: pieces, or an array of the numbers that
        :meth:`layoutopt.Graph.locations` gives.  Elements that are left out lie at locations
        of their own.
    tensors
        Names or handles of those to draw; all by default.

    Returns
    -------
    Picture
        Tensors of more than 256 elements are plain boxes; instead of more than 40 tensors
        the picture counts what there is.

    Raises
    ------
    InputError
        If tensors or layouts do not fit the graph.
    """
    if tensors is None:
        chosen: Sequence[int] = range(len(graph.shapes))
    else:
        named = [tensors] if isinstance(tensors, str | Tensor) else tensors
        chosen = sorted({graph.number(t) for t in named})
    if layouts is not None:
        check_layouts(layouts, "layouts")
    if isinstance(layouts, UnwindingResult):
        layouts = layouts.layouts
    if len(chosen) > TENSORS:
        return Picture(_summary(graph, len(chosen)), reduced=True)
    return Picture(drawing.figure_of(graph, layouts, chosen))


def document(graph: Store) -> str:
    """Return what notebooks show of a graph: a picture, or a table where it would be large."""
    parts = [html.heading(graph.name or "unnamed"), html.line(graph.description, html.MUTED)]
    parts.append(html.line(_counts(graph)))
    picture = draw(graph) if len(graph.shapes) <= TENSORS else None
    if picture is not None:
        return html.block([*parts, html.fitted(str(picture))])
    rows = []
    for i in range(min(ROWS, len(graph.ops))):
        shapes = ", ".join(str(list(graph.shapes[t])) for t in graph.op_outputs[i])
        op = graph.ops[i]
        rows.append([*map(shortened, (op.id, type_name(op), ", ".join(op.inputs), shapes))])
    parts.append(html.table(["op", "type", "inputs", "shape"], rows, left=4))
    if len(graph.ops) > ROWS:
        parts.append(html.line(f"... and {len(graph.ops) - ROWS:,} more ops", html.MUTED))
    return html.block(parts)


def _counts(graph: Store) -> str:
    kinds = Counter(op.kind for op in graph.ops)
    told = [f"{len(graph.ops):,} ops", f"{len(graph.shapes):,} tensors"]
    for kind in Kind:
        if kinds[kind]:
            told.append(f"{kinds[kind]:,} {kind.value}{'s' if kinds[kind] > 1 else ''}")
    return ", ".join([*told, f"{len(graph.pairs):,} valued pairs"])


def _summary(graph: Store, wanted: int) -> str:
    types = Counter(type_name(op) for op in graph.ops).most_common()
    rows = [(f"{len(graph.shapes):,}", "tensors"), (f"{len(graph.pairs):,}", "valued pairs")]
    rows += [(f"{n:,}", kind) for kind, n in types[:12]]
    if len(types) > 12:
        rows.append((f"{sum(n for _, n in types[12:]):,}", "other ops"))
    note = f"{wanted:,} tensors are too many to draw; tensors=[...] chooses up to {TENSORS}"
    return summary(graph.name or "unnamed graph", rows, note)
