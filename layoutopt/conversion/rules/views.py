"""Rules of ops that give the same elements another shape: transpose, reshape and their kin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from layoutopt.conversion.rules.op import Op
from layoutopt.conversion.rules.operator import Axes, RemapError, Remapped
from layoutopt.layout.permutations import Permutation
from layoutopt.layout.reshape import Group, Known, common_ends, groups_between, wide, written_sizes

REST = "-1"
"""The name of a size that is what the others leave."""


def transpose(op: Op, permutation: Permutation) -> Remapped:
    """Compose the permutations; the result stays."""
    new = {axis: place for place, axis in enumerate(permutation)}
    return Remapped({"perm": tuple(new[axis] for axis in _order(op))}, outputs=(None,))


def transposed_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the operand's axes in the new order."""
    return (None if op.rank(0) is None else _order(op),)


def _order(op: Op) -> Permutation:
    rank = op.rank(0) or 0
    order = op.axes(rank, "perm") or tuple(range(rank))[::-1]
    if len(order) != rank:
        raise RemapError(f"{op}: perm {order} is not for {rank} axes")
    return order


def squeeze(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Move the axes to be taken away; without any, they are those of size 1."""
    if squeezed_axes(op) == (None,):
        raise RemapError(f"{op}: it is not known which axes have size 1")
    axes = op.axes(len(permutation))
    return {} if axes is None else {"axes": tuple(map(permutation.index, axes))}


def squeezed_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the axes that are left."""
    shape = op.shape(0)
    if shape is None:
        return (None,)
    gone = op.axes(len(shape))
    if gone is None and op.has(1):
        return (None,)
    if gone is None:
        if not all(isinstance(size, int) for size in shape):
            return (None,)
        gone = tuple(i for i, size in enumerate(shape) if size == 1)
    return (tuple(i for i in range(len(shape)) if i not in gone),)


def unsqueeze(op: Op, permutation: Permutation) -> Mapping[str, Any]:
    """Leave the new axes where they are; the others go round them."""
    if not op.integers("axes"):
        raise RemapError(f"{op}: it has no axes")
    return {}


def unsqueezed_axes(op: Op) -> tuple[Axes | None, ...]:
    """Return the operand's axes, and between them the new ones."""
    rank, added = op.rank(0), op.integers("axes")
    if rank is None or added is None:
        return (None,)
    new = op.axes(rank + len(added)) or ()
    old = iter(range(rank))
    return (tuple(None if i in new else next(old) for i in range(rank + len(new))),)


def flatten(op: Op, permutation: Permutation) -> Remapped:
    """Find where the two halves are now; if they changed places, so do the two axes."""
    rank, shape = len(permutation), op.shape(0) or ()
    axis = rank if op.integer("axis", 1) == rank else op.axis(1, rank)
    left = [i for i in range(axis) if shape[i] != 1]
    right = [i for i in range(axis, rank) if shape[i] != 1]
    wide = [i for i in permutation if shape[i] != 1]
    if wide == left + right:
        first, outputs = left, None
    elif wide == right + left:
        first, outputs = right, (1, 0)
    else:
        raise RemapError(
            f"{op}: axes before and from {axis} on must stay together and in order, "
            f"which {permutation} does not do"
        )
    return Remapped({"axis": permutation.index(first[-1]) + 1 if first else 0}, outputs=(outputs,))


def flatten_groups(op: Op) -> list[Group]:
    """Return which axes other than 1 a Flatten makes its first one, and which its second."""
    shape = op.shape(0) or ()
    axis = len(shape) if op.integer("axis", 1) == len(shape) else op.axis(1, len(shape))
    sides = wide(shape, 0, axis), wide(shape, axis, len(shape))
    return [(side, (i,)) for i, side in enumerate(sides) if side]


def reshape(op: Op, permutation: Permutation) -> Remapped:
    """Permute whole groups of axes that become each other; those of 1 go anywhere.

    ``(2, 6, 5)`` to ``(2, 3, 2, 5)`` splits axis 1.  With the operand's axes in the order
    ``(2, 1, 0)``, the result's come in the order ``(3, 1, 2, 0)``.
    """
    before, after = reshape_sizes(op)
    of_axis = {axis: group for group in reshape_groups(op, before, after) for axis in group[0]}
    wide = [axis for axis in permutation if axis in of_axis]
    places: list[int] = []
    while wide:
        old, new = of_axis[wide[0]]
        if tuple(wide[: len(old)]) != old:
            raise RemapError(
                f"{op}: axes {old} become {new} together; they must stay side by side in order"
            )
        places += new
        del wide[: len(old)]
    order = iter(places)
    outputs = tuple(j if j not in places else next(order) for j in range(len(after)))
    sizes = [after[j] for j in outputs], [before[i] for i in permutation]
    shape = written_sizes(*sizes, not op.integer("allowzero", 0))
    if shape is None:
        raise RemapError(f"{op}: several of its sizes are known at run time only")
    return Remapped({"shape": shape}, outputs=(outputs,))


def reshape_groups(op: Op, before: Sequence[Known], after: Sequence[Known]) -> list[Group]:
    """Return the smallest groups of axes that become each other; axes of 1 are in none.

    A group ends where both sides have the same product so far.  With a size that is what the
    others leave, this is so from the left up to it, and from the right down to it.  Raises
    ``RemapError`` if the products cannot be told to be equal.
    """
    if 0 in before or 0 in after:
        raise RemapError(f"{op}: a tensor without elements has no groups of axes")
    at = after.index(REST) if REST in after else len(after)
    ends = common_ends(before, after[:at])
    if at < len(after):
        back = common_ends(before[::-1], after[:at:-1])
        ends += [(len(before) - i, len(after) - j) for i, j in reversed(back)]
    elif ends[-1] != (len(before), len(after)):
        raise RemapError(f"{op}: it is not known which of its axes become which")
    return groups_between(before, after, ends)


def reshape_sizes(op: Op) -> tuple[list[Known], list[Known]]:
    """Return the sizes before and after a reshape, equal names for equal unknown ones.

    A shape that is told at run time only is taken from the result, where that is known.  One size
    that is not known before is what is left of those after it, where these are.  Raises
    ``RemapError`` if its shape is unknown, or leaves several sizes open.
    """
    before: list[Known] = [_named(size, f"?{i}") for i, size in enumerate(op.shape(0) or ())]
    wanted = op.integers("shape")
    known = op.output_shapes[0] if op.output_shapes else None
    told = [size for size in known or () if isinstance(size, int)]
    if known is not None and len(told) == len(known):
        numbers = [size for size in before if isinstance(size, int)]
        if len(numbers) == len(before) - 1 and 0 not in numbers:
            rest = prod(told) // prod(numbers)
            before = [size if isinstance(size, int) else rest for size in before]
        if wanted is None or len(numbers) < len(before):
            return before, list[Known](told)
    if wanted is None or (known is not None and len(known) != len(wanted)):
        raise RemapError(f"{op}: its shape is unknown")
    after: list[Known] = []
    for j, size in enumerate(wanted):
        if size == 0 and not op.integer("allowzero", 0) and j < len(before):
            after.append(before[j])
        elif size == -1:
            left = _named(known[j] if known else None, REST)
            after.append(left if isinstance(left, int) or left in before else REST)
        else:
            after.append(size)
    if after.count(REST) > 1:
        raise RemapError(f"{op}: its shape {wanted} leaves more than one size open")
    return before, after


def _named(size: int | str | None, otherwise: str) -> Known:
    if isinstance(size, str):
        return f"={size}"
    return otherwise if size is None else size
