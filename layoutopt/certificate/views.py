"""Semantics of each op type: shape of its output, and positions of its inputs' elements.

Elements are flat row-major indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, product
from math import prod
from typing import Any, TypeAlias

import numpy as np

from layoutopt.certificate.refused import Refused
from layoutopt.certificate.sums import CertifiedBox

Shape: TypeAlias = tuple[int, ...]
Op: TypeAlias = dict[str, Any]

SAME = {"identity", "sum_like", "reshape", "flatten", "squeeze"}
"""Types of ops that keep the row-major order."""

CUTTING = {"slice", "sub_sample", "sett_sample"}  # types of ops that omit elements

VIEWS = {*SAME, *CUTTING, "dim_shuffle", "reverse", "concat", "expand"}

BARRIERS = {"barrier", "sum_like_reduce"}

OWN = {*BARRIERS, "source", "fixed_point"}  # types of ops whose outputs own locations

FIXED, UNTIED = (-1, 0), (-2, 0)
"""Tags of elements at fixed locations, and of unconstrained sink elements."""

LONGEST, MOST_PIECES = 10**7, 2 * 10**5
"""Limits: size of a dimension with stripes, and boxes of an op."""


def carriers(op: Op) -> list[int]:
    """Return the indices of a view's carriers."""
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
    if kind in SAME:
        return first
    every = [[along(op, shapes, c, d)[1] for d in range(len(first))] for c in range(len(shapes))]
    sizes = [[sum(box.members for box in boxes) for boxes in dims] for dims in every]
    return tuple(
        sum(own) if d == op.get("axis") else own[0]
        for d, own in enumerate(zip(*sizes, strict=True))
    )


def relation(op: Op, shapes: Sequence[Shape]) -> list[list[CertifiedBox]]:
    """Return for each carrier of a view boxes ``(element, element of the output)``."""
    out = shape_of(op, shapes)
    if op["type"] in SAME:
        return [line(prod(out))]
    found, there = [], steps_of(out)
    for c, shape in enumerate(shapes):
        here = steps_of((*[1] * (len(out) - len(shape)), *shape))
        dims: list[list[CertifiedBox]] = []
        for d, step in enumerate(there):
            e, boxes = along(op, shapes, c, d)
            dims.append([scaled(box, (here[e], step)) for box in boxes])
        found.append(crossed(dims, 2))
    return found


def along(op: Op, shapes: Sequence[Shape], c: int, d: int) -> tuple[int, list[CertifiedBox]]:
    """Return the dimension of a carrier for one of the output, and the map of indices.

    If the output has more dimensions, leading ones of size 1 are added to the carrier.  The map is
    boxes ``(index there, index in the output)``.
    """
    kind, n = op["type"], shapes[c][d] if d < len(shapes[c]) else 1
    if kind == "dim_shuffle":
        p = op["permutation"][d]
        return p, line(shapes[c][p])
    if kind == "reverse":
        return d, line(n, n - 1, -1) if d in op["dims"] else line(n)
    if kind == "concat":
        before = sum(shape[d] for shape in shapes[:c]) if d == op["axis"] else 0
        return d, line(n, 0, 1, before)
    if kind == "expand":
        own = (*[1] * (len(op["shape"]) - len(shapes[c])), *shapes[c])[d]
        return d, line(op["shape"][d], 0, int(own == op["shape"][d]))
    if kind == "slice":
        return d, line(op["upper"][d] - op["lower"][d], op["lower"][d])
    if kind == "sub_sample":
        return d, line(-(-n // op["strides"][d]), 0, op["strides"][d])
    return d, runs(kept_of(n, op["setts"][d])) if op["setts"][d] else line(n)


def line(n: int, first: int = 0, stride: int = 1, at: int = 0) -> list[CertifiedBox]:
    """Return boxes ``(index, index)`` of a strided map of ``n`` indices."""
    return [CertifiedBox((), (first, at), ((n, (stride, 1)),))] if n else []


def kept_of(n: int, stripes: Sequence[Sequence[int]]) -> Any:
    """Return the indices that stripes keep of a dimension."""
    if n > LONGEST:
        raise Refused(f"stripes over a dimension of size {n:,}; at most {LONGEST:,} is supported")
    kept = place = np.arange(n)
    for on, off, phase in stripes:
        place = (place - phase) % (on + off)
        kept, place = kept[place < on], place[place < on]
    return kept


def runs(kept: Any) -> list[CertifiedBox]:
    """Return boxes ``(index, rank)`` of ascending indices."""
    if not len(kept):
        return []
    begin = np.flatnonzero(np.diff(kept, prepend=kept[0] - 2) > 1)
    first, length = kept[begin], np.diff(begin, append=len(kept))
    gap = np.diff(first, prepend=first[0])
    odd = (np.diff(length, prepend=0) != 0) | (np.diff(gap, prepend=0) != 0)
    found = []
    for a, b in pairwise([*np.flatnonzero(odd).tolist(), len(first)]):
        n, step = int(length[a]), int(gap[a])
        start = (int(first[a]), int(begin[a]))
        found.append(CertifiedBox((), start, ((n, (1, 1)), (b - a, (step, n)))))
    return found


def steps_of(shape: Shape) -> list[int]:
    """Return the strides of a shape."""
    return [*accumulate(shape[:0:-1], initial=1, func=lambda a, n: a * n)][::-1] if shape else []


def scaled(box: CertifiedBox, by: Sequence[int]) -> CertifiedBox:
    """Return a box with all quantities multiplied."""

    def times(vector: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([x * s for x, s in zip(vector, by, strict=True)])

    return CertifiedBox(
        box.tag, times(box.start), tuple([(n, times(step)) for n, step in box.loops])
    )


def crossed(dims: Sequence[Sequence[CertifiedBox]], width: int) -> list[CertifiedBox]:
    """Return the boxes of all sums of one member per dimension."""
    if prod(map(len, dims)) > MOST_PIECES:
        raise Refused(f"an op divides its input into more than {MOST_PIECES:,} boxes")
    zero = [0] * width
    return [
        CertifiedBox(
            (),
            tuple(map(sum, zip(zero, *(box.start for box in own), strict=True))),
            tuple([loop for box in own for loop in box.loops]),
        )
        for own in product(*dims)
    ]
