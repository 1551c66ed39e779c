"""What the transforms of a graph cost: the specification, which knows no solver."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Relaid, Tally
from layoutopt.conversion.values import transposition


def tally(graph: ConversionGraph, relaid: Mapping[str, Relaid] | None = None) -> Tally:
    """Return what the transforms of a graph cost.

    A transpose is one transform, and moves the bytes of its tensor, unless it is free: if axes
    other than those of size 1 stay in their order, or its tensor is a constant, which is laid out
    before the graph runs.  Of a constant, each further layout that is read costs a transform: all
    those of one tensor but the first.

    Parameters
    ----------
    graph
        Any graph.
    relaid
        Its constants that others have been made from.
    """
    copies: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, tensor in graph.tensors.items():
        if tensor.kind == "constant":
            copies[name] = _constant(graph, name, (relaid or {}).get(name))
    free, by_op = 0, dict[str, int]()
    read = set(graph.outputs)
    for op in graph.ops:
        permutation = transposition(op)
        if permutation is None:
            read.update(op.inputs)
            continue
        [name], [result] = op.inputs[:1], op.outputs
        shape = graph.tensors[name].shape or ()
        if name in copies:
            source, axes = copies[name]
            copies[result] = source, tuple(axes[i] for i in permutation)
            free += 1
        elif _stays([i for i in permutation if shape[i] != 1]):
            free += 1
        else:
            by_op[op.name] = size_of(graph, name)
    seen: dict[str, set[tuple[int, ...]]] = {}
    for name, (source, axes) in copies.items():
        order = tuple(axis for axis in axes if axis >= 0)
        orders = seen.setdefault(source, set())
        if name in read and order not in orders:
            if orders:
                by_op[name] = size_of(graph, name)
            orders.add(order)
    return Tally(len(by_op), sum(by_op.values()), free, by_op)


def size_of(graph: ConversionGraph, name: str) -> int:
    """Return the bytes of a tensor; a size that is not known counts as 1."""
    tensor = graph.tensors[name]
    sizes = tensor.shape or ()
    return prod(size for size in sizes if isinstance(size, int)) * tensor.element_bytes


def _stays(axes: list[int]) -> bool:
    return axes == sorted(axes)


def _constant(
    graph: ConversionGraph, name: str, relaid: Relaid | None
) -> tuple[str, tuple[int, ...]]:
    """Return where a constant comes from, and for each axis which one it is; -1 for size 1."""
    shape = graph.tensors[name].shape or ()
    source, places = name, tuple(range(len(shape)))
    if relaid is not None:
        source, places = relaid.source, relaid.permutation
    wide = sorted(place for i, place in enumerate(places) if shape[i] != 1)
    return source, tuple(wide.index(p) if p in wide else -1 for p in places)
