"""Interface of frameworks in which layouts are implemented."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar

from layoutopt.graphs.ops import Shape

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
