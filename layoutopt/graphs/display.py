"""Graphs as pictures, coloured by the locations of their elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from layoutopt.base.result import UnwindingResult
from layoutopt.base.shown import Part, Words
from layoutopt.base.table import Table
from layoutopt.graphs.locations import check_layouts
from layoutopt.graphs.ops import Kind, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor
from layoutopt.pictures.svg import Picture, shortened

if TYPE_CHECKING:
    from layoutopt.graphs.drawing import Layouts

MOST_OPS = 60
"""Largest number of ops in a table."""

MOST_IN_CELL = 6
"""Largest number of inputs or ValuedPairs in a cell of a table."""


def table(graph: GraphStore) -> str:
    """Return a table of a graph's first ops: name, type, inputs, shape and attractions.

    There is a line for each output.  Attractions are the other tensors of its ValuedPairs, and
    their values.
    """
    columns = ("tensor", "type", "inputs", "shape", "attractions")
    rows: list[tuple[str, ...]] = []
    for op, outputs in zip(graph.ops[:MOST_OPS], graph.op_outputs, strict=False):
        head = type_name(op), _cell(op.inputs)
        rows += [_row(graph, t, *head) for t in outputs] or [(op.id, *head, "", "")]
    left = len(graph.ops) - MOST_OPS
    more = [f"... and {left:,} more ops"] if left > 0 else []
    return "\n".join([repr(graph), Table(columns, rows, len(columns)).text(""), *more])


def _row(graph: GraphStore, t: int, tag: str, inputs: str) -> tuple[str, str, str, str, str]:
    partners = graph.valued_partners(graph.handle(t))
    attractions = _cell(f"{partner.name}: {value}" for partner, value in partners)
    return graph.tensor_name(t), tag, inputs, str(list(graph.shapes[t])), attractions


def _cell(entries: Iterable[str]) -> str:
    every = list(entries)
    left = len(every) - MOST_IN_CELL
    return ", ".join(every[:MOST_IN_CELL] + ([f"and {left} more"] if left > 0 else []))


TENSORS = 40
"""Largest number of tensors in a picture."""

ROWS = 30
"""Largest number of ops in a table in notebooks."""


def draw(
    graph: GraphStore,
    layouts: Layouts | UnwindingResult | None = None,
    tensors: Iterable[Tensor | str] | Tensor | str | None = None,
) -> Picture:
    """Draw tensors as grids, a cell for each element, coloured by location.

    Equal colours are equal locations; pale elements are at locations that nothing else shares.
    Without layouts, sinks and tensors that depend on them are white.  ValuedPairs are dashed lines.

    Parameters
    ----------
    layouts
        A result, or for each sink its pieces, or an array of location numbers as of
        :meth:`layoutopt.Graph.locations`.  Missing elements are at fresh locations.
    tensors
        Names or handles of the tensors to draw; all by default.

    Returns
    -------
    Picture
        Tensors of more than 256 elements are plain boxes; of more than 40 tensors, only their
        number is shown.

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
    from layoutopt.graphs.drawing import figure_of

    return Picture(figure_of(graph, layouts, chosen))


def shown_parts(graph: GraphStore) -> Iterator[Part]:
    """Yield what notebooks show of a graph: a picture, or a table of a large graph."""
    yield Words(graph.name or "unnamed", "title")
    yield Words(graph.description, "soft")
    yield Words(_counts(graph))
    if len(graph.shapes) <= TENSORS:
        yield from draw(graph).shown_parts()
        return
    rows = []
    for i in range(min(ROWS, len(graph.ops))):
        shapes = ", ".join(str(list(graph.shapes[t])) for t in graph.op_outputs[i])
        op = graph.ops[i]
        rows.append([op.id, type_name(op), shortened(", ".join(op.inputs)), shapes])
    yield Table(["op", "type", "inputs", "shape"], rows, left=4)
    if len(graph.ops) > ROWS:
        yield Words(f"... and {len(graph.ops) - ROWS:,} more ops", "soft")


def _counts(graph: GraphStore) -> str:
    kinds = Counter(op.kind for op in graph.ops)
    entries = [f"{len(graph.ops):,} ops", f"{len(graph.shapes):,} tensors"]
    for kind in Kind:
        if kinds[kind]:
            entries.append(f"{kinds[kind]:,} {kind.value}{'s' if kinds[kind] > 1 else ''}")
    return ", ".join([*entries, f"{len(graph.pairs):,} valued pairs"])


def _summary(graph: GraphStore, wanted: int) -> str:
    types = Counter(type_name(op) for op in graph.ops).most_common()
    rows = [(f"{len(graph.shapes):,}", "tensors"), (f"{len(graph.pairs):,}", "valued pairs")]
    rows += [(f"{n:,}", kind) for kind, n in types[:12]]
    if len(types) > 12:
        rows.append((f"{sum(n for _, n in types[12:]):,}", "other ops"))
    note = f"{wanted:,} tensors are too many to draw; choose up to {TENSORS} by tensors=[...]"

    from layoutopt.pictures.figure import summary

    return summary(graph.name or "unnamed graph", rows, note)
