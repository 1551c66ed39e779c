"""Graph builder with one method per op; each adds that op only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from numbers import Integral
from operator import index
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, overload

from layoutopt.base.errors import InputError, errors_at
from layoutopt.graphs import ops
from layoutopt.graphs.ops import Shape, UnwindingOp, type_name
from layoutopt.graphs.store import GraphStore
from layoutopt.graphs.tensor import Tensor, dimension, filled, from_end, integers

Item = TypeVar("Item")


def listed(name: str, given: Iterable[Item]) -> list[Item]:
    """Return an argument as a list of items; a single tensor or name is refused."""
    single = isinstance(given, str | Tensor) or getattr(given, "shape", None) == ()
    if single or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list, not one {type(given).__name__}")
    return list(given)


def one_each(
    name: str, given: Iterable[Item] | None, default: Item, count: int, things: str
) -> list[Item]:
    """Return one entry for each of ``count`` things: the given ones, or the default for all."""
    if given is None:
        return [default] * count
    entries = listed(name, given)
    if len(entries) != count:
        raise InputError(f"{name} has {len(entries)} entries for {count} {things}")
    return entries


def part_name(name: str | None, role: str) -> str | None:
    """Return the name of an op that a helper adds for the op of a name, if any."""
    return None if name is None else f"{name}.{role}"


Arguments = ParamSpec("Arguments")
Added = TypeVar("Added")


def all_or_nothing(
    helper: Callable[Concatenate[Builder, Arguments], Added],
) -> Callable[Concatenate[Builder, Arguments], Added]:
    """Make a helper remove the ops and pairs that it added if it raises an error."""

    @wraps(helper)
    def whole(graph: Builder, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Added:
        ops, pairs = len(graph.ops), len(graph.pairs)
        try:
            return helper(graph, *args, **kwargs)
        except Exception:  # raised again below
            graph.truncate(ops, pairs)
            raise

    return whole


Operand: TypeAlias = Tensor | str
Dims: TypeAlias = int | Iterable[int]
"""Integers, one for each dimension; a single integer is a list of one."""


class Builder(GraphStore):
    """A store of ops with one method per op type; see :class:`layoutopt.Graph`."""

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
            One location per element in row-major order, or an array of the tensor's shape; equal
            integers or strings are the same location, across all sources.  By default all
            elements have different locations.
        rule
            A tile mapping by name; ignored in graphs without a tile memory.
        """
        if not (rule is None or isinstance(rule, Mapping)):
            raise InputError(f"rule must be a dictionary, not {type(rule).__name__}")
        how = None if rule is None else deepcopy(dict(rule))
        places, sizes = None, integers(shape)
        if mapping is not None:
            array: Any = mapping
            flat = array.ravel() if getattr(array, "shape", None) == sizes else array
            given = listed("mapping", flat)
            try:
                places = tuple(str(x) if isinstance(x, str) else index(x) for x in given)
            except TypeError:
                raise InputError("mapping must contain one integer or string per element") from None
        return self._one(ops.Source, (), name, shape=sizes, mapping=places, rule=how)

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
        """Add an opaque op: its outputs' locations are known once those of all inputs are.

        Parameters
        ----------
        shape
            Shape of the only output.
        shapes
            Shapes of several outputs, whose locations become known together; a tuple is returned.
        hook
            Name of the function that computes the outputs' tiles on a tile memory.
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
        """Add an op whose outputs' locations do not depend on its inputs'."""
        return self._opaque(ops.FixedPoint, inputs, shape, shapes, name)

    def sum_like_reduce(self, x: Operand, shape: Dims, name: str | None = None) -> Tensor:
        """Add a barrier: the layout of a broadcast operand, derived from that of ``x``."""
        return self._one(ops.SumLikeReduce, (x,), name, shape=integers(shape))

    def unpaired_sum_like(
        self, inputs: Iterable[Operand], unwindable: Dims, name: str | None = None
    ) -> Tensor:
        """Add an elementwise op without the pairs that :meth:`Graph.sum_like` adds."""
        return self._one(
            ops.SumLike, listed("inputs", inputs), name, unwindable_inputs=integers(unwindable)
        )

    def identity(self, x: Operand, name: str | None = None) -> Tensor:
        """Add a view of all elements, unchanged."""
        return self._one(ops.Identity, (x,), name)

    def flatten(self, x: Operand, name: str | None = None) -> Tensor:
        """Add all elements in one dimension, in row-major order."""
        return self._one(ops.Flatten, (x,), name)

    def squeeze(self, x: Operand, name: str | None = None) -> Tensor:
        """Add the tensor without its dimensions of size 1."""
        return self._one(ops.Squeeze, (x,), name)

    def reshape(self, x: Operand, shape: Dims, name: str | None = None) -> Tensor:
        """Add the same elements, in row-major order, in another shape.

        Parameters
        ----------
        shape
            The new shape; one dimension may be -1 and is then inferred.
        """
        after = integers(shape)
        if -1 in after:
            before = self.tensor(x)
            with errors_at(f"reshape of {before.name!r}"):
                after = filled(after, before.shape)
        return self._one(ops.Reshape, (x,), name, shape=after)

    def dim_shuffle(self, x: Operand, permutation: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.transpose(x, permutation)``."""
        order = self._dims(x, permutation)
        return self._one(ops.DimShuffle, (x,), name, permutation=order)

    def reverse(self, x: Operand, dims: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.flip(x, dims)``."""
        return self._one(ops.Reverse, (x,), name, dims=self._dims(x, dims))

    def slice(
        self, x: Operand, lower: Dims, upper: Dims, dim: int | None = None, name: str | None = None
    ) -> Tensor:
        """Add the box ``lower[d] <= i < upper[d]`` of ``x``.

        Parameters
        ----------
        lower, upper
            Bounds for every dimension, or two integers for one dimension.
        dim
            The dimension of integer bounds, by default 0.
        """
        if isinstance(lower, Integral) != isinstance(upper, Integral):
            both = f"lower {lower!r} and upper {upper!r}"
            raise InputError(f"slice: {both} must both be integers, or both lists")
        if isinstance(lower, Integral):
            before, d = self.tensor(x), 0 if dim is None else dim
            lower = _alone("slice", before, d, lower, [0] * before.ndim)
            upper = _alone("slice", before, d, upper, before.shape)
        elif dim is not None:
            raise InputError("slice: dim requires integer bounds, not lists of bounds")
        return self._one(ops.Slice, (x,), name, lower=integers(lower), upper=integers(upper))

    def sub_sample(
        self, x: Operand, strides: Dims, dim: int | None = None, name: str | None = None
    ) -> Tensor:
        """Add every ``strides[d]``-th index of each dimension, from index 0.

        Parameters
        ----------
        strides
            A stride for every dimension, or an integer for one.
        dim
            The dimension of an integer stride.
        """
        if isinstance(strides, Integral) != (dim is not None):
            raise InputError("sub_sample: give an integer with dim, or a list without dim")
        if dim is not None:
            before = self.tensor(x)
            strides = _alone("sub_sample", before, dim, strides, [1] * before.ndim)
        return self._one(ops.SubSample, (x,), name, strides=integers(strides))

    def sett_sample(
        self, x: Operand, setts: Iterable[Iterable[Dims]], name: str | None = None
    ) -> Tensor:
        """Add the elements at the on-indices of nested stripes of each dimension.

        Parameters
        ----------
        setts
            For each dimension a list of stripes ``[on, off, phase]``, outermost first, each
            nested in the on-runs of the one before.  An empty list keeps all indices.
        """
        given = [listed("a dimension's setts", stripes) for stripes in listed("setts", setts)]
        nested = tuple(tuple(map(integers, stripes)) for stripes in given)
        return self._one(ops.SettSample, (x,), name, setts=nested)

    def concat(self, inputs: Iterable[Operand], axis: int, name: str | None = None) -> Tensor:
        """Add the concatenation of tensors along one dimension."""
        operands, [along] = listed("inputs", inputs), integers([axis])
        if operands:
            [along] = self._dims(operands[0], [along])
        return self._one(ops.Concat, operands, name, axis=along)

    def expand(self, x: Operand, shape: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.broadcast_to(x, shape)``."""
        return self._one(ops.Expand, (x,), name, shape=integers(shape))

    def _opaque(
        self,
        cls: type[UnwindingOp],
        inputs: Iterable[Operand],
        shape: Dims | None,
        shapes: Iterable[Dims] | None,
        name: str | None,
        **attributes: Any,
    ) -> Tensor | tuple[Tensor, ...]:
        one = None if shape is None else integers(shape)
        many = None if shapes is None else tuple(map(integers, listed("shapes", shapes)))
        operands = listed("inputs", inputs)
        outputs = self._all(cls, operands, name, shape=one, shapes=many, **attributes)
        return outputs[0] if many is None else outputs

    def _one(
        self, cls: type[UnwindingOp], inputs: Iterable[Operand], name: str | None, **attributes: Any
    ) -> Tensor:
        return self._all(cls, inputs, name, **attributes)[0]

    def _all(
        self, cls: type[UnwindingOp], inputs: Iterable[Operand], name: str | None, **attributes: Any
    ) -> tuple[Tensor, ...]:
        own = self._free_name(cls) if name is None else name
        operands = self._operands(inputs, own, type_name(cls))
        names = tuple(map(self.tensor_name, operands))
        return self._append(cls(id=own, inputs=names, **attributes), operands)

    def _dims(self, x: Operand, dims: Dims) -> Shape:
        """Return dimensions of a tensor as non-negative integers."""
        given = integers(dims)
        if all(d >= 0 for d in given):
            return given
        rank = self.tensor(x).ndim
        return tuple(from_end(d, rank) for d in given)

    def _free_name(self, cls: type[UnwindingOp]) -> str:
        tag = type_name(cls)
        count = self._counts.get(tag, 0)
        while (name := f"{tag}{count}") in self._number:
            count += 1
        self._counts[tag] = count
        return name


def _alone(title: str, x: Tensor, dim: int, value: Any, others: Sequence[int]) -> list[Any]:
    """Return a number per dimension: ``value`` for ``dim``, else that of ``others``."""
    [d] = integers([dim])
    with errors_at(f"{title} of {x.name!r}"):
        d = dimension(d, x.ndim)
    return [*others[:d], value, *others[d + 1 :]]
