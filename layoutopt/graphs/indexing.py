"""NumPy's index arithmetic on shapes: basic indices, negative axes, inferred sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from operator import index as as_int
from typing import Any

import numpy as np

from layoutopt.graphs.ops import OpError, Shape, size


@dataclass(frozen=True)
class Sampling:
    """Effect of a basic index on a tensor, in this order.

    Parameters
    ----------
    box
        Lower and upper bounds of the selected box; ``None`` for the whole tensor.
    dims
        Dimensions that are reversed.
    strides
        Strides along all dimensions, from index 0; ``None`` if all are 1.
    shape
        The final shape, with dimensions of size 1 removed or inserted.
    """

    box: tuple[Shape, Shape] | None
    dims: Shape
    strides: Shape | None
    shape: Shape


def sampling(shape: Shape, index: Any) -> Sampling:
    """Translate a basic index into a box, reversals, strides and a final shape.

    Parameters
    ----------
    index
        Integers, slices, ``...`` and ``None``.

    Raises
    ------
    OpError
        If the index does not fit the shape, or is not one of NumPy's basic indices.
    """
    entries = basic(shape, index)
    ranges = [range(e, e + 1) if isinstance(e, int) else e for e in entries if e is not None]
    spans = [_span(r, n) for r, n in zip(ranges, shape, strict=True)]
    lower, upper = tuple(s[0] for s in spans), tuple(s[1] for s in spans)
    strides = tuple(s[2] for s in spans)
    return Sampling(
        box=None if upper == shape and not any(lower) else (lower, upper),
        dims=tuple(d for d, s in enumerate(spans) if s[3]),
        strides=None if all(s == 1 for s in strides) else strides,
        shape=tuple(1 if e is None else len(e) for e in entries if not isinstance(e, int)),
    )


def _span(r: range, n: int) -> tuple[int, int, int, bool]:
    """Return bounds, stride and direction of the box that a range samples.

    The box is extended to the ends of the dimension where this does not change the samples.
    """
    if len(r) < 2:
        low = r[0] if r else 0
        return low, low + len(r), 1, False
    stride = abs(r.step)
    if r.step > 0:
        return r[0], n if r[-1] + stride >= n else r[-1] + 1, stride, False
    return r[-1] if r[-1] >= stride else 0, r[0] + 1, stride, True


def basic(shape: Shape, index: Any) -> list[range | int | None]:
    """Return the entries of a basic index with ``...`` expanded.

    Returns
    -------
    list
        For each dimension the indices selected by a slice, or one non-negative integer;
        between them ``None`` for each new dimension.

    Raises
    ------
    OpError
        As :func:`sampling` does.
    """
    given = index if isinstance(index, tuple) else (index,)
    dots = [i for i, entry in enumerate(given) if entry is Ellipsis]
    if len(dots) > 1:
        raise OpError("an index can have only one '...'")
    used = sum(entry is not None and entry is not Ellipsis for entry in given)
    if used > len(shape):
        raise OpError(f"{used} indices for {len(shape)} dimensions")
    at = dots[0] if dots else len(given)
    rest = [slice(None)] * (len(shape) - used)
    dims = iter(enumerate(shape))
    every = [*given[:at], *rest, *given[at + 1 :]]
    return [None if entry is None else _entry(entry, *next(dims)) for entry in every]


def _entry(entry: Any, d: int, n: int) -> range | int:
    if isinstance(entry, slice):
        try:
            return range(*entry.indices(n))
        except (TypeError, ValueError) as error:
            raise OpError(f"dimension {d}: {error}") from None
    if isinstance(entry, bool) or not isinstance(entry, Integral):
        kind = type(entry).__name__
        raise OpError(f"an index must consist of integers, slices, '...' and None, not {kind}")
    i = int(entry)
    if not -n <= i < n:
        raise OpError(f"index {i} is out of range for dimension {d}, of size {n}")
    return i % n


def from_end(dim: int, rank: int) -> int:
    """Return a dimension counted from the start; one out of range is returned unchanged."""
    return dim + rank if -rank <= dim < 0 else dim


def dimension(dim: int, rank: int) -> int:
    """Return a dimension counted from the start.

    Raises
    ------
    OpError
        If it is out of range.
    """
    found = from_end(dim, rank)
    if not 0 <= found < rank:
        raise OpError(f"there is no dimension {dim} in a tensor of rank {rank}")
    return found


def spread(given: Sequence[Any]) -> Shape:
    """Return integers given as several arguments or as a single sequence.

    Raises
    ------
    OpError
        If an entry is not an integer.
    """
    alone = len(given) == 1 and isinstance(given[0], tuple | list | range | np.ndarray)
    values = given[0] if alone else given
    try:
        return tuple(map(as_int, values))
    except TypeError:
        raise OpError(f"{values!r} must be integers") from None


def swapped(rank: int, a: int, b: int) -> Shape:
    """Return the permutation that exchanges two dimensions."""
    order = list(range(rank))
    i, j = dimension(a, rank), dimension(b, rank)
    order[i], order[j] = j, i
    return tuple(order)


def squeezed(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return a shape without some dimensions, each of which must have size 1."""
    gone = {dimension(d, len(shape)) for d in axes}
    for d in sorted(gone):
        if shape[d] != 1:
            raise OpError(
                f"dimension {d} has size {shape[d]}; only dimensions of size 1 can be squeezed"
            )
    return tuple(n for d, n in enumerate(shape) if d not in gone)


def filled(shape: Shape, before: Shape) -> Shape:
    """Return the shape of a reshape with its -1, if any, replaced by the inferred size.

    Raises
    ------
    OpError
        If no size fits.
    """
    if -1 not in shape or min(shape) < -1:  # the op refuses the latter
        return shape
    others = prod(d for d in shape if d != -1)
    if shape.count(-1) > 1 or not others or size(before) % others:
        raise OpError(f"no size fits the -1 in shape {list(shape)} for {size(before)} elements")
    return tuple(size(before) // others if d == -1 else d for d in shape)
