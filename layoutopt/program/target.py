"""Targets of programs: the interface of frameworks, and arrays of NumPy as an example."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from layoutopt.base.errors import InputError
from layoutopt.graphs.ops import Shape, Source, pick
from layoutopt.graphs.store import GraphStore

Handle = TypeVar("Handle")  # a target's representation of tensors, opaque to this package


class Views(Protocol[Handle]):
    """Views of tensors, with NumPy's meaning.

    A view has the elements of ``x`` at the time of the call; it need not reflect later changes of
    ``x``.  Some views must also be *windows*: copying into one changes the tensor itself.  Windows
    are made of created tensors, by these views in this order:

    1. :meth:`reshape` of the whole tensor to one dimension;
    2. for each resulting dimension a :meth:`slice` of the last dimension, a :meth:`reshape` that
       splits the last dimension in two, and a :meth:`sub_sample` of one dimension, as far as
       needed;
    3. :meth:`reverse` and :meth:`dim_shuffle`.

    NumPy's views satisfy this without copies.
    """

    def reshape(self, x: Handle, shape: Shape) -> Handle:
        """Return ``x.reshape(shape)``, in row-major order."""

    def dim_shuffle(self, x: Handle, permutation: Sequence[int]) -> Handle:
        """Return ``x.transpose(permutation)``."""

    def reverse(self, x: Handle, dims: Sequence[int]) -> Handle:
        """Return ``numpy.flip(x, dims)``."""

    def slice(self, x: Handle, lower: Sequence[int], upper: Sequence[int]) -> Handle:
        """Return the box ``lower[d] <= i < upper[d]``, one bound for each dimension."""

    def sub_sample(self, x: Handle, strides: Sequence[int]) -> Handle:
        """Return every ``strides[d]``-th index of each dimension ``d``, from index 0."""

    def concat(self, xs: Sequence[Handle], axis: int) -> Handle:
        """Return ``numpy.concatenate(xs, axis)``; need not be a window."""

    def expand(self, x: Handle, shape: Shape) -> Handle:
        """Return ``numpy.broadcast_to(x, shape)``; need not be a window."""


class Target(Views[Handle], Protocol[Handle]):
    """A framework in which layouts are implemented.

    :func:`~layoutopt.lower` calls :meth:`run`, :meth:`barrier` and :meth:`copy` in the
    order of the schedule, and :meth:`create`, :meth:`own` and :meth:`placeholder` when their
    tensors are first needed.
    """

    def run(self, op: Hashable) -> None:
        """Run one of the framework's ops, after the sinks that it creates have been placed."""

    def create(self, name: str, shape: Shape) -> Handle:
        """Return a sink whose locations are unset; called once for each."""

    def own(self, name: str, shape: Shape) -> Handle:
        """Return the own locations of a tensor; called at most once for each.

        Those of a source or an output of a fixed point are given; equal entries of ``mapping``
        are one location.  Those of a sink are fresh locations that the target chooses.
        """

    def barrier(
        self, name: str, inputs: Sequence[Handle], shapes: Sequence[Shape]
    ) -> Sequence[Handle]:
        """Return the final locations of a barrier's outputs; called at most once for each.

        Parameters
        ----------
        name
            The barrier op's name.
        inputs
            Its inputs, whose locations are all known.
        shapes
            The shapes of its outputs.
        """

    def placeholder(self, shape: Shape) -> Handle:
        """Return a tensor whose elements are never read.

        It replaces an operand of a view that does not exist yet, when only elements of other
        operands are selected.
        """

    def copy(self, source: Handle, destination: Handle) -> None:
        """Copy the locations of a source to a window of the same shape.

        All locations of the source are known, and no element is set twice.
        """


Numbers: TypeAlias = NDArray[np.int64]  # the number of each element's location, -1 if unset


class NumpyTarget(Target[Numbers]):
    """A target whose tensors are arrays of location numbers; equal numbers are one location.

    Ops are not run.  Reading unset locations, and setting locations twice, is an error.

    Parameters
    ----------
    graph
        The graph, of which only mappings of sources are used.

    Attributes
    ----------
    layouts
        The locations of each created sink, by name.
    roots
        The own locations of tensors requested so far, by name.
    outputs
        The locations of outputs of known barriers, by the op's name.

    Examples
    --------
    >>> import layoutopt as lo
    >>> graph = lo.Graph()
    >>> x, target = graph.sink((2,), name="x"), graph.source((2,), name="target")
    >>> pair = graph.valued_pair(graph.reverse(x, (0,)), target, 1)
    >>> arrays = lo.NumpyTarget(graph)
    >>> sinks = lo.lower(lo.schedule(graph, lo.unwind(graph)), arrays)
    >>> arrays.layouts["x"].tolist(), arrays.roots["target"].tolist()
    ([1, 0], [0, 1])
    """

    def __init__(self, graph: GraphStore) -> None:
        self.graph = graph
        self.layouts: dict[str, Numbers] = {}
        self.roots: dict[str, Numbers] = {}
        self.outputs: dict[str, list[Numbers]] = {}
        self._shared: dict[int | str, int] = {}
        self._count = 0

    def run(self, op: Hashable) -> None:
        """Do nothing."""

    def create(self, name: str, shape: Shape) -> Numbers:
        """Return a sink whose locations are unset."""
        self.layouts[name] = np.full(shape, -1, np.int64)
        return self.layouts[name]

    def own(self, name: str, shape: Shape) -> Numbers:
        """Return the own locations of a tensor, the same in every call."""
        if name not in self.roots:
            op = self.graph.op_of(self.graph.number(name))
            if isinstance(op, Source) and op.mapping is not None:
                self.roots[name] = self._mapped(op.mapping, shape)
            else:
                self.roots[name] = self._fresh(shape)
        return self.roots[name]

    def barrier(
        self, name: str, inputs: Sequence[Numbers], shapes: Sequence[Shape]
    ) -> list[Numbers]:
        """Return new locations for a barrier's outputs.

        Raises
        ------
        InputError
            If a location of the inputs is unset.
        """
        for i, array in enumerate(inputs):
            if (array < 0).any():
                raise InputError(f"barrier {name!r}: input {i} has elements without a location")
        self.outputs[name] = [self._fresh(shape) for shape in shapes]
        return self.outputs[name]

    def placeholder(self, shape: Shape) -> Numbers:
        """Return a tensor without locations."""
        return np.full(shape, -1, np.int64)

    def copy(self, source: Numbers, destination: Numbers) -> None:
        """Copy the locations of a source to a window.

        Raises
        ------
        InputError
            If the shapes differ, a location of the source is unset, or one of the window is set.
        """
        if source.shape != destination.shape:
            shapes = f"{list(source.shape)} and {list(destination.shape)}"
            raise InputError(f"copy: source and destination have shapes {shapes}")
        if (source < 0).any():
            raise InputError("copy: the source has elements without a location")
        if (destination >= 0).any():
            raise InputError("copy: the destination has elements whose location is set already")
        destination[...] = source

    def reshape(self, x: Numbers, shape: Shape) -> Numbers:
        """Return ``numpy.reshape(x, shape)``."""
        return np.reshape(x, shape)

    def dim_shuffle(self, x: Numbers, permutation: Sequence[int]) -> Numbers:
        """Return ``numpy.transpose(x, permutation)``."""
        return np.transpose(x, permutation)

    def reverse(self, x: Numbers, dims: Sequence[int]) -> Numbers:
        """Return ``numpy.flip(x, dims)``."""
        return np.flip(x, tuple(dims))

    def slice(self, x: Numbers, lower: Sequence[int], upper: Sequence[int]) -> Numbers:
        """Return ``x[lower[0]:upper[0], lower[1]:upper[1], ...]``."""
        return pick(x, map(slice, lower, upper))

    def sub_sample(self, x: Numbers, strides: Sequence[int]) -> Numbers:
        """Return ``x[::strides[0], ::strides[1], ...]``."""
        return pick(x, [slice(None, None, stride) for stride in strides])

    def concat(self, xs: Sequence[Numbers], axis: int) -> Numbers:
        """Return ``numpy.concatenate(xs, axis)``."""
        return np.concatenate(xs, axis)

    def expand(self, x: Numbers, shape: Shape) -> Numbers:
        """Return ``numpy.broadcast_to(x, shape)``."""
        return np.broadcast_to(x, shape)

    def _fresh(self, shape: Shape) -> Numbers:
        start = self._count
        self._count += prod(shape)
        return np.arange(start, self._count).reshape(shape)

    def _mapped(self, mapping: Sequence[int | str], shape: Shape) -> Numbers:
        """Return one number for each distinct entry of all mappings."""
        for where in mapping:
            if where not in self._shared:
                self._shared[where] = self._count
                self._count += 1
        numbers = [self._shared[where] for where in mapping]
        return np.array(numbers, np.int64).reshape(shape)
