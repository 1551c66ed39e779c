"""Tiles of tensors that lie like some elements of another."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from layoutopt.errors import InputError
from layoutopt.pieces import outer_sum
from layoutopt.tiles.blocks import Array, Steps, TileMap, tile_map_of

MOST_ELEMENTS = 10**8
"""Up to so many elements a map may be made one by one."""


def taken(whole: TileMap, shape: Sequence[int], indices: Sequence[Array]) -> TileMap:
    """Return the tiles of those elements of a tensor whose index along each axis is in a list.

    Parameters
    ----------
    whole
        The tensor's map, whose axes may be others.
    shape
        The tensor's shape.
    indices
        For each dimension the indices that are taken, in the order of the answer.

    Raises
    ------
    InputError
        If the map's axes are others, and too many elements are taken to look at each.
    """
    extents = tuple(map(len, indices))
    if [n for n in whole.shape if n != 1] == [n for n in shape if n != 1]:
        return _by_axis(whole, shape, indices)
    if math.prod(extents) > MOST_ELEMENTS:
        raise InputError(
            f"the other tensor's tiles do not follow its dimensions, and {math.prod(extents):,} "
            f"elements are too many to look at each; at most {MOST_ELEMENTS:,}"
        )
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    flat = outer_sum([stride * index for stride, index in zip(strides, indices, strict=True)])
    return tile_map_of(whole.at(flat))


def _by_axis(whole: TileMap, shape: Sequence[int], indices: Sequence[Array]) -> TileMap:
    """Return the tiles of some indices along each axis of a map that follows the dimensions.

    Axes of 1 that only one of map and tensor has do not matter.
    """
    axes = list(zip(whole.shape, whole.steps, strict=True))
    long = iter([steps for extent, steps in axes if extent != 1])
    first = sum((steps.values for extent, steps in axes if extent == 1), np.zeros(1, np.int64))
    nothing = Steps(np.zeros(1, np.int64), np.zeros(1, np.int64))
    found = [
        nothing if extent == 1 else _along(next(long), index)
        for extent, index in zip(shape, indices, strict=True)
    ]
    return TileMap((1, *map(len, indices)), (Steps(nothing.starts, first), *found))


def _along(steps: Steps, indices: Array) -> Steps:
    """Return the steps of some indices along an axis."""
    return Steps(np.arange(len(indices)), steps.at(indices)).merged()


def broadcast_indices(small: Sequence[int], large: Sequence[int], axis: int) -> list[Array]:
    """Return the indices of the first elements that a tensor is broadcast to.

    Parameters
    ----------
    small, large
        The tensor's shape, and what it is broadcast to.
    axis
        The dimension of ``large`` that the first of ``small`` belongs to.

    Raises
    ------
    InputError
        If it does not broadcast so.
    """
    full = (1,) * axis + tuple(small) + (1,) * (len(large) - axis - len(small))
    fits = axis >= 0 and len(full) == len(large)
    if not fits or any(n not in (1, m) for n, m in zip(full, large, strict=True)):
        raise InputError(
            f"shape {list(small)} from dimension {axis} on does not broadcast to {list(large)}"
        )
    return [np.arange(n) for n in full]


def reduced_indices(small: Sequence[int], large: Sequence[int], axes: Sequence[int]) -> list[Array]:
    """Return the indices of the first elements that are reduced.

    Parameters
    ----------
    small, large
        The shapes of the result, where reduced dimensions are 1 or missing, and of what is
        reduced.
    axes
        The reduced dimensions of ``large``.

    Raises
    ------
    InputError
        If a dimension is none of ``large``, or the result has another shape.
    """
    strange = [a for a in axes if a >= len(large)]
    if strange:
        raise InputError(f"axes: {strange[0]} is no dimension of {list(large)}")
    kept = [n for a, n in enumerate(large) if a not in axes]
    ones = [1 if a in axes else n for a, n in enumerate(large)]
    if list(small) not in (kept, ones):
        raise InputError(f"shape {list(small)} does not fit; {kept} or {ones} is needed")
    # The first element of nothing is none, so an empty range needs an empty result.
    if math.prod(small) and not math.prod(large):
        raise InputError(f"of {list(large)} nothing is reduced, so there is no first element")
    return [np.arange(n) for n in ones]


def window_indices(
    small: Sequence[int], large: Sequence[int], strides: Sequence[int], padding: Sequence[int]
) -> list[Array]:
    """Return the indices of the first elements of windows.

    Parameters
    ----------
    small, large
        The shapes of the result and of what the windows move over, with the same leading
        dimensions.
    strides, padding
        By how much a window moves in each of the other dimensions, and how many elements are
        added there before the first.

    Raises
    ------
    InputError
        If the shapes do not fit, or a window lies behind the last element.
    """
    lead = len(large) - len(strides)
    if len(small) != len(large) or lead < 0 or list(small[:lead]) != list(large[:lead]):
        raise InputError(
            f"shape {list(small)} does not fit windows over the last {len(strides)} dimensions "
            f"of {list(large)}"
        )
    found = [np.arange(n) for n in small[:lead]]
    for d, (stride, before) in enumerate(zip(strides, padding, strict=True), lead):
        first = np.maximum(np.arange(small[d]) * stride - before, 0)
        if small[d] and first[-1] >= large[d]:
            raise InputError(f"dimension {d}: a window lies behind the {large[d]} elements")
        found.append(first)
    return found
