"""Ops that pick or place elements by index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layoutopt.layout.permutations import Permutation
from layoutopt.operators.axes import axis_rule
from layoutopt.operators.op import Op
from layoutopt.operators.operator import Category, Operator
from layoutopt.operators.remapping import Axes, RemapError, Remapped, fitted, is_identity


def gather(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis; what the indices give comes out in its place."""
    if op.rank(1) is None:
        raise RemapError(f"{op}: the rank of its indices is unknown")
    return {"axis": permutation.index(op.axis(0, len(permutation)))}


def gathered_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the data's axes, the axes of the indices in place of the one gathered along."""
    rank, indices = op.rank(0), op.rank(1)
    if rank is None or indices is None:
        return (None,)
    axis = op.axis(0, rank)
    return ((*range(axis), *(axis,) * indices, *range(axis + 1, rank)),)


def one_hot_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the axes of the indices, and between them the new one."""
    rank = op.rank(0)
    if rank is None:
        return (None,)
    axis = op.axis(-1, rank + 1)
    return ((*range(axis), None, *range(axis, rank)),)


def compress(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axis; without one, elements are taken in order."""
    if "axis" not in op.attributes:
        raise RemapError(f"{op}: without an axis it takes elements in their order")
    return {"axis": permutation.index(op.axis(None, len(permutation)))}


def compressed_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return all axes, or with no axis to compress the only one that is left, a new one."""
    rank = op.rank(0)
    if "axis" not in op.attributes:
        return ((None,),)
    return (None if rank is None else tuple(range(rank)),)


def _depth(op: Op) -> int | None:
    """Return how many leading axes of the data GatherND and ScatterND find by index."""
    shape = op.shape(1)
    depth = shape[-1] if shape else None
    return depth + op.integer("batch_dims", 0) if isinstance(depth, int) else None


def _kept_head(op: Op, permutation: Permutation) -> int:
    """Return the number of axes that stay in front, or refuse."""
    depth = _depth(op)
    if depth is None:
        raise RemapError(f"{op}: the size of the last axis of its indices is unknown")
    if not is_identity(permutation[:depth]):
        raise RemapError(f"{op}: its indices count along the first {depth} axes; these must stay")
    return depth


def gather_nd(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Keep the axes that indices count along in front; the others move."""
    _kept_head(op, permutation)
    return {}


def gathered_nd_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the axes of the indices but the last, and those data axes that are not found."""
    rank, indices, depth = op.rank(0), op.rank(1), _depth(op)
    if rank is None or indices is None or depth is None:
        return (None,)
    batch = op.integer("batch_dims", 0)
    front = (*range(batch), *(None,) * (indices - 1 - batch))
    return ((*front, *range(depth, rank)),)


def scatter_nd(op: Op, permutation: Permutation) -> Remapped:
    """Keep the axes that indices count along in front; the others move, of updates too."""
    rank, indices, depth = len(permutation), op.rank(1), _kept_head(op, permutation)
    if indices is None:
        raise RemapError(f"{op}: the rank of its indices is unknown")
    front = indices - 1  # axes of the updates that are the indices'
    updates = (*range(front), *(i - depth + front for i in permutation[depth:]))
    return Remapped({}, (permutation, None, fitted(updates, front + rank - depth)))


def _table() -> list[Operator]:
    light = Category.LIGHT
    return [
        Operator("Compress", light, compress, follow=compressed_axes),
        Operator("Gather", light, gather, follow=gathered_axes),
        Operator("GatherElements", light, axis_rule(0), operands=(0, 1)),
        Operator("GatherND", light, gather_nd, follow=gathered_nd_axes),
        Operator("OneHot", light, lambda op, permutation: {}, follow=one_hot_axes),
        Operator("Scatter", light, axis_rule(0), operands=(0, 1, 2)),
        Operator("ScatterElements", light, axis_rule(0), operands=(0, 1, 2)),
        Operator("ScatterND", light, scatter_nd),
    ]


INDEXING = _table()
"""Ops that pick or place elements by index."""
