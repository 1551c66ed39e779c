"""A graph as a table for people."""

from __future__ import annotations

from collections.abc import Iterable

from layoutopt.graphs.op import type_name
from layoutopt.graphs.store import Store
from layoutopt.pictures.tables import text_table

MOST_OPS = 60
"""Graphs are shown up to so many ops."""

MOST_IN_CELL = 6
"""Inputs and attractions are shown up to so many."""


def table(graph: Store) -> str:
    """Return a table of a graph's first ops: name, type, inputs, shape and attractions.

    An op has a line for each output.  Attractions are the tensors that it is in a ValuedPair
    with, and the values.
    """
    rows: list[tuple[str, ...]] = [("tensor", "type", "inputs", "shape", "attractions")]
    for op, outputs in zip(graph.ops[:MOST_OPS], graph.op_outputs, strict=False):
        head = type_name(op), _cell(op.inputs)
        rows += [_row(graph, t, *head) for t in outputs] or [(op.id, *head, "", "")]
    left = len(graph.ops) - MOST_OPS
    more = [f"... and {left:,} more ops"] if left > 0 else []
    return "\n".join([repr(graph), text_table(rows, len(rows[0]), ""), *more])


def _row(graph: Store, t: int, tag: str, inputs: str) -> tuple[str, str, str, str, str]:
    partners = graph.valued_partners(graph.handle(t))
    attractions = _cell(f"{partner.name}: {value}" for partner, value in partners)
    return graph.tensor_name(t), tag, inputs, str(list(graph.shapes[t])), attractions


def _cell(entries: Iterable[str]) -> str:
    every = list(entries)
    left = len(every) - MOST_IN_CELL
    return ", ".join(every[:MOST_IN_CELL] + ([f"and {left} more"] if left > 0 else []))
