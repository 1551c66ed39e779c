"""The shapes of an op's outputs, derived and held against what is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    given: Iterable[Shape | None] = (
        getattr(op, "shape", None),
        *(getattr(op, "shapes", None) or ()),
    )
    for shape in given:
        _check(shape or ())
    shapes = op.infer(before)
    for shape in shapes:
        _check(shape)
    return _written(op, shapes), shapes


def _check(shape: Shape) -> None:
    if any(d < 0 for d in shape):
        raise OpError(f"shape {list(shape)} has a negative dimension")
    if len(shape) > MAX_RANK:
        raise OpError(f"rank {len(shape)} is more than {MAX_RANK}")
    if size(tuple(d for d in shape if d)) > MAX_ELEMENTS:
        raise OpError(f"shape {list(shape)} has more than 2^62 elements")


def _written(op: Op, shapes: Sequence[Shape]) -> Op:
    if getattr(op, "shapes", None) is not None:
        return op
    given = getattr(op, "shape", None)
    if given is None:
        return replace(op, shape=shapes[0])
    if given != shapes[0]:
        raise OpError(f"shape {list(given)} is given, {list(shapes[0])} follows from the inputs")
    return op
