"""Reshapes: sizes left open, and which dimensions become which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import TypeAlias

from layoutopt.layout.parts import LayoutError, sizes

MATCH = 0
"""A wanted size that is the input's, in the same place; also written ``"match"``."""

FILL = -1
"""A wanted size that takes what the others leave; also written ``"fill"``."""

Group: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Old dimensions, and the new ones that hold the same indices."""

Known: TypeAlias = int | str
"""A size, or the name of one."""

_WORDS = {"match": MATCH, "fill": FILL}


def reshape_dims(shape: Sequence[int], wanted: Sequence[int | str]) -> tuple[int, ...]:
    """Return the sizes that a reshape asks for.

    Of each dimension an integer of 1 or more is wanted; 0 or ``"match"`` for the input's size in
    the same place; at most once -1 or ``"fill"`` for what the others leave.  As PlaidML's
    ``op::reshape``, which rounds a size that does not divide down, and divides by zero where the
    others leave nothing.
    """
    given = sizes("shape", shape)
    numbers: object = wanted
    if isinstance(wanted, Iterable) and not isinstance(wanted, str):
        numbers = [_WORDS.get(size, size) if isinstance(size, str) else size for size in wanted]
    try:
        found = list(sizes("wanted", numbers, FILL))
    except LayoutError as error:
        raise LayoutError(f'{error}; "match" and "fill" are fine, too') from None
    for at, size in enumerate(found):
        if size == MATCH:
            if at >= len(given):
                raise LayoutError(f"wanted[{at}] has nothing to match: the input is {given}")
            found[at] = given[at]
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


def written_sizes(
    after: Sequence[Known | None], before: Sequence[Known | None] = (), copies: bool = True
) -> tuple[int, ...] | None:
    """Return a shape as Reshape takes it, None if it cannot be written: numbers, -1 for one size.

    If it ``copies``, it is 0 for a size that is no number, but that of the input in the same place.
    """
    found = []
    for at, size in enumerate(after):
        same = copies and size is not None and at < len(before) and before[at] == size
        found.append(size if isinstance(size, int) else 0 if same else -1)
    return tuple(found) if found.count(-1) < 2 else None


def regroup(old: Sequence[int], new: Sequence[int], stay: Collection[int] = ()) -> list[Group]:
    """Return which dimensions of a reshape become which, in no order.

    Dimensions other than 1 are taken from the right, in the smallest groups of equal product.
    Those of 1 between two groups become those of 1 there, the last of either first; what is left
    over is removed, those of ``stay`` last, or added, and so are those within a group.
    ``((i,), ())`` is removed, ``((), (j,))`` added, ``((i,), (j,))`` kept.
    """
    before, after = sizes("old", old), sizes("new", new)
    if prod(before) != prod(after):
        raise LayoutError(
            f"{before} has {prod(before)} elements, {after} has {prod(after)}: no reshape"
        )
    ends = common_ends(*([size or "0" for size in side] for side in (before, after)))
    groups = groups_between(before, after, ends)
    empty = any(
        0 in (before[i] for i in group[0]) and group != (group[0][:1], group[1][:1])
        for group in groups
    )
    if empty or ends[-1] != (len(before), len(after)):
        raise LayoutError(f"{before} to {after}: a dimension of 0 can only be kept")
    found: list[Group] = []
    end_old, end_new = len(before), len(after)
    for left, right in reversed(groups):
        found += _units(range(left[-1] + 1, end_old), range(right[-1] + 1, end_new), stay)
        found += [((i,), ()) for i in range(left[0], left[-1]) if before[i] == 1]
        found += [((), (j,)) for j in range(right[0], right[-1]) if after[j] == 1]
        found.append((left, right))
        end_old, end_new = left[0], right[0]
    return found + _units(range(end_old), range(end_new), stay)


def groups_between(
    before: Sequence[Known | None], after: Sequence[Known | None], ends: Sequence[tuple[int, int]]
) -> list[Group]:
    """Return the dimensions other than 1 between neighbours of places with equal products."""
    return [(wide(before, i, k), wide(after, j, m)) for (i, j), (k, m) in pairwise(ends) if i < k]


def wide(sizes: Sequence[Known | None], start: int, stop: int) -> tuple[int, ...]:
    """Return the dimensions other than 1 of a range."""
    return tuple(i for i in range(start, stop) if sizes[i] != 1)


def common_ends(before: Sequence[Known], after: Sequence[Known]) -> list[tuple[int, int]]:
    """Return the places up to which both sides have equal products, from the left."""
    left, right = _products(before), _products(after)
    return [(left[product], right[product]) for product in left if product in right]


def _products(sizes: Sequence[Known]) -> dict[tuple[int, tuple[str, ...]], int]:
    """Return each product of leading sizes, and the largest number of sizes that gives it."""
    number, names = 1, list[str]()
    found = {(number, tuple(names)): 0}
    for place, size in enumerate(sizes, 1):
        if isinstance(size, int):
            number *= size
        else:
            names = sorted([*names, size])
        found[number, tuple(names)] = place
    return found


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
