"""What becomes of an op whose operands' axes are put in another order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from layoutopt.layout.layout import LayoutError
from layoutopt.layout.permutations import Permutation

Axes: TypeAlias = tuple[int | None, ...]
"""For each axis of a result the axis of the operand that it is, or takes the place of; None for
one that the op adds."""


class RemapError(LayoutError):
    """An op that cannot run with its axes in the order asked for; the text says why."""


@dataclass(frozen=True)
class Remapped:
    """An op for operands whose axes are in another order.

    Permutations are as for ``numpy.transpose``: ``p[i]`` is the former place of axis ``i``.

    Parameters
    ----------
    attributes
        The new attributes.  A rule need not repeat those that stay.
    inputs
        For each input the permutation that it must come in.  One that is longer than the input's
        rank wants axes of size 1 put in front first, as in broadcasting.  None: as before.
    outputs
        For each output the permutation in which it comes out; None: as before.
    entries
        For inputs, and behind all inputs for outputs, that are vectors with an entry per axis:
        which entries a Gather picks.  It stands before an input, and picks from the vector as it
        was; behind an output it picks from what the op gives now.
    operands
        The inputs in the order in which the op takes them now; None: as before.
    type
        The type of op that it becomes, ``""`` for the same.
    """

    attributes: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Permutation | None, ...] | None = None
    outputs: tuple[Permutation | None, ...] | None = None
    entries: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    operands: Permutation | None = None
    type: str = ""


def fitted(permutation: Permutation, rank: int) -> Permutation | None:
    """Return the permutation for an operand that is broadcast, None if it can stay as it is.

    Parameters
    ----------
    permutation
        That of the axes of what it is broadcast to.
    rank
        How many axes the operand has.
    """
    front = len(permutation) - rank
    tail = permutation[front:]
    if tail == tuple(range(front, len(permutation))):
        return None
    alone = is_identity(permutation[:front])
    return tuple(axis - front for axis in tail) if alone else permutation


def carried_along(axes: Axes, permutation: Permutation) -> Permutation:
    """Return the order in which a result's axes come out.

    Those that are axes of the operand keep the operand's new order among themselves; those that
    the op adds stay where they are.

    Parameters
    ----------
    axes
        What the result's axes are.
    permutation
        That of the operand's axes.
    """
    new = {axis: place for place, axis in enumerate(permutation)}
    old = [(new[axis], i) for i, axis in enumerate(axes) if axis is not None]
    order = iter(sorted(old))
    return tuple(i if axis is None else next(order)[1] for i, axis in enumerate(axes))


def permuted(values: Sequence[Any], permutation: Sequence[int]) -> tuple[Any, ...]:
    """Return the values of axes in the new order of these."""
    return tuple(values[i] for i in permutation)


def is_identity(permutation: Sequence[int]) -> bool:
    """Return whether a permutation changes nothing."""
    return all(i == axis for i, axis in enumerate(permutation))
