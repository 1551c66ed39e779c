"""Reshapes that follow each other become one, or none."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from layoutopt.conversion.graph import ConversionGraph
from layoutopt.operators.op import Op, Shape


def fewer_reshapes(graph: ConversionGraph, kept: Container[str]) -> list[Op]:
    """Return the ops of a graph, without reshapes of what was reshaped before.

    Where only axes of size 1 move, a conversion reshapes; where two such moves meet, or one meets
    a reshape of the network, one is enough, and none if the shape is the first one again.

    Parameters
    ----------
    graph
        A graph in new layouts.
    kept
        Names of ops that were there before; pairs of these stay.
    """
    made: dict[str, Op] = {}
    same: dict[str, str] = {}
    found: list[Op] = []
    for op in graph.ops:
        op = replace(op, inputs=tuple(same.get(name, name) for name in op.inputs))
        if op.type == "Reshape":
            before = made.get(op.inputs[0])
            own = op.name in kept and (before is None or before.name in kept)
            if before is not None and not own:
                op = _merged(graph, op, before)
            if not own and _is_nothing(graph, op):
                same[op.outputs[0]] = op.inputs[0]
                continue
            made[op.outputs[0]] = op
        found.append(op)
    return _read(found, made, graph.outputs)


def _merged(graph: ConversionGraph, op: Op, before: Op) -> Op:
    """Return a reshape of what was there before another one, if its shape can be written."""
    shape = _written(graph.tensors[op.outputs[0]].shape)
    if shape is None:
        return op
    inputs = (before.inputs[0], *op.inputs[1:])
    return replace(op, inputs=inputs, attributes={**op.attributes, "shape": shape})


def _written(shape: Shape | None) -> tuple[int, ...] | None:
    """Return a shape as Reshape takes it, -1 for a size that is no number; None if it cannot."""
    sizes = [size if isinstance(size, int) else -1 for size in shape or ()]
    return None if shape is None or 0 in sizes or sizes.count(-1) > 1 else tuple(sizes)


def _is_nothing(graph: ConversionGraph, op: Op) -> bool:
    before, after = (graph.tensors[name].shape for name in (op.inputs[0], op.outputs[0]))
    known = before is not None and None not in before
    return known and before == after and op.outputs[0] not in graph.outputs


def _read(ops: list[Op], reshapes: dict[str, Op], outputs: list[str]) -> list[Op]:
    """Return ops without those reshapes that nobody reads."""
    wanted, found = set(outputs), list[Op]()
    for op in reversed(ops):
        if op.outputs[0] in reshapes and op.outputs[0] not in wanted:
            continue
        wanted.update(op.inputs)
        found.append(op)
    return found[::-1]
