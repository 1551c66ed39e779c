"""Offsets of elements in memory, in elements from 0 for the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from layoutopt.base.memory import require
from layoutopt.layout.layout import LayoutError
from layoutopt.layout.parts import sizes
from layoutopt.layout.placement import (
    Array,
    LayoutLike,
    Placement,
    as_layout,
    axis_order,
    placement,
)
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES

Index = tuple[Array, ...]


def physical_index(
    layout: LayoutLike,
    index: Sequence[ArrayLike],
    shape: Sequence[int],
    *,
    logical: str | None = None,
) -> Index:
    """Return the index of elements in the physical array.

    Parameters
    ----------
    layout
        The layout, or its text.
    index
        An integer or an array of integers for each axis, in logical order; they broadcast.
    shape
        The tensor's shape, in logical order.
    logical
        The axes in logical order; by default that of the layout.

    Returns
    -------
    tuple
        An array for each physical dimension, outermost first.

    Raises
    ------
    LayoutError
        If the layout leaves something open, the shape does not fit, or an index is outside.

    Examples
    --------
    >>> [int(i) for i in physical_index("NCHW16c", (0, 18, 6, 6), (1, 32, 7, 7))]
    [0, 1, 6, 6, 2]
    """
    place = placement(layout, shape, logical)
    found = checked_index(index, place.shape, place.logical)
    physical = []
    for factors in place.form:
        at = np.zeros((), np.int64)
        for axis, weight, extent in factors:
            at = np.asarray(at * extent + found[axis] // weight % extent)
        physical.append(at)
    return tuple(physical)


def logical_index(
    layout: LayoutLike,
    physical: Sequence[ArrayLike],
    shape: Sequence[int],
    *,
    logical: str | None = None,
) -> Index:
    """Return the logical index of elements of the physical array; inverse of physical_index.

    Parameters
    ----------
    layout, shape, logical
        As for :func:`physical_index`.
    physical
        An integer or an array of integers for each physical dimension; they broadcast.

    Returns
    -------
    tuple
        An array for each axis, in logical order.

    Raises
    ------
    LayoutError
        If the layout leaves something open, the shape does not fit, or an index is outside, or
        in the padding of a block.
    """
    place = placement(layout, shape, logical)
    names = [f"dimension {d}" for d in range(len(place.extents))]
    index = unblocked(place, checked_index(physical, place.extents, names))
    for n, along, axis in zip(place.shape, index, place.logical, strict=True):
        if along.size and along.max() >= n:
            raise LayoutError(
                f"index {along.max()} along axis {axis} of size {n} is padding of layout {layout}"
            )
    return index


def convert_index(
    source: LayoutLike,
    target: LayoutLike,
    index: Sequence[ArrayLike],
    shape: Sequence[int],
    *,
    logical: str | None = None,
) -> Index:
    """Return the physical index in one layout of elements given by that in another.

    Parameters
    ----------
    source, target
        Two layouts with the same axes, or their texts.
    index
        An integer or an array of integers for each physical dimension of ``source``.
    shape
        The tensor's shape, in logical order.
    logical
        The axes in logical order; by default that of ``source``.

    Raises
    ------
    LayoutError
        If the layouts have other axes, the shape does not fit, or an index is outside, or in the
        padding of a block.
    """
    order = axis_order(as_layout(source), logical)
    found = logical_index(source, index, shape, logical=order)
    return physical_index(target, found, shape, logical=order)


def convert_shape(source: LayoutLike, target: LayoutLike, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the physical shape in a layout of what has a physical shape in another.

    The tensor is taken to fill its blocks.

    Parameters
    ----------
    source, target
        Two layouts with the same axes, or their texts.
    shape
        The physical shape in the layout ``source``.

    Raises
    ------
    LayoutError
        If the layouts have other axes, or the first one cannot have such a shape.

    Examples
    --------
    >>> convert_shape("NCHW16c", "NHWC", (1, 2, 7, 7, 16))
    (1, 7, 7, 32)
    """
    source = as_layout(source)
    given = sizes("shape", shape)
    if len(given) != len(source.dims):
        raise LayoutError(
            f"shape {given} has {len(given)} entries for the {len(source.dims)} dimensions "
            f"of layout {source}"
        )
    whole = placement(source, [1] * len(source.axes))  # one of each outermost block
    found = list(whole.padded)
    for d, dim in enumerate(source.dims):
        for block, factor in zip(dim.blocks, whole.form[d], strict=True):
            if block.size is None:
                found[factor.axis] *= given[d] // whole.extents[d]
    if placement(source, found).extents != given:
        raise LayoutError(
            f"physical shape {given} does not tell one size of each axis of layout {source}"
        )
    return placement(target, found, whole.logical).extents


def unblocked(place: Placement, physical: Sequence[Array]) -> Index:
    """Return the logical index of a physical one, padding included."""
    terms: list[list[Array]] = [[] for _ in place.shape]
    for rest, (outermost, *inner) in zip(physical, place.form, strict=True):
        for axis, weight, extent in reversed(inner):
            outer = rest // extent
            terms[axis].append((rest - outer * extent) * weight)
            rest = outer
        axis, weight, _ = outermost
        terms[axis].append(rest * weight if weight > 1 else rest)
    return tuple(np.asarray(sum(row[1:], row[0])) for row in terms)


def checked_index(
    index: Sequence[ArrayLike], shape: Sequence[int], names: Sequence[str]
) -> tuple[Array, ...]:
    """Return the arrays of an index, each in its range, if they broadcast."""
    try:
        arrays: list[NDArray[Any]] = [np.asarray(along) for along in index]
    except (TypeError, ValueError):  # no sequence at all, or rows of different lengths
        raise LayoutError(f"an index has {len(shape)} arrays of integers, not {index!r}") from None
    if len(arrays) != len(shape):
        raise LayoutError(f"an index has {len(shape)} entries here, got {len(arrays)}")
    for along, n, name in zip(arrays, shape, names, strict=True):
        if along.size and along.dtype.kind not in "iu":
            raise LayoutError(f"{name}: indices must be integers, not {along.dtype}")
        if along.size and (along.min() < 0 or along.max() >= n):
            wrong = along.min() if along.min() < 0 else along.max()
            raise LayoutError(f"{name}: {wrong} is out of range; there are {n}, from 0")
    try:
        np.broadcast_shapes(*(along.shape for along in arrays))
    except ValueError:
        shapes = ", ".join(str(along.shape) for along in arrays)
        raise LayoutError(f"index arrays of shapes {shapes} do not broadcast") from None
    return tuple(along.astype(np.int64, copy=False) for along in arrays)


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
