"""Any layout as a target on a tile memory: which tile each element of a tensor is on.

A tensor's physical array, padding of blocks included and gaps of alignment left out, is spread
over the tiles by the linear rule.  An element is on the tile of its place in that array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from layoutopt.base.limits import require
from layoutopt.layout.layout import Dim, Layout, plain
from layoutopt.layout.placement import Array, LayoutLike, Placement, as_layout, placement
from layoutopt.layout.transform import transform
from layoutopt.tiles.blocks import Steps, TileMap, tile_map_of
from layoutopt.tiles.memory import TileMemory
from layoutopt.tiles.rules import linear

LISTED = 40
"""About how many bytes an element takes where all are listed."""


def tile_mapping(
    layout: LayoutLike, shape: Sequence[int], memory: TileMemory, **parameters: Any
) -> Array:
    """Return the tile of each element of a tensor, flat in row-major order of its shape.

    ``graph.source(shape, mapping=...)`` takes it, so that the source lies as the layout says.

    Parameters
    ----------
    layout
        The layout, or its text.
    shape
        The tensor's shape, in logical order.
    memory
        The machine.
    parameters
        ``logical``, the axes in logical order, by default that of the layout; and those of
        :func:`~layoutopt.tiles.rules.linear`, of the physical array.

    Raises
    ------
    InputError
        If the layout cannot be read, leaves something open, the shape does not fit, or a number
        is below 1.
    SizeError
        If the elements do not fit this machine's memory.

    Examples
    --------
    >>> tile_mapping("HW2h", (4, 2), TileMemory(4, 1024)).reshape(4, 2)
    array([[0, 1],
           [0, 1],
           [2, 3],
           [2, 3]])
    """
    found = layout_rule(shape, memory, layout=layout, **parameters)
    require(16 * found.size, f"the tiles of all elements of shape {found.shape}")
    return found.tiles()


def layout_rule(
    shape: Sequence[int],
    memory: TileMemory,
    *,
    layout: LayoutLike,
    logical: str | None = None,
    min_elements_per_tile: int = 1,
    grain: int | None = None,
    boxes: bool = False,
) -> TileMap:
    """Return the same as a tile map, as a rule that sources can have.

    ``rule("layout")(layout_rule)`` makes ``{"kind": "layout", "layout": "NCHW16c"}`` known, with
    the other parameters if wanted.  With ``boxes``, and for layouts that move nothing, the map
    has steps along axes, and tensors may be of any size; otherwise all elements are listed.
    """
    given = as_layout(layout)
    dense = Layout(tuple(Dim(dim.blocks) for dim in given.dims), undefined=given.undefined)
    place = placement(dense, shape, logical)
    extents = tuple(factor.size for factor in chain(*place.form))
    spread = linear(
        extents, memory, min_elements_per_tile=min_elements_per_tile, grain=grain, boxes=boxes
    )
    if transform(plain(place.logical), dense, shape, logical=place.logical).is_free:
        return spread
    if spread.shape == extents:
        axes = range(len(place.shape))
        return TileMap(place.shape, tuple(_steps(place, spread, axis) for axis in axes))
    require(LISTED * math.prod(place.shape), f"the tiles of all elements in layout {layout}")
    return tile_map_of(spread.at(place.offset_map()))


def _steps(place: Placement, spread: TileMap, axis: int) -> Steps:
    """Return what indices along an axis add to an element's tile, for a spread of blocks."""
    index = np.arange(place.shape[axis])
    total = np.zeros(len(index), np.int64)
    for (own, weight, extent), steps in zip(chain(*place.form), spread.steps, strict=True):
        if own == axis:
            total += steps.at(index // weight % extent)
    return Steps(index, total).merged()
