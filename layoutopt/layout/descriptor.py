"""Memory descriptors: dims as operations see them, and where their elements lie.

As oneDNN's ``memory_desc``: index ``x`` of a logical axis whose blocks hold ``b`` values
together lies ``x // b`` strides on, in place ``x % b`` of them.  The blocks of all axes lie
innermost, side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import prod
from string import ascii_uppercase

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.limits import require
from layoutopt.base.numbers import pairs
from layoutopt.layout.layout import Block, Dim, Layout, LayoutError
from layoutopt.layout.parts import sizes
from layoutopt.layout.permutations import Permutation, checked, compose, framework_shape, inverse
from layoutopt.layout.placement import MOST, placement
from layoutopt.layout.reshape import regroup
from layoutopt.tiles.memory import DEFAULT_ELEMENT_BYTES


@dataclass(frozen=True)
class Transposed:
    """A tensor that a framework has transposed.

    ``permutation`` says where the framework's shape has each of the library's axes, ``moves_bytes``
    whether elements had to be copied to other places.
    """

    descriptor: Descriptor
    permutation: Permutation
    moves_bytes: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as the framework sees it."""
        return framework_shape(self.descriptor.dims, self.permutation)


def transpose_by_permutation(
    descriptor: Descriptor, permutation: Iterable[int], axes: Iterable[int]
) -> Transposed:
    """Transpose by changing the permutation that travels with a tensor; no byte moves.

    The library's dims stay as they are, and so do their meanings: ``shape[axes[j]]`` is now the
    framework's ``shape[j]``, so library axis ``i`` is at ``inverse(axes)[permutation[i]]``.
    ``axes`` are as of NumPy's ``transpose``.

    The RFC's first option (section 4.1).  It also swaps the format, ``ab`` to ``ba``, and then
    copies the buffer byte by byte; with both changes elements would be in the wrong places.
    """
    at = checked(permutation, descriptor.rank)
    return Transposed(descriptor, compose(inverse(axes), at), False)


def transpose_by_copy(
    descriptor: Descriptor, permutation: Iterable[int], axes: Iterable[int]
) -> Transposed:
    """Transpose by a copy, so that the permutation that travels with a tensor stays as it is.

    The library's dims are in the new order, in a layout of the same order of axes and blocks,
    without gaps.  The RFC's second option (section 4.1); nothing moves if all axes that change
    places are of size 1 and not padded.
    """
    at = checked(permutation, descriptor.rank)
    source = compose(inverse(at), compose(checked(axes, descriptor.rank), at))
    view = descriptor.permute_axes(inverse(source))
    copy = descriptor.like(view.dims)
    return Transposed(copy, at, copy != view)


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor in memory.

    Descriptors are equal if dims, padding and blocks are, and all elements lie in the same
    places; strides that are never taken make no difference.

    Parameters
    ----------
    dims
        The size of each logical axis.
    strides
        Of each logical axis, in elements: from one of its blocks to the next, or from one index
        to the next if it has no blocks; 0 if all of them lie in one place.
    padded_dims
        The size of each logical axis with its padding; by default the next multiple of its
        blocks.
    blocks
        ``(axis, size)`` of each block, outermost first.
    """

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    padded_dims: tuple[int, ...] = ()
    blocks: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", sizes("dims", self.dims))
        rank = self.rank
        object.__setattr__(self, "strides", sizes("strides", self.strides, count=rank))
        object.__setattr__(self, "blocks", pairs("blocks", self.blocks, error=LayoutError))
        for pair in self.blocks:
            if pair[0] >= rank or pair[1] < 2:
                raise LayoutError(f"block {pair} must be an axis below {rank} and a size over 1")
        whole = tuple(-(-n // b) * b for n, b in zip(self.dims, self.blocked, strict=True))
        padded = sizes("padded_dims", sizes("padded_dims", self.padded_dims) or whole, count=rank)
        object.__setattr__(self, "padded_dims", padded)
        for axis, (least, given, unit) in enumerate(zip(whole, padded, self.blocked, strict=True)):
            if given < least or given % unit:
                raise LayoutError(
                    f"padded_dims[{axis}] must be a multiple of {unit} from {least} on, got {given}"
                )
        reach = prod(size for _, size in self.blocks)
        for stride, count, axis in sorted(self._loops()):
            if stride < reach:
                raise LayoutError(
                    f"strides[{axis}] is {stride}, but the elements within take up to {reach}"
                )
            reach += (count - 1) * stride
        if reach > MOST:
            raise LayoutError(f"elements lie up to {reach} apart, more than 64 bits can count")

    @classmethod
    def from_layout(
        cls,
        dims: Sequence[int],
        layout: Layout,
        logical: str | None = None,
        element_bytes: int = DEFAULT_ELEMENT_BYTES,
    ) -> Descriptor:
        """Describe a tensor that lies as a layout says, with blocks innermost, side by side.

        Arguments are those of :func:`~layoutopt.layout.placement.placement`.
        """
        placed = placement(layout, dims, logical, element_bytes)
        strides = [0] * len(placed.shape)
        blocks, room = [], 1
        for block, (axis, _, extent), stride in reversed(list(placed.blocks())):
            if block.size is None:
                strides[axis] = stride
            elif extent > 1:
                if stride != room:
                    raise LayoutError(f"layout {layout}: blocks must be innermost, side by side")
                blocks.append((axis, extent))
                room *= extent
        return cls(placed.shape, tuple(strides), (), tuple(reversed(blocks)))

    @classmethod
    def from_tag(cls, dims: Sequence[int], tag: str, logical: str | None = None) -> Descriptor:
        """Describe a tensor that lies as a oneDNN tag says: ``"acdb"``, ``"nChw16c"``.

        Letters are positions, or names in the order of ``logical``, by default by alphabet, or as
        :attr:`~layoutopt.layout.layout.Layout.logical` has names.
        """
        return cls.from_layout(dims, Layout.parse(tag, "onednn"), logical)

    @property
    def blocked(self) -> tuple[int, ...]:
        """How many values of each logical axis its blocks hold together."""
        return tuple(prod(n for at, n in self.blocks if at == axis) for axis in range(self.rank))

    @property
    def rank(self) -> int:
        """The number of logical axes."""
        return len(self.dims)

    @property
    def size(self) -> int:
        """The number of elements that the memory has room for, padding and gaps included."""
        if 0 in self.padded_dims:
            return 0
        return prod(size for _, size in self.blocks) + sum(
            (count - 1) * stride for stride, count, _ in self._loops()
        )

    @property
    def layout(self) -> Layout:
        """The tensor's layout as a oneDNN tag, if without gaps or padding that no block needs."""
        layout = self._order()
        if Descriptor.from_layout(self.dims, layout) != self:
            raise LayoutError(
                f"no tag tells of strides {self.strides} and padded dims {self.padded_dims}"
            )
        return layout

    def like(self, dims: Sequence[int]) -> Descriptor:
        """Describe other dims with axes and blocks in the same order, without gaps."""
        return Descriptor.from_layout(dims, self._order())

    def offsets(self) -> NDArray[np.int64]:
        """Return the place of each element, of shape ``dims``, in elements."""
        blocked, most = self.blocked, max(prod(self.dims), *self.dims, 1)  # axes are listed anyway
        require(16 * most, f"the offsets of all elements of shape {self.dims}")
        along = [
            np.arange(n) // b * s for n, b, s in zip(self.dims, blocked, self.strides, strict=True)
        ]
        inner, weight = [1] * self.rank, 1
        for axis, size in reversed(self.blocks):
            along[axis] += np.arange(self.dims[axis]) // inner[axis] % size * weight
            inner[axis] *= size
            weight *= size
        return reduce(np.add.outer, along, np.zeros((), np.int64))

    def permute_axes(self, permutation: Iterable[int]) -> Descriptor:
        """Give the same bytes other logical axes: ``out.dims[permutation[d]] == dims[d]``."""
        to = checked(permutation, self.rank)
        source = inverse(to)
        return Descriptor(
            tuple(self.dims[axis] for axis in source),
            tuple(self.strides[axis] for axis in source),
            tuple(self.padded_dims[axis] for axis in source),
            tuple((to[axis], size) for axis, size in self.blocks),
        )

    def reshape(self, dims: Sequence[int]) -> Descriptor:
        """Give the same bytes other dims, elements staying in row-major order.

        Axes of size 1 may come and go, and axes may be split, or joined if dense: an index of
        one then goes as far as all of the next.  Axes with blocks or padding stay as they are.

        As oneDNN's ``memory_desc_reshape``, which also refuses to join across an axis of size 1
        of odd stride, and which looks for blocks in the first of the joined axes only.
        """
        new = sizes("dims", dims)
        padded, strides, to = list(new), [-1] * len(new), {}
        stay = [axis for axis in range(self.rank) if self.padded_dims[axis] > 1]
        for old, made in regroup(self.dims, new, stay):
            if len(old) == len(made) == 1:
                to[old[0]] = made[0]
                padded[made[0]] = self.padded_dims[old[0]]
                strides[made[0]] = self.strides[old[0]]
            elif old:
                stride = self._dense(old, new)
                for axis in reversed(made):
                    strides[axis] = stride
                    stride *= new[axis]
        blocks = tuple((to[axis], size) for axis, size in self.blocks)
        room = prod(size for _, size in blocks)
        for axis in reversed(range(len(new))):
            # A new axis of size 1 is never stepped along; it is put outside of the next one.
            strides[axis] = room if strides[axis] < 0 else strides[axis]
            held = prod(size for at, size in blocks if at == axis)
            room = strides[axis] * max(1, padded[axis] // held)
        return Descriptor(new, tuple(strides), tuple(padded), blocks)

    def _dense(self, axes: Sequence[int], new: Sequence[int]) -> int:
        """Return the stride of axes that lie like one, the last of them innermost."""
        change = f"reshape of {self.dims} to {tuple(new)}"
        for axis in axes:
            if self.blocked[axis] > 1:
                raise LayoutError(f"{change}: axis {axis} has blocks and must stay as it is")
            if self.padded_dims[axis] != self.dims[axis]:
                raise LayoutError(f"{change}: axis {axis} is padded and must stay as it is")
        for outer, inner in pairwise(axes):
            if self.strides[outer] != self.dims[inner] * self.strides[inner]:
                raise LayoutError(f"{change}: axes {outer} and {inner} do not lie side by side")
        return self.strides[axes[-1]]

    def _loops(self) -> list[tuple[int, int, int]]:
        """Return stride, count and axis of all axes that are stepped along."""
        counts = [n // b for n, b in zip(self.padded_dims, self.blocked, strict=True)]
        loops = zip(self.strides, counts, range(self.rank), strict=True)
        return [(stride, count, axis) for stride, count, axis in loops if count > 1 and stride]

    def _order(self) -> Layout:
        """Return the layout without gaps that has the same order of axes and blocks."""
        if self.rank > len(ascii_uppercase):
            raise LayoutError(f"a layout has up to {len(ascii_uppercase)} axes, not {self.rank}")
        stepped = {axis for _, _, axis in self._loops()}
        order = sorted(range(self.rank), key=lambda a: (-self.strides[a], a not in stepped, a))
        every = [Block(ascii_uppercase[axis]) for axis in order]
        every += [Block(ascii_uppercase[axis], size) for axis, size in self.blocks]
        return Layout(tuple(Dim((block,)) for block in every), "onednn")

    def _key(self) -> tuple[object, ...]:
        return self.dims, self.padded_dims, self.blocks, frozenset(self._loops())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descriptor) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
