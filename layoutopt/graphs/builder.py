"""Graph builder with one method per op; each adds that op only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy as shallow
from copy import deepcopy
from decimal import Decimal
from functools import wraps
from numbers import Integral
from operator import index
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar, overload

from msgspec.structs import replace

from layoutopt.base.errors import InputError
from layoutopt.graphs import ops
from layoutopt.graphs.indexing import dimension, filled, from_end
from layoutopt.graphs.ops import OpError, Shape, UnwindingOp
from layoutopt.graphs.store import GraphStore, ValuedPair
from layoutopt.graphs.tensor import OpSlot, Tensor

Item = TypeVar("Item")


def listed(name: str, given: Iterable[Item]) -> list[Item]:
    """Return an argument as a list of items.

    A single tensor or name is refused.
    """
    if isinstance(given, str | Tensor) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list, not one {type(given).__name__}")
    return list(given)


def integers(values: Any) -> Shape:
    """Return one or more integers as a tuple of Python integers."""
    try:
        if isinstance(values, Integral):
            return (index(values),)
        if isinstance(values, Tensor):  # iteration would slice it into rows
            raise TypeError
        return tuple(map(index, values))
    except TypeError:
        raise InputError(f"{values!r} must be integers") from None


def places(mapping: Iterable[Any]) -> tuple[int | str, ...]:
    """Return the locations of a mapping as Python integers and strings."""
    given = listed("mapping", mapping)
    try:
        return tuple(str(where) if isinstance(where, str) else index(where) for where in given)
    except TypeError:
        raise InputError("mapping must contain one integer or string per element") from None


def one_each(
    name: str, given: Iterable[Item] | None, default: Item, count: int, things: str
) -> list[Item]:
    """Return one entry for each of ``count`` things: the given ones, or the default for all.

    Parameters
    ----------
    things
        Their plural noun in errors.
    """
    if given is None:
        return [default] * count
    entries = listed(name, given)
    if len(entries) != count:
        raise InputError(f"{name} has {len(entries)} entries for {count} {things}")
    return entries


def part_name(name: str | None, role: str) -> str | None:
    """Return the name of an op that a helper adds for the op of the given name, if any."""
    return None if name is None else f"{name}.{role}"


CACHES = ("_readers", "_pairs_of", "_known_ops", "_known_pairs")
"""Attributes that copies do not share; the shared ones are never changed in place."""


class Editor(GraphStore):
    """A store of ops that can be removed, renamed and copied; see :class:`layoutopt.Graph`."""

    def remove(self, *which: Tensor | str) -> None:
        """Remove ops, all their outputs, and the ValuedPairs of these outputs.

        Handles of other tensors remain valid; using handles of removed ones raises an error.

        Parameters
        ----------
        which
            Names of ops, or handles of an output of each.

        Raises
        ------
        InputError
            If a remaining op reads an output; nothing is removed then.
        """
        gone = {self.op_number(one) for one in which}
        for t in (t for i in sorted(gone) for t in self.op_outputs[i]):
            reader = next((i for i, _ in self._readers_of(t) if i not in gone), None)
            if reader is not None:
                name, other = self.tensor_name(t), self.ops[reader].id
                raise InputError(f"{name!r} is read by op {other!r}; remove that op too")
        for i in gone:
            self._slots[i].number = -1
        kept = [i for i in range(len(self.ops)) if i not in gone]
        place = {t: n for n, t in enumerate(t for i in kept for t in self.op_outputs[i])}
        self.shapes = [self.shapes[t] for t in place]
        self.op_inputs = [tuple(place[t] for t in self.op_inputs[i]) for i in kept]
        self.op_outputs = [_moved(self.op_outputs[i], place) for i in kept]
        self.ops = [self.ops[i] for i in kept]
        self._slots = [self._slots[i] for i in kept]
        for n, slot in enumerate(self._slots):
            slot.number = n
        self.pairs = [
            (place[a], place[b], value) for a, b, value in self.pairs if a in place and b in place
        ]
        self.producers = [n for n, outputs in enumerate(self.op_outputs) for _ in outputs]
        self._number = {op.id: n for n, op in enumerate(self.ops)}
        self._forget()

    def truncate(self, ops: int, pairs: int) -> None:
        """Keep only the first ``ops`` ops and ``pairs`` ValuedPairs."""
        self.pairs = self.pairs[:pairs]
        self.remove(*(op.id for op in self.ops[ops:]))

    def remove_pairs(self, a: Tensor | str, b: Tensor | str) -> tuple[ValuedPair, ...]:
        """Remove every ValuedPair of two tensors, and return them.

        Raises
        ------
        InputError
            If there is no such pair.
        """
        ends = {self.number(a), self.number(b)}
        gone = [pair for pair in self.pairs if {pair[0], pair[1]} == ends]
        if not gone:
            names = f"{self.tensor(a).name!r} and {self.tensor(b).name!r}"
            raise InputError(f"there is no valued pair of {names}")
        self.pairs = [pair for pair in self.pairs if {pair[0], pair[1]} != ends]
        self._forget()
        return tuple(ValuedPair(self.handle(x), self.handle(y), value) for x, y, value in gone)

    def rename(self, which: Tensor | str, name: str) -> None:
        """Give an op another name.

        Parameters
        ----------
        which
            The op's name, or a handle of an output.

        Raises
        ------
        InputError
            If the name is empty or taken.
        """
        i = self.op_number(which)
        old = self.ops[i].id
        if name == old:
            return
        del self._number[old]
        try:
            self._check_name(name, len(self.op_outputs[i]))
        except OpError as error:
            self._number[old] = i
            raise InputError(f"op {old!r} cannot be named {name!r}: {error}") from None
        self._number[name] = i
        self.ops[i] = replace(self.ops[i], id=name)
        for j in {j for t in self.op_outputs[i] for j, _ in self._readers_of(t)}:
            names = tuple(map(self.tensor_name, self.op_inputs[j]))
            self.ops[j] = replace(self.ops[j], inputs=names)

    def copy(self) -> Self:
        """Return an independent copy of the graph, with handles of its own."""
        return deepcopy(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self)()
        slots = [OpSlot(n) for n in range(len(self.ops))]
        memo.update(zip(map(id, self._slots), slots, strict=True))  # for handles copied with it
        own = {name: held for name, held in vars(self).items() if name not in CACHES}
        vars(other).update({name: shallow(held) for name, held in own.items()}, _slots=slots)
        return other


def _moved(outputs: range, place: dict[int, int]) -> range:
    first = place[outputs[0]] if outputs else 0
    return range(first, first + len(outputs))


Arguments = ParamSpec("Arguments")
Added = TypeVar("Added")


def all_or_nothing(
    helper: Callable[Concatenate[Builder, Arguments], Added],
) -> Callable[Concatenate[Builder, Arguments], Added]:
    """Make a helper remove the ops and pairs that it added if it raises an error.

    Parameters
    ----------
    helper
        A function whose first argument is a graph.
    """

    @wraps(helper)
    def whole(graph: Builder, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Added:
        ops, pairs = len(graph.ops), len(graph.pairs)
        try:
            return helper(graph, *args, **kwargs)
        except Exception:  # raised again below
            graph.truncate(ops, pairs)
            raise

    return whole


Value: TypeAlias = float | Decimal | str
Operand: TypeAlias = Tensor | str
Dims: TypeAlias = int | Iterable[int]
"""Integers, one for each dimension; a single integer is a list of one."""


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
            One location per element in row-major order; equal integers or strings are the same
            location, across all sources.  By default all elements have different locations.
        rule
            A tile mapping by name; ignored in graphs without a tile memory.
        """
        if not (rule is None or isinstance(rule, Mapping)):
            raise InputError(f"rule must be a dictionary, not {type(rule).__name__}")
        where = None if mapping is None else places(mapping)
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
        return self._one(ops.SumLike, inputs, name, unwindable_inputs=integers(unwindable))

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
            try:
                after = filled(after, before.shape)
            except OpError as error:
                raise InputError(f"reshape of {before.name!r}: {error}") from None
        return self._one(ops.Reshape, (x,), name, shape=after)

    def dim_shuffle(self, x: Operand, permutation: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.transpose(x, permutation)``."""
        order = self._dims(x, permutation)
        return self._one(ops.DimShuffle, (x,), name, permutation=order)

    def reverse(self, x: Operand, dims: Dims, name: str | None = None) -> Tensor:
        """Add ``numpy.flip(x, dims)``."""
        return self._one(ops.Reverse, (x,), name, dims=self._dims(x, dims))

    def slice(
        self,
        x: Operand,
        lower: Dims,
        upper: Dims,
        dim: int | None = None,
        name: str | None = None,
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
        operands = self._operands(inputs, own, str(cls.__struct_config__.tag))
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
        tag = str(cls.__struct_config__.tag)
        count = self._counts.get(tag, 0)
        while (name := f"{tag}{count}") in self._number:
            count += 1
        self._counts[tag] = count
        return name


def _alone(title: str, x: Tensor, dim: int, value: Any, others: Sequence[int]) -> list[Any]:
    """Return a number per dimension: ``value`` for ``dim``, else that of ``others``."""
    try:
        d = dimension(integers([dim])[0], x.ndim)
    except OpError as error:
        raise InputError(f"{title} of {x.name!r}: {error}") from None
    return [*others[:d], value, *others[d + 1 :]]
