"""One method per op: the part of the graph builder that adds nothing but what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from operator import index
from typing import Any, TypeAlias, overload

from layoutopt.errors import InputError
from layoutopt.graphs import ops
from layoutopt.graphs.editing import Editor
from layoutopt.graphs.op import Op, Shape
from layoutopt.graphs.tensor import Tensor

Value: TypeAlias = float | Decimal | str
Operand: TypeAlias = Tensor | str
Dims: TypeAlias = Iterable[int]


class Builder(Editor):
    """A store of ops with one method per op type; see :class:`layoutopt.Graph`."""

    def __init__(self, name: str = "", description: str = "") -> None:
        super().__init__(name, description)
        self._counts: dict[str, int] = {}

    def sink(self, shape: Dims, name: str | None = None) -> Tensor:
        """Add a tensor whose locations the solver chooses."""
        return self._one(ops.Sink, (), name, shape=integers(shape))

    def source(
        self,
        shape: Dims,
        mapping: Iterable[int | str] | None = None,
        rule: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Tensor:
        """Add a tensor with locations of its own.

        Parameters
        ----------
        mapping
            One location per element in row-major order; equal integers or strings are equal
            locations, across all sources.  By default all elements have different ones.
        rule
            A tile mapping by name, for a graph with a tile memory.
        """
        where = None if mapping is None else tuple(mapping)
        how = None if rule is None else dict(rule)
        return self._one(ops.Source, (), name, shape=integers(shape), mapping=where, rule=how)

    @overload
    def barrier(
        self,
        inputs: Iterable[Operand],
        shape: Dims,
        *,
        hook: str | None = None,
        name: str | None = None,
    ) -> Tensor: ...

    @overload
    def barrier(
        self,
        inputs: Iterable[Operand],
        *,
        shapes: Iterable[Dims],
        hook: str | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, ...]: ...

    def barrier(
        self,
        inputs: Iterable[Operand],
        shape: Dims | None = None,
        *,
        shapes: Iterable[Dims] | None = None,
        hook: str | None = None,
        name: str | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """Add an opaque op: its outputs are known once all elements of all inputs are.

        Parameters
        ----------
        shape
            Shape of the only output.
        shapes
            Shapes of several outputs, which become known together; a tuple is returned.
        hook
            Name of the tile-memory function that gives the outputs' tiles.
        """
        return self._opaque(ops.Barrier, inputs, shape, shapes, name, hook=hook)

    @overload
    def fixed_point(
        self, inputs: Iterable[Operand], shape: Dims, *, name: str | None = None
    ) -> Tensor: ...

    @overload
    def fixed_point(
        self, inputs: Iterable[Operand], *, shapes: Iterable[Dims], name: str | None = None
    ) -> tuple[Tensor, ...]: ...

    def fixed_point(
        self,
        inputs: Iterable[Operand],
        shape: Dims | None = None,
        *,
        shapes: Iterable[Dims] | None = None,
        name: str | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """Add an op whose outputs' locations are known whatever its inputs' are."""
        return self._opaque(ops.FixedPoint, inputs, shape, shapes, name)

    def sum_like_reduce(self, x: Operand, shape: Dims, name: str | None = None) -> Tensor:
        """Add the barrier that stands for the layout of a broadcast operand beside ``x``."""
        return self._one(ops.SumLikeReduce, (x,), name, shape=integers(shape))

    def identity(self, x: Operand, name: str | None = None) -> Tensor:
        """Add the same tensor once more."""
        return self._one(ops.Identity, (x,), name)

    def flatten(self, x: Operand, name: str | None = None) -> Tensor:
        """Add all elements in one dimension."""
        return self._one(ops.Flatten, (x,), name)

    def squeeze(self, x: Operand, name: str | None = None) -> Tensor:
        """Add the tensor without its dimensions of size 1."""
        return self._one(ops.Squeeze, (x,), name)

    def reshape(self, x: Operand, shape: Dims, name: str | None = None) -> Tensor:
        """Add the same elements, in row-major order, in another shape."""
        return self._one(ops.Reshape, (x,), name, shape=integers(shape))

    def dim_shuffle(self, x: Operand, permutation: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.transpose(x, permutation)``."""
        return self._one(ops.DimShuffle, (x,), name, permutation=integers(permutation))

    def reverse(self, x: Operand, dims: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.flip(x, dims)``."""
        return self._one(ops.Reverse, (x,), name, dims=integers(dims))

    def slice(self, x: Operand, lower: Dims, upper: Dims, name: str | None = None) -> Tensor:
        """Add the box ``lower[d] <= i < upper[d]`` of ``x``."""
        return self._one(ops.Slice, (x,), name, lower=integers(lower), upper=integers(upper))

    def sub_sample(self, x: Operand, strides: Dims, name: str | None = None) -> Tensor:
        """Add every ``strides[d]``-th index of each dimension, from index 0."""
        return self._one(ops.SubSample, (x,), name, strides=integers(strides))

    def sett_sample(
        self, x: Operand, setts: Iterable[Iterable[Dims]], name: str | None = None
    ) -> Tensor:
        """Add the on-indices of nested stripes ``[on, off, phase]`` of each dimension."""
        nested = tuple(tuple(integers(stripe) for stripe in stripes) for stripes in setts)
        return self._one(ops.SettSample, (x,), name, setts=nested)

    def concat(self, inputs: Iterable[Operand], axis: int, name: str | None = None) -> Tensor:
        """Add tensors one after the other along one dimension."""
        return self._one(ops.Concat, inputs, name, axis=integers([axis])[0])

    def expand(self, x: Operand, shape: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.broadcast_to(x, shape)``."""
        return self._one(ops.Expand, (x,), name, shape=integers(shape))

    def _opaque(
        self,
        cls: type[Op],
        inputs: Iterable[Operand],
        shape: Dims | None,
        shapes: Iterable[Dims] | None,
        name: str | None,
        **attributes: Any,
    ) -> Tensor | tuple[Tensor, ...]:
        one = None if shape is None else integers(shape)
        many = None if shapes is None else tuple(integers(s) for s in shapes)
        outputs = self._all(cls, inputs, name, shape=one, shapes=many, **attributes)
        return outputs[0] if many is None else outputs

    def _one(
        self, cls: type[Op], inputs: Iterable[Operand], name: str | None, **attributes: Any
    ) -> Tensor:
        return self._all(cls, inputs, name, **attributes)[0]

    def _all(
        self, cls: type[Op], inputs: Iterable[Operand], name: str | None, **attributes: Any
    ) -> tuple[Tensor, ...]:
        names = tuple(x if isinstance(x, str) else self.tensor_name(self.number(x)) for x in inputs)
        own = self._free_name(cls) if name is None else name
        return self.add(cls(id=own, inputs=names, **attributes))

    def _free_name(self, cls: type[Op]) -> str:
        tag = str(cls.__struct_config__.tag)
        count = self._counts.get(tag, 0)
        while f"{tag}{count}" in self._number:
            count += 1
        self._counts[tag] = count + 1
        return f"{tag}{count}"


def integers(values: Dims) -> Shape:
    """Return the values as a tuple of Python integers, or say which are none."""
    try:
        return tuple(index(v) for v in values)
    except TypeError:
        raise InputError(f"{values!r} must be integers") from None
