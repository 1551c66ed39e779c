"""Transforms between layouts of a tensor: explicit steps, and whether any byte moves.

All factors of axes move at once, by one permutation.  Before it dimensions are padded and split,
after it they are merged and cropped.

The physical array of a tensor has the layout's physical shape.  Gaps of alignment are in its
strides, where NumPy has them: an aligned array is a view of its memory, as
:meth:`~layoutopt.layout.placement.Placement.zeros` makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index

import numpy as np
from numpy.typing import ArrayLike

from layoutopt.layout.factors import AnyArray, TransformStep, names_of, steps, view
from layoutopt.layout.layout import Layout, LayoutError, plain
from layoutopt.layout.placement import (
    Index,
    LayoutLike,
    Placement,
    as_layout,
    axis_order,
    placement,
)
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES


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
        source, target = self.places
        before, after = (tuple(d[0] if len(d) == 1 else d for d in p.form) for p in self.places)
        if source.is_dense and target.is_dense and self.is_free:
            return tuple(view(before, after, self.shape))
        found = tuple(steps(before, after, self.shape))
        packed = source.is_dense or any(step.kind in ("pad", "crop", "permute") for step in found)
        if target.is_dense and packed:
            return found
        return (*found, TransformStep("align", after, target.strides))

    @property
    def lines(self) -> tuple[str, ...]:
        """Each step as a text: what is done, the dimensions afterwards, and numbers."""
        return tuple(
            f"{s.kind:8}{' '.join(names_of(s.form, self.logical))}: {s.numbers}" for s in self.steps
        )

    @cached_property
    def is_free(self) -> bool:
        """Whether all elements keep their offsets, and the memory its size.

        So it is where only axes of size 1 change places, where blocks have one value, and where a
        block covers its axis and what lies between is of size 1.  No element is looked at.
        """
        source, target = self.places
        return source.same_places(target)

    def index(self, physical: Sequence[ArrayLike]) -> Index:
        """Return the index in the target's physical array of elements given by the source's.

        Parameters
        ----------
        physical
            An integer or an array of integers for each physical dimension; they broadcast.

        Raises
        ------
        LayoutError
            If an index is outside, or in the padding of a block.
        """
        source, target = self.places
        return target.physical_index(source.logical_index(physical))

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
        if self.places[1] != self._place(other.source):
            raise LayoutError(f"a transform from {other.source} cannot follow one to {self.target}")
        return Transform(self.source, other.target, self.shape, self.logical, self.element_bytes)

    def apply(self, array: AnyArray) -> AnyArray:
        """Return the physical array of the target for that of the source; a view where it can be.

        Parameters
        ----------
        array
            Of the source's physical shape, with any strides.  Its padding must be zero: it may
            become padding of the target, all of which is zero.

        Raises
        ------
        LayoutError
            If the shape is another, or the target is aligned and elements have other bytes.
        """
        extents = self.places[0].physical_shape
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
        return "\n".join([head, *(f"  {line}" for line in self.lines)])

    @cached_property
    def places(self) -> tuple[Placement, Placement]:
        """Where elements lie before and after."""
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
    shape, element_bytes, logical
        As for :func:`~layoutopt.layout.placement.placement`; the logical order is by default that
        of ``source``.

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
    """Return a tensor, its axes in logical order, from its physical array; undoes :func:`apply`.

    Parameters
    ----------
    layout, logical
        As for :func:`apply`.
    physical
        The physical array, with any strides.
    shape
        The tensor's shape, in logical order.

    Raises
    ------
    LayoutError
        If the layout leaves something open, or one of the shapes does not fit.
    """
    given = np.asarray(physical)
    order = axis_order(as_layout(layout), logical)
    back = transform(layout, plain(order), shape, given.itemsize, logical=order)
    return back.apply(given)
