"""The shapes of an op's outputs, derived and held against what is given."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from layoutopt.graphs.op import MAX_ELEMENTS, Op, OpError, Shape, size

MAX_RANK = 64
"""NumPy's own limit."""


def settle(op: Op, before: Sequence[Shape]) -> tuple[Op, tuple[Shape, ...]]:
    """Return an op with its derived shape written down, and the shapes of its outputs.

    Parameters
    ----------
    before
        Shapes of the op's inputs.

    Raises
    ------
    OpError
        If inputs and attributes do not fit, or a shape is illegal.
    """
    if op.arity is not None and len(before) != op.arity:
        raise OpError(f"takes {op.arity} input(s), {len(before)} given")
    one, several = getattr(op, "shape", None), getattr(op, "shapes", None)
    for shape in (() if one is None else (one,)) + (several or ()):
        _check(shape)
    shapes = op.infer(before)
    if several is not None:
        return op, shapes
    if one is None:
        _check(shapes[0])
        return replace(op, shape=shapes[0]), shapes
    if one != shapes[0]:
        raise OpError(f"shape {list(one)} is given, {list(shapes[0])} follows from the inputs")
    return op, shapes


def _check(shape: Shape) -> None:
    if shape and min(shape) < 0:
        raise OpError(f"shape {list(shape)} has a negative dimension")
    if len(shape) > MAX_RANK:
        raise OpError(f"rank {len(shape)} is more than {MAX_RANK}")
    if size(shape) > MAX_ELEMENTS or (
        0 in shape and size(tuple(filter(None, shape))) > MAX_ELEMENTS
    ):
        raise OpError(f"shape {list(shape)} has more than 2^62 elements")
