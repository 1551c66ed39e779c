"""Layouts as the result format writes them: pieces, each a box of strided loops.

A piece ``(origin, from, to, ((extent, from_stride, to_stride), ...))`` says that element
``to + sum(i * to_stride)`` of its sink takes the location of element
``from + sum(i * from_stride)`` of tensor ``origin``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

Loop: TypeAlias = tuple[int, int, int]
"""``(extent, from_stride, to_stride)`` over flat indices."""

Piece: TypeAlias = tuple[str, int, int, tuple[Loop, ...]]
"""``(origin, from, to, loops)``: element ``to + sum(i * to_stride)`` of a sink takes the
location of element ``from + sum(i * from_stride)`` of tensor ``origin``."""

Step: TypeAlias = str | tuple[str, int]
"""A sink that can be set whole, or ``(sink, number of one of its pieces)``."""


def outer_sum(terms: Sequence[Index], start: int = 0) -> Index:
    """Return ``start + terms[0][i_0] + terms[1][i_1] + ...``, flat in row-major order."""
    total = np.full((1,) * len(terms), start, np.int64)
    for d, term in enumerate(terms):
        total = total + term.reshape([-1 if e == d else 1 for e in range(len(terms))])
    return total.reshape(-1)


def read(piece: Piece) -> Index:
    """Return the flat elements of ``origin`` that a piece names, in its loops' order."""
    _origin, start, _to, loops = piece
    return _walk(start, [(extent, step) for extent, step, _ in loops])


def written(piece: Piece) -> Index:
    """Return the flat elements of the sink that a piece sets, in its loops' order."""
    _origin, _from, start, loops = piece
    return _walk(start, [(extent, step) for extent, _, step in loops])


def _walk(start: int, loops: Sequence[tuple[int, int]]) -> Index:
    steps = ((extent, step if extent > 1 else 0) for extent, step in loops)  # of one, any will do
    return outer_sum([np.arange(extent) * step for extent, step in steps], start)


def elements(piece: Piece) -> int:
    """Return the number of elements that a piece sets."""
    count = 1
    for extent, _, _ in piece[3]:
        count *= extent
    return count


def fault(piece: Piece, sink_size: int, origin_size: int) -> str | None:
    """Return why a piece does not fit its sink and origin, or ``None`` if it does."""
    _origin, start, to, loops = piece
    if any(extent < 1 for extent, _, _ in loops):
        return "an extent is below 1"
    for what, first, step_of, size in (
        ("from", start, 1, origin_size),
        ("to", to, 2, sink_size),
    ):
        low, high = _range(first, step_of, loops)
        if low < 0 or high >= size:
            return f"its {what!r} elements {low}..{high} leave 0..{size - 1}"
    return None


def _range(first: int, step_of: int, loops: Iterable[Loop]) -> tuple[int, int]:
    spans = [(loop[0] - 1) * loop[step_of] for loop in loops]
    return first + sum(min(s, 0) for s in spans), first + sum(max(s, 0) for s in spans)


def cover(pieces: Sequence[Piece], size: int) -> str | None:
    """Return why pieces do not cover each element of a sink exactly once, or ``None``."""
    total = sum(map(elements, pieces))
    if total != size:
        return f"pieces set {total} elements of {size}"
    seen = np.zeros(size, bool)
    for piece in pieces:
        seen[written(piece)] = True
    missing = size - int(seen.sum())
    return f"{missing} elements are set twice instead of others" if missing else None
