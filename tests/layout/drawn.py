"""Random layouts, and a tensor's memory written down cell by cell."""

from __future__ import annotations

import itertools
from functools import cache
from math import prod
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np

from layoutopt.layout.factors import AxisFactor, Form, FormDim, Item, items_of, sizes_of
from layoutopt.layout.layout import Block, Dim, Layout
from layoutopt.layout.placement import Placement, placement

Index = tuple[int, ...]


class Case(NamedTuple):
    """Layouts of one tensor, and its shape in logical order."""

    layouts: tuple[Layout, ...]
    logical: str
    shape: tuple[int, ...]
    element_bytes: int

    def place(self, n: int = 0) -> Placement:
        """Return where elements lie in one of the layouts."""
        return placement(self.layouts[n], self.shape, self.logical, self.element_bytes)

    @property
    def tensor(self) -> np.ndarray:
        """The tensor with different values, none of them 0."""
        size = int(np.prod(self.shape, dtype=int))
        return (1 + np.arange(size)).astype(f"i{self.element_bytes}").reshape(self.shape)


@st.composite
def layouts(draw: st.DrawFn, axes: str, aligned: bool) -> Layout:
    """Draw a layout: blocks of all axes in any order, some of them packed, some aligned."""
    blocks = [Block(axis) for axis in axes]
    for axis in axes:
        inner = draw(st.lists(st.sampled_from((1, 2, 2, 3, 4)), max_size=2))
        blocks += [Block(axis, n) for n in inner]
    blocks = draw(st.permutations(blocks))
    return Layout(tuple(draw(dims(blocks, aligned))))


@st.composite
def dims(draw: st.DrawFn, blocks: list[Block], aligned: bool) -> list[Dim]:
    """Draw physical dimensions of these blocks."""
    found: list[Dim] = []
    while blocks:
        count = draw(st.sampled_from((1, 1, 1, 2)))
        bytes_ = draw(st.sampled_from((1, 1, 1, 6, 16))) if aligned else 1
        extensions = (f"a={bytes_}",) if bytes_ > 1 else ()
        found.append(Dim(tuple(blocks[:count]), extensions))
        blocks = blocks[count:]
    return found


@st.composite
def alike(draw: st.DrawFn, layout: Layout) -> Layout:
    """Draw a layout whose dimensions are those of another in another order, or cut otherwise."""
    every = list(layout.dims)
    if draw(st.booleans()):
        return Layout(tuple(draw(st.permutations(every))))
    return Layout(tuple(draw(dims([b for dim in every for b in dim.blocks], False))))


@st.composite
def cases(draw: st.DrawFn, count: int = 1, aligned: bool = True, least: int = 0) -> Case:
    """Draw a tensor with layouts.

    Parameters
    ----------
    count
        How many layouts; each further one is as likely to resemble the first as not.
    aligned
        Whether some dimensions are aligned.
    least
        The smallest size of an axis.
    """
    axes = "".join(draw(st.permutations("NCH")))[: draw(st.integers(0, 3))]
    sizes = [size for size in (0, 1, 1, 1, 2, 3, 4, 5, 7) if size >= least]
    shape = tuple(draw(st.sampled_from(sizes)) for _ in axes)
    found = [draw(layouts(axes, aligned))]
    while len(found) < count:
        found.append(draw(st.one_of(layouts(axes, aligned), alike(found[0]))))
    return Case(tuple(found), axes, shape, draw(st.sampled_from((1, 2, 4, 8))))


def cells(layout: Layout, case: Case) -> list[Index | None]:
    """Return a tensor's memory: in each cell the element that is there, ``None`` in padding."""
    rests = {}
    for axis, size in zip(case.logical, case.shape, strict=True):
        held = 1
        for dim in layout.dims:
            for block in dim.blocks:
                held *= (block.size or 1) if block.axis == axis else 1
        rests[axis] = next(k for k in itertools.count() if k * held >= size)

    def written(d: int, chosen: list[tuple[Block, int]]) -> list[Index | None]:
        """Return the cells of all dimensions from ``d`` on, for values of those before."""
        if d == len(layout.dims):
            return [element(case, chosen)]
        dim, found = layout.dims[d], []
        ranges = [range(rests[b.axis] if b.size is None else b.size) for b in dim.blocks]
        for values in itertools.product(*ranges):
            inner = written(d + 1, [*chosen, *zip(dim.blocks, values, strict=True)])
            while len(inner) * case.element_bytes % dim.alignment:
                inner.append(None)
            found += inner
        return found

    return written(0, [])


def element(case: Case, chosen: list[tuple[Block, int]]) -> Index | None:
    """Return the logical index that values of all blocks stand for, if there is such an element."""
    index = []
    for axis, size in zip(case.logical, case.shape, strict=True):
        own = [(block, value) for block, value in chosen if block.axis == axis]
        [at] = [value for block, value in own if block.size is None]
        for block, value in own:
            if block.size is not None:
                at = at * block.size + value
        if at >= size:
            return None
        index.append(at)
    return tuple(index)


def formed(array: np.ndarray, form: Form, padding: int = 0) -> np.ndarray:
    """Return a tensor in a form: each element is put in its place, and the rest is padding."""
    place, sizes = _place_of_each(array.shape, form)
    found = np.full(prod(sizes), padding).astype(array.dtype)
    found[place] = array.ravel()
    return found.reshape(sizes)


@cache
def _place_of_each(shape: tuple[int, ...], form: Form) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return the place of each element of a tensor in a form, and the sizes of that."""
    place = np.zeros(shape, np.int64)
    for item in items_of(form):
        if isinstance(item, AxisFactor):
            index = np.indices(shape)[item.axis] // item.stride % item.size
            place = place * item.size + index
        elif item >= 0:
            place = place * shape[item] + np.indices(shape)[item]
    return place.ravel(), sizes_of(form, shape)  # type: ignore[return-value]  # all are known


@st.composite
def forms(draw: st.DrawFn, shape: tuple[int, ...]) -> Form:
    """Draw a form: axes whole or cut, padded or not, in any order, some in one dimension.

    Axes of size 1 may be missing, and there may be some more.
    """
    items: list[Item] = [-1] * draw(st.sampled_from((0, 0, 1)))
    for axis, size in enumerate(shape):
        inner = draw(st.sampled_from((1, 1, 2, 3, 4)))
        if inner > 1:
            outer = -(-size // inner) + draw(st.sampled_from((0, 0, 1)))
            items += [AxisFactor(axis, inner, outer), AxisFactor(axis, 1, inner)]
        elif size != 1 or draw(st.booleans()):
            items.append(axis)
    left, found = draw(st.permutations(items)), list[FormDim]()
    while left:
        count = draw(st.sampled_from((1, 1, 2)))
        found.append(left[0] if count == 1 else tuple(left[:count]))
        left = left[count:]
    return tuple(found)
