"""A layout for a tensor of one shape: extents, strides, and what an index of an axis adds up to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from layoutopt.base.arguments import least
from layoutopt.base.errors import InputError
from layoutopt.base.memory import require
from layoutopt.layout.factors import AnyArray, AxisFactor, axis_factors, spaced_zeros
from layoutopt.layout.layout import ANY, Block, Layout, LayoutError
from layoutopt.layout.parts import check_axes, sizes
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES

LayoutLike: TypeAlias = Layout | str
"""A layout, or its text as :meth:`Layout.parse` reads it."""

Array = NDArray[np.int64]

MOST = 2**63 - 1
"""The most bytes that a layout may take; arithmetic on offsets stays in 64 bits."""


@dataclass(frozen=True)
class Placement:
    """Positions of a tensor's elements.

    Parameters
    ----------
    layout
        The layout.
    logical
        The axes in logical order.
    shape
        The tensor's shape, in that order.
    form
        What each physical dimension holds: its blocks as factors of axes.
    strides
        The stride of each physical dimension in elements.
    size
        The number of elements that the memory has room for, padding and gaps included.
    element_bytes
        Bytes of an element.
    """

    layout: Layout = field(compare=False)
    logical: str
    shape: tuple[int, ...]
    form: tuple[tuple[AxisFactor, ...], ...]
    strides: tuple[int, ...]
    size: int
    element_bytes: int

    @property
    def extents(self) -> tuple[int, ...]:
        """The physical shape."""
        return tuple(math.prod(factor.size for factor in dim) for dim in self.form)

    def blocks(self) -> Iterator[tuple[Block, AxisFactor, int]]:
        """Yield all blocks, outermost first: as written, as a factor, and the stride in memory."""
        for dim, factors, stride in zip(self.layout.dims, self.form, self.strides, strict=True):
            room = stride * math.prod(max(factor.size, 1) for factor in factors)
            for block, factor in zip(dim.blocks, factors, strict=True):
                room //= max(factor.size, 1)
                yield block, factor, room

    @property
    def nbytes(self) -> int:
        """The bytes of the memory."""
        return self.size * self.element_bytes

    @property
    def padded(self) -> tuple[int, ...]:
        """The tensor's shape rounded up to whole blocks."""
        found = [1] * len(self.shape)
        for factor in chain(*self.form):
            found[factor.axis] *= factor.size
        return tuple(found)

    @property
    def is_dense(self) -> bool:
        """Whether there are no gaps between physical dimensions, padding of blocks apart."""
        return self.size == math.prod(self.extents)

    def jumps(self, axis: int) -> tuple[tuple[int, int], ...]:
        """Return what an index along an axis adds to an element's offset.

        Index ``i`` adds ``sum(i // weight * jump)``.  Weights ascend below the axis' size and no
        jump is 0, so that two axes of one size have equal jumps just if every index adds the
        same: from ``i - 1`` to ``i`` the sum grows by the jumps whose weights divide ``i``.
        """
        found: dict[int, int] = {}
        for _, (own, weight, extent), stride in self.blocks():
            if own == axis:  # i // w % e is i // w - i // (w * e) * e
                found[weight] = found.get(weight, 0) + stride
                found[weight * extent] = found.get(weight * extent, 0) - extent * stride
        return tuple((w, found[w]) for w in sorted(found) if found[w] and w < self.shape[axis])

    def same_places(self, other: Placement) -> bool:
        """Return whether all elements have the same offsets in both, and the memory one size."""
        axes = range(len(self.shape))
        alike = 0 in self.shape or all(self.jumps(axis) == other.jumps(axis) for axis in axes)
        return alike and self.size == other.size

    def along(self, axis: int, index: Array) -> Array:
        """Return what indices along an axis add to an element's offset."""
        total = np.zeros(index.shape, np.int64)
        with np.errstate(over="ignore"):  # of huge tensors, terms wrap round and sums back again
            for weight, jump in self.jumps(axis):
                total += (index if weight == 1 else index // weight) * np.int64(jump)
        return total


def placement(
    layout: LayoutLike,
    shape: Sequence[int],
    logical: str | None = None,
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
) -> Placement:
    """Return where the elements of a tensor lie.

    The outermost block of an axis of size ``n`` has ``ceil(n / product of its other blocks)``
    values.  Blocks that are packed lie side by side in their dimension.  From the innermost
    dimension on, a stride is the room that the next inner dimension takes, rounded up to whole
    elements and to a multiple of the dimension's alignment in bytes.

    Parameters
    ----------
    layout
        The layout, or its text.
    shape
        The tensor's shape, in logical order.
    logical
        The axes in logical order; by default that of the layout.
    element_bytes
        Bytes of an element; what is aligned depends on them.

    Raises
    ------
    LayoutError
        If the layout leaves something open, an axis has not just one block without a size, the
        shape does not fit, or the tensor takes more bytes than 64 bits can count.

    Notes
    -----
    Alignment as in Glow (``Type::initDims``), which allows none of the innermost dimension and
    only multiples of the element's bytes.
    """
    layout = as_layout(layout)
    order = axis_order(layout, logical)
    width = _width(element_bytes)
    counts = _counts(layout, order, shape)
    form = axis_factors(layout.dims, order, counts)
    strides, room = [], 1
    for dim, factors in zip(reversed(layout.dims), reversed(form), strict=True):
        unit = math.lcm(dim.alignment, width) // width
        room = -(-room // unit) * unit
        strides.append(room)
        room *= math.prod(max(factor.size, 1) for factor in factors)
    if room * width > MOST:
        raise LayoutError(f"layout {layout} of shape {counts} takes more bytes than 64 bits count")
    size = 0 if 0 in counts else room
    return Placement(layout, order, counts, form, tuple(strides[::-1]), size, width)


def as_layout(given: LayoutLike) -> Layout:
    """Return a layout that may be given by its text.

    Raises
    ------
    LayoutError
        If the text is none.
    """
    return given if isinstance(given, Layout) else Layout.parse(given)


def axis_order(layout: Layout, logical: str | None = None) -> str:
    """Return the axes of a layout in logical order.

    Parameters
    ----------
    layout
        The layout.
    logical
        An order that replaces the layout's own.

    Raises
    ------
    LayoutError
        If the layout leaves something open, repeats an axis, or has others than the order.
    """
    if layout.undefined:
        raise LayoutError("an undefined layout says nothing about where elements lie")
    if ANY in layout.axes:
        raise LayoutError(f"layout {layout} leaves a dimension open ({ANY}); name its axis")
    try:
        check_axes(layout.dims)
    except LayoutError as error:
        raise LayoutError(f"layout {layout}: {error.reason}") from None
    if min(layout.alignments, default=1) < 1:
        raise LayoutError(f"layout {layout}: an alignment must be 1 or more")
    if logical is None:
        return layout.logical
    if not isinstance(logical, str) or sorted(logical) != sorted(layout.axes):
        raise LayoutError(
            f"logical order {logical!r} must name each axis of layout {layout} once, "
            f"as {layout.logical!r} does"
        )
    return logical


def _width(given: int) -> int:
    """Return a number of bytes of an element."""
    try:
        return least("element_bytes", given)
    except InputError as error:
        raise LayoutError(error.reason) from None


def _counts(layout: Layout, order: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape that has a size for each axis."""
    found = sizes("shape", shape)
    if len(found) != len(order):
        raise LayoutError(
            f"shape {found} has {len(found)} entries for the {len(order)} axes {order!r} "
            f"of layout {layout}"
        )
    return found


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
