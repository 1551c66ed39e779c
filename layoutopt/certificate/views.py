"""What ops make of boxes: the meaning of each type of op, in indices.

A tensor's boxes have quantities ``(where, index_0, index_1, ...)``: its element at these indices
lies where the number says, with the box's tag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod
from operator import add
from typing import Any, TypeAlias

import numpy as np

from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import Box, inside

Shape: TypeAlias = tuple[int, ...]
Op: TypeAlias = dict[str, Any]

SAME = {"identity", "sum_like", "reshape", "flatten", "squeeze"}
"""Types of ops that keep the row-major order."""

CUTTING = {"slice", "sub_sample", "sett_sample"}
"""Types of ops that leave elements out."""

VIEWS = {*SAME, *CUTTING, "dim_shuffle", "reverse", "concat", "expand"}

BARRIERS = {"barrier", "sum_like_reduce"}

OWN = {*BARRIERS, "source", "fixed_point"}
"""Types of ops that have locations of their own."""

FIXED, UNTIED = (-1, 0), (-2, 0)
"""Tags of what lies where it is, and of sink elements that no pair reaches."""


def carriers(op: Op) -> list[int]:
    """Return which inputs of a view its elements come from."""
    if op["type"] == "sum_like":
        return [op["unwindable_inputs"][0]]
    return list(range(len(op["inputs"])))


def shape_of(op: Op, shapes: Sequence[Shape]) -> Shape:
    """Return the shape of a view's output, given those of its carriers."""
    [first, *_], kind = shapes, op["type"]
    if kind == "flatten":
        return (prod(first),)
    if kind == "squeeze":
        return tuple(n for n in first if n != 1)
    if kind in ("reshape", "expand"):
        return tuple(op["shape"])
    if kind == "dim_shuffle":
        return tuple(first[p] for p in op["permutation"])
    if kind == "concat":
        a = op["axis"]
        return (*first[:a], sum(shape[a] for shape in shapes), *first[a + 1 :])
    if kind in CUTTING:
        return tuple(len(kept) for kept in kept_indices(op, first))
    return first


def kept_indices(op: Op, shape: Shape) -> list[Any]:
    """Return which indices of each dimension an op keeps, in order: ranges, or arrays."""
    if op["type"] == "slice":
        return [range(a, b) for a, b in zip(op["lower"], op["upper"], strict=True)]
    if op["type"] == "sub_sample":
        return [range(0, n, s) for n, s in zip(shape, op["strides"], strict=True)]
    return [_striped(n, stripes) for n, stripes in zip(shape, op["setts"], strict=True)]


MOST_STRIPED, MOST_WALKED = 10**7, 10**8
"""The longest dimension that stripes are laid over; how many indices of one cut are looked at."""


def _striped(n: int, stripes: Sequence[Sequence[int]]) -> Any:
    if not stripes:
        return range(n)
    if n > MOST_STRIPED:
        raise Refused(f"stripes over a dimension of {n:,}; at most {MOST_STRIPED:,} are looked at")
    kept = place = np.arange(n)
    for on, off, phase in stripes:
        place = (place - phase) % (on + off)
        kept, place = kept[place < on], place[place < on]
    return kept


def carried(op: Op, shapes: Sequence[Shape], inputs: Sequence[list[Box]]) -> list[Box]:
    """Return the boxes of a view's output, given those of its carriers.

    Views that cut need boxes of which all elements are kept; those that keep the row-major order
    keep the shape, too.
    """
    kind, shape = op["type"], shapes[0]
    if kind in SAME:
        return inputs[0]
    if kind == "concat":
        axis, places = op["axis"], np.cumsum([0, *(s[op["axis"]] for s in shapes)]).tolist()
        found = []
        for at, boxes in zip(places, inputs, strict=False):
            begin = (0, *(at * (d == axis) for d in range(len(shape))))
            for tag, start, loops in boxes:
                found.append(Box(tag, tuple(map(add, start, begin)), loops))
        return found
    if kind == "dim_shuffle":
        return [box.of(0, *(1 + p for p in op["permutation"])) for box in inputs[0]]
    if kind == "reverse":
        dims = set(op["dims"])
        return [
            _moved(
                box,
                lambda d, x: shape[d] - 1 - x if d in dims else x,
                lambda d, s: -s if d in dims else s,
            )
            for box in inputs[0]
        ]
    if kind == "expand":
        return (
            []
            if 0 in op["shape"]
            else [_expanded(box, shape, tuple(op["shape"])) for box in inputs[0]]
        )
    return [_ranked(box, kept_indices(op, shape)) for box in inputs[0]]


def _moved(
    box: Box, place: Callable[[int, int], int], step: Callable[[int, int], int] = lambda _, s: s
) -> Box:
    """Return a box with other indices, and other steps, by dimension."""
    start = (box.start[0], *(place(d, x) for d, x in enumerate(box.start[1:])))
    loops = [(n, (s[0], *(step(d, x) for d, x in enumerate(s[1:])))) for n, s in box.loops]
    return Box(box.tag, start, tuple(loops))


def _expanded(box: Box, shape: Shape, out: Shape) -> Box:
    new = len(out) - len(shape)

    def grown(vector: tuple[int, ...]) -> tuple[int, ...]:
        return (vector[0], *[0] * new, *vector[1:])

    loops = [(n, grown(steps)) for n, steps in box.loops]
    for d, n in enumerate(out):
        if d < new or shape[d - new] != n:
            loops.append((n, (0, *(int(d == e) for e in range(len(out))))))
    return Box(box.tag, grown(box.start), tuple(loops))


def check_cut(op: Op, shape: Shape, kept: Sequence[Box], left: Sequence[Box]) -> None:
    """Refuse boxes of a tensor that an op does not keep, or keeps, whole."""
    own = kept_indices(op, shape)
    for box in (*kept, *left):
        if not inside(box, shape):
            raise Refused("a box of a cut is outside its tensor")
    striped = [q for q, indices in enumerate(own, 1) if not isinstance(indices, range)]
    if sum(1 + _length(box, q) for box in (*kept, *left) for q in striped) > MOST_WALKED:
        raise Refused("the boxes of a cut go through its stripes too often")
    for box in left:
        if not any(_none(box, 1 + d, indices) for d, indices in enumerate(own)):
            raise Refused("a box that a cut leaves out has elements that its op may keep")


def _none(box: Box, q: int, kept: Any) -> bool:
    """Return whether no value of one quantity of a box is among indices."""
    if not isinstance(kept, range):
        values = _values(box, q)
        ranks = np.minimum(np.searchsorted(kept, values), len(kept) - 1)
        return not len(kept) or not (kept[ranks] == values).any()
    low, high = box.ends(q)
    common = gcd(kept.step, *[steps[q] for n, steps in box.loops if n > 1])
    return not kept or high < kept[0] or low > kept[-1] or (low - kept[0]) % common != 0


def _ranked(box: Box, own: Sequence[Any]) -> Box:
    """Return a box with indices counted among those that are kept, all of which are."""
    ranks = [_ranks(box, q, kept) for q, kept in enumerate(own, 1)]
    start = (box.start[0], *(rank for rank, _ in ranks))
    loops = [(n, (s[0], *(own[k] for _, own in ranks))) for k, (n, s) in enumerate(box.loops)]
    return Box(box.tag, start, tuple(loops))


def _ranks(box: Box, q: int, kept: Any) -> tuple[int, list[int]]:
    """Return where a quantity of a box begins among indices, and its steps there."""
    places = [box.start[q], *(box.start[q] + s[q] * (n > 1) for n, s in box.loops)]
    if isinstance(kept, range):
        known = all(x in kept for x in (*places, *box.ends(q)))
        ranks = [kept.index(x) for x in places] if known else []
    else:
        ranks = np.searchsorted(kept, places).tolist()
        moved = [(n, (rank - ranks[0],)) for (n, _), rank in zip(box.loops, ranks[1:], strict=True)]
        line = Box((), (ranks[0],), tuple(moved))
        low, high = line.ends(0)
        known = low >= 0 and high < len(kept)
        known = known and np.array_equal(kept[_values(line, 0)], _values(box, q))
    if not known:
        raise Refused("a box that a cut keeps has elements that its op leaves out")
    return ranks[0], [rank - ranks[0] for rank in ranks[1:]]


def _values(box: Box, q: int) -> Any:
    """Return all values of a quantity, by the loops that move it."""
    found = np.array(box.start[q])
    for n, steps in box.loops:
        if n > 1 and steps[q]:
            found = found[..., None] + steps[q] * np.arange(n)
    return found


def _length(box: Box, q: int) -> int:
    """Return how many values of a quantity the loops that move it go through."""
    return prod([n for n, s in box.loops if s[q]])
