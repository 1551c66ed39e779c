"""Pictures of small tensors' elements in memory, as SVG and as lines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layoutopt.layout.layout import LayoutError
from layoutopt.layout.placement import Array, LayoutLike, Placement, as_layout, placement
from layoutopt.pictures import grids, svg
from layoutopt.pictures.colours import palette
from layoutopt.pictures.svg import Picture, width

MARGIN, HEAD = 12.0, 34.0
"""Around the grid, and above it for the title, in pixels."""

COLOURS = 60
"""An axis of more values repeats its colours."""

LINES, ACROSS = 16, 16
"""How much of memory is shown as text: lines, and elements of each."""


def draw(
    layout: LayoutLike,
    shape: Sequence[int],
    *,
    logical: str | None = None,
    colour: str | None = None,
    element_bytes: int = 4,
) -> Picture:
    """Return memory as a grid: a cell for each element, in the order in which they lie.

    Grids have the last two physical dimensions as rows and columns.  A cell shows the element's
    flat index in logical order and is coloured by its place along one axis, ``colour``, by default
    C, or the second one, or the only one; padding is white.  Neither large tensors are drawn, nor
    layouts with gaps, which elements of ``element_bytes`` may need for alignments.
    """
    place = placement(layout, shape, logical, element_bytes)
    extents = place.physical_shape
    if math.prod(extents) != place.size:
        raise LayoutError(f"{layout}: layouts with gaps of alignment are not drawn")
    plan = grids.plan(extents)
    if plan is None:
        raise LayoutError(f"{layout}: {place.size:,} elements are too many, or too few, to draw")
    axis = _axis(place.logical, colour)
    index, inside = place.indices(np.arange(place.size))
    flat = _flat(index, inside, place.shape)
    fills = palette([min(place.shape[axis], COLOURS)])[0] if place.shape else [grids.OWN]
    along = index[axis] if place.shape else np.zeros(1, np.int64)
    named = list(zip(map(str.lower, place.logical), index, strict=True))
    places = [[f"{a}={int(along[i])}" for a, along in named] for i in range(place.size)]
    cells = grids.CellGrid(
        tuple(
            fills[a % len(fills)] if here else grids.BLANK
            for a, here in zip(along.tolist(), inside.tolist(), strict=True)
        ),
        tuple(str(f) if f >= 0 else "" for f in flat.tolist()),
        tuple(
            f"offset {i}: {' '.join(told) or 'the element'}" if here else f"offset {i}: padding"
            for i, (here, told) in enumerate(zip(inside.tolist(), places, strict=True))
        ),
    )
    axes = zip(place.logical, place.shape, strict=True)
    title = f"{as_layout(layout)} of {' '.join(f'{a}={n}' for a, n in axes) or 'a scalar'}"
    head = svg.text(title, MARGIN, 20, 12, font_weight="bold")
    wide = max(plan.width, width(title, 12.5)) + 2 * MARGIN
    picture = svg.document(
        [head, grids.draw(plan, cells, MARGIN, HEAD)], wide, plan.height + HEAD + MARGIN, title
    )
    return Picture(picture)


def memory_lines(place: Placement) -> list[str]:
    """Return memory as text: a line for each run of the last physical dimension.

    Numbers are flat indices in logical order; dots are padding.  Long lines and long lists are
    cut short with an ellipsis.
    """
    extents, steps = place.physical_shape, place.strides
    if not math.prod(extents):
        return []
    last, count = extents[-1] if extents else 1, math.prod(extents[:-1])
    runs = [np.unravel_index(i, extents[:-1]) for i in range(min(count, LINES))]
    shown = min(last, ACROSS)
    digits = len(str(math.prod(place.shape) - 1)) if place.shape else 1
    lines = []
    for run in runs:
        first = sum(int(i) * step for i, step in zip(run, steps, strict=False))
        step = steps[-1] if extents else 1
        where = first + step * np.arange(shown)
        index, inside = place.indices(where)
        numbers = _flat(index, inside, place.shape).tolist()
        words = [(str(n) if n >= 0 else ".").rjust(digits) for n in numbers]
        lines.append(f"{first:>6}: {' '.join(words)}{' …' if shown < last else ''}")
    if count > LINES:
        lines.append(f"     …  {count:,} lines, {place.nbytes:,} bytes")
    return lines


def _flat(index: Sequence[Array], inside: NDArray[np.bool_], shape: tuple[int, ...]) -> Array:
    """Return flat indices in logical order, -1 for padding."""
    if not shape:
        return np.where(inside, 0, -1)
    safe = tuple(np.where(inside, along, 0) for along in index)
    return np.where(inside, np.ravel_multi_index(safe, shape), -1)


def _axis(axes: str, colour: str | None) -> int:
    if colour is None:
        return axes.index("C") if "C" in axes else min(1, max(len(axes) - 1, 0))
    if colour not in axes or len(colour) != 1:
        raise LayoutError(f"colours follow one of the axes {', '.join(axes)}, not {colour!r}")
    return axes.index(colour)
