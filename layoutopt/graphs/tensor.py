"""Handles of a graph's tensors, with NumPy's methods, operators and index arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from operator import index as as_int
from typing import Any

from layoutopt.base.errors import InputError, errors_at
from layoutopt.graphs.ops import Kind, Shape, UnwindingOp, dominates, size


class OpSlot:
    """Number of an op in its graph, updated when other ops are removed; -1 for a removed one."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass(frozen=True, eq=False, repr=False)
class Tensor:
    """A handle of one tensor of a graph.

    Two handles are equal if they refer to the same output of the same op of the same graph.
    Methods and operators append ops to that graph and return the handle of the result.  Views
    that would change nothing append no op and return the same handle.

    Parameters
    ----------
    graph
        The :class:`~layoutopt.Graph` that the tensor belongs to.
    slot
        Position of the op that produces the tensor.
    output
        Index of the tensor among the op's outputs.

    Examples
    --------
    >>> from layoutopt import Graph
    >>> x = Graph().sink((4, 6), name="x")
    >>> x[1:3, ::-2].T
    Tensor('dim_shuffle0', [3, 2])
    """

    graph: Any  # a Graph; importing the class here would be circular
    slot: OpSlot
    output: int

    __array_ufunc__ = None  # NumPy defers operators to this class
    __contains__ = None  # otherwise ``y in x`` would slice x into rows

    @property
    def index(self) -> int:
        """The tensor's number, counted in the order of ops and their outputs."""
        if self.slot.number < 0:
            raise InputError("the tensor's op was removed from its graph")
        number: int = self.graph.op_outputs[self.slot.number][self.output]
        return number

    @property
    def name(self) -> str:
        """The tensor's name in files: ``"id"``, or ``"id:1"`` for output 1 of several."""
        return str(self.graph.tensor_name(self.index))

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        shape: Shape = self.graph.shapes[self.index]
        return shape

    @property
    def size(self) -> int:
        """The number of elements."""
        return size(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def op(self) -> UnwindingOp:
        """The op that produces the tensor."""
        op: UnwindingOp = self.graph.op_of(self.index)
        return op

    @property
    def kind(self) -> Kind:
        """The kind of the op that produces the tensor."""
        return self.op.kind

    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions in reverse order: a ``dim_shuffle``."""
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int] | None) -> Tensor:
        """Append a ``dim_shuffle``.

        Parameters
        ----------
        axes
            The permutation, as several integers or one sequence; by default the reverse order.

        Raises
        ------
        InputError
            If it is not a permutation of the dimensions.
        """
        rank = self.ndim
        given = axes[0] if len(axes) == 1 else axes or None
        with self._named():
            order = integers(range(rank)[::-1] if given is None else given)
        same = tuple(from_end(d, rank) for d in order) == tuple(range(rank))
        return self if same else self._new("dim_shuffle", order)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Append a ``dim_shuffle`` that exchanges two dimensions.

        Raises
        ------
        InputError
            If a dimension is out of range.
        """
        order = list(range(self.ndim))
        with self._named():
            i, j = (dimension(axis, self.ndim) for axis in integers((axis1, axis2)))
        order[i], order[j] = j, i
        return self.transpose(order)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """Append a ``reshape``.

        Parameters
        ----------
        shape
            The new shape, as several integers or one sequence.  One size may be -1 and is then
            inferred.

        Raises
        ------
        InputError
            If it has another number of elements.
        """
        with self._named():
            full = filled(integers(shape[0] if len(shape) == 1 else shape), self.shape)
        return self if full == self.shape else self._new("reshape", full)

    def flatten(self) -> Tensor:
        """Append a ``flatten``: all elements in one dimension, in row-major order."""
        return self if self.ndim == 1 else self._new("flatten")

    ravel = flatten

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Tensor:
        """Append a ``squeeze``, or a ``reshape`` if ``axis`` is given.

        Parameters
        ----------
        axis
            The dimensions to remove, each of size 1; by default all such.

        Raises
        ------
        InputError
            If a dimension has another size.
        """
        if axis is None:
            return self._new("squeeze") if 1 in self.shape else self
        with self._named():
            gone = {dimension(d, self.ndim) for d in integers(axis)}
            long = next((d for d in sorted(gone) if self.shape[d] != 1), None)
            if long is not None:
                raise InputError(
                    f"dimension {long} has size {self.shape[long]}; only dimensions of size 1 can "
                    "be squeezed"
                )
        return self.reshape([n for d, n in enumerate(self.shape) if d not in gone])

    def broadcast_to(self, shape: int | Sequence[int]) -> Tensor:
        """Append an ``expand``, as ``numpy.broadcast_to``.

        Raises
        ------
        InputError
            If the tensor does not broadcast to the shape by NumPy's rules.
        """
        with self._named():
            given = integers(shape)
        return self if given == self.shape else self._new("expand", given)

    def __getitem__(self, index: Any) -> Tensor:
        """Apply a basic index of NumPy.

        Appended are, as far as needed, a ``slice``, a ``reverse``, a ``sub_sample`` and a
        ``reshape``.

        Parameters
        ----------
        index
            Integers, which drop their dimension, slices with any step, ``...`` and ``None``.

        Raises
        ------
        InputError
            If the index contains anything else, or an integer out of range.
        """
        with self._named():
            entries = basic(self.shape, index)
        ranges = [range(e, e + 1) if isinstance(e, int) else e for e in entries if e is not None]
        spans = [_span(r, n) for r, n in zip(ranges, self.shape, strict=True)]
        lower, upper, strides = (tuple(span[part] for span in spans) for part in range(3))
        dims = tuple(d for d, (_, _, _, back) in enumerate(spans) if back)
        x = self
        if any(lower) or upper != self.shape:
            x = self.graph.slice(x, lower, upper)
        if dims:
            x = self.graph.reverse(x, dims)
        if any(stride > 1 for stride in strides):
            x = self.graph.sub_sample(x, strides)
        return x.reshape([1 if e is None else len(e) for e in entries if not isinstance(e, int)])

    def __add__(self, other: Tensor) -> Tensor:
        """Append the ``sum_like`` of two tensors; all elementwise operators are alike.

        The output has the locations of the first operand of its shape, and the operands form a
        ValuedPair of value 1 (see :meth:`layoutopt.Graph.sum_like`).  If neither operand has the
        output's shape, a ``barrier`` is appended.
        """
        if not isinstance(other, Tensor):
            return NotImplemented
        alike = [dominates(self.shape, other.shape), dominates(other.shape, self.shape)]
        layout = alike.index(True) if any(alike) else ()
        total: Tensor = self.graph.sum_like([self, other], 1, unwindable=layout)
        return total

    __sub__ = __mul__ = __truediv__ = __add__

    def __len__(self) -> int:
        """Return the size of the first dimension."""
        if not self.shape:
            raise InputError(f"{self.name!r} has rank 0, so that it has no length and no rows")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        """Return an iterator over ``x[0]``, ``x[1]``, ..., each appended when reached."""
        return map(self.__getitem__, range(len(self)))

    def __bool__(self) -> bool:
        """Return True for every tensor, also an empty one."""
        return True

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise InputError: a handle has no values to make an array of."""
        raise InputError(f"{self.name!r} is a handle of a tensor and has no values")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        return self.slot is other.slot and self.output == other.output

    def __hash__(self) -> int:
        return hash((id(self.slot), self.output))

    def __repr__(self) -> str:
        if self.slot.number < 0:
            return f"{type(self).__name__}(removed)"
        return f"{type(self).__name__}({self.name!r}, {list(self.shape)})"

    def _new(self, method: str, *arguments: Any) -> Tensor:
        """Append an op with this tensor as its only input."""
        result: Tensor = getattr(self.graph, method)(self, *arguments)
        return result

    def _named(self) -> errors_at:
        """Add the tensor's name to errors of index arithmetic."""
        return errors_at(described(self))


def described(x: Tensor) -> str:
    """Return what errors call a tensor."""
    return f"{x.name!r} {list(x.shape)}"


def integers(values: Any) -> Shape:
    """Return one integer, or several, as a tuple of Python integers."""
    try:
        if isinstance(values, Integral):
            return (as_int(values),)
        if isinstance(values, Tensor):  # iteration would slice it into rows
            raise TypeError
        return tuple(map(as_int, values))
    except TypeError:
        raise InputError(f"{values!r} must be integers") from None


def from_end(dim: int, rank: int) -> int:
    """Return a dimension counted from the start; one out of range is returned unchanged."""
    return dim + rank if -rank <= dim < 0 else dim


def dimension(dim: int, rank: int) -> int:
    """Return a dimension counted from the start, which must be in range."""
    found = from_end(dim, rank)
    if not 0 <= found < rank:
        raise InputError(f"there is no dimension {dim} in a tensor of rank {rank}")
    return found


def filled(shape: Shape, before: Shape) -> Shape:
    """Return the shape of a reshape with its -1, if any, replaced by the inferred size."""
    if -1 not in shape or min(shape) < -1:  # the op refuses the latter
        return shape
    others = prod(d for d in shape if d != -1)
    if shape.count(-1) > 1 or not others or size(before) % others:
        raise InputError(f"no size fits the -1 in shape {list(shape)} for {size(before)} elements")
    return tuple(size(before) // others if d == -1 else d for d in shape)


def _span(r: range, n: int) -> tuple[int, int, int, bool]:
    """Return bounds, stride and direction of the box that a range samples.

    The box is extended to the ends of the dimension where this does not change the samples.
    """
    if len(r) < 2:
        low = r[0] if r else 0
        return low, low + len(r), 1, False
    stride = abs(r.step)
    if r.step > 0:
        return r[0], n if r[-1] + stride >= n else r[-1] + 1, stride, False
    return r[-1] if r[-1] >= stride else 0, r[0] + 1, stride, True


def basic(shape: Shape, index: Any) -> list[range | int | None]:
    """Return the entries of a basic index, of integers, slices, ``...`` and ``None``.

    For each dimension they are the indices that a slice selects, or one non-negative integer;
    between them is ``None`` for each new dimension.
    """
    given = index if isinstance(index, tuple) else (index,)
    dots = [i for i, entry in enumerate(given) if entry is Ellipsis]
    if len(dots) > 1:
        raise InputError("an index can have only one '...'")
    used = sum(entry is not None and entry is not Ellipsis for entry in given)
    if used > len(shape):
        raise InputError(f"{used} indices for {len(shape)} dimensions")
    at = dots[0] if dots else len(given)
    rest = [slice(None)] * (len(shape) - used)
    dims = iter(enumerate(shape))
    every = [*given[:at], *rest, *given[at + 1 :]]
    return [None if entry is None else _entry(entry, *next(dims)) for entry in every]


def _entry(entry: Any, d: int, n: int) -> range | int:
    if isinstance(entry, slice):
        try:
            return range(*entry.indices(n))
        except (TypeError, ValueError) as error:
            raise InputError(f"dimension {d}: {error}") from None
    if isinstance(entry, bool) or not isinstance(entry, Integral):
        kind = type(entry).__name__
        raise InputError(f"an index must consist of integers, slices, '...' and None, not {kind}")
    i = int(entry)
    if not -n <= i < n:
        raise InputError(f"index {i} is out of range for dimension {d}, of size {n}")
    return i % n
