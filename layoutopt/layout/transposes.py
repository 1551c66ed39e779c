"""The two ways of a framework's transpose: in what travels with a tensor, or in its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from layoutopt.layout.descriptor import Descriptor
from layoutopt.layout.permutations import (
    Permutation,
    checked,
    compose,
    framework_shape,
    inverse,
)


@dataclass(frozen=True)
class Transposed:
    """A tensor that a framework has transposed.

    Parameters
    ----------
    descriptor
        The tensor as the library sees it.
    permutation
        Where the framework's shape has each of the library's axes.
    moves_bytes
        Whether elements had to be copied to other places.
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

    Parameters
    ----------
    descriptor
        The tensor as the library sees it.
    permutation
        Where the framework's shape has each of the library's axes.
    axes
        The framework's axes in their new order, as in NumPy's ``transpose``.

    Raises
    ------
    LayoutError
        If the ranks differ, or one of the two is no permutation.

    Notes
    -----
    The RFC's first option (section 4.1).  It also swaps the format, ``ab`` to ``ba``, and then
    copies the buffer byte by byte; of the two changes one is enough, with both the elements
    would be in the wrong places.
    """
    at = checked(permutation, descriptor.rank)
    return Transposed(descriptor, compose(inverse(axes), at), False)


def transpose_by_copy(
    descriptor: Descriptor, permutation: Iterable[int], axes: Iterable[int]
) -> Transposed:
    """Transpose by a copy, so that the permutation that travels with a tensor stays as it is.

    The library's dims are in the new order, in a layout of the same order of axes and blocks,
    without gaps.

    Parameters
    ----------
    descriptor, permutation, axes
        As :func:`transpose_by_permutation` takes them.

    Raises
    ------
    LayoutError
        If the ranks differ, or one of the two is no permutation.

    Notes
    -----
    The RFC's second option (section 4.1).  Nothing moves if all axes that change places are of
    size 1.
    """
    at = checked(permutation, descriptor.rank)
    source = compose(inverse(at), compose(checked(axes, descriptor.rank), at))
    view = descriptor.permute_axes(inverse(source))
    copy = descriptor.like(view.dims)
    return Transposed(copy, at, copy != view)
