"""Transforms between layouts of a tensor: explicit steps, and whether any byte moves.

The physical array of a tensor has the layout's physical shape.  Gaps of alignment are in its
strides, where NumPy has them: an aligned array is a view of its memory, as
:func:`~layoutopt.layout.placement.zeros` makes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, zip_longest
from operator import index
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from layoutopt.layout.layout import Block, Dim, Layout, LayoutError
from layoutopt.layout.placement import (
    AnyArray,
    LayoutLike,
    PlacedBlock,
    Placement,
    as_layout,
    axis_order,
    placement,
    spaced_zeros,
)
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES

Kind = Literal["view", "pad", "split", "permute", "merge", "crop", "align"]

RESHAPES = ("split", "merge")


@dataclass(frozen=True)
class TransformStep:
    """One step of a transform.

    Parameters
    ----------
    kind
        ``"pad"`` (by zeros, at the end of dimensions), ``"crop"``, ``"split"`` (dimensions into
        several), ``"merge"`` (several into one), ``"permute"``, ``"align"`` (the strides), or
        ``"view"`` (the same memory in another shape).
    numbers
        The axes as for ``numpy.transpose`` of a permutation, the strides in elements of an
        alignment, the shape afterwards of all others.
    names
        The dimensions afterwards: ``C``, an axis or its outermost block, ``16c``, a block,
        ``[4o4i]``, blocks in one dimension.
    """

    kind: Kind
    numbers: tuple[int, ...]
    names: tuple[str, ...]

    def apply(self, array: AnyArray) -> AnyArray:
        """Return what the step makes of an array; a view of it where that can be."""
        if self.kind == "permute":
            return array.transpose(self.numbers)
        if self.kind == "crop":
            return array[tuple(map(slice, self.numbers))]
        if self.kind == "pad":
            padded = np.zeros(self.numbers, array.dtype)
            padded[tuple(map(slice, array.shape))] = array
            return padded
        if self.kind == "align":
            return strided(array, self.numbers)
        return array.reshape(self.numbers)

    def __str__(self) -> str:
        return f"{self.kind:8}{' '.join(self.names)}: {self.numbers}"


class Digit(NamedTuple):
    """A part of a block that neither layout cuts: of index ``i``, ``i // weight % extent``."""

    axis: int
    weight: int
    extent: int
    outermost: bool


Stage = tuple[Kind, tuple[int, ...], tuple[int, ...], tuple[str, ...]]
"""A step that may do nothing: its kind, its numbers, shape and names afterwards."""


def steps(source: Placement, target: Placement) -> list[TransformStep]:
    """Return the steps from the physical array in one layout to that in another.

    Where of two weights of blocks of an axis one always divides the other, all blocks are split at
    all weights, permuted, and merged again.  Where not, as from blocks of 6 to blocks of 4, the
    way leads through whole axes.
    """
    if source.is_dense and target.is_dense and source.same_places(target):
        shape = target.extents
        return (
            [] if shape == source.extents else [TransformStep("view", shape, _dimensions(target))]
        )
    axes = range(len(source.shape))
    both = source.blocks + target.blocks
    cuts = [sorted({block.weight for block in both if block.axis == a}) for a in axes]
    if any(high % low for row in cuts for low, high in pairwise(row)):
        whole = placement(plain(source.logical), source.shape, source.logical)
        return steps(source, whole) + steps(whole, target)
    have = [_digits(block, cuts[block.axis], source) for block in source.blocks]
    want = [_digits(block, cuts[block.axis], target) for block in target.blocks]
    before, after = list(chain(*have)), list(chain(*want))
    axes_after = tuple(before.index(digit) for digit in after)
    stages = [
        _stage("split", source.blocks, source),
        _stage("pad", source.blocks, source, have),
        _stage("split", before, source),
        ("permute", axes_after, *_stage("split", after, source)[2:]),
        _stage("merge", target.blocks, target, want),
        _stage("crop", target.blocks, target),
        ("merge", target.extents, target.extents, _dimensions(target)),
    ]
    found = _needed(source.extents, stages)
    return (
        found
        if target.is_dense
        else [*found, TransformStep("align", target.strides, _dimensions(target))]
    )


def plain(logical: str) -> Layout:
    """Return the layout of a row-major array with the axes in this order."""
    return Layout(tuple(Dim((Block(axis),)) for axis in logical))


def strided(array: AnyArray, strides: Sequence[int]) -> AnyArray:
    """Return an array with given strides, in elements, over memory that is zero elsewhere.

    The array itself is returned if it has these strides already.
    """
    if array.strides == tuple(stride * array.itemsize for stride in strides):
        return array
    found = spaced_zeros(array.shape, strides, array.dtype)
    found[...] = array
    return found


def _digits(block: PlacedBlock, cuts: Sequence[int], place: Placement) -> list[Digit]:
    """Return the parts of a block between the weights at which its axis is split."""
    found = []
    for low, high in zip_longest(cuts, cuts[1:]):
        if block.weight <= low and (block.outermost or low < block.weight * block.extent):
            extent = high // low if high else -(-place.shape[block.axis] // low)
            found.append(Digit(block.axis, low, extent, high is None))
    return found[::-1]


def _stage(
    kind: Kind,
    parts: Sequence[PlacedBlock | Digit],
    place: Placement,
    digits: Sequence[Sequence[Digit]] | None = None,
) -> Stage:
    """Return a stage after which each part is a dimension, as long as its digits need."""
    if digits is None:
        shape = tuple(part.extent for part in parts)
    else:
        shape = tuple(math.prod(digit.extent for digit in row) for row in digits)
    return kind, shape, shape, tuple(_name(part, place) for part in parts)


def _name(part: PlacedBlock | Digit, place: Placement) -> str:
    axis = place.logical[part.axis]
    return axis if part.outermost else f"{part.extent}{axis.lower()}"


def _dimensions(place: Placement) -> tuple[str, ...]:
    """Return the names of physical dimensions."""
    names: list[list[str]] = [[] for _ in place.extents]
    for block in place.blocks:
        names[block.dim].append(_name(block, place))
    return tuple(row[0] if len(row) == 1 else f"[{''.join(row)}]" for row in names)


def _needed(shape: tuple[int, ...], stages: Sequence[Stage]) -> list[TransformStep]:
    """Return the stages that change an array; splits and merges in a row are one."""
    found: list[TransformStep] = []
    shapes = [shape]
    for kind, numbers, after, names in stages:
        if kind in RESHAPES and found and found[-1].kind in RESHAPES:
            found.pop()
            shapes.pop()
        if kind == "permute" and numbers == tuple(range(len(numbers))):
            continue
        if kind != "permute" and after == shapes[-1]:
            continue
        if kind in RESHAPES:
            kind = "split" if len(after) > len(shapes[-1]) else "merge"
        found.append(TransformStep(kind, numbers, names))
        shapes.append(after)
    return found


@dataclass(frozen=True)
class Transform:
    """A tensor brought from one layout to another; made by :func:`transform`.

    Parameters
    ----------
    source, target
        The layouts.
    shape
        The tensor's shape, in logical order.
    logical
        The axes in logical order.
    element_bytes
        Bytes of an element; only alignment depends on them.
    """

    source: Layout
    target: Layout
    shape: tuple[int, ...]
    logical: str
    element_bytes: int

    @cached_property
    def steps(self) -> tuple[TransformStep, ...]:
        """What is done one after the other; nothing if both layouts are one."""
        return tuple(steps(*self._places))

    @cached_property
    def is_free(self) -> bool:
        """Whether nothing moves: all elements keep their offsets, and the memory its size.

        So it is where only axes of size 1 change places, where blocks have one value, and where a
        block covers its axis and what lies between is of size 1.  No element is looked at.
        """
        source, target = self._places
        return source.same_places(target)

    @property
    def inverse(self) -> Transform:
        """The way back."""
        return Transform(self.target, self.source, self.shape, self.logical, self.element_bytes)

    def then(self, other: Transform) -> Transform:
        """Return this and another transform as one, without what cancels in between.

        Parameters
        ----------
        other
            One that begins with the layout that this one ends with.

        Raises
        ------
        LayoutError
            If it begins elsewhere, or is for another tensor.
        """
        sizes = dict(zip(self.logical, self.shape, strict=True))
        others = dict(zip(other.logical, other.shape, strict=True))
        if sizes != others or self.element_bytes != other.element_bytes:
            raise LayoutError(
                f"a transform of {others} with {other.element_bytes} bytes cannot follow "
                f"one of {sizes} with {self.element_bytes}"
            )
        if self._places[1] != self._place(other.source):
            raise LayoutError(f"a transform from {other.source} cannot follow one to {self.target}")
        return Transform(self.source, other.target, self.shape, self.logical, self.element_bytes)

    def apply(self, array: AnyArray) -> AnyArray:
        """Return the physical array of the target for that of the source.

        Parameters
        ----------
        array
            Of the source's physical shape, with any strides.  Its padding must be zero: it may
            become padding of the target.

        Returns
        -------
        array
            Of the target's physical shape and strides, all padding zero.  It is a view of the
            given one where that lies so already.

        Raises
        ------
        LayoutError
            If the shape is another, or the target is aligned and elements have other bytes.
        """
        extents = self._places[0].extents
        given = np.asarray(array)
        if given.shape != extents:
            raise LayoutError(
                f"an array of shape {given.shape} does not fit layout {self.source} for "
                f"{self.logical} {self.shape}; that has {extents}"
            )
        aligned = max(self.target.alignments, default=1) > 1
        if aligned and given.itemsize != self.element_bytes:
            raise LayoutError(
                f"layout {self.target} is aligned for elements of {self.element_bytes} bytes; "
                f"these have {given.itemsize}"
            )
        for step in self.steps:
            given = step.apply(given)
        gaps = self.steps and self.steps[-1].kind == "align"
        return given if gaps else np.asarray(given, order="C")

    def __str__(self) -> str:
        how = "moves nothing" if self.is_free else f"{len(self.steps)} steps"
        head = f"{self.source} -> {self.target}, {self.logical} {self.shape}: {how}"
        return "\n".join([head, *(f"  {step}" for step in self.steps)])

    @cached_property
    def _places(self) -> tuple[Placement, Placement]:
        return self._place(self.source), self._place(self.target)

    def _place(self, layout: Layout) -> Placement:
        return placement(layout, self.shape, self.logical, self.element_bytes)


def transform(
    source: LayoutLike,
    target: LayoutLike,
    shape: Sequence[int],
    element_bytes: int = DEFAULT_ELEMENT_BYTES,
    *,
    logical: str | None = None,
) -> Transform:
    """Return how a tensor is brought from one layout to another.

    Parameters
    ----------
    source, target
        Two layouts with the same axes, or their texts.
    shape
        The tensor's shape, in logical order.
    element_bytes
        Bytes of an element, 4 by default; only alignment depends on them.
    logical
        The axes in logical order; by default that of ``source``.

    Raises
    ------
    LayoutError
        If a layout leaves something open, they have other axes, or the shape does not fit.

    Examples
    --------
    >>> print(transform("NCHW", "NCHW16c", (1, 20, 7, 7)))
    NCHW -> NCHW16c, NCHW (1, 20, 7, 7): 3 steps
      pad     N C H W: (1, 32, 7, 7)
      split   N C 16c H W: (1, 2, 16, 7, 7)
      permute N C H W 16c: (0, 1, 3, 4, 2)
    """
    source, target = as_layout(source), as_layout(target)
    order = axis_order(source, logical)
    places = [placement(layout, shape, order, element_bytes) for layout in (source, target)]
    return Transform(source, target, places[0].shape, order, index(element_bytes))


def apply(layout: LayoutLike, array: ArrayLike, *, logical: str | None = None) -> AnyArray:
    """Return the physical array of a tensor, with the layout's strides.

    Parameters
    ----------
    layout
        The layout, or its text.
    array
        The tensor, its axes in logical order.
    logical
        The axes in logical order; by default that of the layout.

    Raises
    ------
    LayoutError
        If the layout leaves something open, or the array has another number of axes.

    Examples
    --------
    >>> apply("HW2w", [[1, 2, 3], [4, 5, 6]]).tolist()
    [[[1, 2], [3, 0]], [[4, 5], [6, 0]]]
    """
    given = np.asarray(array)
    order = axis_order(as_layout(layout), logical)
    return transform(plain(order), layout, given.shape, given.itemsize, logical=order).apply(given)


def restore(
    layout: LayoutLike, physical: ArrayLike, shape: Sequence[int], *, logical: str | None = None
) -> AnyArray:
    """Return a tensor, its axes in logical order, from its physical array.

    Parameters
    ----------
    layout
        The layout, or its text.
    physical
        The physical array, with any strides.
    shape
        The tensor's shape, in logical order.
    logical
        The axes in logical order; by default that of the layout.

    Raises
    ------
    LayoutError
        If the layout leaves something open, or one of the shapes does not fit.
    """
    given = np.asarray(physical)
    order = axis_order(as_layout(layout), logical)
    back = transform(layout, plain(order), shape, given.itemsize, logical=order)
    return back.apply(given)
