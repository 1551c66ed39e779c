"""What a layout means for a tensor's shape: physical shape, strides, bytes, padding.

All functions take a tensor's shape in logical order: that of ``layout.logical``, or of
``logical``, which names the same axes in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from layoutopt.layout.placement import AnyArray, LayoutLike, placement, spaced_zeros
from layoutopt.memory import require
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES


def physical_shape(
    layout: LayoutLike, shape: Sequence[int], *, logical: str | None = None
) -> tuple[int, ...]:
    """Return the extent of each physical dimension, outermost first.

    An axis of size ``n`` in blocks of ``b`` values has ``ceil(n / b)`` blocks; the last one is
    padded.  A packed dimension has the product of its blocks' extents.

    Parameters
    ----------
    layout
        The layout, or its text.
    shape
        The tensor's shape, in logical order.
    logical
        The axes in logical order; by default that of the layout.

    Raises
    ------
    LayoutError
        If the layout leaves something open, or the shape does not fit.

    Examples
    --------
    >>> physical_shape("NCHW16c", (1, 20, 7, 7))
    (1, 2, 7, 7, 16)
    """
    return placement(layout, shape, logical).extents


def padded_shape(
    layout: LayoutLike, shape: Sequence[int], *, logical: str | None = None
) -> tuple[int, ...]:
    """Return a tensor's shape, in logical order, rounded up to whole blocks.

    Parameters, errors and ``logical`` as for :func:`physical_shape`.

    Examples
    --------
    >>> padded_shape("NCHW16c", (1, 20, 7, 7))
    (1, 32, 7, 7)
    """
    return placement(layout, shape, logical).padded


def strides(
    layout: LayoutLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> tuple[int, ...]:
    """Return the stride of each physical dimension in elements, outermost first.

    From the innermost dimension on, a stride is what the next inner dimension takes, rounded up to
    whole elements and to a multiple of the dimension's alignment in bytes.

    Parameters
    ----------
    layout
        The layout, or its text.
    shape
        The tensor's shape, in logical order.
    element_bytes
        Bytes of an element, 4 by default; only alignment depends on them.
    logical
        The axes in logical order; by default that of the layout.

    Raises
    ------
    LayoutError
        If the layout leaves something open, the shape does not fit, or the tensor takes more bytes
        than 64 bits count.

    Examples
    --------
    >>> strides("N[a=3]H[a=32]C", (3, 10, 5), 1)
    (162, 32, 1)
    """
    return placement(layout, shape, logical, element_bytes).strides


def byte_strides(
    layout: LayoutLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> tuple[int, ...]:
    """Return the stride of each physical dimension in bytes, as NumPy has them.

    Parameters and errors as for :func:`strides`.
    """
    place = placement(layout, shape, logical, element_bytes)
    return tuple(stride * place.element_bytes for stride in place.strides)


def nbytes(
    layout: LayoutLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> int:
    """Return the bytes that a tensor takes, padding of blocks and gaps of alignment included.

    That is extent times stride of the outermost dimension.

    Parameters and errors as for :func:`strides`.
    """
    return placement(layout, shape, logical, element_bytes).nbytes


def padding(
    layout: LayoutLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> int:
    """Return how many of a tensor's bytes hold no element: those that fill blocks, and gaps.

    Parameters and errors as for :func:`strides`.
    """
    place = placement(layout, shape, logical, element_bytes)
    return place.nbytes - math.prod(place.shape) * place.element_bytes


def zeros(
    layout: LayoutLike, shape: Sequence[int], dtype: DTypeLike = "f4", *, logical: str | None = None
) -> AnyArray:
    """Return an array of a tensor's physical shape, full of zeros, with the layout's strides.

    Its memory, gaps of alignment included, is the flat array ``.base``.

    Parameters
    ----------
    layout
        The layout, or its text.
    shape
        The tensor's shape, in logical order.
    dtype
        The type of its elements, 32-bit floats by default.
    logical
        The axes in logical order; by default that of the layout.

    Raises
    ------
    LayoutError
        If the layout leaves something open, or the shape does not fit.
    SizeError
        If it does not fit this machine's memory.
    """
    kind = np.dtype(dtype)
    place = placement(layout, shape, logical, kind.itemsize)
    require(place.nbytes, f"a tensor of layout {layout}")
    return spaced_zeros(place.extents, place.strides, kind)
