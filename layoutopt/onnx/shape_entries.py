"""Results that hold sizes of tensors, known entry by entry.

Exporters compute with shapes of which one size is open, a batch, and the others are numbers:
``Gather(Shape(x), 1)`` is known although ``Shape(x)`` is not, and a Reshape to ``(batch, 12, 64)``
is one to ``(-1, 12, 64)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.numbers import sliced
from layoutopt.onnx.protobuf import SMALL
from layoutopt.onnx.rules import is_standard
from layoutopt.onnx.types import typed

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

Entries: TypeAlias = NDArray[Any]
"""Numbers, names of open sizes, and None; an array of objects with at most one axis."""


def entries_of(
    nodes: Sequence[NodeProto],
    types: Mapping[str, TypeProto | None],
    values: Mapping[str, NDArray[Any]],
) -> dict[str, Entries]:
    """Return what is known of results that are made of sizes of tensors, by name.

    Parameters
    ----------
    nodes
        Those of a graph, in order.
    types
        What is known of tensors.
    values
        Small constants.
    """
    entries: dict[str, Entries] = {}
    for node in nodes:
        if not is_standard(node.domain) or not node.input or len(node.output) != 1:
            continue
        found = _entries(node, types, values, entries)
        if found is not None and found.size <= SMALL:
            entries[node.output[0]] = found
    return entries


def known_sizes(entries: Entries | None) -> NDArray[np.int64] | None:
    """Return entries as numbers if all of them are."""
    if entries is None or not all(isinstance(size, int) for size in entries.reshape(-1)):
        return None
    return entries.astype(np.int64)


def reshape_target(
    node: NodeProto, types: Mapping[str, TypeProto | None], entries: Mapping[str, Entries]
) -> NDArray[np.int64] | None:
    """Return the constant that a Reshape may take for a shape that is partly open.

    Open sizes are written as 0 where the operand has the same ones in their places, else one as -1.
    """
    wanted = entries.get(node.input[1]) if len(node.input) > 1 else None
    if node.op_type != "Reshape" or wanted is None or wanted.ndim != 1:
        return None
    if any(a.name == "allowzero" and a.i for a in node.attribute):
        return None
    kind = types.get(node.input[0])
    shape = (None if kind is None else typed(kind).shape) or ()
    target, left = list[int](), 0
    for place, size in enumerate(wanted):
        same = isinstance(size, str) and place < len(shape) and shape[place] == size
        left += not (same or isinstance(size, int))
        target.append(size if isinstance(size, int) else 0 if same else -1)
    is_open = any(not isinstance(size, int) for size in wanted)
    if not is_open or target.count(-1) > 1 or (left and 0 in target):
        return None  # beside a size that may be 0, one cannot be left open
    return np.array(target, np.int64)


def _entries(
    node: NodeProto,
    types: Mapping[str, TypeProto | None],
    values: Mapping[str, NDArray[Any]],
    entries: Mapping[str, Entries],
) -> Entries | None:
    """Return what is known of a node's result; None if it does not hold sizes."""
    attributes = {a.name: a.i for a in node.attribute}
    if node.op_type == "Shape":
        kind = types.get(node.input[0])
        shape = None if kind is None else typed(kind).shape
        if shape is None:
            return None
        part = shape[attributes.get("start", 0) : attributes.get("end", len(shape))]
        return _array(part)
    if node.op_type == "Concat":
        parts = [_of(name, values, entries) for name in node.input]
        some = any(name in entries for name in node.input)
        if not some or any(part is None or part.ndim != 1 for part in parts):
            return None
        return np.concatenate([part for part in parts if part is not None])
    data = entries.get(node.input[0])
    if data is None:
        return None
    others = [values.get(name) if name else None for name in node.input[1:]]
    if any(name and other is None for name, other in zip(node.input[1:], others, strict=True)):
        return None
    if node.op_type == "Gather" and data.ndim == 1 and others[0] is not None:
        indices = others[0]
        inside = indices.ndim <= 1 and np.all((indices >= -len(data)) & (indices < len(data)))
        return _picked(data, indices) if inside else None
    if node.op_type == "Slice" and data.ndim == 1 and 2 <= len(others) <= 4:
        bounds = [None if other is None else int(other.reshape(-1)[0]) for other in others]
        start, stop, _, step = [*bounds, None, None][:4]
        if start is None or stop is None:
            return None
        return data[[*sliced(len(data), start, stop, step or 1)]]
    if node.op_type in ("Squeeze", "Unsqueeze") and data.size == 1:
        return data.reshape(()) if node.op_type == "Squeeze" else _one(data)
    return None


def _of(
    name: str, values: Mapping[str, NDArray[Any]], entries: Mapping[str, Entries]
) -> Entries | None:
    if name in entries:
        return entries[name]
    value = values.get(name)
    return None if value is None or value.dtype != np.int64 else value.astype(object)


def _array(sizes: Sequence[int | str | None]) -> Entries:
    found = np.empty(len(sizes), object)
    found[:] = sizes
    return found


def _picked(data: Entries, indices: NDArray[Any]) -> Entries:
    return _array([data[int(k)] for k in indices.reshape(-1)]).reshape(indices.shape)


def _one(data: Entries) -> Entries | None:
    """Return a single size as a list of one; None if it would get a second axis."""
    return data.reshape(1) if data.ndim == 0 else None
