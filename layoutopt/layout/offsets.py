"""Where in memory elements lie: offsets, which count elements from 0 for the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from layoutopt.layout.indexing import Index, checked_index, unblocked
from layoutopt.layout.placement import Array, LayoutLike, Placement, placement
from layoutopt.memory import require
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES

CHUNK = 2**14
"""How many elements of arrays are looked at together: so few that all stays in a cache."""


def offsets(
    layout: LayoutLike,
    index: Sequence[ArrayLike],
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> Array:
    """Return where elements lie: their offsets in memory, in elements.

    Parameters
    ----------
    layout
        The layout, or its text.
    index
        An integer or an array of integers for each axis, in logical order; they broadcast.
    shape
        The tensor's shape, in logical order.
    element_bytes
        Bytes of an element, 4 by default; only alignment depends on them.
    logical
        The axes in logical order; by default that of the layout.

    Raises
    ------
    LayoutError
        If the layout leaves something open, the shape does not fit, or an index is outside.

    Notes
    -----
    With the index ``i_a`` along axis ``a``, the offset is the sum over all blocks of
    ``(i_a // weight % extent) * stride``: a sum of functions of one axis each.

    Examples
    --------
    >>> offsets("NCHW16c", (0, 18, 6, [5, 6]), (1, 32, 7, 7))
    array([1538, 1554])
    """
    place = placement(layout, shape, logical, element_bytes)
    found = checked_index(index, place.shape, place.logical)
    if len({along.shape for along in found}) > 1:
        return _summed(place, found)
    total = np.zeros(np.shape(found[0]) if found else (), np.int64)
    for part in _parts(total.size):
        total.reshape(-1)[part] = _summed(place, [along.reshape(-1)[part] for along in found])
    return total


def offset_map(
    layout: LayoutLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> Array:
    """Return the offset of every element, as an array of the tensor's shape.

    Parameters and errors as for :func:`offsets`.

    Raises
    ------
    SizeError
        If the array does not fit this machine's memory.

    Examples
    --------
    >>> offset_map("HW2h", (3, 2))
    array([[0, 2],
           [1, 3],
           [4, 6]])
    """
    place = placement(layout, shape, logical, element_bytes)
    require(8 * math.prod(place.shape), f"the offsets of all elements of shape {place.shape}")
    return _summed(place, np.ix_(*map(np.arange, place.shape)))


def indices(
    layout: LayoutLike,
    offsets: ArrayLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> tuple[Index, NDArray[np.bool_]]:
    """Return which elements lie at given offsets; the inverse of :func:`offsets`.

    Parameters
    ----------
    layout, shape, element_bytes, logical
        As for :func:`offsets`.
    offsets
        Integers from 0 up to the tensor's size in memory, padding included.

    Returns
    -------
    index
        For each axis, in logical order, an array of the shape of ``offsets``; -1 where there is
        no element.
    inside
        Whether there is an element, and not padding of a block or a gap of alignment.

    Raises
    ------
    LayoutError
        If the layout leaves something open, the shape does not fit, or an offset is outside.
    """
    place = placement(layout, shape, logical, element_bytes)
    [given] = checked_index([offsets], [place.size], ["offset"])
    found = np.empty((len(place.shape), given.size), np.int64)
    inside = np.ones(given.size, bool)
    for part in _parts(given.size):
        found[:, part], inside[part] = _elements(place, given.reshape(-1)[part])
    return tuple(along.reshape(given.shape) for along in found), inside.reshape(given.shape)


def _parts(size: int) -> Iterator[slice]:
    """Yield the parts of a flat array that are looked at together."""
    return (slice(start, start + CHUNK) for start in range(0, size, CHUNK))


def _summed(place: Placement, index: Sequence[Array]) -> Array:
    """Return the offsets of elements."""
    total = np.zeros((), np.int64)
    for axis, along in enumerate(index):
        total = np.asarray(total + place.along(axis, along))
    return total


def _elements(place: Placement, offsets: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the index of the elements at some offsets, and where there are any."""
    rest, inside = offsets, np.ones(len(offsets), bool)
    physical = []
    for extent, stride in zip(place.extents, place.strides, strict=True):
        at = rest // stride
        rest = rest - at * stride
        inside &= at < extent
        physical.append(at)
    inside &= rest == 0
    index = np.array(unblocked(place, physical)).reshape(len(place.shape), len(offsets))
    inside &= (index < np.array(place.shape).reshape(-1, 1)).all(axis=0)
    return np.where(inside, index, -1), inside
