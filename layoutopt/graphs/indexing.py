"""NumPy's index arithmetic on shapes: basic indices, negative axes, inferred sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any

from layoutopt.base.errors import InputError
from layoutopt.graphs.ops import Shape, size


def from_end(dim: int, rank: int) -> int:
    """Return a dimension counted from the start; one out of range is returned unchanged."""
    return dim + rank if -rank <= dim < 0 else dim


def dimension(dim: int, rank: int) -> int:
    """Return a dimension counted from the start, which must be in range."""
    found = from_end(dim, rank)
    if not 0 <= found < rank:
        raise InputError(f"there is no dimension {dim} in a tensor of rank {rank}")
    return found


def filled(shape: Shape, before: Shape) -> Shape:
    """Return the shape of a reshape with its -1, if any, replaced by the inferred size."""
    if -1 not in shape or min(shape) < -1:  # the op refuses the latter
        return shape
    others = prod(d for d in shape if d != -1)
    if shape.count(-1) > 1 or not others or size(before) % others:
        raise InputError(f"no size fits the -1 in shape {list(shape)} for {size(before)} elements")
    return tuple(size(before) // others if d == -1 else d for d in shape)


@dataclass(frozen=True)
class Sampling:
    """Effect of a basic index on a tensor, in this order.

    A box between two bounds, or None; reversal of ``dims``; ``strides`` along all dimensions, from
    index 0, or None; the final shape, with dimensions of size 1 removed or inserted.
    """

    box: tuple[Shape, Shape] | None
    dims: Shape
    strides: Shape | None
    shape: Shape


def sampling(shape: Shape, index: Any) -> Sampling:
    """Translate a basic index into a box, reversals, strides and a final shape."""
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
    """Return the entries of a basic index, of integers, slices, ``...`` and ``None``.

    For each dimension they are the indices that a slice selects, or one non-negative integer;
    between them is ``None`` for each new dimension.
    """
    given = index if isinstance(index, tuple) else (index,)
    dots = [i for i, entry in enumerate(given) if entry is Ellipsis]
    if len(dots) > 1:
        raise InputError("an index can have only one '...'")
    used = sum(entry is not None and entry is not Ellipsis for entry in given)
    if used > len(shape):
        raise InputError(f"{used} indices for {len(shape)} dimensions")
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
            raise InputError(f"dimension {d}: {error}") from None
    if isinstance(entry, bool) or not isinstance(entry, Integral):
        kind = type(entry).__name__
        raise InputError(f"an index must consist of integers, slices, '...' and None, not {kind}")
    i = int(entry)
    if not -n <= i < n:
        raise InputError(f"index {i} is out of range for dimension {d}, of size {n}")
    return i % n
