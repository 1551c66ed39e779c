"""The ops of unwinding graphs, one class each.

There are five kinds of ops.  The solver chooses the locations of *sinks*.  *Sources* have given
locations.  *Barriers* have given locations, known once those of all elements of all inputs are.
*Fixed points* have given locations, known from the start.  Each element of a *view* is at the
location of an element of its inputs.

To add an op, write its class here, add it to ``AnyOp`` below, and state its meaning independently
in ``check/affine.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from layoutopt.base.errors import InputError

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = NDArray[Any]

MAX_ELEMENTS = 2**62
"""Largest number of elements of a tensor; flat indices fit into 64 bits."""


class Kind(Enum):
    """Kinds of ops, by the origin of their outputs' locations."""

    SINK = "sink"
    SOURCE = "source"
    BARRIER = "barrier"
    FIXED_POINT = "fixed point"
    VIEW = "view"


# gc=False: ops are in no reference cycles, and large graphs have many of them.
class UnwindingOp(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """Base of all ops.

    Parameters
    ----------
    id
        The op's unique name.
    inputs
        Names of the tensors that it reads: ``"id"`` for an op's only output, ``"id:1"`` for
        output 1.
    shape
        Shape of the only output, given or derived from the inputs.
    """

    id: str
    inputs: tuple[str, ...]
    shape: Shape | None = None

    kind: ClassVar[Kind] = Kind.VIEW
    arity: ClassVar[int | None] = 1
    """Number of inputs; ``None`` for any number."""

    def given(self) -> Shape:
        """Return the given shape, which is required."""
        if self.shape is None:
            raise InputError("shape is missing")
        return self.shape

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape.

        Other types of ops return their outputs' shapes for inputs of given shapes, which the
        attributes must fit.
        """
        return (self.given(),)

    def carriers(self, inputs: int) -> range:
        """Return the indices of the inputs whose locations the output has."""
        return range(inputs if self.kind is Kind.VIEW else 0)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the output of a view, for one array per carrier.

        By default it has all elements of the only carrier, in row-major order.
        """
        return arrays[0].reshape(self.given())


def size(shape: Shape) -> int:
    """Return the number of elements of a tensor; 1 for rank 0."""
    return math.prod(shape)


def type_name(op: UnwindingOp | type[UnwindingOp]) -> str:
    """Return the type of an op, or of its class, as files name it, such as ``"dim_shuffle"``."""
    return str(op.__struct_config__.tag)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape that operands of the given shapes broadcast to, by NumPy's rules."""
    if not shapes:
        raise InputError("needs at least one input")
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise InputError(f"shapes {[list(s) for s in shapes]} do not broadcast") from None


def dominates(large: Shape, small: Shape) -> bool:
    """Return whether ``small`` broadcasts to ``large`` by NumPy's rules."""
    tail = large[len(large) - len(small) :] if small else ()
    return len(small) <= len(large) and all(s in (1, n) for s, n in zip(small, tail, strict=True))


class Sink(UnwindingOp, frozen=True, kw_only=True, tag="sink"):
    """A graph input whose locations the solver chooses."""

    kind = Kind.SINK
    arity = 0


class Source(UnwindingOp, frozen=True, kw_only=True, tag="source"):
    """A tensor with locations of its own.

    Parameters
    ----------
    mapping
        One location per element, in row-major order.  Equal values are the same location, in
        all sources of a graph.  By default every element has a location of its own.
    rule
        A tile mapping by name; ignored in graphs without a tile memory.
    """

    mapping: tuple[int | str, ...] | None = None
    rule: dict[str, Any] | None = None

    kind = Kind.SOURCE
    arity = 0

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which a mapping must fit."""
        shape = self.given()
        if self.mapping is not None:
            if self.rule is not None:
                raise InputError("give mapping or rule, not both")
            if len(self.mapping) != size(shape):
                raise InputError(
                    f"mapping has {len(self.mapping)} entries, shape {list(shape)} "
                    f"has {size(shape)} elements"
                )
        if self.rule is not None and not isinstance(self.rule.get("kind"), str):
            raise InputError('rule must have a "kind", a string')
        return (shape,)


class OpaqueOp(UnwindingOp, frozen=True, kw_only=True):
    """An op whose outputs, one or several, do not have locations of inputs.

    Parameters
    ----------
    shapes
        Shapes of several outputs, instead of a single shape.
    """

    shapes: tuple[Shape, ...] | None = None

    arity = None

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shapes."""
        if (self.shape is None) == (self.shapes is None):
            raise InputError("exactly one of shape and shapes must be given")
        return (self.shape,) if self.shape is not None else self.shapes or ()


class Barrier(OpaqueOp, frozen=True, kw_only=True, tag="barrier"):
    """An op whose outputs' locations are known once those of all its inputs are.

    Parameters
    ----------
    hook
        Name of the function that computes the outputs' tiles on a tile memory.
    """

    hook: str | None = None

    kind = Kind.BARRIER


class FixedPoint(OpaqueOp, frozen=True, kw_only=True, tag="fixed_point"):
    """An op whose outputs' locations do not depend on its inputs."""

    kind = Kind.FIXED_POINT


class SumLikeReduce(UnwindingOp, frozen=True, kw_only=True, tag="sum_like_reduce"):
    """A barrier: the layout of a broadcast operand, derived from the larger operand."""

    kind = Kind.BARRIER

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which must broadcast to the input's."""
        shape = self.given()
        if not dominates(shapes[0], shape):
            raise InputError(f"shape {list(shape)} does not broadcast to {list(shapes[0])}")
        return (shape,)


Stripes: TypeAlias = Sequence[tuple[int, int, int]]
"""Stripes, outermost first."""


def kept(n: int, stripes: Stripes) -> NDArray[np.int64]:
    """Return the indices ``0 .. n-1`` that all stripes keep."""
    indices = np.arange(n)
    inner = indices
    for on, off, phase in stripes:
        inner = (inner - phase) % (on + off)
        indices, inner = indices[inner < on], inner[inner < on]
    return indices


def count_kept(n: int, stripes: Stripes) -> int:
    """Count the indices ``0 .. n-1`` that all stripes keep, without enumerating them."""

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


class SumLike(UnwindingOp, frozen=True, kw_only=True, tag="sum_like"):
    """An elementwise op with broadcasting, at the locations of its first unwindable input.

    Parameters
    ----------
    unwindable_inputs
        Indices of inputs of the output's shape.  The output has the locations of the first
        one listed; other inputs do not influence them.
    """

    unwindable_inputs: tuple[int, ...]

    arity = None

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the broadcast shape, which all unwindable inputs must have."""
        out = broadcast(shapes)
        if not self.unwindable_inputs:
            raise InputError("unwindable_inputs is empty; use a barrier for such an op")
        for i in self.unwindable_inputs:
            if not 0 <= i < len(shapes):
                raise InputError(f"unwindable input {i} is not one of 0..{len(shapes) - 1}")
            if shapes[i] != out:
                raise InputError(
                    f"unwindable input {i} has shape {list(shapes[i])}, the output {list(out)}"
                )
        return (out,)

    def carriers(self, inputs: int) -> range:
        """Return the first listed unwindable input."""
        first = self.unwindable_inputs[0]
        return range(first, first + 1)


class Identity(UnwindingOp, frozen=True, kw_only=True, tag="identity"):
    """All elements, unchanged."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the input's shape."""
        return (shapes[0],)


class Flatten(UnwindingOp, frozen=True, kw_only=True, tag="flatten"):
    """All elements in one dimension, in row-major order."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the one-dimensional shape."""
        return ((size(shapes[0]),),)


class Squeeze(UnwindingOp, frozen=True, kw_only=True, tag="squeeze"):
    """The tensor without its dimensions of size 1."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the shape without ones."""
        return (tuple(d for d in shapes[0] if d != 1),)


class Reshape(UnwindingOp, frozen=True, kw_only=True, tag="reshape"):
    """The same elements, in row-major order, in another shape."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which must keep the number of elements."""
        shape = self.given()
        if size(shape) != size(shapes[0]):
            raise InputError(
                f"shape {list(shape)} has {size(shape)} elements, the input "
                f"{list(shapes[0])} has {size(shapes[0])}"
            )
        return (shape,)


KeepsOrder: TypeAlias = SumLike | Identity | Flatten | Squeeze | Reshape
"""Views whose elements have the row-major positions of those that they come from."""


class DimShuffle(UnwindingOp, frozen=True, kw_only=True, tag="dim_shuffle"):
    """A permutation of dimensions, as of ``numpy.transpose``."""

    permutation: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the permuted shape."""
        rank = len(shapes[0])
        if sorted(self.permutation) != list(range(rank)):
            raise InputError(
                f"permutation {list(self.permutation)} must permute the {rank} dimensions "
                f"of {list(shapes[0])}"
            )
        return (tuple(shapes[0][p] for p in self.permutation),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the transposed array."""
        return arrays[0].transpose(self.permutation)


class Reverse(UnwindingOp, frozen=True, kw_only=True, tag="reverse"):
    """Reversal of some dimensions."""

    dims: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the input's shape."""
        _check_dims("dims", self.dims, shapes[0])
        return (shapes[0],)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the flipped array."""
        back, all_of = slice(None, None, -1), slice(None)
        return pick(arrays[0], [back if d in self.dims else all_of for d in range(arrays[0].ndim)])


class Slice(UnwindingOp, frozen=True, kw_only=True, tag="slice"):
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
                raise InputError(
                    f"dimension {d}: bounds {low}, {high} violate 0 <= lower <= upper <= {n}"
                )
        return (tuple(h - low for low, h in zip(self.lower, self.upper, strict=True)),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the box."""
        return pick(arrays[0], map(slice, self.lower, self.upper))


class SubSample(UnwindingOp, frozen=True, kw_only=True, tag="sub_sample"):
    """Every ``strides[d]``-th index of dimension ``d``, from index 0."""

    strides: tuple[int, ...]

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the sampled shape."""
        _check_rank("strides", self.strides, shapes[0])
        if any(not 1 <= s < MAX_ELEMENTS for s in self.strides):
            raise InputError(f"strides {list(self.strides)} must be at least 1, and below 2^62")
        return (tuple(-(-n // s) for n, s in zip(shapes[0], self.strides, strict=True)),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the samples."""
        return pick(arrays[0], [slice(None, None, s) for s in self.strides])


class SettSample(UnwindingOp, frozen=True, kw_only=True, tag="sett_sample"):
    """The on-indices of nested stripes, per dimension; see :mod:`layoutopt.graphs.ops`.

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
            raise InputError("a stripe must be [on, off, phase]")
        for stripes in self.setts:
            for on, off, phase in stripes:
                if on < 0 or off < 0 or on + off < 1:
                    raise InputError(
                        f"stripe {[on, off, phase]}: on and off must be 0 or more, not both 0"
                    )
                if max(on, off, abs(phase)) >= MAX_ELEMENTS:
                    raise InputError(f"stripe {[on, off, phase]}: a number is 2^62 or more")
        return (tuple(map(count_kept, shapes[0], self.setts)),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the on-elements."""
        return pick(arrays[0], np.ix_(*map(kept, arrays[0].shape, self.setts)))


class Concat(UnwindingOp, frozen=True, kw_only=True, tag="concat"):
    """Concatenation of tensors along one dimension."""

    axis: int

    arity = None

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the concatenated shape."""
        if not shapes:
            raise InputError("needs at least one input")
        _check_dims("axis", (self.axis,), shapes[0])
        first = shapes[0]
        for i, shape in enumerate(shapes):
            if _without(shape, self.axis) != _without(first, self.axis):
                raise InputError(
                    f"input {i} has shape {list(shape)}, which differs from "
                    f"{list(first)} in a dimension other than axis {self.axis}"
                )
        joint = sum(shape[self.axis] for shape in shapes)
        return ((*first[: self.axis], joint, *first[self.axis + 1 :]),)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the concatenated array."""
        return np.concatenate(list(arrays), axis=self.axis)


class Expand(UnwindingOp, frozen=True, kw_only=True, tag="expand"):
    """NumPy broadcasting to a given shape."""

    def infer(self, shapes: Sequence[Shape]) -> tuple[Shape, ...]:
        """Return the given shape, which the input must broadcast to."""
        shape = self.given()
        if not dominates(shape, shapes[0]):
            raise InputError(f"shape {list(shapes[0])} does not broadcast to {list(shape)}")
        return (shape,)

    def view(self, arrays: Sequence[Array]) -> Array:
        """Return the broadcast array."""
        return np.broadcast_to(arrays[0], self.given())


def pick(array: Array, index: Iterable[Any]) -> Array:
    """Return a view of an array; one of rank 0 stays an array."""
    return array[(*index, ...)]


def _without(shape: Shape, axis: int) -> tuple[int, Shape]:
    return len(shape), shape[:axis] + shape[axis + 1 :]


def _check_rank(name: str, values: Sequence[Any], shape: Shape) -> None:
    if len(values) != len(shape):
        raise InputError(f"{name} has {len(values)} entries for {len(shape)} dimensions")


def _check_dims(name: str, dims: Sequence[int], shape: Shape) -> None:
    for d in dims:
        if not 0 <= d < len(shape):
            raise InputError(f"{name} names dimension {d} of a tensor of rank {len(shape)}")
    if len(set(dims)) != len(dims):
        raise InputError(f"{name} {list(dims)} names a dimension twice")


AnyOp: TypeAlias = (
    Sink
    | Source
    | Barrier
    | FixedPoint
    | SumLikeReduce
    | SumLike
    | Identity
    | Flatten
    | Squeeze
    | Reshape
    | DimShuffle
    | Reverse
    | Slice
    | SubSample
    | SettSample
    | Concat
    | Expand
)
"""Every op of the file format."""
