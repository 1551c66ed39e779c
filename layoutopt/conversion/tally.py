"""What the transforms of a graph cost: the specification, which knows no solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TypeAlias

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.conversion.result import Relaid, Tally
from layoutopt.conversion.values import transposition
from layoutopt.operators.op import Shape, Size

Lies: TypeAlias = tuple[tuple[int, Size], ...]
"""For each dimension of a constant its stride in elements of the one it comes from, and size."""

UNKNOWN = 2**31 - 1
"""Stands for a size that is not known; a prime, so that no other product is the same."""


def tally(
    graph: ConversionGraph,
    relaid: Mapping[str, Relaid] | None = None,
    padding: Mapping[str, str] | None = None,
    narrow: Mapping[str, Shape] | None = None,
) -> Tally:
    """Return what the transforms of a graph cost.

    A transpose is one transform, and moves the bytes of its tensor, unless it is free: if axes
    other than those of size 1 stay in their order, or its tensor is a constant, which is laid out
    before the graph runs.  An op that pads blocks, or cuts padding off, is one together with its
    transpose, and moves the bytes without the padding.  Of a constant, each further layout that is
    read costs a transform: all those of one tensor but the first.

    Parameters
    ----------
    graph
        Any graph.
    relaid
        Its constants that others have been made from.
    padding
        For each op that pads blocks, or cuts padding off, its transpose; "" without one.
    narrow
        Shapes of tensors that are padded, without padding, by name.
    """
    copies: dict[str, tuple[str, Lies]] = {}
    for name, tensor in graph.tensors.items():
        if tensor.kind == "constant":
            copies[name] = _constant(graph, name, (relaid or {}).get(name))
    free, by_op = 0, dict[str, int]()
    pads, read = padding or {}, set(graph.outputs)
    partners = set(pads.values())
    for op in graph.ops:
        permutation = transposition(op)
        if permutation is None:
            read.update(op.inputs)
            if op.name in pads:
                ends = (op.inputs[0], op.outputs[0])
                by_op[op.name] = min(size_of(graph, n, (narrow or {}).get(n)) for n in ends)
            continue
        [name], [result] = op.inputs[:1], op.outputs
        shape = graph.tensors[name].shape or ()
        if name in copies:
            source, lies = copies[name]
            copies[result] = source, tuple(lies[i] for i in permutation)
            free += 1
        elif op.name in partners:
            continue
        elif _stays([i for i in permutation if shape[i] != 1]):
            free += 1
        else:
            by_op[op.name] = size_of(graph, name, (narrow or {}).get(name))
    for name in _further({n: copies[n] for n in copies if n in read}):
        how = (relaid or {}).get(name)
        by_op[name] = size_of(graph, name, None if how is None else how.old)
    return Tally(len(by_op), sum(by_op.values()), free, by_op)


def _further(copies: Mapping[str, tuple[str, Lies]]) -> Iterator[str]:
    """Yield the constants that are not the first of their source, in another layout than others."""
    seen: dict[str, set[Lies]] = {}
    for name, (source, lies) in copies.items():
        orders, order = seen.setdefault(source, set()), _joined(lies)
        if orders and order not in orders:
            yield name
        orders.add(order)


def size_of(graph: ConversionGraph, name: str, shape: Shape | None = None) -> int:
    """Return the bytes of a tensor, or of one like it; a size that is not known counts as 1."""
    tensor = graph.tensors[name]
    sizes = shape or tensor.shape or ()
    return prod(size for size in sizes if isinstance(size, int)) * tensor.element_bytes


def _stays(axes: list[int]) -> bool:
    return axes == sorted(axes)


def _constant(graph: ConversionGraph, name: str, relaid: Relaid | None) -> tuple[str, Lies]:
    """Return where a constant comes from, and how its dimensions lie in that."""
    shape = graph.tensors[name].shape or ()
    if relaid is None:
        return name, _rows(shape)
    rows = _rows(shape if relaid.shape is None else relaid.shape)
    if relaid.shape is None:
        back = sorted(range(len(shape)), key=relaid.permutation.__getitem__)
        rows = _rows([shape[i] for i in back])
    return relaid.source, tuple(rows[i] for i in relaid.permutation)


def _rows(shape: Sequence[Size]) -> Lies:
    """Return the stride and size of each dimension; sizes that are not known are no 1."""
    found = list[tuple[int, Size]]()
    stride = 1
    for size in reversed(shape):
        found.append((stride, size))
        stride *= size if isinstance(size, int) else UNKNOWN
    return tuple(found[::-1])


def _joined(lies: Lies) -> Lies:
    """Return dimensions without those of size 1, neighbours that could be one as one."""
    found = list[tuple[int, Size]]()
    for stride, size in lies:
        if size == 1:
            continue
        found.append((stride, size))
        while len(found) > 1:
            (far, many), (near, few) = found[-2:]
            if not (isinstance(few, int) and isinstance(many, int) and far == near * few):
                break
            found[-2:] = [(near, many * few)]
    return tuple(found)
