"""A layout for a tensor of one shape: what it takes in memory, and where elements lie."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from layoutopt.base.limits import require
from layoutopt.layout.factors import AnyArray, AxisFactor, axis_factors, spaced_zeros
from layoutopt.layout.layout import ANY, Block, Layout, LayoutError
from layoutopt.layout.parts import check_axes, size, sizes
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES

LayoutLike: TypeAlias = Layout | str
"""A layout, or its text as :meth:`Layout.parse` reads it."""

Array = NDArray[np.int64]

Index: TypeAlias = tuple[Array, ...]
"""An array for each axis, or for each physical dimension."""

MOST = 2**63 - 1
"""The most bytes that a layout may take; arithmetic on offsets stays in 64 bits."""

CHUNK = 2**14
"""How many elements of arrays are looked at together: so few that all stays in a cache."""


@dataclass(frozen=True)
class Placement:
    """A tensor in a layout; made by :func:`placement`.

    An axis of size ``n`` in blocks of ``b`` values has ``ceil(n / b)`` blocks; the last one is
    padded.  A physical dimension of packed blocks has the product of their extents.  An offset
    counts elements in memory from 0 for the first.

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
        The stride of each physical dimension in elements: what the next inner one takes, rounded
        up to whole elements and to a multiple of the dimension's alignment in bytes.
    size
        The number of elements that the memory has room for, padding and gaps included: extent
        times stride of the outermost dimension.
    element_bytes
        Bytes of an element.

    Examples
    --------
    >>> place = placement("NCHW16c", (1, 20, 7, 7))
    >>> place.physical_shape, place.padded_shape, place.strides
    ((1, 2, 7, 7, 16), (1, 32, 7, 7), (1568, 784, 112, 16, 1))
    >>> place.nbytes, place.padding
    (6272, 2352)
    >>> place.offsets((0, 18, 6, [5, 6]))
    array([1538, 1554])
    >>> [int(i) for i in place.physical_index((0, 18, 6, 6))]
    [0, 1, 6, 6, 2]
    >>> placement("HW2h", (3, 2)).offset_map()
    array([[0, 2],
           [1, 3],
           [4, 6]])
    """

    layout: Layout = field(compare=False)
    logical: str
    shape: tuple[int, ...]
    form: tuple[tuple[AxisFactor, ...], ...]
    strides: tuple[int, ...]
    size: int
    element_bytes: int

    @property
    def physical_shape(self) -> tuple[int, ...]:
        """The extent of each physical dimension, outermost first."""
        return tuple(math.prod(factor.size for factor in dim) for dim in self.form)

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """The tensor's shape, in logical order, rounded up to whole blocks."""
        found = [1] * len(self.shape)
        for factor in chain(*self.form):
            found[factor.axis] *= factor.size
        return tuple(found)

    @property
    def byte_strides(self) -> tuple[int, ...]:
        """The stride of each physical dimension in bytes, as NumPy has them."""
        return tuple(stride * self.element_bytes for stride in self.strides)

    @property
    def nbytes(self) -> int:
        """The bytes of the memory."""
        return self.size * self.element_bytes

    @property
    def padding(self) -> int:
        """How many of the bytes hold no element: those that fill blocks, and gaps."""
        return self.nbytes - math.prod(self.shape) * self.element_bytes

    @property
    def is_dense(self) -> bool:
        """Whether there are no gaps between physical dimensions, padding of blocks apart."""
        return self.size == math.prod(self.physical_shape)

    def blocks(self) -> Iterator[tuple[Block, AxisFactor, int]]:
        """Yield all blocks, outermost first: as written, as a factor, and the stride in memory."""
        for dim, factors, stride in zip(self.layout.dims, self.form, self.strides, strict=True):
            room = stride * math.prod(max(factor.size, 1) for factor in factors)
            for block, factor in zip(dim.blocks, factors, strict=True):
                room //= max(factor.size, 1)
                yield block, factor, room

    def jumps(self, axis: int) -> tuple[tuple[int, int], ...]:
        """Return what an index along an axis adds to an element's offset.

        Index ``i`` adds ``sum(i // weight * jump)``.  Weights ascend below the axis' size and no
        jump is 0, so that two axes of one size have equal jumps just if every index adds the same.
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

    def zeros(self, dtype: DTypeLike = "f4") -> AnyArray:
        """Return an array of the physical shape, full of zeros, with the layout's strides.

        Its memory, gaps of alignment included, is the flat array ``.base``.

        Raises
        ------
        LayoutError
            If elements of the type have other bytes.
        SizeError
            If it does not fit this machine's memory.
        """
        kind = np.dtype(dtype)
        if kind.itemsize != self.element_bytes:
            raise LayoutError(f"elements have {self.element_bytes} bytes here, not {kind.itemsize}")
        require(self.nbytes, f"a tensor of layout {self.layout}")
        return spaced_zeros(self.physical_shape, self.strides, kind)

    def offsets(self, index: Sequence[ArrayLike]) -> Array:
        """Return the offsets of elements in memory.

        With the index ``i_a`` along axis ``a``, an offset is the sum over all blocks of
        ``(i_a // weight % extent) * stride``: a sum of functions of one axis each.

        Parameters
        ----------
        index
            An integer or an array of integers for each axis, in logical order; they broadcast.

        Raises
        ------
        LayoutError
            If an index is outside.
        """
        found = checked_index(index, self.shape, self.logical)
        if len({along.shape for along in found}) > 1:
            return self._summed(found)
        total = np.zeros(np.shape(found[0]) if found else (), np.int64)
        for part in _parts(total.size):
            total.reshape(-1)[part] = self._summed([along.reshape(-1)[part] for along in found])
        return total

    def offset_map(self) -> Array:
        """Return the offset of every element, as an array of the tensor's shape.

        Raises
        ------
        SizeError
            If the array does not fit this machine's memory.
        """
        require(8 * math.prod(self.shape), f"the offsets of all elements of shape {self.shape}")
        return self._summed(np.ix_(*map(np.arange, self.shape)))

    def _summed(self, index: Sequence[Array]) -> Array:
        """Return the offsets of elements."""
        total = np.zeros((), np.int64)
        for axis, along in enumerate(index):
            own = np.zeros(along.shape, np.int64)
            with np.errstate(over="ignore"):  # of huge tensors, terms and sums wrap round and back
                for weight, jump in self.jumps(axis):
                    own += (along if weight == 1 else along // weight) * np.int64(jump)
            total = np.asarray(total + own)
        return total

    def indices(self, offsets: ArrayLike) -> tuple[Index, NDArray[np.bool_]]:
        """Return which elements lie at given offsets; the inverse of :meth:`offsets`.

        Parameters
        ----------
        offsets
            Integers from 0 up to the tensor's size in memory, padding included.

        Returns
        -------
        index, inside
            For each axis, in logical order, an array of the shape of ``offsets``, -1 where there
            is no element; and whether there is one, and not padding or a gap of alignment.

        Raises
        ------
        LayoutError
            If an offset is outside.
        """
        [given] = checked_index([offsets], [self.size], ["offset"])
        found = np.empty((len(self.shape), given.size), np.int64)
        inside = np.ones(given.size, bool)
        for part in _parts(given.size):
            found[:, part], inside[part] = self._elements(given.reshape(-1)[part])
        return tuple(along.reshape(given.shape) for along in found), inside.reshape(given.shape)

    def _elements(self, offsets: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the index of the elements at some offsets, and where there are any."""
        rest, inside = offsets, np.ones(len(offsets), bool)
        physical = []
        for extent, stride in zip(self.physical_shape, self.strides, strict=True):
            at = rest // stride
            rest = rest - at * stride
            inside &= at < extent
            physical.append(at)
        inside &= rest == 0
        index = np.array(self._unblocked(physical)).reshape(len(self.shape), len(offsets))
        inside &= (index < np.array(self.shape).reshape(-1, 1)).all(axis=0)
        return np.where(inside, index, -1), inside

    def _unblocked(self, physical: Sequence[Array]) -> Index:
        """Return the logical index of a physical one, padding included."""
        terms: list[list[Array]] = [[] for _ in self.shape]
        for rest, (outermost, *inner) in zip(physical, self.form, strict=True):
            for axis, weight, extent in reversed(inner):
                outer = rest // extent
                terms[axis].append((rest - outer * extent) * weight)
                rest = outer
            axis, weight, _ = outermost
            terms[axis].append(rest * weight if weight > 1 else rest)
        return tuple(np.asarray(sum(row[1:], row[0])) for row in terms)

    def physical_index(self, index: Sequence[ArrayLike]) -> Index:
        """Return the index of elements in the physical array, an array for each dimension.

        Parameters
        ----------
        index
            As for :meth:`offsets`.

        Raises
        ------
        LayoutError
            If an index is outside.
        """
        found = checked_index(index, self.shape, self.logical)
        physical = []
        for factors in self.form:
            at = np.zeros((), np.int64)
            for axis, weight, extent in factors:
                at = np.asarray(at * extent + found[axis] // weight % extent)
            physical.append(at)
        return tuple(physical)

    def logical_index(self, physical: Sequence[ArrayLike]) -> Index:
        """Return the logical index of elements of the physical array; undoes physical_index.

        Parameters
        ----------
        physical
            An integer or an array of integers for each physical dimension; they broadcast.

        Raises
        ------
        LayoutError
            If an index is outside, or in the padding of a block.
        """
        names = [f"dimension {d}" for d in range(len(self.form))]
        index = self._unblocked(checked_index(physical, self.physical_shape, names))
        for n, along, axis in zip(self.shape, index, self.logical, strict=True):
            if along.size and along.max() >= n:
                raise LayoutError(
                    f"index {along.max()} along axis {axis} of size {n} is padding "
                    f"of layout {self.layout}"
                )
        return index


def _parts(count: int) -> Iterator[slice]:
    """Yield the parts of a flat array that are looked at together."""
    return (slice(start, start + CHUNK) for start in range(0, count, CHUNK))


def placement(
    layout: LayoutLike,
    shape: Sequence[int],
    logical: str | None = None,
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
) -> Placement:
    """Return where the elements of a tensor lie.

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
    width = size("element_bytes", element_bytes, 1)
    counts = sizes("shape", shape)
    if len(counts) != len(order):
        raise LayoutError(
            f"shape {counts} has {len(counts)} entries for the {len(order)} axes {order!r} "
            f"of layout {layout}"
        )
    form = axis_factors(layout.dims, order, counts)
    extents = [math.prod(max(factor.size, 1) for factor in dim) for dim in form]
    strides = tuple(step // width for step, _ in layout.byte_strides(extents, width))
    room = extents[0] * strides[0] if strides else 1
    if room * width > MOST:
        raise LayoutError(f"layout {layout} of shape {counts} takes more bytes than 64 bits count")
    return Placement(layout, order, counts, form, strides, 0 if 0 in counts else room, width)


def as_layout(given: LayoutLike) -> Layout:
    """Return a layout that may be given by its text."""
    return given if isinstance(given, Layout) else Layout.parse(given)


def axis_order(layout: Layout, logical: str | None = None) -> str:
    """Return the axes of a layout in logical order, its own or a given one; refuse open layouts."""
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
    found = list(whole.padded_shape)
    for d, dim in enumerate(source.dims):
        for block, factor in zip(dim.blocks, whole.form[d], strict=True):
            if block.size is None:
                found[factor.axis] *= given[d] // whole.physical_shape[d]
    if placement(source, found).physical_shape != given:
        raise LayoutError(
            f"physical shape {given} does not tell one size of each axis of layout {source}"
        )
    return placement(target, found, whole.logical).physical_shape
