"""Ops that pass locations on: each output element is some input element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from layoutopt.graphs.op import (
    MAX_ELEMENTS,
    Array,
    OpError,
    Shape,
    ShapedOp,
    broadcast,
    dominates,
    size,
)

Stripes: TypeAlias = Sequence[tuple[int, int, int]]
"""Stripes, outermost first."""


def kept(n: int, stripes: Stripes) -> NDArray[np.int64]:
    """Return which of the indices ``0 .. n-1`` all stripes keep."""
    indices = np.arange(n)
    inner = indices
    for on, off, phase in stripes:
        inner = (inner - phase) % (on + off)
        indices, inner = indices[inner < on], inner[inner < on]
    return indices


def count_kept(n: int, stripes: Stripes) -> int:
    """Return how many of the indices ``0 .. n-1`` all stripes keep, however large ``n`` is."""

    @cache
    def count(n: int, depth: int) -> int:
        if depth == len(stripes):
            return n
        on, off, phase = stripes[depth]
        ends = (divmod(end, on + off) for end in (n - phase, -phase))
        high, low = (
            runs * count(on, depth + 1) + count(min(rest, on), depth + 1) for runs, rest in ends
        )
        return high - low

    return count(n, 0)


class SumLike(ShapedOp, frozen=True, kw_only=True, tag="sum_like"):
    """An elementwise op, broadcasting; the first unwindable input gives the locations.

    Parameters
    ----------
    unwindable_inputs
        Indices of inputs that have the output's shape.  The first listed gives the output's
        locations; the others, like all remaining inputs, do not influence them.
    """

    unwindable_inputs: tuple[int, ...]

    arity = None

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the broadcast shape, which all unwindable inputs must have."""
        out = broadcast(shapes)
        if not self.unwindable_inputs:
            raise OpError("unwindable_inputs is empty; use a barrier for such an op")
        for i in self.unwindable_inputs:
            if not 0 <= i < len(shapes):
                raise OpError(f"unwindable input {i} is not one of 0..{len(shapes) - 1}")
            if shapes[i] != out:
                raise OpError(
                    f"unwindable input {i} has shape {list(shapes[i])}, the output {list(out)}"
                )
        return (out,)

    def carriers(self, inputs: int) -> range:
        """Return the first listed unwindable input."""
        first = self.unwindable_inputs[0]
        return range(first, first + 1)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the carrier itself."""
        return arrays[0]


class Identity(ShapedOp, frozen=True, kw_only=True, tag="identity"):
    """The same tensor once more."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the input's shape."""
        return (shapes[0],)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the input."""
        return arrays[0]


class Flatten(ShapedOp, frozen=True, kw_only=True, tag="flatten"):
    """All elements in one dimension."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the one-dimensional shape."""
        return ((size(shapes[0]),),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the elements in row-major order."""
        return arrays[0].reshape(-1)


class Squeeze(ShapedOp, frozen=True, kw_only=True, tag="squeeze"):
    """The tensor without its dimensions of size 1."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the shape without ones."""
        return (tuple(d for d in shapes[0] if d != 1),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the squeezed array."""
        return arrays[0].squeeze()


class Reshape(ShapedOp, frozen=True, kw_only=True, tag="reshape"):
    """The same elements, in row-major order, in another shape."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which must keep the number of elements."""
        shape = self.given()
        if size(shape) != size(shapes[0]):
            raise OpError(
                f"shape {list(shape)} has {size(shape)} elements, the input "
                f"{list(shapes[0])} has {size(shapes[0])}"
            )
        return (shape,)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the reshaped array."""
        return arrays[0].reshape(self.given())


class DimShuffle(ShapedOp, frozen=True, kw_only=True, tag="dim_shuffle"):
    """Dimensions in another order, as ``numpy.transpose`` takes them."""

    permutation: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the permuted shape."""
        rank = len(shapes[0])
        if sorted(self.permutation) != list(range(rank)):
            raise OpError(
                f"permutation {list(self.permutation)} is not one of the {rank} dimensions "
                f"of {list(shapes[0])}"
            )
        return (tuple(shapes[0][p] for p in self.permutation),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the transposed array."""
        return arrays[0].transpose(self.permutation)


class Reverse(ShapedOp, frozen=True, kw_only=True, tag="reverse"):
    """Some dimensions backwards."""

    dims: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the input's shape."""
        _check_dims("dims", self.dims, shapes[0])
        return (shapes[0],)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the flipped array."""
        back, all_of = slice(None, None, -1), slice(None)
        return _pick(arrays[0], [back if d in self.dims else all_of for d in range(arrays[0].ndim)])


class Slice(ShapedOp, frozen=True, kw_only=True, tag="slice"):
    """A box: indices ``lower[d] <= i < upper[d]`` in every dimension."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the box's shape."""
        shape = shapes[0]
        _check_rank("lower", self.lower, shape)
        _check_rank("upper", self.upper, shape)
        for d, (low, high, n) in enumerate(zip(self.lower, self.upper, shape, strict=True)):
            if not 0 <= low <= high <= n:
                raise OpError(
                    f"dimension {d}: 0 <= lower <= upper <= {n} does not hold for {low}, {high}"
                )
        return (tuple(h - low for low, h in zip(self.lower, self.upper, strict=True)),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the box."""
        return _pick(arrays[0], map(slice, self.lower, self.upper))


class SubSample(ShapedOp, frozen=True, kw_only=True, tag="sub_sample"):
    """Every ``strides[d]``-th index of dimension ``d``, from index 0."""

    strides: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the sampled shape."""
        _check_rank("strides", self.strides, shapes[0])
        if any(not 1 <= s < MAX_ELEMENTS for s in self.strides):
            raise OpError(f"strides {list(self.strides)} must be at least 1, and below 2^62")
        return (tuple(-(-n // s) for n, s in zip(shapes[0], self.strides, strict=True)),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the samples."""
        return _pick(arrays[0], [slice(None, None, s) for s in self.strides])


class SettSample(ShapedOp, frozen=True, kw_only=True, tag="sett_sample"):
    """The on-indices of nested stripes, per dimension; see :mod:`layoutopt.graphs.views`.

    Parameters
    ----------
    setts
        For each dimension its stripes, outermost first; no stripes keep every index.
    """

    setts: tuple[tuple[tuple[int, int, int], ...], ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the number of on-indices of each dimension."""
        _check_rank("setts", self.setts, shapes[0])
        if any(len(stripe) != 3 for stripes in self.setts for stripe in stripes):
            raise OpError("a stripe must be [on, off, phase]")
        for stripes in self.setts:
            for on, off, phase in stripes:
                if on < 0 or off < 0 or on + off < 1:
                    raise OpError(
                        f"stripe {[on, off, phase]}: on and off must be 0 or more, not both 0"
                    )
                if max(on, off, abs(phase)) >= MAX_ELEMENTS:
                    raise OpError(f"stripe {[on, off, phase]}: a number is 2^62 or more")
        return (tuple(map(count_kept, shapes[0], self.setts)),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the on-elements."""
        return _pick(arrays[0], np.ix_(*map(kept, arrays[0].shape, self.setts)))


class Concat(ShapedOp, frozen=True, kw_only=True, tag="concat"):
    """Tensors one after the other along one dimension."""

    axis: int

    arity = None

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the joint shape."""
        if not shapes:
            raise OpError("needs at least one input")
        _check_dims("axis", (self.axis,), shapes[0])
        first = shapes[0]
        for i, shape in enumerate(shapes):
            if _without(shape, self.axis) != _without(first, self.axis):
                raise OpError(
                    f"input {i} has shape {list(shape)}, which does not continue "
                    f"{list(first)} along axis {self.axis}"
                )
        joint = sum(shape[self.axis] for shape in shapes)
        return ((*first[: self.axis], joint, *first[self.axis + 1 :]),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the joint array."""
        return np.concatenate(list(arrays), axis=self.axis)


class Expand(ShapedOp, frozen=True, kw_only=True, tag="expand"):
    """NumPy broadcasting to a given shape; the rank may grow."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which the input must broadcast to."""
        shape = self.given()
        if not dominates(shape, shapes[0]):
            raise OpError(f"shape {list(shapes[0])} does not broadcast to {list(shape)}")
        return (shape,)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the broadcast array."""
        return np.broadcast_to(arrays[0], self.given())


def _pick(array: Array, index: Iterable[Any]) -> Array:
    # The ellipsis keeps a rank-0 array an array.
    return array[(*index, ...)]


def _without(shape: Shape, axis: int) -> tuple[int, Shape]:
    return len(shape), shape[:axis] + shape[axis + 1 :]


def _check_rank(name: str, values: Sequence[Any], shape: Shape) -> None:
    if len(values) != len(shape):
        raise OpError(f"{name} has {len(values)} entries for {len(shape)} dimensions")


def _check_dims(name: str, dims: Sequence[int], shape: Shape) -> None:
    for d in dims:
        if not 0 <= d < len(shape):
            raise OpError(f"{name} names dimension {d} of a tensor of rank {len(shape)}")
    if len(set(dims)) != len(dims):
        raise OpError(f"{name} {list(dims)} names a dimension twice")
