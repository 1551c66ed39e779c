"""Interface of a framework in which layouts are carried out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar

from layoutopt.graphs.ops import Shape

Handle = TypeVar("Handle")
"""Whatever a target stands for tensors with; only the target ever looks inside."""


class Views(Protocol[Handle]):
    """Views of tensors, with NumPy's meaning.

    A view shows the elements that ``x`` has when the view is taken; later changes of ``x``
    need not show.  One kind of view must be a *window* as well: what is copied into it
    becomes what the tensor itself holds.  Windows are taken of created tensors, by these views
    in this order:

    1. :meth:`reshape` of the whole tensor to one dimension;
    2. for each dimension wanted a :meth:`slice` of the last dimension, a :meth:`reshape` that
       splits the last dimension in two, and a :meth:`sub_sample` of one dimension; each of
       them only where it changes something;
    3. :meth:`reverse` and :meth:`dim_shuffle`.

    NumPy's views do all this without a copy.
    """

    def reshape(self, x: Handle, shape: Shape) -> Handle:
        """Return the elements in row-major order in another shape: ``x.reshape(shape)``."""
        ...

    def dim_shuffle(self, x: Handle, permutation: Sequence[int]) -> Handle:
        """Return the dimensions in another order: ``x.transpose(permutation)``."""
        ...

    def reverse(self, x: Handle, dims: Sequence[int]) -> Handle:
        """Return some dimensions backwards: ``numpy.flip(x, dims)``."""
        ...

    def slice(self, x: Handle, lower: Sequence[int], upper: Sequence[int]) -> Handle:
        """Return the box ``lower[d] <= i < upper[d]``, one bound for each dimension."""
        ...

    def sub_sample(self, x: Handle, strides: Sequence[int]) -> Handle:
        """Return every ``strides[d]``-th index of each dimension ``d``, from index 0."""
        ...

    def concat(self, xs: Sequence[Handle], axis: int) -> Handle:
        """Return tensors one after the other: ``numpy.concatenate(xs, axis)``; no window."""
        ...

    def expand(self, x: Handle, shape: Shape) -> Handle:
        """Return ``numpy.broadcast_to(x, shape)``; no window."""
        ...


class Target(Views[Handle], Protocol[Handle]):
    """A framework, or anything else that layouts are carried out in.

    :func:`~layoutopt.lower` calls :meth:`run`, :meth:`barrier` and :meth:`copy` in the
    order of the schedule, and :meth:`create`, :meth:`own` and :meth:`placeholder` when their
    tensors are first needed.
    """

    def run(self, op: Hashable) -> None:
        """Run one of the framework's own ops, as the schedule names it.

        Every sink that the op creates has all its locations by then.
        """
        ...

    def create(self, name: str, shape: Shape) -> Handle:
        """Return a sink whose elements have no locations yet; called once for each."""
        ...

    def own(self, name: str, shape: Shape) -> Handle:
        """Return the locations that a tensor has of its own; called at most once for each.

        Of a source or an output of a fixed point these are the given ones; equal entries of
        ``mapping`` are one location.  For a sink they are fresh ones that the target chooses.
        """
        ...

    def barrier(
        self, name: str, inputs: Sequence[Handle], shapes: Sequence[Shape]
    ) -> Sequence[Handle]:
        """Return the final locations of a barrier's outputs; called at most once for each.

        Parameters
        ----------
        name
            The barrier op's name.
        inputs
            Its inputs, all elements of which have their locations.
        shapes
            The shapes of its outputs.
        """
        ...

    def placeholder(self, shape: Shape) -> Handle:
        """Return a tensor without locations, of which no element will ever be read.

        It stands in where a view has an operand that is not there yet, and the elements
        wanted come from other operands.
        """
        ...

    def copy(self, source: Handle, destination: Handle) -> None:
        """Let the elements of a window take the locations of a source of the same shape.

        All locations of the source are known, and no element is set twice.
        """
        ...
