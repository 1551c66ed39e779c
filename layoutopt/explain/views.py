"""The graph of what some tensors' locations come from, without all that does not matter to them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from layoutopt.dense.groups import sources_of
from layoutopt.graphs.hooking import unused
from layoutopt.graphs.op import Kind, Op
from layoutopt.graphs.ops import Barrier, Expand, FixedPoint, Identity, Source, SumLike
from layoutopt.graphs.store import Store


def views_of(graph: Store, pairs: Iterable[tuple[int, int]]) -> Store:
    """Return the graph of some pairs, each worth 1, in which barriers wait for nobody.

    Ops that are in it keep their names.

    Parameters
    ----------
    graph
        A graph without a tile memory.
    pairs
        Tensors by number.
    """
    pairs = list(pairs)
    ops = {graph.producers[t] for t in sources_of(graph, {t for pair in pairs for t in pair})}
    found = type(graph)(graph.name)
    for i in sorted(ops):
        found.add(_alone(graph.ops[i], tuple(graph.tensor_name(t) for t in graph.carriers(i))))
    for a, b in pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), 1)
    return found


def _alone(op: Op, carriers: tuple[str, ...]) -> Op:
    """Return an op that lies as another does, and reads nothing but what it carries on."""
    if isinstance(op, SumLike):
        return Identity(id=op.id, inputs=carriers)
    if op.kind is Kind.BARRIER:
        shapes = op.shapes if isinstance(op, Barrier) else None
        return FixedPoint(id=op.id, inputs=(), shape=getattr(op, "shape", None), shapes=shapes)
    return replace(op, inputs=carriers)


def at_one_location(graph: Store) -> Store:
    """Return a graph like :func:`views_of` in which all fixed tensors lie at one location."""
    found = type(graph)(graph.name)
    one = unused(found, graph, "one")
    found.add(Source(id=one, inputs=(), shape=()))
    for i, op in enumerate(graph.ops):
        if op.kind in (Kind.SINK, Kind.VIEW):
            found.add(op)
            continue
        for t in graph.op_outputs[i]:  # each by itself, under the tensor's name
            found.add(Expand(id=graph.tensor_name(t), inputs=(one,), shape=graph.shapes[t]))
    for a, b, value in graph.pairs:
        found.valued_pair(graph.tensor_name(a), graph.tensor_name(b), value)
    return found
