"""Layouts in the words of ``models/``: what is given, and what is found, element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from benchmarks.agreement.cases import Case, Layouts
from layoutopt.base.result import Piece
from layoutopt.graphs.ops import Source
from layoutopt.graphs.unwinding import Graph
from layoutopt.io.instance import instance_bytes
from models.statement import Statement, added, cyclic, state

Where = dict[int, int]
"""For each element the number of its location; ``-1 - f`` is the fresh one of ``f``."""


def stated(graph: Graph) -> Statement:
    """Return the statement of a graph, by way of its file."""
    return state(instance_bytes(graph).decode())


def where(graph: Graph, given: Statement, layouts: Mapping[str, Sequence[Piece]]) -> Where:
    """Return the locations that pieces give to elements, loop by loop."""
    number = {(name, flat): e for e, (name, _, flat) in enumerate(given.elements)}
    place = {spot: p for p, spot in enumerate(given.locations)}
    mapped = {op.id: op.mapping for op in graph.ops if isinstance(op, Source) and op.mapping}
    output: dict[str, tuple[str, int]] = {}
    for op, tensors in zip(graph.ops, graph.op_outputs, strict=True):
        output |= {graph.tensor_name(t): (op.id, o) for o, t in enumerate(tensors)}
    found: Where = {}
    for sink, pieces in layouts.items():
        for origin, start, to, loops in pieces:
            op_id, o = output[origin]
            for taken, flat in _walk(start, to, loops):
                e = number[sink, flat]
                if (op_id, taken) in number:
                    found[e] = -1 - number[op_id, taken]
                elif op_id in mapped:
                    found[e] = place[mapped[op_id][taken]]
                else:
                    found[e] = place[op_id, o, taken]
    return found


def _walk(start: int, to: int, loops: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the flat elements that a piece reads and writes."""
    found = [(start, to)]
    for extent, step, other in loops:
        found = [(a + i * step, b + i * other) for a, b in found for i in range(extent)]
    return found


def waits(given: Statement, choice: Where) -> bool:
    """Return whether barriers wait for each other under a choice for some elements."""
    arcs = given.arcs.union(*(added(given, e, place) for e, place in choice.items()))
    return cyclic(arcs)


def kept(given: Statement, fixed: Where) -> Statement:
    """Return a statement in which some elements have their locations already.

    A fresh location of another element becomes one that anything may take.
    """
    locations, barrier_of = list(given.locations), list(given.barrier_of)
    place: Where = {}
    for e, p in fixed.items():
        if p < 0:
            fresh = ("fresh", p)
            if fresh not in locations:
                locations.append(fresh)
                barrier_of.append(None)
            p = locations.index(fresh)
        place[e] = p
    constant = given.constant
    earn: dict[tuple[int, int], Fraction] = {}
    agree: dict[tuple[int, int], Fraction] = {}
    for (e, p), value in given.earn.items():
        if e not in place:
            earn[e, p] = value
        elif place[e] == p:
            constant += value
    for (e, f), value in given.agree.items():
        if e in place and f in place:
            constant += value if place[e] == place[f] else 0
        elif e in place or f in place:
            free, set_already = (f, e) if e in place else (e, f)
            key = free, place[set_already]
            earn[key] = earn.get(key, Fraction(0)) + value
        else:
            agree[e, f] = value
    return replace(
        given,
        locations=locations,
        agree=agree,
        earn=earn,
        constant=constant,
        barrier_of=barrier_of,
        reads={b: read - place.keys() for b, read in given.reads.items()},
        arcs=given.arcs.union(
            *(added(given, e, p) for e, p in place.items() if p < len(given.locations))
        ),
    )


def legal(graph: Graph, given: Statement, layouts: Layouts | None, also: Where) -> Layouts | None:
    """Return layouts in part without the pieces that make barriers wait for each other."""
    if layouts is None:
        return None
    found: dict[str, tuple[Piece, ...]] = {}
    choice = dict(also)
    for sink, pieces in layouts.items():
        for piece in pieces:
            more = choice | where(graph, given, {sink: (piece,)}) | also
            if not waits(given, more):
                choice = more
                found[sink] = (*found.get(sink, ()), piece)
    return found


def begun(case: Case) -> Case:
    """Return a case whose given layouts break no rule, alone and together."""
    if case.fixed is None and case.start is None:
        return case
    given = stated(case.graph)
    fixed = legal(case.graph, given, case.fixed, {})
    kept_at = where(case.graph, given, fixed or {})
    return replace(case, fixed=fixed, start=legal(case.graph, given, case.start, kept_at))
