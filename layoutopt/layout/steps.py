"""The steps from one layout of a tensor to another: pad, split, permute, merge, crop, align."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Literal, NamedTuple

import numpy as np

from layoutopt.layout.layout import Block, Dim, Layout
from layoutopt.layout.placement import AnyArray, PlacedBlock, Placement, placement, spaced_zeros

Kind = Literal["view", "pad", "split", "permute", "merge", "crop", "align"]

RESHAPES = ("split", "merge")


@dataclass(frozen=True)
class Step:
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


def steps(source: Placement, target: Placement) -> list[Step]:
    """Return the steps from the physical array in one layout to that in another.

    Where of two weights of blocks of an axis one always divides the other, all blocks are split at
    all weights, permuted, and merged again.  Where not, as from blocks of 6 to blocks of 4, the
    way leads through whole axes.
    """
    if source.is_dense and target.is_dense and source.same_places(target):
        shape = target.extents
        return [] if shape == source.extents else [Step("view", shape, _dimensions(target))]
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
        found if target.is_dense else [*found, Step("align", target.strides, _dimensions(target))]
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


def _needed(shape: tuple[int, ...], stages: Sequence[Stage]) -> list[Step]:
    """Return the stages that change an array; splits and merges in a row are one."""
    found: list[Step] = []
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
        found.append(Step(kind, numbers, names))
        shapes.append(after)
    return found
