"""Reshapes: sizes left open, and which dimensions become which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import TypeAlias

from layoutopt.layout.parts import LayoutError, sizes

MATCH = 0
"""A wanted size that is the input's, in the same place; also written ``"match"``."""

FILL = -1
"""A wanted size that takes what the others leave; also written ``"fill"``."""

Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Old dimensions, and the new ones that hold the same indices."""

_WORDS = {"match": MATCH, "fill": FILL}


def reshape_dims(shape: Sequence[int], wanted: Sequence[int | str]) -> tuple[int, ...]:
    """Return the sizes that a reshape asks for.

    Parameters
    ----------
    shape
        The input's.
    wanted
        A size for each dimension: an integer of 1 or more; 0 or ``"match"`` for the input's
        size in the same place; at most once -1 or ``"fill"`` for what the others leave.

    Raises
    ------
    LayoutError
        If a size cannot be found or is no integer, or if the number of elements is another.

    Notes
    -----
    As PlaidML's ``op::reshape``, which rounds a size that does not divide down, and divides by
    zero where the others leave nothing.
    """
    given = sizes("shape", shape)
    found = list(_wanted(given, wanted))
    if FILL in found:
        at = found.index(FILL)
        found[at] = 1
        if FILL in found:
            raise LayoutError("reshape: only one size can be filled")
        if prod(found) == 0:
            raise LayoutError("reshape: any size would fill a tensor without elements")
        found[at] = prod(given) // prod(found)
    if prod(found) != prod(given):
        text = ", ".join(map(str, wanted))
        raise LayoutError(f"reshape of {given} to ({text}): {prod(given)} elements do not fit")
    return tuple(found)


def _wanted(shape: Sequence[int], wanted: Sequence[int | str]) -> tuple[int, ...]:
    """Return the wanted sizes with those that match put in."""
    numbers: object = wanted
    if isinstance(wanted, Iterable) and not isinstance(wanted, str):
        numbers = [_WORDS.get(size, size) if isinstance(size, str) else size for size in wanted]
    try:
        asked = sizes("wanted", numbers, FILL)
    except LayoutError as error:
        raise LayoutError(f'{error}; "match" and "fill" are fine, too') from None
    for at, size in enumerate(asked):
        if size == MATCH and at >= len(shape):
            raise LayoutError(f"wanted[{at}] has nothing to match: the input is {tuple(shape)}")
    return tuple(shape[at] if size == MATCH else size for at, size in enumerate(asked))


def regroup(old: Sequence[int], new: Sequence[int], stay: Collection[int] = ()) -> list[Group]:
    """Return which dimensions of a reshape become which.

    Dimensions other than 1 are taken from the right, in the smallest groups of equal product.
    Those of 1 between two groups become those of 1 there, the last of either first; what is
    left over is removed, or added, and so are those within a group.

    Parameters
    ----------
    old, new
        The sizes before and after.
    stay
        Old dimensions of 1 to remove only if no new one of 1 is left for them.

    Returns
    -------
    list of Group
        In no order; ``((i,), ())`` is removed, ``((), (j,))`` added, ``((i,), (j,))`` kept.

    Raises
    ------
    LayoutError
        If the numbers of elements differ, or a dimension of 0 is not kept as it is.
    """
    before, after = sizes("old", old), sizes("new", new)
    if prod(before) != prod(after):
        raise LayoutError(
            f"{before} has {prod(before)} elements, {after} has {prod(after)}: no reshape"
        )
    wide_old = [i for i, size in enumerate(before) if size != 1]
    wide_new = [j for j, size in enumerate(after) if size != 1]
    groups: list[Group] = []
    end_old, end_new = len(before), len(after)
    while wide_old or wide_new:
        group = _last_group(before, after, wide_old, wide_new)
        at_old, at_new = group[0][-1] + 1, group[1][-1] + 1
        groups += _units(range(at_old, end_old), range(at_new, end_new), stay)
        inside = [i for i in range(group[0][0], at_old) if before[i] == 1]
        added = [j for j in range(group[1][0], at_new) if after[j] == 1]
        groups += [*(((i,), ()) for i in inside), *(((), (j,)) for j in added), group]
        end_old, end_new = group[0][0], group[1][0]
    groups += _units(range(end_old), range(end_new), stay)
    return groups


def _last_group(
    old: Sequence[int], new: Sequence[int], wide_old: list[int], wide_new: list[int]
) -> Group:
    """Take the last dimensions of equal product off both lists."""
    if not (wide_old and wide_new):
        raise LayoutError(f"{tuple(old)} to {tuple(new)}: a dimension of 0 can only be kept")
    left, right = [wide_old.pop()], [wide_new.pop()]
    while (have := prod(old[i] for i in left)) != (want := prod(new[j] for j in right)):
        side, rest = (left, wide_old) if have < want else (right, wide_new)
        if not rest:  # as a product of 0 never grows to the other
            raise LayoutError(f"{tuple(old)} to {tuple(new)}: a dimension of 0 can only be kept")
        side.insert(0, rest.pop())
    return tuple(left), tuple(right)


def _units(old: range, new: range, stay: Collection[int]) -> list[Group]:
    """Pair dimensions of 1, last first."""
    surplus = max(0, len(old) - len(new))
    loose = [i for i in old if i not in stay]
    # Those to stay go only when there are no others; the first go first.
    gone = [*loose, *(i for i in old if i in stay)][:surplus]
    left, right = [i for i in old if i not in gone], list(new)
    groups: list[Group] = [((i,), ()) for i in gone]
    while left or right:
        groups.append(((left.pop(),) if left else (), (right.pop(),)))
    return groups
